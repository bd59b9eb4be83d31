"""What the instruction set of HBM-PIM units fixes, and how a device file contradicts it.

Addresses name registers: three bits of the column one of eight sums, a bit of the row and two of the column one of the
eight inputs. The rest follows: a register holds a column of 16 fp16 values, a row is four times eight columns.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from configs.number_format import STORAGE
from configs.structure import CommandBanks, PimLevel

if TYPE_CHECKING:
    from configs.device import Device, Organisation, ProcessingUnit

BANKS_OF_UNIT = 2
REGISTERS = 8
LANES = 16
VALUE_BYTES = 2
ROW_COLUMNS = 32
RESERVED_ROWS = 128
FEWEST_BANKS = 4  # four entry rows lead to all-bank mode, each in a bank of its own
FEWEST_WORDS = 16  # ten of a kernel, written eight at a time
ARITHMETIC = "fp16-after-every-operation"
# What may change without another instruction set, and has a law that the tables of such a device follow.
FREE_KNOBS = (
    *("channels", "rows_per_subarray", "temperature_c", "instructions_per_64_cycles", "sequencer_loop_depth"),
    "host_link",
)
PLAIN_STRUCTURE = {"gang": 1, "harvested_banks": 0, "pim_level": PimLevel.BANK, "command_banks": CommandBanks.ALL}

Contradiction = tuple[str, str, str]  # the key, what it is expected to be, what it is


def contradictions(device: "Device") -> Iterator[Contradiction]:
    """Yield what a device whose units run microkernels says otherwise than their instruction set."""
    organisation, unit, structure = device.organisation, device.unit, device.structure
    for key, fixed, found in _fixed(organisation, unit):
        if found != fixed:
            yield key, f"{fixed}, which the instruction set of units with microkernels fixes", str(found)
    if unit.microkernel_words < FEWEST_WORDS:
        yield "unit.microkernel_words", f"{FEWEST_WORDS} at least, or 0 for units without", str(unit.microkernel_words)
    if organisation.banks < FEWEST_BANKS or organisation.banks % BANKS_OF_UNIT:
        expected = f"an even number of banks, {FEWEST_BANKS} at least: a unit has an even and an odd one"
        yield "organisation", expected, f"{organisation.banks} banks"
    if organisation.rows <= RESERVED_ROWS:
        expected = f"more than the {RESERVED_ROWS} rows that hold results and registers"
        yield "organisation.rows", expected, str(organisation.rows)
    for key, plain in PLAIN_STRUCTURE.items():
        if getattr(structure, key) != plain:
            yield f"structure.{key}", f"{plain}, where units run microkernels", str(getattr(structure, key))
    narrow = [str(item) for item in unit.formats if STORAGE[item].bits != 8 * VALUE_BYTES]
    if narrow:
        yield "unit.formats", "formats of 16 bits, the values that units with microkernels multiply", ", ".join(narrow)
    others = [name for name in device.knobs if name not in FREE_KNOBS]
    if others or not device.knobs:
        found = ", ".join(others) or "none named, which means all of them"
        yield "knobs", f"some of {', '.join(FREE_KNOBS)}: the rest is fixed where units run microkernels", found


def _fixed(organisation: "Organisation", unit: "ProcessingUnit") -> tuple[tuple[str, object, object], ...]:
    column = LANES * VALUE_BYTES
    return (
        ("unit.lanes", LANES, unit.lanes),
        ("unit.value_bytes", VALUE_BYTES, unit.value_bytes),
        ("unit.accumulators", REGISTERS, unit.accumulators),
        ("unit.global_buffer_bytes", REGISTERS * column, unit.global_buffer_bytes),
        ("unit.vectors_per_multiply", 1, unit.vectors_per_multiply),
        ("unit.arithmetic", ARITHMETIC, unit.arithmetic),
        ("organisation.column_bytes", column, organisation.column_bytes),
        ("organisation.row_bytes", ROW_COLUMNS * column, organisation.row_bytes),
        ("organisation.row_buffers", 1, organisation.row_buffers),
    )
