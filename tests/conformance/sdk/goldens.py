"""The golden streams and bodies, as a client of another make meets them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import attrs

GOLDEN = Path(__file__).parents[3] / "fixtures" / "golden"

Endpoint = Literal["responses", "chat", "completions"]
ENDPOINTS: tuple[Endpoint, ...] = ("responses", "chat", "completions")


@attrs.frozen
class Golden:
    """One case at one endpoint. ``stream``: the bytes of the SSE stream. ``body``: the unary body,
    or None where the case has none."""

    case: str
    endpoint: Endpoint
    stream: bytes
    body: dict[str, Any] | None

    @property
    def failed(self) -> bool:
        return self.body is None or self.body.get("status") == "failed"

    @property
    def data(self) -> list[dict[str, Any]]:
        """The JSON of each frame but ``[DONE]``."""
        frames = self.stream.decode().split("\n\n")[:-1]
        lines = [frame.rpartition("\n")[2].removeprefix("data: ") for frame in frames]
        assert lines.pop() == "[DONE]"
        return [json.loads(line) for line in lines]

    @property
    def finish_reasons(self) -> set[str | None]:
        """Of all choices, at chat and completions."""
        assert self.body is not None
        return {choice["finish_reason"] for choice in self.body["choices"]}


def _load(endpoint: Endpoint) -> Mapping[str, Golden]:
    found = {}
    for path in sorted(GOLDEN.rglob(f"{endpoint}.sse")):
        body = path.with_suffix(".json")
        case = path.parent.relative_to(GOLDEN).as_posix()
        found[case] = Golden(
            case,
            endpoint,
            path.read_bytes(),
            json.loads(body.read_bytes()) if body.exists() else None,
        )
    return found


GOLDENS: Mapping[Endpoint, Mapping[str, Golden]] = {each: _load(each) for each in ENDPOINTS}
"""By endpoint and case."""
RESPONSES, CHAT, COMPLETIONS = (GOLDENS[endpoint] for endpoint in ENDPOINTS)
