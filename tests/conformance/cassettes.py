"""Streams of the OpenAI API as others recorded them: the test cassettes of langchain-openai.

They are in its source distribution on the Python package index (MIT licence), which is fetched once
into this user's cache and never committed.
"""

from __future__ import annotations

import gzip
import hashlib
import importlib
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import platformdirs

REQUIREMENT = "langchain-openai==1.7.4"
FILE = "langchain_openai-1.7.4.tar.gz"
SHA256 = "8fd90e41588526d990f32262447adf8e130d7ce28ed66cefa315e64cc9dd12ce"
CASSETTES = "langchain_openai-1.7.4/tests/cassettes/"


def fetch() -> Path:
    """The source distribution, downloaded by pip unless it is in the cache. Raises RuntimeError
    when pip fails, or gives another file than the pinned one."""
    folder = platformdirs.user_cache_path("antiphon") / "recordings"
    path = folder / FILE
    if not (path.exists() and _is_pinned(path)):
        folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "pip", "download", "--disable-pip-version-check"]
        command += ["--no-input", "--quiet", "--no-deps", "--no-binary", "langchain-openai"]
        done = subprocess.run(
            [*command, "--dest", str(folder), REQUIREMENT],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0 or not path.exists():
            raise RuntimeError(f"pip could not download {REQUIREMENT}: {done.stderr}")
        if not _is_pinned(path):
            raise RuntimeError(f"{path} is not the file whose SHA-256 is {SHA256}")
    return path


def _is_pinned(path: Path) -> bool:
    return hashlib.sha256(path.read_bytes()).hexdigest() == SHA256


def streams() -> Mapping[str, bytes]:
    """Every body that is a stream of server-sent events, by ``<cassette>.<number>``."""
    yaml: Any = importlib.import_module("yaml")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    found: dict[str, bytes] = {}
    with tarfile.open(fetch()) as archive:
        for member in archive:
            file = archive.extractfile(member) if member.name.startswith(CASSETTES) else None
            if file is None:
                continue
            name = member.name.removeprefix(CASSETTES).removesuffix(".yaml.gz")
            cassette = yaml.load(gzip.decompress(file.read()), Loader=loader)
            for number, response in enumerate(cassette["responses"]):
                body = response["body"]["string"]
                data = body.encode() if isinstance(body, str) else body
                if data.lstrip()[:6] in (b"event:", b"data: "):
                    found[f"{name}.{number}"] = data
    return found
