"""The ``tokenizer.ggml.*`` keys of one GGUF file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import attrs

from antiphon.errors import StartupError
from antiphon.models.gguf_metadata import Scalar, Value


@attrs.frozen
class TokenizerKeys:
    """The keys by their names; one that is missing or wrong is a ``StartupError`` naming it."""

    path: Path
    metadata: dict[str, Value]

    def text(self, key: str) -> str:
        value = self._get(key)
        if not isinstance(value, str):
            raise self.damaged(key, "is missing" if value is None else f"is {value!r}, not a text")
        return value

    def array(self, key: str, default: Sequence[Scalar]) -> Sequence[Scalar]:
        value = self._get(key)
        if value is None:
            return default
        if isinstance(value, (list, tuple)):
            return value
        raise self.damaged(key, f"is {value!r}, not an array")

    def texts(self, key: str) -> list[str]:
        texts = [entry for entry in self.array(key, ()) if isinstance(entry, str)]
        if not texts:
            raise self.damaged(key, "is missing, or is not an array of texts")
        return texts

    def numbers(self, key: str, count: int, default: float | None) -> list[float]:
        """As many numbers as there are tokens; ``default`` None: they have to be there."""
        values = self.array(key, () if default is None else [default] * count)
        if not values:
            raise self.damaged(key, "is missing, or is empty")
        if len(values) != count:
            raise self.damaged(key, f"has {len(values)} entries for {count} tokens")
        if not all(isinstance(value, (int, float)) for value in values):
            raise self.damaged(key, "is not an array of numbers")
        return [float(value) for value in values]

    def flag(self, key: str, *, default: bool) -> bool:
        value = self._get(key)
        return default if value is None else bool(value)

    def token(self, key: str, tokens: Sequence[object]) -> int | None:
        value = self._get(key)
        if value is None:
            return None
        if not isinstance(value, int) or not 0 <= value < len(tokens):
            raise self.damaged(key, f"is {value!r}, not one of the {len(tokens)} tokens")
        return value

    def unknown(self, key: str, value: str, known: Iterable[str]) -> StartupError:
        return self.damaged(key, f"is {value!r}; known here: {', '.join(known)}")

    def damaged(self, key: str, what: str) -> StartupError:
        return StartupError(f"{self.path}: tokenizer.ggml.{key} {what}.")

    def _get(self, key: str) -> Value | None:
        return self.metadata.get("tokenizer.ggml." + key)
