"""A slower link is never a faster step, and is a slower one where the link matters."""

import numpy as np

from autotune.layout import clean, layout_of
from autotune.sampling import stratified
from configs.device import load_device
from configs.knobs import OWN_LINK
from tests.small_workloads import small_problem


def _with_bandwidth(factor):
    base = load_device("gddr6-aim")
    link = base.link.model_copy(update={"bandwidth_gb_per_s": base.link.bandwidth_gb_per_s * factor})
    return base.model_copy(update={"link": link})


def test_halving_the_link_never_speeds_a_design_and_slows_those_that_use_it():
    whole, half = small_problem(), small_problem(base=_with_bandwidth(0.5))
    rng = np.random.default_rng(3)
    designs = stratified(whole, layout_of(whole), rng, 120, clean(whole, whole.baselines()))
    column = next(index for index, knob in enumerate(whole.knobs) if knob.name == "host_link")
    designs[:, column] = whole.knobs[column].values.index(OWN_LINK)
    designs = clean(whole, designs)[:60]
    before = np.array([whole.evaluate(design).latency_ns for design in designs])
    after = np.array([half.evaluate(design).latency_ns for design in designs])
    assert (after >= before).all()
    assert (after > before).mean() > 0.7
