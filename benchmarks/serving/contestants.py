"""Everything that can be measured, by name: our server on each loop, and the peers."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import attrs
from benchmarks.peers import Peer
from benchmarks.serving.ours import Ours

PEER_MODULES = ("prepared", "vllm")
"""Of ``benchmarks.peers``; each has ``PEERS``, a mapping of names to peers."""


@attrs.frozen
class Contestant:
    """A name of the tables and who starts it."""

    name: str
    peer: Peer


def ours(
    loops: Sequence[str], times: Path, api_key: str | None, options: Sequence[str]
) -> list[Contestant]:
    """Our server on each of the loops."""
    return [
        Contestant(f"antiphon, {loop}", Ours(loop, times, api_key=api_key, options=options))
        for loop in loops
    ]


def known_peers() -> dict[str, Peer]:
    """Every peer by name, whether it can be started here or not."""
    found: dict[str, Peer] = {}
    for name in PEER_MODULES:
        found |= import_module(f"benchmarks.peers.{name}").PEERS
    return found


def peer(name: str, times: Path) -> Contestant:
    """A peer that writes when its steps leave to ``times``, if it can. Raises ``LookupError``."""
    known = known_peers()
    if name not in known:
        raise LookupError(f"there is no peer {name!r}; there are {', '.join(known)}")
    found = known[name]
    kind = type(found)
    if attrs.has(kind) and "times" in attrs.fields_dict(kind):
        found = attrs.evolve(found, times=times)  # type: ignore[misc]  # it has the field
    return Contestant(name, found)
