"""``python -m benchmarks.mixed_load``: prints a table; the status is 1 if anything was lost.

Or if an answer was another than alone. That holds in float32 only, in which the server computes
here unless an option says otherwise; elsewhere a sum rounds by the size of its batch.
"""

from __future__ import annotations

import argparse
import sys

import anyio
from benchmarks.mixed_load.load import run
from benchmarks.mixed_load.table import summary, table
from rich.console import Console


def main() -> int:
    """The command; what it does not know itself goes to the server."""
    parser = argparse.ArgumentParser(prog="benchmarks.mixed_load", description=__doc__)
    parser.add_argument("--model", help="as of `antiphon serve`; without it the default model")
    parser.add_argument("--rounds", type=int, default=3, help="how often every question is asked")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--any-answer",
        action="store_true",
        help="an answer may be another than alone, as rounding makes it in all but float32",
    )
    told, options = parser.parse_known_args()
    if not any(option.startswith(("--dtype", "--weights")) for option in options):
        options += ["--dtype", "float32", "--weights", "float"]

    async def load() -> int:
        report = await run(told.model, options, rounds=told.rounds, seed=told.seed)
        console = Console()
        console.print(table(report))
        console.print(summary(report))
        troubles = report.troubles(any_answer=told.any_answer)
        for trouble in troubles:
            console.print(trouble, style="red", markup=False)
        if any(one.changed and not one.lost for one in report.outcomes) and troubles:
            console.print("Other answers than alone are rounding's, but in float32: --any-answer.")
        return 1 if troubles else 0

    return anyio.run(load)


if __name__ == "__main__":
    sys.exit(main())
