"""Names of models on a hub: ``ORG/NAME``, a revision after ``@``, a GGUF file after ``:``."""

from __future__ import annotations

import re
from urllib.parse import quote

import attrs

from antiphon.errors import StartupError
from antiphon.models.hf_folder import PICKLED

FORM = "ORG/NAME, ORG/NAME@REVISION or ORG/NAME:FILE.gguf"

_PART = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9_-])?"
_NAME = re.compile(rf"({_PART}/{_PART})(?:@([^:@\s]+))?(?::([^:\s]+))?", re.ASCII)
_LONGEST = 96
"""Characters of ``ORG/NAME``, as the hub has it."""
_LONGEST_REVISION = 240
"""Bytes of a revision, which is a file's name in the cache."""
_SPLIT_FILE = re.compile(r"-\d{5}-of-\d{5}\.gguf$", re.IGNORECASE)


@attrs.frozen
class HubName:
    """One model on a hub: a folder of safetensors, or one GGUF ``file`` of it."""

    repository: str
    revision: str = "main"
    file: str | None = None

    def __str__(self) -> str:
        revision = "" if self.revision == "main" else f"@{self.revision}"
        return self.repository + revision + (f":{self.file}" if self.file else "")


def looks_like_hub_name(text: str) -> bool:
    """Whether the text has the form of a hub's name, and not of a path to a file."""
    suffixes = (".gguf", ".safetensors", ".json", *PICKLED)
    found = _NAME.fullmatch(text)
    return found is not None and (found[3] is not None or not text.lower().endswith(suffixes))


def parse_hub_name(text: str) -> HubName:
    """The parts of a name. Raises ``StartupError`` that says what is wrong with it."""
    found = _NAME.fullmatch(text)
    if found is None or len(found[1]) > _LONGEST or "--" in found[1] or ".." in found[1]:
        raise StartupError(f"{text[:200]!r} is no name of a model on a hub; give {FORM}.")
    repository, revision, file = found.groups()
    if revision is not None and (
        ".." in revision
        or revision[0] in "/-."
        or revision[-1] == "/"
        or len(quote(revision, safe="")) > _LONGEST_REVISION
    ):
        raise StartupError(f"{text[:200]!r}: {revision[:200]!r} cannot be a revision.")
    if file is not None:
        if not file.lower().endswith(".gguf"):
            raise StartupError(f"{text!r}: {file!r} is not a GGUF file; give {FORM}.")
        if (
            any(
                part in ("", ".", "..") or len(part.encode("utf-8", "replace")) > _LONGEST_REVISION
                for part in file.split("/")
            )
            or "\\" in file
        ):
            raise StartupError(f"{text[:200]!r}: {file[:200]!r} cannot be a file of a repository.")
        if _SPLIT_FILE.search(file):
            raise StartupError(
                f"{text!r}: {file!r} is one part of a split GGUF file, and parts are not read."
            )
    return HubName(repository, revision or "main", file)
