"""Typed look-ups in a model's metadata; every complaint names the key and its value."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import attrs

from antiphon.engines.port import EngineStartError


@attrs.frozen
class Fields:
    """The keys of ``config.json`` or of a GGUF header. All methods raise ``EngineStartError``."""

    values: Mapping[str, Any]
    source: str
    """The file's name, for messages."""

    def refuse(self, key: str, taken: str) -> EngineStartError:
        """The error for a value that is not supported."""
        value = self.values.get(key)
        return EngineStartError(f"{self.source}: {key} is {value!r}; only {taken} is supported")

    def count(self, key: str, default: int | None = None) -> int:
        """A positive integer."""
        value = self._get(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise self.refuse(key, "a positive integer")
        return value

    def index(self, key: str) -> int:
        """An integer that is not negative, and has no default."""
        value = self._get(key, None)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise self.refuse(key, "an integer from 0 on")
        return value

    def flag(self, key: str) -> bool:
        """True or false; absent and null are false."""
        value = self.values.get(key)
        if value is not None and not isinstance(value, bool):
            raise self.refuse(key, "true or false")
        return value is True

    def number(self, key: str, default: float | None = None) -> float:
        """A positive number."""
        value = self._get(key, default)
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not 0 < value < sys.float_info.max
        ):
            raise self.refuse(key, "a positive number")
        return float(value)

    def only(self, key: str, *taken: Any) -> None:
        """A key that must be absent, null or one of ``taken``."""
        value = self.values.get(key)
        if value is not None and value not in taken:
            raise self.refuse(key, " or ".join(map(repr, taken)) or "its absence")

    def _get(self, key: str, default: float | None) -> Any:
        value = self.values.get(key)
        if value is not None:
            return value
        if default is None:
            raise EngineStartError(f"{self.source}: {key} is missing")
        return default
