"""The compiled half of `simulator.functional`: walks the arrays of a program and moves and multiplies values.

Banks are the innermost axis everywhere, so that one vector instruction serves many banks and no addition changes its
place in the declared order: adjacent lanes are added first, then adjacent pairs, then the sum joins the accumulator.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from simulator.bf16 import rounded_bits
from simulator.channel import CLOSED
from simulator.functional_code import (
    BANK,
    BUFFER,
    COLUMN,
    DATA,
    END,
    EVENT,
    LANE,
    LOOP,
    REGISTER,
    ROW,
    FunctionalCode,
)
from simulator.isa import CODE_OF, Kind
from simulator.jit import inlined, kernel

# Outcomes of a run, and places in `Arrays.fault`.
FINE, UNWRITTEN, WRONG_ROW, WRONG_MODE, OUT_OF_RANGE, UNSUPPORTED, EVENT_ORDER, HANDED_OVER = range(8)
INSTRUCTION, ISSUED, EXPECTED, FOUND, WHERE = range(5)
# What `WHERE` names: a bank (0 and up), or one of these.
IN_CELLS, IN_BUFFER, IN_ACCUMULATOR, IN_SCALES, IN_OUTPUTS, IN_LATCHES = -1, -2, -3, -4, -5, -6
OPERAND_CELL = 100  # + operand: which operand is out of range

ACT, ACT16, PRE, PREA = (CODE_OF[kind] for kind in (Kind.ACT, Kind.ACT16, Kind.PRE, Kind.PREA))
WR, WRA16, MAC16, WRGB = (CODE_OF[kind] for kind in (Kind.WR, Kind.WRA16, Kind.MAC16, Kind.WRGB))
WRMAC16, RDMAC16, TMOD = (CODE_OF[kind] for kind in (Kind.WRMAC16, Kind.RDMAC16, Kind.TMOD))
SCALE16, LATCH16, MACL16 = (CODE_OF[kind] for kind in (Kind.SCALE16, Kind.LATCH16, Kind.MACL16))
# Places in `Arrays.widths`: accesses that WR and SCALE16 move, values of each bank that WRA16 writes, vectors that a
# multiply serves.
ACCESSES, VALUES, VECTORS = range(3)
WAIT, SIGNAL = CODE_OF[Kind.WAIT], CODE_OF[Kind.SIGNAL]


class Arrays(NamedTuple):
    """Everything a run reads and writes; `..._bits` are the same memory seen as uint32, `pairs` is room for sums."""

    cells: NDArray[np.float32]
    buffer: NDArray[np.float32]
    accumulators: NDArray[np.float32]
    scales: NDArray[np.float32]
    accumulator_bits: NDArray[np.uint32]
    open_row: NDArray[np.int64]
    latched: NDArray[np.float32]
    latched_row: NDArray[np.int64]
    register_mode: NDArray[np.int64]
    inputs: NDArray[np.float32]
    inputs_by_bank: NDArray[np.float32]
    output_bits: NDArray[np.uint32]
    writers: NDArray[np.int64]
    pairs: NDArray[np.float32]
    widths: NDArray[np.int64]
    input_events: NDArray[np.int64]
    output_events: NDArray[np.int64]
    taken: NDArray[np.int64]
    arrived: NDArray[np.int64]
    variables: NDArray[np.int64]
    operands: NDArray[np.int64]
    fault: NDArray[np.int64]


@inlined
def _resolve(code: FunctionalCode, at: int, arrays: Arrays) -> None:
    """Put the values of a command's operands into `arrays.operands`."""
    for place in range(arrays.operands.shape[0]):
        value = code.constant[at, place]
        for term in range(code.first[at, place], code.first[at, place + 1]):
            value += code.coefficient[term] * arrays.variables[code.depth[term]]
        arrays.operands[place] = value


@inlined
def _outside(value: int, limit: int, place: int, fault: NDArray[np.int64]) -> bool:
    if 0 <= value < limit:
        return False
    fault[EXPECTED], fault[FOUND], fault[WHERE] = limit, value, OPERAND_CELL + place
    return True


@inlined
def _other_row(row: int, first: int, count: int, arrays: Arrays) -> bool:
    """Return whether one of these banks has not this row open (CLOSED: is not closed)."""
    for bank in range(first, first + count):
        if arrays.open_row[bank] != row:
            arrays.fault[EXPECTED], arrays.fault[FOUND], arrays.fault[WHERE] = row, arrays.open_row[bank], bank
            return True
    return False


@kernel
def run(code: FunctionalCode, arrays: Arrays) -> int:
    """Execute a program; return FINE, or what went wrong with the details in `arrays.fault`."""
    at = 0
    depth = 0
    while at < len(code.kind):
        kind = code.kind[at]
        if kind == LOOP:
            if code.repetitions[at] <= 0:
                at = code.target[at]
            else:
                arrays.variables[depth] = 0
                depth += 1
        elif kind == END:
            start = code.target[at]
            arrays.variables[depth - 1] += 1
            if arrays.variables[depth - 1] < code.repetitions[start]:
                at = start
            else:
                depth -= 1
        else:
            arrays.fault[INSTRUCTION] = at
            outcome = _command(kind, at, code, arrays)
            if outcome != FINE:
                return outcome
            arrays.fault[ISSUED] += 1
        at += 1
    return FINE


@inlined
def _command(kind: int, at: int, code: FunctionalCode, arrays: Arrays) -> int:
    if kind == TMOD:
        arrays.register_mode[0] = 1 - arrays.register_mode[0]
        return FINE
    _resolve(code, at, arrays)
    if kind in (WAIT, SIGNAL):
        return _event(kind, arrays)
    register_kind = kind in (WRGB, WRMAC16, RDMAC16)
    if register_kind != (arrays.register_mode[0] == 1):
        return WRONG_MODE
    if kind in (MAC16, MACL16):
        return _multiply(kind, arrays)
    if kind == LATCH16:
        return _latch(arrays)
    if kind == SCALE16:
        return _load_scales(arrays)
    if register_kind:
        return _register(kind, at, arrays)
    if kind in (ACT, ACT16, PRE, PREA):
        return _row(kind, arrays)
    if kind in (WR, WRA16):
        return _store(kind, arrays)
    return UNSUPPORTED


@inlined
def _event(kind: int, arrays: Arrays) -> int:
    """Note that an event's inputs are there, or hand the outputs of an event to the host."""
    event = arrays.operands[EVENT]
    if kind == WAIT:
        if 0 <= event < len(arrays.arrived):
            arrays.arrived[event] = 1
        return FINE
    for entry in range(len(arrays.output_events)):
        if arrays.output_events[entry] == event:
            if arrays.writers[entry] < 0:
                arrays.fault[WHERE] = IN_OUTPUTS
                return UNWRITTEN
            arrays.taken[entry] = 1
    return FINE


@inlined
def _not_arrived(data: int, count: int, arrays: Arrays) -> bool:
    """Return whether one of these inputs belongs to an event that no WAIT has waited for."""
    for entry in range(data, data + count):
        event = arrays.input_events[entry]
        if event >= 0 and arrays.arrived[event] == 0:
            arrays.fault[EXPECTED] = event
            return True
    return False


@inlined
def _multiply(kind: int, arrays: Arrays) -> int:
    """All banks: multiply a column of the open or the latched row with every vector that the command serves."""
    rows, columns, _, banks = arrays.cells.shape
    row = arrays.operands[ROW]
    column = arrays.operands[COLUMN]
    scale = arrays.operands[LANE]
    if _outside(row, rows, ROW, arrays.fault) or _outside(column, columns, COLUMN, arrays.fault):
        return OUT_OF_RANGE
    if _outside(scale, arrays.scales.shape[0] + 1, LANE, arrays.fault):
        return OUT_OF_RANGE
    if kind == MACL16:
        if arrays.latched_row[0] != row:
            arrays.fault[EXPECTED], arrays.fault[FOUND], arrays.fault[WHERE] = row, arrays.latched_row[0], IN_LATCHES
            return WRONG_ROW
    elif _other_row(row, 0, banks, arrays):
        return WRONG_ROW
    for vector in range(arrays.widths[VECTORS]):
        entry = arrays.operands[BUFFER] + vector * arrays.operands[DATA]
        register = arrays.operands[REGISTER] + vector
        if _outside(entry, arrays.buffer.shape[0], BUFFER, arrays.fault):
            return OUT_OF_RANGE
        if _outside(register, arrays.accumulators.shape[0], REGISTER, arrays.fault):
            return OUT_OF_RANGE
        values = arrays.latched if kind == MACL16 else arrays.cells[row]
        outcome = _add_product(values, column, entry, register, scale, arrays)
        if outcome != FINE:
            return outcome
    return FINE


@inlined
def _add_product(
    values: NDArray[np.float32], column: int, entry: int, register: int, scale: int, arrays: Arrays
) -> int:
    """All banks: add the balanced tree's sum of the row's column times the buffer's to the accumulator."""
    _, lanes, banks = values.shape
    pairs = arrays.pairs
    if lanes == 1:
        for bank in range(banks):
            pairs[0, 0, bank] = values[column, 0, bank] * arrays.buffer[entry, 0]
    for pair in range(lanes // 2):
        left, right = arrays.buffer[entry, 2 * pair], arrays.buffer[entry, 2 * pair + 1]
        for bank in range(banks):
            first = values[column, 2 * pair, bank] * left
            pairs[0, pair, bank] = first + values[column, 2 * pair + 1, bank] * right
    width, side = lanes // 2, 0
    while width > 1:
        width //= 2
        for pair in range(width):
            for bank in range(banks):
                pairs[1 - side, pair, bank] = pairs[side, 2 * pair, bank] + pairs[side, 2 * pair + 1, bank]
        side = 1 - side
    if scale > 0:
        for bank in range(banks):
            pairs[side, 0, bank] = pairs[side, 0, bank] * arrays.scales[scale - 1, bank]
    poisoned = False
    for bank in range(banks):
        total = arrays.accumulators[register, bank] + pairs[side, 0, bank]
        poisoned |= total != total
        arrays.accumulators[register, bank] = total
    if not poisoned:
        return FINE
    arrays.fault[WHERE] = IN_ACCUMULATOR
    for bank in range(banks):
        if pairs[side, 0, bank] != pairs[side, 0, bank]:
            arrays.fault[WHERE] = IN_CELLS
    for bank in range(banks):
        if scale > 0 and arrays.scales[scale - 1, bank] != arrays.scales[scale - 1, bank]:
            arrays.fault[WHERE] = IN_SCALES
    for lane in range(lanes):
        if arrays.buffer[entry, lane] != arrays.buffer[entry, lane]:
            arrays.fault[WHERE] = IN_BUFFER
    return UNWRITTEN


@inlined
def _latch(arrays: Arrays) -> int:
    """Move the open row of every bank to its second row buffer, and close it."""
    rows, columns, lanes, banks = arrays.cells.shape
    row = arrays.operands[ROW]
    if _outside(row, rows, ROW, arrays.fault):
        return OUT_OF_RANGE
    if _other_row(row, 0, banks, arrays):
        return WRONG_ROW
    for column in range(columns):
        for lane in range(lanes):
            for bank in range(banks):
                arrays.latched[column, lane, bank] = arrays.cells[row, column, lane, bank]
    arrays.latched_row[0] = row
    for bank in range(banks):
        arrays.open_row[bank] = CLOSED
    return FINE


@inlined
def _load_scales(arrays: Arrays) -> int:
    """All banks: take a device column, scale k from lane k mod lanes of access k // lanes."""
    rows, columns, lanes, banks = arrays.cells.shape
    row = arrays.operands[ROW]
    column = arrays.operands[COLUMN]
    accesses = arrays.widths[ACCESSES]
    if _outside(row, rows, ROW, arrays.fault) or _outside(column, columns - accesses + 1, COLUMN, arrays.fault):
        return OUT_OF_RANGE
    if _other_row(row, 0, banks, arrays):
        return WRONG_ROW
    for access in range(accesses):
        for lane in range(lanes):
            for bank in range(banks):
                arrays.scales[access * lanes + lane, bank] = arrays.cells[row, column + access, lane, bank]
    return FINE


@inlined
def _register(kind: int, at: int, arrays: Arrays) -> int:
    """Move host columns to the global buffer, and accumulators of all banks in and out."""
    data = arrays.operands[DATA]
    if kind == WRGB:
        entry = arrays.operands[BUFFER]
        if _outside(entry, arrays.buffer.shape[0], BUFFER, arrays.fault):
            return OUT_OF_RANGE
        if _outside(data, arrays.inputs.shape[0], DATA, arrays.fault):
            return OUT_OF_RANGE
        if _not_arrived(data, 1, arrays):
            return EVENT_ORDER
        for lane in range(arrays.buffer.shape[1]):
            arrays.buffer[entry, lane] = arrays.inputs[data, lane]
        return FINE
    register = arrays.operands[REGISTER]
    if _outside(register, arrays.accumulators.shape[0], REGISTER, arrays.fault):
        return OUT_OF_RANGE
    if _outside(data, arrays.output_bits.shape[0], DATA, arrays.fault):
        return OUT_OF_RANGE
    banks = arrays.accumulators.shape[1]
    if kind == WRMAC16:
        for bank in range(banks):
            arrays.accumulator_bits[register, bank] = arrays.output_bits[data, bank]
        return FINE
    if arrays.taken[data] == 1:
        arrays.fault[EXPECTED] = arrays.output_events[data]
        return HANDED_OVER
    for bank in range(banks):
        value = arrays.accumulators[register, bank]
        if value != value:
            arrays.fault[WHERE] = IN_ACCUMULATOR
            return UNWRITTEN
        arrays.output_bits[data, bank] = rounded_bits(arrays.accumulator_bits[register, bank])
    arrays.writers[data] = at
    return FINE


@inlined
def _row(kind: int, arrays: Arrays) -> int:
    """Open and close rows; closing a closed bank is allowed, opening an open one is not."""
    banks = len(arrays.open_row)
    first, count = 0, banks
    if kind in (ACT, PRE):
        first, count = arrays.operands[BANK], 1
        if _outside(first, banks, BANK, arrays.fault):
            return OUT_OF_RANGE
    row = CLOSED
    if kind in (ACT, ACT16):
        row = arrays.operands[ROW]
        if _outside(row, arrays.cells.shape[0], ROW, arrays.fault):
            return OUT_OF_RANGE
        if _other_row(CLOSED, first, count, arrays):
            return WRONG_ROW
    for bank in range(first, first + count):
        arrays.open_row[bank] = row
    return FINE


@inlined
def _store(kind: int, arrays: Arrays) -> int:
    """Write a device column of one bank, or one value of every bank (two of four bits) and then close all."""
    rows, columns, lanes, banks = arrays.cells.shape
    row = arrays.operands[ROW]
    column = arrays.operands[COLUMN]
    data = arrays.operands[DATA]
    accesses = arrays.widths[ACCESSES] if kind == WR else 1
    if _outside(row, rows, ROW, arrays.fault) or _outside(column, columns - accesses + 1, COLUMN, arrays.fault):
        return OUT_OF_RANGE
    if kind == WR:
        bank = arrays.operands[BANK]
        entries = arrays.inputs.shape[0] - accesses + 1
        if _outside(bank, banks, BANK, arrays.fault) or _outside(data, entries, DATA, arrays.fault):
            return OUT_OF_RANGE
        if _other_row(row, bank, 1, arrays):
            return WRONG_ROW
        if _not_arrived(data, accesses, arrays):
            return EVENT_ORDER
        for access in range(accesses):
            for lane in range(lanes):
                arrays.cells[row, column + access, lane, bank] = arrays.inputs[data + access, lane]
        return FINE
    lane = arrays.operands[LANE]
    values = arrays.widths[VALUES]
    if _outside(lane, lanes - values + 1, LANE, arrays.fault):
        return OUT_OF_RANGE
    if _outside(data, arrays.inputs_by_bank.shape[0] - values + 1, DATA, arrays.fault):
        return OUT_OF_RANGE
    if _other_row(row, 0, banks, arrays):
        return WRONG_ROW
    if _not_arrived(data, values, arrays):
        return EVENT_ORDER
    for value in range(values):
        for bank in range(banks):
            arrays.cells[row, column, lane + value, bank] = arrays.inputs_by_bank[data + value, bank]
    for bank in range(banks):
        arrays.open_row[bank] = CLOSED
    return FINE
