"""When the engine made each step: a table in a file that engine and client map into memory."""

from __future__ import annotations

import mmap
from pathlib import Path
from types import TracebackType

from benchmarks.serving.words import SIZE

ENTRY = 8


class StepTimes:
    """One u64 per word: the monotonic nanoseconds at which its latest step left the engine."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("r+b")
        self._map = mmap.mmap(self._file.fileno(), SIZE * ENTRY)
        self._times = memoryview(self._map).cast("Q")

    @staticmethod
    def make(path: Path) -> Path:
        """A table without an entry, in a new file."""
        path.write_bytes(bytes(SIZE * ENTRY))
        return path

    def __setitem__(self, number: int, at_ns: int) -> None:
        self._times[number] = at_ns

    def __getitem__(self, number: int) -> int:
        """0 for a word that no step has brought."""
        return self._times[number]

    def close(self) -> None:
        """Give the memory back."""
        self._times.release()
        self._map.close()
        self._file.close()

    def __enter__(self) -> StepTimes:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
