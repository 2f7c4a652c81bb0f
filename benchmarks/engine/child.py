"""A contestant in a process of its own: tasks on stdin, a line of JSON for each on a pipe.

So nobody's threads, allocator or memory are another's, and what a library prints goes elsewhere.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

import attrs
from benchmarks.engine.loads import NotMeasured, Sizes, Task, Timing

ROOT = Path(__file__).parents[2]
KNOWN = {
    "antiphon": ("benchmarks.engine.ours", "Ours"),
    "antiphon apart": ("benchmarks.engine.ours", "OursApart"),
    "antiphon held": ("benchmarks.engine.held", "OursHeld"),
    "bare forward": ("benchmarks.engine.bare", "Bare"),
    "llama.cpp": ("benchmarks.engine.llama_cpp", "LlamaCpp"),
    "transformers": ("benchmarks.engine.with_transformers", "WithTransformers"),
}
OURS = ("antiphon", "antiphon apart", "antiphon held", "bare forward")
"""Those for which the form of the weights can be chosen."""


class Child:
    """The parent's side. Starting waits until the model is loaded. Raises ``NotMeasured``."""

    def __init__(self, name: str, model: str | None, weights: str) -> None:
        self.name = name
        self._printed = tempfile.TemporaryFile()  # noqa: SIM115  # it lives as long as the process
        reading, writing = os.pipe()
        self._popen = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.engine.child", name, model or "", weights,
             str(writing)],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=self._printed, stderr=self._printed,
            pass_fds=[writing], env={**os.environ, "OMP_NUM_THREADS": "1"}, text=True,
        )  # fmt: skip
        os.close(writing)
        self._answers = os.fdopen(reading)
        try:
            self._read()
        except NotMeasured:
            self.close()
            raise

    def measure(self, task: Task, sizes: Sizes, number: int) -> Timing:
        """As the contestant does it. Raises ``NotMeasured``, also if it has died."""
        if self._popen.stdin is None:
            raise NotMeasured("it has no input")
        try:
            self._popen.stdin.write(json.dumps([task, attrs.asdict(sizes), number]) + "\n")
            self._popen.stdin.flush()
        except OSError:
            raise NotMeasured(self._last_words()) from None
        return Timing(**self._read())

    def close(self) -> None:
        """End the process."""
        self._popen.kill()
        self._popen.communicate()
        self._answers.close()
        self._printed.close()

    def _read(self) -> Any:
        line = self._answers.readline()
        if not line:
            raise NotMeasured(self._last_words())
        answer = json.loads(line)
        if "reason" in answer:
            raise NotMeasured(answer["reason"])
        return answer

    def _last_words(self) -> str:
        self._popen.wait()
        self._printed.seek(0)
        lines = self._printed.read().decode(errors="replace").strip().splitlines()
        return f"it ended: {lines[-1] if lines else 'it printed nothing'}"


def main(name: str, model: str, weights: str, pipe: str) -> None:
    """The child's side."""
    with os.fdopen(int(pipe), "w", buffering=1) as out:
        module, kind = KNOWN[name]
        given = (model or None, weights) if name in OURS else (model or None,)
        try:
            contestant = getattr(import_module(module), kind)(*given)
        except NotMeasured as reason:
            print(json.dumps({"reason": str(reason)}), file=out)
            return
        print("{}", file=out)
        for line in sys.stdin:
            task, sizes, number = json.loads(line)
            try:
                answer = attrs.asdict(contestant.measure(task, Sizes(**sizes), number))
            except NotMeasured as reason:
                answer = {"reason": str(reason)}
            print(json.dumps(answer), file=out)


if __name__ == "__main__":
    main(*sys.argv[1:])
