"""Fixed points of comparison for one decode step: rooflines of GPUs, published measurements, simulated PIM devices.

    python -m experiments.reference_points --model llama --context 4096

The energy of a GPU is a bound, that of a PIM device is the memory side's with typical constants: they say which is
larger, not by how much.
"""

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from autotune.architect.references import references_of
from autotune.exit_codes import run_to_exit_code
from autotune.problem_spec import import_workload
from autotune.reference_points import ReferencePoint
from autotune.units import MJ_PER_PJ, MS_PER_NS
from compiler.workload import StoredFormats
from configs.errors import unwritable
from configs.number_format import CACHE_STORAGE, STORAGE, NumberFormat

NOT_MODELLED = "-"


def table_lines(points: tuple[ReferencePoint, ...]) -> list[str]:
    """Return the table, a line a point, and the sources of the points below it."""
    lines = [f"{'point':24s}{'kind':>10s}{'n':>4s}{'context':>9s}{'ms':>9s}{'roofline':>10s}{'mJ':>8s}{'mm2':>8s}"]
    for point in points:
        share = NOT_MODELLED if point.roofline_share is None else f"{point.roofline_share:.1%}"
        energy = NOT_MODELLED if point.energy_pj is None else f"{point.energy_pj * MJ_PER_PJ:.0f}"
        area = NOT_MODELLED if point.area_mm2 is None else f"{point.area_mm2:.0f}"
        lines.append(
            f"{point.name:24s}{point.kind:>10s}{point.count:4d}{point.context:9d}{point.latency_ns * MS_PER_NS:9.3f}"
            f"{share:>10s}{energy:>8s}{area:>8s}"
        )
    return lines + [f"{point.name}, {point.kind}: {point.source}; {point.note}" for point in points]


def main() -> None:
    """Print the table, or write it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="llama")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--context", type=int, default=4096)
    parser.add_argument("--weights", choices=[str(item) for item in STORAGE], default="bf16")
    parser.add_argument("--kv", choices=[str(item) for item in CACHE_STORAGE], default="bf16")
    parser.add_argument("--json", type=Path, help="write the points to this file")
    choice = parser.parse_args()
    formats = StoredFormats(NumberFormat(choice.weights), NumberFormat(choice.kv))
    found = references_of(import_workload(choice.model, choice.batch, choice.context, formats))
    points = found.points
    print(*table_lines(points), sep="\n")
    for reason in found.left_out:
        print(f"not modelled: {reason}", file=sys.stderr)
    if choice.json is not None:
        try:
            choice.json.write_text(json.dumps([asdict(point) for point in points], indent=1) + "\n", encoding="utf-8")
        except OSError as error:
            raise unwritable(str(choice.json), error) from error


if __name__ == "__main__":
    run_to_exit_code(main)
