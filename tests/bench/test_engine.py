"""The comparison of engines on the fixture model: it runs, counts and tells. No time is judged."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.engine.child import Child
from benchmarks.engine.figures import Figures
from benchmarks.engine.loads import NotMeasured, Sizes, Timing, prompt

ROOT = Path(__file__).parents[2]
TINYCHAT = "fixtures/models/tinychat"
TINY = Sizes(prompt=5, decode=4, prefill=40, streams=3, answer=2)


def run(*options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "benchmarks.engine", "--quick", "--model", TINYCHAT, *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


def test_who_cannot_be_measured_is_told_with_the_reason() -> None:
    done = run("--contestants", "antiphon,llama.cpp", "--tasks", "single,turns")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^\| antiphon \| \d+\.\d \|", done.stdout, re.MULTILINE)
    assert done.stdout.count("| llama.cpp | not measured: it reads GGUF files only |") == 2
    assert "these are no figures" in done.stdout
    assert "missed" not in done.stdout
    assert "reached" not in done.stdout


def test_nothing_measured_is_a_failure() -> None:
    done = run("--contestants", "llama.cpp", "--tasks", "single")
    assert done.returncode != 0
    assert "Nothing was measured" in done.stderr


def test_the_parts_of_a_step() -> None:
    done = run("--profile")
    assert done.returncode == 0, done.stdout + done.stderr
    for part in ("layers", "logits", "sampler", "scheduler", "frames and the loop"):
        assert len(re.findall(rf"^\| {part} \| \d", done.stdout, re.MULTILINE)) == 3
    assert "matrices" in done.stdout


@pytest.mark.parametrize("name", ["antiphon", "bare forward"])
def test_a_child_counts_the_tokens_that_were_asked_for(name: str) -> None:
    child = Child(name, TINYCHAT, "auto")
    try:
        timings = {task: child.measure(task, TINY, 1) for task in ("single", "eight", "prefill")}
        assert all(timing.value > 0 for timing in timings.values())
        counted = {task: timing.detail.split()[0] for task, timing in timings.items()}
        assert counted == {"single": "3", "eight": "12", "prefill": "40"}
        with pytest.raises(NotMeasured, match="context"):
            child.measure("prefill", Sizes(prefill=10**6), 1)
        assert child.measure("single", TINY, 2).value > 0, "it goes on after that"
    finally:
        child.close()


def test_a_child_that_cannot_start_says_why() -> None:
    with pytest.raises(NotMeasured, match="no-such-model"):
        Child("antiphon", "no-such-model", "auto")


def test_a_ratio_is_taken_round_by_round() -> None:
    figures = Figures()
    for number, (ours, theirs) in enumerate([(10.0, 5.0), (100.0, 90.0), (30.0, 10.0)]):
        figures.add("single", "antiphon", number, Timing(ours))
        figures.add("single", "llama.cpp", number, Timing(theirs))
    figures.add("single", "llama.cpp", 7, Timing(1.0))
    assert figures.ratio("single", "llama.cpp") == 2.0
    assert figures.ratio("single", "antiphon") is None
    (line,) = (line for line in figures.table() if line.startswith("| llama.cpp"))
    assert "| 2.00 | ≥ 1: reached |" in line


def test_prompts_are_the_same_for_all_and_differ_from_round_to_round() -> None:
    assert prompt(9, "single", 1) == prompt(9, "single", 1)
    assert prompt(9, "single", 1) != prompt(9, "single", 2)
