"""Do plain DRAM devices keep the textbook's laws: peak when streaming, loss to refresh, latency of one read?

Tolerances: streaming at least 99.7 % of pin peak; refreshed within 1 % of
peak * (1 - (nRTP + nRP + nRFC + nRCD) / nREFI); latency within 8 % of nRP + nRCD + nCL plus the burst.
Found against law is printed (pytest -s).
"""

import pytest

from configs.device import load_device
from experiments.dram_laws import ROWS, STANDARDS, laws, streaming_reads
from simulator.channel import NO_EVENTS, fresh_state
from simulator.dram_replay import without_refresh
from simulator.reference_engine import run_reference


@pytest.mark.parametrize("name", STANDARDS)
def test_every_law_holds_within_its_tolerance(name: str) -> None:
    for law in laws(load_device(name)):
        print(f"{law.device} {law.name}: expected {law.expected:.2f}, found {law.found:.2f} {law.unit}")
        assert abs(law.deviation) <= law.tolerance, law


@pytest.mark.parametrize("name", STANDARDS)
def test_nothing_moves_more_than_the_pins_can(name: str) -> None:
    streaming, *_ = laws(load_device(name))
    assert 0.997 * streaming.expected <= streaming.found <= streaming.expected


@pytest.mark.parametrize("name", STANDARDS)
def test_the_streaming_program_is_legal(name: str) -> None:
    device = without_refresh(load_device(name))
    run_reference(streaming_reads(device, 3), device, fresh_state(device), NO_EVENTS)
    assert device.organisation.rows > ROWS
