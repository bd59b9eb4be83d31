"""What the lower bound of a task is made of: cycles by cause, which say which limit of a device binds a design."""

from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from compiler.closed_form import TaskForm
from compiler.device_table import DeviceTable
from simulator.isa import CODE_OF, Kind

Floats = NDArray[np.float64]


class Cause(StrEnum):
    """What cycles are spent on; host work that no schedule changes counts as the host's.

    The dispatcher is in no closed form: its time is what the simulation counts.
    """

    MULTIPLY = "multiply cadence"
    ROWS = "row turn-around"
    BOUNDARIES = "mode changes between blocks"
    BUFFER = "global-buffer reloads"
    READOUT = "accumulator read-out over the bus"
    ENDS = "first fill, last read-out and refresh"
    ACTIVATION = "activation budget"
    LINK = "link"
    HOST = "host"
    DISPATCHER = "dispatcher"


# The causes whose cycles a channel is busy with, one after the other.
CHANNEL_CAUSES = (
    *(Cause.MULTIPLY, Cause.ROWS, Cause.BOUNDARIES, Cause.BUFFER, Cause.READOUT, Cause.ENDS),
    Cause.ACTIVATION,
)

# What an architect would change to relax each limit.
LEVERS = {
    Cause.MULTIPLY: "more units or lanes, or a shorter all-bank multiply cadence",
    Cause.ROWS: "larger rows, or a shorter precharge and activate",
    Cause.BOUNDARIES: "a larger global buffer, more accumulators, or a shorter mode change",
    Cause.BUFFER: "a larger global buffer, more vectors per multiply, or a wider bus to it",
    Cause.READOUT: "a wider read-out, more accumulators, or fewer banks that each give a result",
    Cause.ENDS: "a shorter refresh, or fewer and longer programs",
    Cause.ACTIVATION: "a larger activation budget, or fewer bytes opened at once",
    Cause.LINK: "a link of lower latency or more bandwidth, or fewer exchanges with the host",
    Cause.HOST: "a faster host, or units that do the host's work",
    Cause.DISPATCHER: "more instructions per cycle, or a sequencer that runs loops by itself",
}


def causes_of(form: TaskForm, table: DeviceTable) -> dict[Cause, Floats]:
    """Return the cycles of one occurrence by cause; they add up to the task's bound.

    The link's share is its latency and what its transfers take longer than the channel. Where the spacing of activates
    decides, the activation budget's share is what it adds to the work of the chain. Register mode is divided between
    buffer and read-out as their commands take time on the bus. Host work counts as far as it is not beside the channel.
    """
    zero = np.zeros(len(form.bound))
    parts = {name: np.asarray(values, dtype=np.float64) + zero for name, values in form.parts.items()}
    chain = parts["multiply"] + parts["rows"] + parts["boundaries"] + parts["registers"]
    beyond = parts["channel"] - chain
    held_back = (parts["activation_limit"] >= parts["channel"]) & (parts["channel"] > 0)
    buffer_share = _buffer_share(form, table)
    host = np.minimum(parts["host"], form.bound - parts["channel"])
    # With two row buffers opening a row and changing modes may overlap: what the chain takes off again is the row's.
    overlap = np.minimum(parts["boundaries"], 0.0)
    return {
        Cause.MULTIPLY: parts["multiply"],
        Cause.ROWS: parts["rows"] + overlap,
        Cause.BOUNDARIES: parts["boundaries"] - overlap,
        Cause.BUFFER: parts["registers"] * buffer_share,
        Cause.READOUT: parts["registers"] * (1 - buffer_share),
        Cause.ENDS: np.where(held_back, 0.0, beyond),
        Cause.ACTIVATION: np.where(held_back, beyond, 0.0),
        Cause.LINK: form.bound - parts["channel"] - host,
        Cause.HOST: host,
    }


def _buffer_share(form: TaskForm, table: DeviceTable) -> Floats:
    """Return the share of buffer writes in the bus time of buffer and accumulators: float[n]."""
    timing = table.timing
    if table.pool.runs_microkernels:
        written, stored = (form.commands[:, CODE_OF[kind]] * timing["nCCDL"] for kind in (Kind.WR8, Kind.ST8))
        read = form.commands[:, CODE_OF[Kind.RD]] * timing["nCCDS"]
        of_inputs: Floats = written / np.maximum(written + stored + read, 1.0)
        return of_inputs
    buffer = form.commands[:, CODE_OF[Kind.WRGB]] * np.maximum(timing["nBLGB"], timing["nCCDS"])
    entries = form.commands[:, CODE_OF[Kind.WRMAC16]] + form.commands[:, CODE_OF[Kind.RDMAC16]]
    whole = buffer + entries * np.maximum(timing["nBLREG"], timing["nCCDL"])
    share: Floats = buffer / np.maximum(whole, 1.0)
    return share
