"""Panics of the ``tokenizers`` library as errors.

It is written in Rust, and where its code gives up ("panics") PyO3 raises an exception that is no
``Exception``: it passes every handler that is there for failures, and ends whatever runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


def is_panic(failure: BaseException) -> bool:
    """Whether it is PyO3's ``PanicException``, which cannot be imported."""
    return type(failure).__module__ == "pyo3_runtime"


@contextmanager
def panics_as(refusal: Callable[[str], Exception]) -> Iterator[None]:
    """A panic inside is raised as ``refusal`` of its first line."""
    try:
        yield
    except BaseException as failure:
        if not is_panic(failure):
            raise
        raise refusal(str(failure).partition("\n")[0][:200]) from failure
