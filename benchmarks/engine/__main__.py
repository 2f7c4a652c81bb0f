"""Our engine beside llama.cpp and transformers, on one model, one thread each, in one run.

    nox -s bench -- engine [options]          (python -m benchmarks.engine [options])

``docs/performance.md`` says how the figures come about and what they mean.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import PackageNotFoundError, version

from benchmarks.engine.child import KNOWN, Child
from benchmarks.engine.figures import Figures
from benchmarks.engine.loads import QUICK, TASKS, NotMeasured, Sizes
from benchmarks.serving.machine import machine

PACKAGES = ("antiphon", "torch", "numpy", "transformers", "xllamacpp")


def main(arguments: Sequence[str] | None = None) -> None:
    asked = _options().parse_args(arguments)
    sizes = QUICK if asked.quick else Sizes()
    print("\n".join(_circumstances()), flush=True)
    if asked.profile:
        from benchmarks.engine.parts import tables

        print("\n".join(tables(asked.model, asked.weights, sizes)))
    else:
        figures = _measure(asked, sizes)
        print("\n".join(figures.table()))
        print(f"\nLoad afterwards: {_load()}.")
        if not any(figures.rounds[task] for task in asked.tasks):
            sys.exit("Nothing was measured.")
    if asked.quick:
        print("\nA quick look at whether it runs: these are no figures.")


def _options() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(prog="engine", description=__doc__.split("\n", 1)[0])
    add = options.add_argument
    add("--model", help="alias, GGUF file or folder [the default model]")
    add("--weights", default="auto", choices=("auto", "float", "int8", "int4"), help="ours [auto]")
    add("--rounds", type=int, default=5, help="[5]")
    add("--contestants", type=_names(KNOWN), default=tuple(KNOWN), help=", ".join(KNOWN))
    add("--tasks", type=_names(TASKS), default=TASKS, help=", ".join(TASKS))
    add("--profile", action="store_true", help="where the time of our step goes, and nothing else")
    add("--quick", action="store_true", help="a look at whether it runs; no figures")
    return options


def _measure(asked: argparse.Namespace, sizes: Sizes) -> Figures:
    figures = Figures(judged=not asked.quick)
    children = list[Child]()
    try:
        for name in asked.contestants:
            try:
                children.append(Child(name, asked.model, asked.weights))
            except NotMeasured as reason:
                for task in asked.tasks:
                    figures.reasons[task, name] = str(reason)
        for number in range(-1, 1 if asked.quick else asked.rounds):
            for task in asked.tasks:
                # Each round begins with another, so that nobody always follows the same one.
                turn = number % len(children) if children else 0
                for child in [*children[turn:], *children[:turn]]:
                    if (task, child.name) not in figures.reasons:
                        _one(figures, child, task, sizes, number)
    finally:
        for child in children:
            child.close()
    return figures


def _one(figures: Figures, child: Child, task: str, sizes: Sizes, number: int) -> None:
    """Round -1 is the warm-up and is not counted."""
    known = next(one for one in TASKS if one == task)
    try:
        timing = child.measure(known, sizes, number)
    except NotMeasured as reason:
        figures.reasons[known, child.name] = str(reason)
        return
    if number >= 0:
        figures.add(known, child.name, number, timing)
        print(f"{number + 1}  {task:8} {child.name:13} {timing.value:8.1f}  {timing.detail}",
              flush=True)  # fmt: skip


def _circumstances() -> list[str]:
    cpu = min(os.sched_getaffinity(0))
    here = machine(cpu, cpu, "")
    return [
        f"* {time.strftime('%Y-%m-%d', time.gmtime())}: {here.processor}, {here.cores} cores, "
        f"{here.memory_gb:g} GB, {here.system}; one thread for each contestant.",
        f"* {here.python}, {', '.join(f'{name} {_version(name)}' for name in PACKAGES)}.",
        f"* Load before: {_load()}.",
    ]


def _load() -> str:
    return " / ".join(f"{average:.2f}" for average in os.getloadavg())


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "absent"


def _names(known: Iterable[str]) -> Callable[[str], tuple[str, ...]]:
    def parse(text: str) -> tuple[str, ...]:
        parts = tuple(text.split(","))
        if unknown := set(parts) - set(known):
            raise argparse.ArgumentTypeError(f"{', '.join(unknown)} is none of {', '.join(known)}")
        return parts

    return parse


if __name__ == "__main__":
    main()
