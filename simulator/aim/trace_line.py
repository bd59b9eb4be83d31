"""One line of an AiM trace, read into a record or refused with its place, what was expected and the way out."""

from dataclasses import dataclass

from configs.device import Organisation
from configs.errors import UserError
from simulator.aim.instructions import SHAPES, Field, Instruction, Opcode

MASK_BITS = 32
"""Width of a channel mask: bit i stands for channel 31 - i (the public AiM simulator's channel limit)."""
CONFIGURATION_REGISTERS = 3
"""0 broadcast, 1 bank groups of EWMUL, 2 activation function (the public AiM simulator's DMA)."""
VALUE_LIMIT = 1 << 31
"""Sizes and general registers are signed 32-bit numbers in the public AiM simulator; it bounds them no further."""
DATA_LIMIT = 1 << 15
"""The public AiM simulator keeps configuration values in 16 signed bits."""
OPCODE_PREFIX = "ISR_"
_WORDS = {tuple(opcode.split() if " " in opcode else ("AiM", opcode)): opcode for opcode in Opcode}


@dataclass(frozen=True, slots=True)
class Line:
    """The words of one line, where it stands (`file:line`), and the device it must fit."""

    where: str
    words: tuple[str, ...]
    organisation: Organisation

    def instruction(self) -> Instruction:
        """Return the record of this line; raises UserError when it is malformed or does not fit the device."""
        opcode = self._opcode()
        fields, words = SHAPES[opcode].fields, self.words[2:]
        if len(words) != len(fields):
            names = f" ({', '.join(fields)})" if fields else ""
            raise self._error(f"{len(fields)} fields after {opcode}{names}", f"{len(words)}", "mend the line")
        values = {field: self._number(field, word) for field, word in zip(fields, words, strict=True)}
        return Instruction(
            opcode=opcode,
            opsize=values.get(Field.OPSIZE, 1),
            channels=self._channels(opcode, values),
            bank=values.get(Field.BANK, -1),
            row=values.get(Field.ROW, -1),
            register=values.get(Field.CFR, -1),
            data=values.get(Field.DATA, 0),
        )

    def _opcode(self) -> Opcode:
        first, second = self.words[0], self.words[1] if len(self.words) > 1 else ""
        starts = sorted({start for start, _ in _WORDS})
        if first not in starts:
            raise self._error(f"a line that starts with {', '.join(starts)} or #", repr(first), "mend the line")
        opcode = _WORDS.get((first, second.removeprefix(OPCODE_PREFIX) if first == "AiM" else second))
        if opcode is None:
            names = ", ".join(name for start, name in _WORDS if start == first)
            found = repr(second) if second else "the end of the line"
            raise self._error(f"one of {names} after {first}", found, "use an instruction of this list")
        return opcode

    def _number(self, field: Field, word: str) -> int:
        try:
            value = int(word, 16 if word[:2].lower() == "0x" else 10)
        except ValueError:
            raise self._error(f"a number as {field}", repr(word), "write it in decimal or as 0x...") from None
        low, limit = self._bounds(field)
        if not low <= value < limit:
            found = f"{word}, which names no channel" if field is Field.MASK and value == 0 else word
            way_out = "set bits, the highest is channel 0" if field is Field.MASK else "correct the field"
            raise self._error(f"{field} from {low} to {limit - 1}", found, way_out)
        return value

    def _bounds(self, field: Field) -> tuple[int, int]:
        match field:
            case Field.OPSIZE:
                return 1, VALUE_LIMIT
            case Field.MASK:
                return 1, 1 << MASK_BITS
            case Field.CHANNEL:
                return 0, self.organisation.channels
            case Field.BANK:
                return 0, self.organisation.banks
            case Field.ROW:
                return 0, self.organisation.rows
            case Field.CFR:
                return 0, CONFIGURATION_REGISTERS
            case Field.DATA:
                return 0, DATA_LIMIT
            case Field.GPR | Field.SECOND_GPR:
                return 0, VALUE_LIMIT

    def _channels(self, opcode: Opcode, values: dict[Field, int]) -> tuple[int, ...]:
        count = self.organisation.channels
        if opcode in (Opcode.SYNC, Opcode.EOC):
            return tuple(range(count))
        if Field.CHANNEL in values:
            return (values[Field.CHANNEL],)
        mask = values.get(Field.MASK, 0)
        channels = tuple(channel for channel in range(MASK_BITS) if mask >> (MASK_BITS - 1 - channel) & 1)
        if channels and channels[-1] >= count:
            way_out = "clear the low bits, the highest bit is channel 0, or take a device with more channels"
            raise self._error(f"channels 0 to {count - 1} in the mask", f"channel {channels[-1]} ({mask:#x})", way_out)
        if opcode is Opcode.WR_ABK and len(channels) != 1:
            way_out = "write one line for each channel"
            raise self._error("exactly one channel in the mask of WR_ABK", f"{len(channels)} ({mask:#x})", way_out)
        return channels

    def _error(self, expected: str, found: str, way_out: str) -> UserError:
        return UserError(where=self.where, expected=expected, found=found, way_out=way_out)
