"""What start-up prints: what is served, where, and one command to paste."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from antiphon.config import Config
from antiphon.runs.catalogue import ServedModel

MOST_NAMES = 6


def greeting(config: Config, models: Sequence[ServedModel], url: str) -> Iterator[str]:
    """The lines; ``url`` is the server's address with its real port."""
    info = models[0].info
    names = [model.id for model in models]
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    yield f"Serving  {', '.join(names[:MOST_NAMES])}{more}"
    yield f"Engine   {info.name}, {info.dtype} on {info.device}, context {info.context_length}"
    protocols = "HTTP/2 and HTTP/1.1 over TLS" if config.certfile else "HTTP/2 (h2c) and HTTP/1.1"
    yield f"Address  {url} ({protocols})"
    yield "Try it:"
    yield f"  {curl_line(config, names[0], url)}"


def curl_line(config: Config, model: str, url: str) -> str:
    """A streamed chat call of the first model, as one shell command."""
    question = "What is the capital of France?"
    body = {"model": model, "stream": True, "messages": [{"role": "user", "content": question}]}
    key = "-H 'authorization: Bearer YOUR_KEY' " if config.api_keys else ""
    trust = "-k " if config.certfile else ""
    return (
        f"curl -N {trust}{url}/v1/chat/completions {key}"
        f"-H 'content-type: application/json' -d '{json.dumps(body)}'"
    )
