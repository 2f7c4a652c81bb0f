"""What start-up prints: what is served, where, and one command to paste."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from typing import Any

from antiphon.config import Config
from antiphon.runs.catalogue import ServedModel

MOST_NAMES = 6


def greeting(
    config: Config, models: Sequence[ServedModel], example: ServedModel, url: str
) -> Iterator[str]:
    """The lines; ``url`` is the server's address with its real port, ``example`` one to ask."""
    info = models[0].info
    names = [model.id for model in models]
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    yield f"Serving  {', '.join(names[:MOST_NAMES])}{more}"
    if config.engine == "replay":
        yield f"Engine   {info.name}, pace {config.pace}"
    else:
        yield f"Engine   {info.name}, {info.dtype} on {info.device}, context {info.context_length}"
    protocols = "HTTP/2 and HTTP/1.1 over TLS" if config.certfile else "HTTP/2 (h2c) and HTTP/1.1"
    yield f"Address  {url} ({protocols})"
    yield "Try it:"
    yield f"  {curl_line(config, example, url)}"


def curl_line(config: Config, model: ServedModel, url: str) -> str:
    """A streamed call of the model, as one shell command."""
    body: dict[str, Any] = {"model": model.id, "stream": True, "temperature": 0}
    if model.prompter.takes_chats:
        path = "chat/completions"
        body["messages"] = [{"role": "user", "content": "What is the capital of Japan?"}]
    else:
        path, body["prompt"] = "completions", "The capital of Japan is"
    key = "-H 'authorization: Bearer YOUR_KEY' " if config.api_key else ""
    trust = "-k " if config.certfile else ""
    return (
        f"curl -N {trust}{url}/v1/{path} {key}-H 'content-type: application/json' "
        f"-d {shlex.quote(json.dumps(body))}"
    )
