"""Options and helpers that every test may use."""

from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the golden files anew instead of comparing")
    parser.addoption("--thorough", action="store_true", help="draw three times as many random programs and cases")


class Golden:
    """Compares text with a file, or writes the file when the tests run with --update-golden."""

    def __init__(self, update: bool) -> None:
        self.update = update

    def check(self, path: Path, text: str) -> None:
        if self.update:
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text(encoding="utf-8"), f"{path.name} differs; look, then run with --update-golden"


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    return Golden(bool(request.config.getoption("--update-golden")))


@pytest.fixture
def thoroughness(request: pytest.FixtureRequest) -> int:
    """How many times the default number of random programs and cases to draw."""
    return 3 if request.config.getoption("--thorough") else 1
