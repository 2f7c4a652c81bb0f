"""``antiphon serve ORG/NAME``: fetched from a hub, and answering."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import httpx

from models.fake_hub import serving

TINYCHAT = Path(__file__).parents[2] / "fixtures" / "models" / "tinychat"


def test_a_model_of_a_hub_is_fetched_and_answers(tmp_path: Path) -> None:
    with serving() as hub:
        hub.files = {path.name: path.read_bytes() for path in TINYCHAT.iterdir()}
        hub.large = {"model.safetensors"}
        environment = {**os.environ, "HF_ENDPOINT": hub.url, "ANTIPHON_CACHE": str(tmp_path)}
        command = [sys.executable, "-m", "antiphon", "serve", "org/tiny", "--port", "0"]
        with subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as server:
            assert server.stdout is not None
            try:
                said = ""
                while not (found := re.search(r"http://[0-9.:]+", said)) or "Serving" not in said:
                    line = server.stdout.readline()
                    assert line, said
                    said += line.replace(hub.url, "")
                chat: dict[str, object] = {"model": "org/tiny", "temperature": 0}
                chat |= {"messages": [{"role": "user", "content": "Hi!"}]}
                answer = httpx.post(f"{found[0]}/v1/chat/completions", json=chat, timeout=60)
                assert answer.status_code == 200, answer.text
                content = answer.json()["choices"][0]["message"]["content"]
                assert content == "Hello! How can I help you?"  # as in its replies.json
            finally:
                server.terminate()
                server.stdout.read()
    assert hub.ranges("replies.json") == []
