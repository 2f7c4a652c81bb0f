"""The tool itself on a small load: what it counts and what it leaves. No time is judged."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.serving import results

ROOT = Path(__file__).parents[2]
BESIDES = {"chat": 3, "responses": 9}
"""Events of a stream that bring no token: role, finish and [DONE]; of Responses four before the
first delta, then the four ends and [DONE]."""
STREAMS, SHORT, LONG = 4, 4, 12


def serve(*options: str) -> subprocess.CompletedProcess[str]:
    cpu = str(min(os.sched_getaffinity(0)))
    pinned = ("--server-cpu", cpu, "--client-cpu", cpu)
    return subprocess.run(
        [sys.executable, "-m", "benchmarks.serve", *pinned, *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bench") / "results.jsonl"
    done = serve(
        "--quick", "--loops", "asyncio", "--peer", "hypercorn", "--protocols", "h1,h2",
        "--out", str(path),
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "µs/event" in done.stdout
    return path


def test_every_event_of_every_stream_is_counted_and_every_token_timed(out: Path) -> None:
    (made,) = results.read([out])
    ours = {case: pairs for case, pairs in made.pairs.items() if case.who == "antiphon, asyncio"}
    assert {(case.api, case.proto) for case in ours} == {
        (api, proto) for api in BESIDES for proto in ("h1", "h2")
    }
    for case, (pair,) in ours.items():
        for run, tokens in ((pair.short, SHORT), (pair.long, LONG)):
            assert run.seen.events == run.wanted == STREAMS * (tokens + BESIDES[case.api])
            assert (run.seen.streams, run.seen.timed) == (STREAMS, STREAMS * tokens)
            assert run.cpu_ns > 0
        assert pair.peak_bytes >= pair.after_bytes > 10_000_000


def test_a_peer_is_measured_in_the_same_run(out: Path) -> None:
    (made,) = results.read([out])
    peers = {case: pairs for case, pairs in made.pairs.items() if case.who == "hypercorn"}
    assert len(peers) == 4
    for (pair,) in peers.values():
        assert pair.long.seen.events == STREAMS * (LONG + 1)
        assert pair.long.seen.timed == STREAMS * LONG


def test_results_are_shown_again_without_measuring(out: Path) -> None:
    done = serve("--show", str(out))
    assert done.returncode == 0
    assert done.stdout.count("antiphon, asyncio") == 4


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--quick", "--write-docs"), "no figures to publish"),
        (("--peer", "nobody"), "there is no peer 'nobody'"),
        (("--client-cpu", "100000"), "processors of this machine"),
        (("--protocols", "h4"), "h4 is none of h1, h2, h2-single"),
    ],
)
def test_what_cannot_be_done_is_said(options: tuple[str, ...], said: str, tmp_path: Path) -> None:
    done = serve(*options, "--out", str(tmp_path / "none.jsonl"))
    assert done.returncode
    assert said in done.stderr
