"""Does the table of commands hold what the programs say, command by command, and what refresh adds?"""

import io
import itertools
from pathlib import Path

import pytest

from compiler.linear import LinearShape
from compiler.lowering import System, lower_steps, lower_task
from compiler.schedule import LinearSchedule
from configs.device import Device, load_device
from configs.errors import UserError
from simulator.command_table import CommandRow, read_commands
from simulator.command_writer import FROM_LOG, OPERANDS_OF, CommandWriter, commands_of_step
from simulator.isa import ACTIVATES, BANK_KINDS, EVENT_KINDS, Issued, Kind, walk
from simulator.step import PimPhase, Step, TaskPhases
from simulator.timeline import StepSimulator
from tests.logged_steps import MAPPINGS
from tests.small_workloads import small_workload
from tests.unit_devices import unit_device

DEVICE = load_device("gddr6-aim")


def rows_of(step: Step, path: Path, device: Device = DEVICE) -> list[CommandRow]:
    with path.open("w", encoding="utf-8", newline="") as target:
        writer = CommandWriter(step, device, target)
        StepSimulator(device).run(step, observer=writer)
    rows = list(read_commands(path))
    assert len(rows) == writer.rows
    return rows


def walked(step: Step) -> list[tuple[str, Issued]]:
    """The readable reference: every command of every operator."""
    phases = [phase for index in step.sequence for phase in step.tasks[index].phases if isinstance(phase, PimPhase)]
    commands = ((phase.name, command) for phase in phases for command in walk(phase.program))
    return [(name, command) for name, command in commands if command.kind not in EVENT_KINDS]


def place(row: CommandRow) -> int:
    return row.bg * DEVICE.organisation.banks_per_group + row.bank


def test_multiplies_that_serve_several_vectors_say_how_far_apart_these_lie(tmp_path: Path) -> None:
    shape, schedule = LinearShape("linear", (600,), 600, 2), LinearSchedule(segment_columns=16, reuse=2)
    device = unit_device(2, 2)
    step = Step((TaskPhases("linear", lower_task(shape, {"linear": schedule}, System(device, 1))),), (0,), ((),))
    rows = rows_of(step, tmp_path / "table.csv", device)
    multiplies = [row for row in rows if row.cmd == "MACL16"]
    assert {row.data for row in multiplies} == {16}
    assert [row.row for row in rows if row.cmd == "LATCH16"] == sorted({row.row for row in multiplies})


@pytest.mark.parametrize("mapping", MAPPINGS)
def test_rows_are_the_commands_of_the_programs_and_refreshes(mapping: str, tmp_path: Path) -> None:
    workload, system = small_workload(), System(DEVICE, 1)
    step = lower_steps(workload, MAPPINGS[mapping](workload.schedulables, system), system, ((),))[0]
    rows, commands = rows_of(step, tmp_path / "table.csv"), walked(step)
    assert commands_of_step(step) == len(commands)
    assert len(rows) > len(commands)  # refreshes
    found = [row for row in rows if Kind(row.cmd) not in FROM_LOG]
    expected = [(name, command) for name, command in commands if command.kind not in FROM_LOG]
    assert [(row.cmd, row.phase) for row in found] == [(str(command.kind), name) for name, command in expected]
    for row, (_, command) in zip(found, expected, strict=True):
        has = OPERANDS_OF[command.kind]
        assert row.row == command.row
        assert row.col == (command.column if "column" in has else -1)
        for name in ("lane", "buffer", "register", "data"):
            assert getattr(row, name) == (getattr(command, name) if name in has else -1)
        assert place(row) == (command.bank if command.kind in BANK_KINDS else -5)
    # Activates that are not the controller's are in the order of the programs, among its own.
    opened = iter((row.cmd, row.row) for row in rows if Kind(row.cmd) in ACTIVATES)
    assert all((str(c.kind), c.row) in opened for _, c in commands if c.kind in ACTIVATES)
    assert {row.op for row in rows} <= {task.task for task in step.tasks}
    assert max(row.occurrence for row in rows if row.op == "o_proj") == 1


def test_cycles_rise_and_addresses_are_of_all_banks_where_a_command_is(tmp_path: Path) -> None:
    workload, system = small_workload(), System(DEVICE, 1)
    step = lower_steps(workload, MAPPINGS["hand"](workload.schedulables, system), system, ((),))[0]
    rows = rows_of(step, tmp_path / "table.csv")
    assert all(before.cycle < after.cycle for before, after in itertools.pairwise(rows))
    assert {(row.bg, row.bank) for row in rows if row.cmd == "MAC16"} == {(-1, -1)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "line 1: expected the columns cycle"),
        ("cycle,cmd\n", "line 1: expected the columns cycle"),
        ("HEADER\n1,MAC16\n", "line 2: expected 16 cells"),
        ("HEADER\n" + "x," * 15 + "x\n", "line 2: expected integers"),
    ],
)
def test_what_is_no_table_is_told_with_its_line(text: str, expected: str, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(text.replace("HEADER", ",".join(CommandRow._fields)), encoding="utf-8")
    with pytest.raises(UserError, match=expected):
        list(read_commands(path))


def test_a_file_that_cannot_be_read_is_a_users_mistake(tmp_path: Path) -> None:
    cut = tmp_path / "cut.csv.gz"
    cut.write_bytes(b"no gzip")
    for path in (cut, tmp_path / "missing.csv"):
        with pytest.raises(UserError, match="readable table"):
            list(read_commands(path))


def test_a_program_that_is_not_what_was_issued_is_a_bug() -> None:
    workload, system = small_workload(), System(DEVICE, 1)
    schedules = (MAPPINGS[name](workload.schedulables, system) for name in ("hand", "overlapped"))
    first, second = (lower_steps(workload, item, system, ((),))[0] for item in schedules)

    class Mixed(CommandWriter):
        def executed(self, phase, report, log):
            other = next(
                item for task in second.tasks for item in task.phases if isinstance(item, PimPhase) and item != phase
            )
            super().executed(other, report, log)

    with pytest.raises(AssertionError, match="other commands"):
        StepSimulator(DEVICE).run(first, observer=Mixed(first, DEVICE, io.StringIO()))
