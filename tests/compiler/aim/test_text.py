"""Does the text of instructions read back to the same records?"""

from hypothesis import given
from hypothesis import strategies as st

from compiler.aim.text import channel_mask, trace_text
from configs.device import load_device
from simulator.aim.instructions import SHAPES, Field, Instruction, Opcode
from simulator.aim.trace import parse_trace

ORGANISATION = load_device("gddr6-aim-compat").organisation
EOC = Instruction(Opcode.EOC, channels=tuple(range(32)))


@st.composite
def instructions(draw: st.DrawFn) -> Instruction:
    opcode = draw(st.sampled_from([opcode for opcode in Opcode if opcode is not Opcode.EOC]))
    fields = SHAPES[opcode].fields
    several = Field.MASK in fields and opcode is not Opcode.WR_ABK
    channels = draw(st.sets(st.integers(0, 31), min_size=1, max_size=32 if several else 1))
    if opcode is Opcode.SYNC:
        channels = set(range(32))
    elif Field.MASK not in fields and Field.CHANNEL not in fields:
        channels = set()
    return Instruction(
        opcode,
        opsize=draw(st.integers(1, 64)) if Field.OPSIZE in fields else 1,
        channels=tuple(sorted(channels)),
        bank=draw(st.integers(0, 15)) if Field.BANK in fields else -1,
        row=draw(st.integers(0, 16383)) if Field.ROW in fields else -1,
        register=draw(st.integers(0, 2)) if Field.CFR in fields else -1,
        data=draw(st.integers(0, 9)) if Field.DATA in fields else 0,
    )


@given(st.lists(instructions(), max_size=20))
def test_every_instruction_reads_back(found: list[Instruction]) -> None:
    assert parse_trace(trace_text([*found, EOC]), ORGANISATION).instructions == (*found, EOC)


def test_the_highest_bit_of_a_mask_is_channel_0() -> None:
    assert channel_mask((0,)) == 0x80000000
    assert channel_mask((31, 30)) == 0x3
