"""Is a result file whole or not there at all?"""

import gzip
from pathlib import Path

import pytest

from simulator.text_file import opened_for_writing


@pytest.mark.parametrize("name", ["result.txt", "result.txt.gz"])
def test_an_interrupted_result_leaves_the_file_before_it_as_it_was(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    with opened_for_writing(path) as target:
        target.write("first")
    before = path.read_bytes()
    with pytest.raises(KeyboardInterrupt):
        interrupted(path)
    assert path.read_bytes() == before
    assert [item.name for item in tmp_path.iterdir()] == [name]


def interrupted(path: Path) -> None:
    with opened_for_writing(path) as target:
        target.write("half of the sec")
        raise KeyboardInterrupt


def test_packed_text_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "result.gz"
    with opened_for_writing(path) as target:
        target.write("text\n")
    assert gzip.decompress(path.read_bytes()) == b"text\n"


def test_a_device_is_written_as_it_is() -> None:
    with opened_for_writing(Path("/dev/null")) as target:
        target.write("text")
    assert not Path("/dev/null.part").exists()
