"""What the lower bound of a task is made of: cycles by cause, which say which limit of a device binds a design."""

from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from compiler.closed_form import TaskForm

Floats = NDArray[np.float64]


class Cause(StrEnum):
    """What cycles are spent on; host work that no schedule changes counts as the host's."""

    MULTIPLY = "multiply cadence"
    ROWS = "row turn-around"
    BOUNDARIES = "mode changes between blocks"
    REGISTERS = "register and buffer traffic"
    ENDS = "first fill, last read-out and refresh"
    ACTIVATION = "activation budget"
    LINK = "link"
    HOST = "host"


# What an architect would change to relax each limit.
LEVERS = {
    Cause.MULTIPLY: "more units or lanes, or a shorter all-bank multiply cadence",
    Cause.ROWS: "larger rows, or a shorter precharge and activate",
    Cause.BOUNDARIES: "a larger global buffer, more accumulators, or a shorter mode change",
    Cause.REGISTERS: "a wider bus to buffer and registers, or more accumulators",
    Cause.ENDS: "a shorter refresh, or fewer and longer programs",
    Cause.ACTIVATION: "a larger activation budget, or fewer bytes opened at once",
    Cause.LINK: "a link of lower latency or more bandwidth, or fewer exchanges with the host",
    Cause.HOST: "a faster host, or units that do the host's work",
}


def causes_of(form: TaskForm) -> dict[Cause, Floats]:
    """Return the cycles of one occurrence by cause; they add up to the task's bound.

    The link's share is its latency and what its transfers take longer than the channel. Where the spacing of activates
    decides, the activation budget's share is what it adds to the work of the chain.
    """
    zero = np.zeros(len(form.bound))
    parts = {name: np.asarray(values, dtype=np.float64) + zero for name, values in form.parts.items()}
    chain = parts["multiply"] + parts["rows"] + parts["boundaries"] + parts["registers"]
    beyond = parts["channel"] - chain
    held_back = (parts["activation_limit"] >= parts["channel"]) & (parts["channel"] > 0)
    return {
        Cause.MULTIPLY: parts["multiply"],
        Cause.ROWS: parts["rows"],
        Cause.BOUNDARIES: parts["boundaries"],
        Cause.REGISTERS: parts["registers"],
        Cause.ENDS: np.where(held_back, 0.0, beyond),
        Cause.ACTIVATION: np.where(held_back, beyond, 0.0),
        Cause.LINK: form.bound - parts["channel"] - parts["host"],
        Cause.HOST: parts["host"],
    }
