"""Measure all known findings, write a table of each and one figure, and print what is known beside what is found.

python -m experiments.known_findings [--out FOLDER]
"""

import argparse
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd

from autotune.exit_codes import run_to_exit_code
from autotune.tables import write_csv
from configs.errors import unwritable
from experiments.known_findings import batch_reuse, pim_level, power_cap, row_buffers, row_size
from experiments.known_findings.figure import write_figure
from experiments.known_findings.finding import Finding

FINDINGS: tuple[Finding[Any], ...] = (
    power_cap.FINDING,
    row_buffers.FINDING,
    row_size.FINDING,
    batch_reuse.FINDING,
    pim_level.FINDING,
)


def main() -> None:
    """Measure, write and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("runs/known_findings"))
    folder: Path = parser.parse_args().out
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(str(folder), error) from error
    measured = []
    for number, finding in enumerate(FINDINGS, start=1):
        print(f"measuring {finding.name}", file=sys.stderr)
        rows = finding.measure()
        measured.append((finding, rows))
        write_csv(pd.DataFrame([asdict(row) for row in rows]), folder / f"{number}_{finding.name}.csv")
        print(f"{number}. Known: {finding.known} ({finding.source}). Found: {finding.summary(rows)}.", flush=True)
    write_figure(measured, folder)


if __name__ == "__main__":
    run_to_exit_code(main)
