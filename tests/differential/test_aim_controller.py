"""Does the compiled AiM engine do what the readable one does, cycle by cycle, on random small traces?"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from configs.device import load_device
from configs.errors import UserError
from simulator.aim.reference import execute_slowly
from simulator.aim.replay import execute
from simulator.aim.requests import requests_of
from simulator.aim.rules import rules_of
from simulator.aim.trace import parse_trace

CHANNELS = 2
CYCLE_LIMIT = 30_000
DEVICE = load_device("gddr6-aim-compat")
ORGANISATION = DEVICE.organisation.model_copy(update={"channels": CHANNELS})
RULES = rules_of(DEVICE)

MASKS = st.sampled_from(("0x80000000", "0x40000000", "0xc0000000"))
ONE_CHANNEL = st.sampled_from(("0x80000000", "0x40000000"))
SIZES = st.sampled_from((1, 2, 5, 40))
BANKS = st.sampled_from((0, 1, 4, 15))
ROWS = st.integers(0, 2)
IDS = st.integers(0, CHANNELS - 1)


def lines(template: str, *fields: st.SearchStrategy[object]) -> st.SearchStrategy[str]:
    return st.tuples(*fields).map(lambda values: template.format(*values))


LINES = st.one_of(
    lines("AiM WR_GB {} 0 {}", SIZES, MASKS),
    lines("AiM WR_BIAS 0 {}", MASKS),
    lines("AiM RD_MAC 0 {}", MASKS),
    lines("AiM RD_AF 0 {}", MASKS),
    lines("AiM MAC_ABK {} {} {}", SIZES, MASKS, ROWS),
    lines("AiM MAC_SBK {} {} {} {}", SIZES, MASKS, BANKS, ROWS),
    lines("AiM AF {}", MASKS),
    lines("AiM EWMUL {} {} {}", SIZES, MASKS, ROWS),
    lines("AiM COPY_BKGB {} {} {} {}", SIZES, MASKS, BANKS, ROWS),
    lines("AiM COPY_GBBK {} {} {} {}", SIZES, MASKS, BANKS, ROWS),
    lines("AiM WR_ABK 0 {} {}", ONE_CHANNEL, ROWS),
    lines("AiM WR_SBK 0 {} {} {}", MASKS, BANKS, ROWS),
    lines("AiM RD_SBK 0 {} {} {}", MASKS, BANKS, ROWS),
    lines("W CFR 2 {}", st.integers(0, 1)),
    st.just("AiM EWADD 4 0 8"),
    st.just("AiM SYNC"),
)
HOST_RUNS = st.lists(lines("{} MEM {} {} {}", st.sampled_from("RRWWW"), IDS, BANKS, ROWS), min_size=1, max_size=60)
TRACES = st.lists(LINES.map(lambda line: [line]) | HOST_RUNS, max_size=12).map(
    lambda parts: "\n".join([line for part in parts for line in part] + ["AiM EOC"])
)


@settings(max_examples=60, deadline=None)
@given(TRACES)
def test_the_compiled_engine_issues_the_same_commands_at_the_same_cycles(text: str) -> None:
    requests = requests_of(parse_trace(text, ORGANISATION), CHANNELS)
    slow = execute_slowly(requests, RULES, cycle_limit=CYCLE_LIMIT)
    if slow is None:
        with pytest.raises(UserError, match="never ends"):
            execute(requests, RULES, where="trace")
        return
    cycles, commands = execute(requests, RULES, where="trace")
    columns = (commands.cycle, commands.name, commands.channel, commands.column, commands.instruction)
    found = list(zip(*(column.tolist() for column in columns), strict=True))
    assert (cycles, found) == slow
