"""The hardware knobs: what a search may change on a base device, each declared once.

A declaration gives a knob's values, unit, meaning and the outputs its laws move (`simulator.laws`); what a knob surely
moves but no law covers is named as not modelled. Capacity per device stays that of the base device, rows per bank
follow; harvested banks alone take capacity away.
"""

from dataclasses import dataclass, fields
from typing import Any

from configs.device import Device
from configs.number_format import STORAGE, NumberFormat
from configs.refresh import RefreshPolicy
from configs.structure import CommandBanks, Ecc, PimLevel, UnitFormats

OWN_LINK = "own"
DISPATCHER_CYCLES = 64  # the dispatcher's rate is counted in instructions per so many cycles


@dataclass(frozen=True, slots=True)
class HardwareKnobs:
    """One choice of every knob; in the vectorised laws the same record holds arrays, one entry per device."""

    channels: Any
    banks_per_channel: Any
    bank_groups: Any
    row_bytes: Any
    rows_per_subarray: Any
    row_buffers: Any
    column_bytes: Any
    lanes: Any
    vectors_per_multiply: Any
    accumulators: Any
    readout_bytes: Any
    global_buffer_bytes: Any
    buffer_ports: Any
    pim_level: Any
    banks_per_unit: Any
    command_banks: Any
    activation_current_percent: Any
    activation_stagger_cycles: Any
    unit_clock_mhz: Any
    mac_power_cap_percent: Any
    refresh_policy: Any
    temperature_c: Any
    unit_formats: Any
    ecc: Any
    harvested_banks: Any
    instructions_per_64_cycles: Any
    sequencer_loop_depth: Any
    host_link: Any


Value = int | str


@dataclass(frozen=True, slots=True)
class KnobDeclaration:
    """What a knob is: the values a search draws from, its unit, what it means, and the outputs its laws move."""

    name: str
    values: tuple[Value, ...]
    unit: str
    meaning: str
    laws: str
    not_modelled: str = ""


HARDWARE_KNOBS = (
    KnobDeclaration(
        "channels",
        (8, 16, 32, 64),
        "",
        "channels of a device; each adds an interface and its units",
        "rows per bank, tRCD, tRAS, tRC, tRFC, row and column energy, standby, area",
    ),
    KnobDeclaration(
        "banks_per_channel",
        (4, 8, 16, 32, 64),
        "",
        "banks of a channel, as built",
        "tRCD, tRAS, tRC, tRRD, tFAW, activation spacing, tRFCpb, read-out bursts, row and column energy, area",
    ),
    KnobDeclaration("bank_groups", (2, 4, 8), "", "bank groups of a channel", "units at group level, area"),
    KnobDeclaration(
        "row_bytes",
        (1024, 2048, 4096, 8192),
        "B",
        "row buffer of a bank: bytes opened by one activate",
        "tRCD, tRAS, tRC, tRRD, tFAW, activation spacing, row energy, area",
        "pages below 1 KB: the sweeps behind the laws are unreal there",
    ),
    KnobDeclaration(
        "rows_per_subarray",
        (512, 1024, 2048),
        "",
        "cells on a bitline: rows that share sense amplifiers",
        "tRAS, tRP, tRCD, row energy, area",
    ),
    KnobDeclaration(
        "row_buffers",
        (1, 2),
        "",
        "row buffers of a bank; units multiply from the second while a row is opened or accessed",
        "overlap of activates and multiplies, area",
    ),
    KnobDeclaration(
        "column_bytes",
        (16, 32, 64, 128),
        "B",
        "what one column access delivers to the unit or the bus",
        "bursts, cadence by power, column and multiply energy, area of the column path",
    ),
    KnobDeclaration(
        "lanes", (8, 16, 32, 64), "", "multipliers of a unit for one vector", "buffer bursts, multiply energy, area"
    ),
    KnobDeclaration(
        "vectors_per_multiply",
        (1, 2, 4, 8),
        "",
        "vectors a fetched column is multiplied with at once: multiply-accumulates per value fetched",
        "multiplies per step, cadence by buffer ports, multiply energy, area",
    ),
    KnobDeclaration("accumulators", (8, 16, 32, 64), "", "partial sums a unit keeps", "spills and mode changes, area"),
    KnobDeclaration(
        "readout_bytes", (8, 16, 32), "B", "accumulator bytes that leave a channel per burst", "read-out, area"
    ),
    KnobDeclaration(
        "global_buffer_bytes", (1024, 2048, 4096, 8192), "B", "input vectors kept beside the units", "reloads, area"
    ),
    KnobDeclaration(
        "buffer_ports",
        (1, 2, 4),
        "",
        "global-buffer columns that reach the units per multiply; matters with several vectors per multiply",
        "multiply cadence, area",
    ),
    KnobDeclaration(
        "pim_level",
        tuple(PimLevel),
        "",
        "where units sit: beside banks, at the bus of each bank group, or on the buffer die below the channel",
        "units, path energy, multiply cadence, area",
    ),
    KnobDeclaration(
        "banks_per_unit",
        (1, 2, 4),
        "",
        "banks that share a unit and are opened together; at bank level",
        "units, parallel banks, read-out, tRRD, tFAW, tRFCpb, area",
    ),
    KnobDeclaration(
        "command_banks",
        tuple(CommandBanks),
        "",
        "banks that one multiply drives: all, those of a group, or one; at bank level",
        "parallel banks, read-out, tRRD, tFAW, tRFCpb",
        "area of the command decoders",
    ),
    KnobDeclaration(
        "activation_current_percent",
        (50, 100, 200),
        "%",
        "charge that may be activated per time, of the base device's",
        "spacing of all-bank activates, area",
    ),
    KnobDeclaration(
        "activation_stagger_cycles",
        (0, 1, 2),
        "cycles",
        "between the banks of an all-bank activate",
        "tRCD, tRAS, tRC, area of charge reservoirs",
    ),
    KnobDeclaration(
        "unit_clock_mhz", (500, 667, 1000, 2000), "MHz", "columns a unit takes per microsecond", "cadence, area"
    ),
    KnobDeclaration(
        "mac_power_cap_percent",
        (25, 50, 100, 200),
        "%",
        "power of all-bank multiplies per channel, of the base device's cap",
        "multiply cadence",
        "area and cost of power delivery",
    ),
    KnobDeclaration(
        "refresh_policy",
        (str(RefreshPolicy.ALL_BANK), str(RefreshPolicy.PER_BANK)),
        "",
        "refresh of all banks at once or of one after the other",
        "refresh stalls",
        "area of the refresh control",
    ),
    KnobDeclaration("temperature_c", (85, 95), "C", "hottest cells; above 85 refreshes come twice as often", "refresh"),
    KnobDeclaration(
        "unit_formats",
        tuple(UnitFormats),
        "",
        "stored formats that units decode: 16-bit, 8-bit too, or 4-bit and scales in rows too",
        "what fits, area",
    ),
    KnobDeclaration(
        "ecc",
        tuple(Ecc),
        "",
        "on-die error correction between the cells and the unit",
        "activate to multiply, single-value writes, column energy, area",
    ),
    KnobDeclaration(
        "harvested_banks",
        (0, 1, 2),
        "",
        "banks of each channel fused off; all-bank commands drive the others",
        "capacity, parallel banks, stagger, tRRD, tFAW, activation spacing, tRFCpb",
        "yield",
    ),
    KnobDeclaration(
        "instructions_per_64_cycles",
        (1, 4, 16, 64),
        "",
        "instructions that the dispatcher sends to the channels in 64 cycles",
        "latency of short programs",
        "area and energy of the dispatcher",
    ),
    KnobDeclaration(
        "sequencer_loop_depth",
        (0, 2, 4),
        "",
        "nested loops a channel's sequencer runs by itself from one instruction each",
        "instructions per token",
        "area of the sequencer",
    ),
    KnobDeclaration(
        "host_link",
        (OWN_LINK, "pcie5-x8", "pcie6-x16", "memory-bus"),
        "",
        "what lies between host and device: the base device's own link, another, or a host in the memory controller",
        "transfer times, link energy",
        "area of the interface",
    ),
)


def base_knobs(device: Device) -> HardwareKnobs:
    """Return the knob values a device has as described."""
    organisation, unit, built = device.organisation, device.unit, device.structure
    dispatcher = device.dispatcher
    return HardwareKnobs(
        channels=organisation.channels,
        banks_per_channel=organisation.banks * built.gang + built.harvested_banks,
        bank_groups=built.bank_groups or organisation.bank_groups,
        row_bytes=organisation.row_bytes // built.gang,
        rows_per_subarray=built.rows_per_subarray,
        row_buffers=organisation.row_buffers,
        column_bytes=organisation.column_bytes,
        lanes=unit.lanes,
        vectors_per_multiply=unit.vectors_per_multiply,
        accumulators=unit.accumulators,
        readout_bytes=built.readout_bytes or organisation.burst_bytes,
        global_buffer_bytes=unit.global_buffer_bytes,
        buffer_ports=built.buffer_ports,
        pim_level=str(built.pim_level),
        banks_per_unit=built.banks_per_unit,
        command_banks=str(built.command_banks),
        activation_current_percent=built.activation_current_percent,
        activation_stagger_cycles=built.activation_stagger_cycles,
        unit_clock_mhz=built.unit_clock_mhz,
        mac_power_cap_percent=built.mac_power_cap_percent,
        refresh_policy=str(device.refresh.policy),
        temperature_c=int(device.refresh.temperature_c),
        unit_formats=str(formats_class(unit.formats)),
        ecc=str(built.ecc),
        harvested_banks=built.harvested_banks,
        instructions_per_64_cycles=round(dispatcher.instructions_per_cycle * DISPATCHER_CYCLES) if dispatcher else 0,
        sequencer_loop_depth=dispatcher.sequencer_loop_depth if dispatcher else 0,
        host_link=built.host_link,
    )


def formats_class(formats: tuple[NumberFormat, ...]) -> UnitFormats:
    """Return the narrowest class that covers all formats."""
    return max((format_class(item) for item in formats), key=tuple(UnitFormats).index)


def format_class(stored: NumberFormat) -> UnitFormats:
    """Return which units decode a format: by its bits, and by whether its scales lie in rows."""
    storage = STORAGE[stored]
    if storage.group or storage.bits < 8:
        return UnitFormats.ALL
    return UnitFormats.EIGHT_BIT if storage.bits < 16 else UnitFormats.SIXTEEN_BIT


def knob_values(knobs: HardwareKnobs) -> tuple[tuple[str, Value], ...]:
    """Return (name, value) pairs in declaration order."""
    return tuple((field.name, getattr(knobs, field.name)) for field in fields(knobs))
