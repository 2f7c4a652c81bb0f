"""The models this server answers for, by public id."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

import attrs

from antiphon.engines.port import EngineInfo
from antiphon.errors import InvalidRequest, NotFound
from antiphon.prompting.prompter import Prompter
from responsory.commands import Reasoning
from responsory.segments import PLAIN, Spec, family

FORCED = family("forced")
MAX_SHOWN = 200
"""Characters of an unknown name that its refusal repeats."""


@attrs.define(kw_only=True)
class ServedModel:
    """A public model id and what is needed to run it."""

    id: str
    created: int
    """Unix seconds: when it was loaded."""
    prompter: Prompter
    info: EngineInfo
    format: Spec = PLAIN
    """How the model marks its reasoning and its calls in the raw text."""
    thinks_unasked: bool = True
    """Whether a model that marks reasoning does reason where a request says nothing of it."""
    format_of_calls: Spec = PLAIN
    """How it marks its calls, for answers that leave the reasoning in the text."""
    format_when_forced: Spec = FORCED
    """How it marks its reasoning, and calls of which it has no form of its own are read: what it is
    held to then."""

    @property
    def writes_calls(self) -> bool:
        """Whether it has a form of its own for calls."""
        return any(mode.calls for mode in self.format.modes.values())

    @property
    def marks_thought(self) -> bool:
        """Whether its reasoning can be told from the raw text."""
        return any(mode.channel is Reasoning for mode in self.format.modes.values())


class Catalogue:
    """Lookup of served models; order is that of registration."""

    def __init__(
        self, models: Iterable[ServedModel], *, unknown_status: Literal[400, 404] = 400
    ) -> None:
        self._models = {model.id: model for model in models}
        self._refusal = NotFound if unknown_status == 404 else InvalidRequest

    def __iter__(self) -> Iterator[ServedModel]:
        return iter(self._models.values())

    def find(self, model_id: str) -> ServedModel | None:
        """The model of that id, or None."""
        return self._models.get(model_id)

    def require(self, model_id: str) -> ServedModel:
        """The model of that id. Raises ``InvalidRequest`` (``model_not_found``), or ``NotFound``
        where the server is set to."""
        model = self._models.get(model_id)
        if model is None:
            raise self._refusal(
                f"The model `{model_id[:MAX_SHOWN]}` does not exist. "
                f"This server serves {self._names()}.",
                code="model_not_found",
                param="model",
            )
        return model

    def _names(self, most: int = 8) -> str:
        names = [f"`{name}`" for name in self._models]
        more = f" and {len(names) - most} more" if len(names) > most else ""
        return ", ".join(names[:most]) + more
