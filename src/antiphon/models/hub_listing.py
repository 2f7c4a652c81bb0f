"""What a model on a hub consists of, and which of its files are needed to serve it."""

from __future__ import annotations

import re
from collections.abc import Mapping

import attrs

from antiphon.errors import StartupError
from antiphon.models.hf_folder import (
    CONFIG,
    GENERATION_CONFIG,
    PICKLED,
    SENTENCE_PIECE,
    TEKKEN,
    TOKENIZER,
    TOKENIZER_CONFIG,
    WEIGHTS,
    WEIGHTS_INDEX,
)
from antiphon.models.hub_name import HubName

CHAT_TEMPLATE = "chat_template.jinja"

_DIGEST = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_COMMIT = re.compile(r"[0-9a-f]{40}")


@attrs.frozen
class HubFile:
    """A file of a repository, and how to tell that it came whole."""

    name: str
    size: int
    digest: str
    """sha256 of its bytes, or the sha1 that git gives a blob of them: 64 or 40 hex digits."""


@attrs.frozen
class Listing:
    """The files of one commit of a repository."""

    commit: str
    files: Mapping[str, HubFile]


def read_listing(hub: HubName) -> Listing:
    """Ask the hub. Raises whatever the hub's client raises, and ``ValueError`` for an answer
    that is none."""
    # It takes a fifth of a second to import, and only fetching needs it.
    from huggingface_hub import HfApi, constants

    info = HfApi(endpoint=constants.ENDPOINT).model_info(
        hub.repository,
        revision=hub.revision,
        timeout=constants.HF_HUB_ETAG_TIMEOUT,
        files_metadata=True,
    )
    commit = info.sha or ""
    if not _COMMIT.fullmatch(commit):
        raise ValueError(f"its commit is {commit!r}")
    files = {}
    for entry in info.siblings or ():
        digest = entry.lfs.sha256 if entry.lfs else entry.blob_id
        if entry.size is not None and digest:
            if not isinstance(entry.size, int) or entry.size < 0 or not _is_digest(digest):
                raise ValueError(
                    f"{entry.rfilename} has the size {entry.size!r} and the checksum {digest!r}"
                )
            files[entry.rfilename] = HubFile(entry.rfilename, entry.size, digest)
    return Listing(commit, files)


def _is_digest(digest: object) -> bool:
    return isinstance(digest, str) and _DIGEST.fullmatch(digest) is not None


def without_shards(hub: HubName, listing: Listing) -> list[HubFile]:
    """The files to fetch; where the weights are sharded, their index and none of the shards.

    Raises ``StartupError`` for a model that could not be served.
    """
    files = listing.files
    if hub.file is not None:
        if hub.file not in files:
            raise StartupError(f"{hub.repository} has no file {hub.file!r}.{_offer(hub, files)}")
        return [files[hub.file]]
    weights = next((name for name in (WEIGHTS, WEIGHTS_INDEX) if name in files), None)
    if weights is None:
        raise _without_weights(hub, files)
    vocabulary = next((n for n in (TOKENIZER, TEKKEN, SENTENCE_PIECE) if n in files), None)
    for name, found in ((CONFIG, CONFIG in files), (TOKENIZER, vocabulary)):
        if not found:
            raise StartupError(f"{hub.repository} has no {name}, and cannot be served.")
    optional = (GENERATION_CONFIG, TOKENIZER_CONFIG, CHAT_TEMPLATE)
    wanted = [CONFIG, vocabulary, *(name for name in optional if name in files), weights]
    return [files[name] for name in wanted if name is not None]


def shards(hub: HubName, listing: Listing, index: Mapping[str, object]) -> list[HubFile]:
    """The files that an index of weights names. Raises ``StartupError`` for one that is missing."""
    weight_map = index.get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise StartupError(f"{hub}: weight_map of {WEIGHTS_INDEX} is missing or empty.")
    names = sorted({str(name) for name in weight_map.values()})
    for name in names:
        if name not in listing.files or "/" in name or not name.endswith(".safetensors"):
            raise StartupError(
                f"{hub}: {WEIGHTS_INDEX} names {name!r}, which is no weights file of {hub}."
            )
    return [listing.files[name] for name in names]


def _without_weights(hub: HubName, files: Mapping[str, HubFile]) -> StartupError:
    if offer := _offer(hub, files):
        return StartupError(f"{hub.repository} has no {WEIGHTS}.{offer}")
    if any(name.lower().endswith(tuple(PICKLED)) for name in files):
        return StartupError(
            f"{hub.repository} has its weights as pickles only, and loading one runs whatever code "
            "it holds; nothing was fetched."
        )
    return StartupError(f"{hub.repository} has neither {WEIGHTS} nor {WEIGHTS_INDEX}.")


def _offer(hub: HubName, files: Mapping[str, HubFile]) -> str:
    ggufs = sorted(name for name in files if name.lower().endswith(".gguf"))
    if not ggufs:
        return ""
    more = f" (and {len(ggufs) - 3} more)" if len(ggufs) > 3 else ""
    names = ", ".join(f"{hub.repository}:{name}" for name in ggufs[:3])
    return f" Its GGUF files: {names}{more}."
