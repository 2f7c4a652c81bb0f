"""The class decorator of commands, events and values: immutable to the type checker, cheap to make.

A really frozen attrs class costs three times as much to make as a plain slotted one, and one event
is made per streamed token. So the classes are frozen where it is free, in the type checker. The
environment variable ``RESPONSORY_FROZEN=1`` freezes them in earnest, for tests.
"""

from __future__ import annotations

import os
from typing import TypeVar, dataclass_transform

import attrs

T = TypeVar("T")

REALLY_FROZEN = os.environ.get("RESPONSORY_FROZEN") == "1"


@dataclass_transform(frozen_default=True, field_specifiers=(attrs.field,))
def immutable(cls: type[T]) -> type[T]:
    """A slotted attrs class whose fields no typed code may assign, equal and hashed by value."""
    return attrs.define(cls, frozen=REALLY_FROZEN, unsafe_hash=True, weakref_slot=False)
