"""``antiphon serve --engine replay`` where each recording is a script of several turns.

Choice k of a recording is what its model says once the tools have answered k times. So a client
that runs tools gets a call, sends the output, and gets the next line of the script::

    python tests/conformance/clients/scripted.py serve --engine replay --fixtures FOLDER

All options are those of the command.
"""

from __future__ import annotations

from array import array
from itertools import pairwise
from typing import Any

import attrs

from antiphon import app
from antiphon.__main__ import main
from antiphon.engines.port import EngineRequest
from antiphon.engines.replay import ReplayEngine
from antiphon.prompting.replay_prompter import ReplayPrompter


class TurnPrompter(ReplayPrompter):
    """Writes the number of the turn where the first token id would be: replayed ids mean nothing.

    Outputs that follow one another answer the calls of one turn.
    """

    def chat(self, *conversation: Any, **options: Any) -> array[int]:
        prompt = super().chat(*conversation, **options)
        roles = [message["role"] for message in conversation[0]]
        prompt[0] = sum(new == "tool" != old for old, new in pairwise(["", *roles]))
        return prompt


class TurnEngine(ReplayEngine):
    """Plays the choice of the turn."""

    def submit(self, request: EngineRequest) -> None:
        super().submit(attrs.evolve(request, choice=request.choice + request.prompt[0]))


if __name__ == "__main__":
    setattr(app, "ReplayPrompter", TurnPrompter)  # noqa: B010  # to mypy the name is a type
    setattr(app, "ReplayEngine", TurnEngine)  # noqa: B010
    main()
