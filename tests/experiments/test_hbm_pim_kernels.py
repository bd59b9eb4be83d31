"""`python -m experiments.hbm_pim_kernels`: figures of the public simulator, and mistakes in one line."""

import sys

import pytest

from autotune.exit_codes import USER_MISTAKE, run_to_exit_code
from experiments import hbm_pim_kernels


def _run(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["hbm_pim_kernels", *arguments])
    run_to_exit_code(hbm_pim_kernels.main)


@pytest.mark.parametrize(("ranks", "cycles"), [("1", 1138), ("2", 1138)])
def test_a_kernel_takes_the_cycles_of_the_public_simulator(monkeypatch, capsys, tmp_path, ranks, cycles):
    stream = tmp_path / "commands.csv"
    arguments = ("--outputs", "64", "--inputs", "256", "--ranks", ranks, "--commands", str(stream))
    _run(monkeypatch, "GEMV", *arguments)
    assert capsys.readouterr().out == f"{cycles} cycles, 287 commands\n"
    assert len(stream.read_text(encoding="utf-8").splitlines()) == 288


def test_a_file_that_cannot_be_written_is_a_users_mistake(monkeypatch, capsys, tmp_path):
    with pytest.raises(SystemExit) as ended:
        _run(monkeypatch, "RELU", "--outputs", "100", "--commands", str(tmp_path / "none" / "commands.csv"))
    assert ended.value.code == USER_MISTAKE
    assert "expected a file that can be written" in capsys.readouterr().err
