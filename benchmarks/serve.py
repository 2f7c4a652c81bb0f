"""The whole front end, measured: server CPU per event, latency from step to client, memory.

    nox -s bench -- serve [options]          (python -m benchmarks.serve [options])

A scripted engine in a process of its own hands a token of every stream to the server at each step;
detokenizer, segmenter, machine, log, projection and transport are the real ones, and a client reads
every event. ``docs/performance.md`` says how the figures come about and what they mean.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import get_args

from benchmarks.peers import Api, Proto
from benchmarks.serving import results, tables
from benchmarks.serving.cells import FOREIGN_LIMIT, Case
from benchmarks.serving.client import Client
from benchmarks.serving.contestants import Contestant, known_peers, ours, peer
from benchmarks.serving.machine import machine
from benchmarks.serving.measuring import Plan, turned, visit
from benchmarks.serving.results import Measurement
from benchmarks.serving.step_times import StepTimes

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs" / "performance.md"
LOOPS = ("asyncio", "uvloop")
TRANSPORT = ("antiphon-worker", "hypercorn", "fastapi")
"""The transport alone: prepared frames on our worker, on stock Hypercorn and on uvicorn."""
MANY = 512
"""From so many streams on, the default pace is slower."""


def main(arguments: Sequence[str] | None = None) -> None:
    asked = _options().parse_args(arguments)
    if asked.show:
        _tell(results.read(asked.show), write=asked.write_docs)
        return
    if asked.write_docs and (asked.quick or asked.keep_disturbed):
        sys.exit("--quick and --keep-disturbed give no figures to publish.")
    if not {asked.server_cpu, asked.client_cpu} <= os.sched_getaffinity(0):
        sys.exit("--server-cpu and --client-cpu must be processors of this machine.")
    with tempfile.TemporaryDirectory(prefix="serve-") as name:
        made = _measure(asked, Path(name))
    _tell([made], write=asked.write_docs)
    if made.without_figure():
        sys.exit(1)


def _options() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(prog="serve", description=__doc__.split("\n", 1)[0])
    add = options.add_argument
    add("--streams", type=_numbers, default=(1, 32, 128, 512), help="at once [1,32,128,512]")
    add("--stalled", type=_numbers, default=(0,), help="further streams that nobody reads [0]")
    add("--protocols", type=_names(get_args(Proto)), default=get_args(Proto))
    add("--apis", type=_names(get_args(Api)), default=("chat", "responses"))
    add("--loops", type=_names(LOOPS), default=LOOPS, help="of our server")
    add("--pace", type=float, help="ms between two tokens of a stream [10; 40 from 512 streams on]")
    add("--flood", action="store_true", help="tokens as fast as the server takes them")
    add("--short", type=int, default=64, help="tokens a stream of the short run [64]")
    add("--long", type=int, default=320, help="tokens a stream of the long run [320]")
    add("--reps", type=int, default=3, help="repetitions; 5 for what is published [3]")
    add("--retries", type=int, default=3, help="further ones for cases with void runs [3]")
    add("--peer", action="append", default=[], help=f"measured too: {', '.join(known_peers())}")
    add("--peers-only", action="store_true", help="without our own server")
    add("--transport", action="store_true", help=f"the transport alone: {', '.join(TRANSPORT)}")
    add("--api-key", help="a key that the server asks for and the client sends [off]")
    add("--option", action="append", default=[], help="for `antiphon serve`, as --option=--x=y")
    add("--server-cpu", type=int, default=1)
    add("--client-cpu", type=int, default=0, help="of the client and the engine")
    add("--python-client", action="store_true", help="not the client in C")
    add("--out", type=Path, default=Path("bench-results.jsonl"), help="appended to, JSON lines")
    add("--title", default="The whole front end", help="of the table")
    add("--show", type=Path, nargs="+", help="measure nothing: the tables of these result files")
    add("--write-docs", action="store_true", help="put the tables into docs/performance.md")
    add("--keep-disturbed", action="store_true", help="count runs beside busy neighbours too")
    add("--quick", action="store_true", help="a look at whether it runs; no figures")
    return options


def _measure(asked: argparse.Namespace, folder: Path) -> Measurement:
    times = StepTimes.make(folder / "times")
    contestants = _contestants(asked, times)
    client = Client(folder, asked.client_cpu, times, compiled=not asked.python_client)
    quick = asked.quick
    plan = Plan(
        client=client,
        server_cpu=asked.server_cpu,
        engine_cpu=asked.client_cpu,
        short=4 if quick else asked.short,
        long=12 if quick else asked.long,
        foreign_limit=float("inf") if quick or asked.keep_disturbed else FOREIGN_LIMIT,
    )
    circumstances = machine(asked.server_cpu, asked.client_cpu, client.kind)
    made = Measurement(asked.title, circumstances, plan.short, plan.long)
    print("\n".join(tables.circumstances(made)), flush=True)
    repetitions = 1 if quick else asked.reps
    with asked.out.open("a") as file:
        results.begin(file, made)
        for repetition in range(repetitions + (0 if quick else asked.retries)):
            wanted = min(repetition + 1, repetitions)
            for contestant, todo in _visits(asked, contestants, repetition):
                # In the retries only those are visited that lack a repetition.
                lacking = [case for case in todo if made.lacks(case, wanted)]
                for result in visit(plan, contestant, lacking, repetition) if lacking else ():
                    made.add(result)
                    results.append(file, result)
                    if line := tables.progress(repetition, result):
                        print(line, flush=True)
        made.load_after = [round(average, 2) for average in os.getloadavg()]
        results.end(file, made)
    return made


def _visits(
    asked: argparse.Namespace, contestants: Sequence[Contestant], repetition: int
) -> Iterator[tuple[Contestant, list[Case]]]:
    """Every server with what is to be measured on it, each number of streams apart."""
    for count, stalled in product((4,) if asked.quick else asked.streams, asked.stalled):
        step_us = 2000 if asked.quick else _step_us(asked, count)
        for contestant in contestants:
            cases = [
                Case(contestant.name, api, proto, count, step_us, stalled)
                for api, proto in product(asked.apis, asked.protocols)
            ]
            yield contestant, turned(cases, repetition)


def _contestants(asked: argparse.Namespace, times: Path) -> list[Contestant]:
    names = TRANSPORT if asked.transport else tuple(asked.peer)
    loops = () if asked.transport or asked.peers_only else asked.loops
    try:
        found = [
            *ours(loops, times, asked.api_key, asked.option),
            *(peer(name, times) for name in names),
        ]
    except LookupError as unknown:
        sys.exit(str(unknown))
    for each in found:
        if missing := each.peer.available():
            sys.exit(f"{each.name} cannot be measured here: {missing}")
    return found


def _step_us(asked: argparse.Namespace, streams: int) -> int:
    if asked.flood:
        return 0
    pace = asked.pace if asked.pace is not None else (40 if streams >= MANY else 10)
    return round(pace * 1000)


def _tell(measurements: Sequence[Measurement], *, write: bool) -> None:
    for made in measurements:
        print(f"\n{made.title}\n{tables.plain(made)}")
    if write:
        tables.write_docs(DOCS, tables.markdown(measurements))
        print(f"\nWritten to {DOCS}.")


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


def _names(known: Sequence[str]) -> Callable[[str], tuple[str, ...]]:
    def parse(text: str) -> tuple[str, ...]:
        parts = tuple(text.split(","))
        if unknown := set(parts) - set(known):
            raise argparse.ArgumentTypeError(f"{', '.join(unknown)} is none of {', '.join(known)}")
        return parts

    return parse


if __name__ == "__main__":
    main()
