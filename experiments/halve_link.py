"""What half the host link does to every reported point of a run: never faster, slower where the link matters.

python -m experiments.halve_link runs/mine
"""

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np

from autotune.exit_codes import run_to_exit_code
from autotune.finished import front_points
from autotune.problem_spec import problem_spec
from autotune.record import EVALUATIONS, load_evaluations
from autotune.run_settings import load_settings, stored_settings
from autotune.settings_goals import settings_goals
from configs.errors import UserError


def main() -> None:
    """Evaluate the front again with the link's bandwidth halved and print each point's slowdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    stored = load_settings(folder)
    if stored is None:
        raise UserError(where=str(folder), expected="a run folder", found="no run.yaml", way_out="give runs/NAME")
    settings = stored_settings(stored)
    spec = problem_spec(settings)
    link = spec.base.link
    assert link is not None
    half_link = link.model_copy(update={"bandwidth_gb_per_s": link.bandwidth_gb_per_s / 2})
    halved = replace(spec, base=spec.base.model_copy(update={"link": half_link}))()
    evaluations = load_evaluations(folder / EVALUATIONS)
    slowdowns = []
    for point in front_points(halved, evaluations, settings_goals(settings)):
        before = evaluations[point]
        after = halved.evaluate(np.array(before.codes))
        slowdowns.append(after.latency_ns / before.latency_ns)
        share = dict(before.details)["link_busy_share"]
        print(f"{before.latency_ns / 1e6:9.4f} ms  x {slowdowns[-1]:.4f}  link busy {share:6.1%}")
    faster = sum(slowdown < 1 for slowdown in slowdowns)
    print(
        f"{len(slowdowns)} points: {faster} faster, {sum(s > 1 for s in slowdowns)} slower, most {max(slowdowns):.4f}"
    )


if __name__ == "__main__":
    run_to_exit_code(main)
