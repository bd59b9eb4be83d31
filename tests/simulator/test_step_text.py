"""Does the text of a step denote the step, and does a broken text say where it breaks?"""

from dataclasses import replace

import pytest

from compiler.attention import AttentionShape
from compiler.lowering import System, lower_steps
from compiler.routing import ExpertLoad
from configs.device import load_device
from configs.errors import UserError
from simulator.step import HostPhase, PimPhase, Step
from simulator.step_text import parse_step, print_step
from tests.logged_steps import MAPPINGS
from tests.small_workloads import small_workload

LOADS: dict[str, tuple[ExpertLoad, ...]] = {"llama": (), "mixtral": ((2, 1, 1), (1, 1, 1, 1))}


def step_of(family: str, mapping: str, token_blocks: int = 1) -> Step:
    workload = small_workload(family, batch=2, context=700)
    system = System(load_device("gddr6-aim"), 1)
    schedules = MAPPINGS[mapping](workload.schedulables, system)
    for shape in workload.schedulables:
        if isinstance(shape, AttentionShape):
            schedules[shape.name] = replace(schedules[shape.name], token_blocks=token_blocks, token_split=1)
    return lower_steps(workload, schedules, system, (LOADS[family],))[0]


@pytest.mark.parametrize("family", LOADS)
@pytest.mark.parametrize("mapping", MAPPINGS)
@pytest.mark.parametrize("token_blocks", [1, 3])
def test_parsing_what_was_printed_gives_the_step(family: str, mapping: str, token_blocks: int) -> None:
    step = step_of(family, mapping, token_blocks)
    text = "".join(print_step(step, {0: "two\nlines"}))
    assert parse_step(text) == step
    assert text.startswith("# two\n# lines\ntask ")


def test_every_way_of_waiting_and_every_chunk_comes_back() -> None:
    step = step_of("llama", "hand", 3)
    phases = [phase for task in step.tasks for phase in task.phases]
    assert {phase.after for phase in phases} >= {None, ()}
    assert any(phase.after for phase in phases)
    assert any(len(set(phase.down_bytes)) > 1 for phase in phases if isinstance(phase, PimPhase))
    assert {phase.launch for phase in phases if isinstance(phase, HostPhase)} == {True}


TASK = 'task a\n  host "h" owner "host" work_ns 1.0 launch after previous\n'
PIM = 'task a\n  pim "p" owner "p" channels 1.0 down - up - after start\n    TMOD\n'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "line `order`"),
        (TASK, "line `order`"),
        ('host "h" owner "host" work_ns 1.0 launch after previous\norder\n', "line 1: expected `task NAME`"),
        (TASK + "order\n1\n", "line 4: expected a task before it"),
        (TASK + "order\n0\n0 after 1\n", "line 5: expected a run before it"),
        (TASK + "order\nzero\n", "line 4: expected `TASK after"),
        (TASK.replace("after previous", "after 0") + "order\n", "line 2: expected a phase before it"),
        (TASK.replace("launch", "start") + "order\n", "line 2: expected a task, a host or pim phase"),
        (PIM, "expected `end`"),
        (PIM.replace("TMOD", "TMOV") + "  end\norder\n", "line 3: expected loop"),
    ],
)
def test_a_broken_text_is_told_with_its_line(text: str, expected: str) -> None:
    with pytest.raises(UserError, match=expected):
        parse_step(text)
