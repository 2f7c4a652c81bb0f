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
    config: Config, models: Sequence[ServedModel], example: ServedModel, urls: Sequence[str]
) -> Iterator[str]:
    """The lines; ``urls`` are the server's addresses with their real ports, ``example`` one to ask.

    A socket in the file system is ``unix:`` and its path.
    """
    info = models[0].info
    names = [model.id for model in models]
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    yield f"Serving  {', '.join(names[:MOST_NAMES])}{more}"
    if config.engine == "replay":
        yield f"Engine   {info.name}, pace {config.pace}"
    else:
        yield f"Engine   {info.name}, {info.dtype} on {info.device}, context {info.context_length}"
    for url in urls:
        yield f"Address  {url} ({_protocols(config, url)})"
    yield "Try it:"
    yield f"  {curl_line(config, example, urls[0])}"


def _protocols(config: Config, url: str) -> str:
    is_safe = url.startswith("https:")
    spoken = {"1.1": "HTTP/1.1", "2": "HTTP/2" if is_safe else "HTTP/2 (h2c)"}
    versions = ("2", "1.1") if config.http == "auto" else (config.http,)
    text = " and ".join(spoken[version] for version in versions)
    if not is_safe:
        return text
    return f"{text} over TLS" + (", for known clients" if config.client_ca else "")


def curl_line(config: Config, model: ServedModel, url: str) -> str:
    """A streamed call of the model, as one shell command."""
    body: dict[str, Any] = {"model": model.id, "stream": True, "temperature": 0}
    if model.prompter.takes_chats:
        path = "chat/completions"
        body["messages"] = [{"role": "user", "content": "What is the capital of Japan?"}]
    else:
        path, body["prompt"] = "completions", "The capital of Japan is"
    words = ["curl", "-N", *_how_to_connect(config, url)]
    socket = url.startswith("unix:")
    words.append(f"{'http://localhost' if socket else url}/v1/{path}")
    if config.api_key:
        words += ["-H", "authorization: Bearer YOUR_KEY"]
    words += ["-H", "content-type: application/json", "-d", json.dumps(body)]
    return shlex.join(words)


def _how_to_connect(config: Config, url: str) -> Iterator[str]:
    if url.startswith("https:"):
        yield "-k"
        if config.client_ca is not None:
            yield from ("--cert", "YOUR_CERTIFICATE", "--key", "YOUR_KEY_FILE")
        return
    if config.http == "2":
        yield "--http2-prior-knowledge"
    if url.startswith("unix:"):
        yield from ("--unix-socket", url.removeprefix("unix:"))
