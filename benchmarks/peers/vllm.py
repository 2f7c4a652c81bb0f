"""vLLM 0.33.0's real front ends, each with a core that has no model and needs no accelerator.

``vllm`` is the Python front end with the core within its process: no hand-off at all, which no
deployment has, and so the lowest figure that front end can have. The core's own work, a small
object a token, is counted with it. ``vllm-zmq`` is the same front end as deployed, the core in
another process behind ZeroMQ. ``vllm-rust`` is the front end written in Rust before that core; it
has no Responses API.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import tempfile
from collections.abc import Mapping
from contextlib import closing
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Literal

import attrs
from benchmarks.peers import Api, Peer, Proto, Server
from benchmarks.peers import vllm_install as install
from benchmarks.peers import vllm_model as model
from benchmarks.serving.processes import Process

ROOT = Path(__file__).parents[2]
PATHS: Mapping[Api, str] = {
    "chat": "/v1/chat/completions",
    "completions": "/v1/completions",
    "responses": "/v1/responses",
}
PROMPT = "Tell me a story."
SERVED = "scripted"
READY_S = 180.0
WARM_TOKENS = 4
SETTINGS = {
    "HF_HUB_OFFLINE": "1",
    "PYTHONPATH": str(ROOT),
    "TOKENIZERS_PARALLELISM": "false",
    "VLLM_LOGGING_LEVEL": "WARNING",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_TARGET_DEVICE": "cpu",
}
"""Quiet, off the network, and without looking for an accelerator; nothing that a stream sees."""


@attrs.define
class Running:
    """A ``Server``: the processes of one start, and the folder of their model and sockets."""

    protocols: tuple[Proto, ...]
    apis: tuple[Api, ...]
    folder: Path
    processes: list[Process] = attrs.Factory(list)
    """The front end last."""

    @property
    def pid(self) -> int:
        return self.processes[-1].pid

    def request(self, api: Api, tokens: int) -> tuple[str, Mapping[str, str], bytes]:
        if api not in self.apis:
            raise LookupError(f"this front end has no {api}")
        body: dict[str, object] = {"model": SERVED, "stream": True, "temperature": 0}
        if api == "chat":
            body |= {"messages": [{"role": "user", "content": PROMPT}], "max_tokens": tokens}
        elif api == "completions":
            body |= {"prompt": PROMPT, "max_tokens": tokens}
        else:
            body |= {"input": PROMPT, "max_output_tokens": tokens}
        return PATHS[api], {}, json.dumps(body, separators=(",", ":")).encode()

    def stop(self) -> None:
        for process in reversed(self.processes):
            process.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


@attrs.frozen
class Vllm:
    """A ``Peer``. Its core writes when each step left to the table in ``times``, where given."""

    front: Literal["python", "rust"]
    core: Literal["within", "zmq"]
    times: Path | None = None
    merges = True

    def available(self) -> str | None:
        try:
            found = install.find()
        except LookupError as missing:
            return str(missing)
        if self.front == "rust" and not os.access(found.rust, os.X_OK):
            return f"{found.rust} is not a program that can be run"
        return None

    def start(
        self, port: int, server_cpu: int, engine_cpu: int, streams: int, step_us: int
    ) -> Server:
        missing = self.available()
        if missing is not None:
            raise RuntimeError(missing)
        found = install.find()
        python = [str(found.python), "-P", "-m"]
        running = Running(
            protocols=("h1",),
            apis=("chat", "completions") if self.front == "rust" else tuple(PATHS),
            folder=Path(tempfile.mkdtemp(prefix="vllm-")),
        )
        try:
            job = self._job(running.folder, port, streams, step_us)
            if self.core == "zmq":
                engine = [*python, "benchmarks.peers.vllm_engine", json.dumps(job)]
                running.processes.append(Process(engine, engine_cpu, env=SETTINGS))
            if self.front == "rust":
                front = _start_rust(found.rust, server_cpu, job)
            else:
                command = [*python, "benchmarks.peers.vllm_front", json.dumps(job)]
                front = Process(command, server_cpu, env=SETTINGS)
            running.processes.append(front)
            front.wait_for_answer(port, "/v1/models", READY_S)
            for api in running.apis:
                _warm(port, *running.request(api, WARM_TOKENS))
        except (OSError, HTTPException) as refused:
            running.stop()
            raise RuntimeError(f"it cannot be started: {refused}") from refused
        except BaseException:
            running.stop()
            raise
        return running

    def _job(self, folder: Path, port: int, streams: int, step_us: int) -> dict[str, str | int]:
        """The fields of ``vllm_steps.Job``."""
        apart = self.core == "zmq"
        return {
            "model": str(folder / "model"),
            "port": port,
            "streams": streams,
            "step_us": step_us,
            "context": model.CONTEXT,
            "first_word": model.write(folder / "model"),
            "inputs": f"ipc://{folder}/inputs" if apart else "",
            "outputs": f"ipc://{folder}/outputs" if apart else "",
            "times": "" if self.times is None else str(self.times.absolute()),
        }


def _start_rust(program: Path, cpu: int, job: Mapping[str, str | int]) -> Process:
    """It takes its three sockets, already listening, from whoever starts it."""
    options = {
        "model_tag": job["model"],
        "served_model_name": [SERVED],
        "max_model_len": job["context"],
        "engine_ready_timeout_secs": int(READY_S),
    }
    web = socket.socket()
    inputs, outputs = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
    with web, inputs, outputs:
        web.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        web.bind(("127.0.0.1", int(job["port"])))
        inputs.bind(str(job["inputs"]).removeprefix("ipc://"))
        outputs.bind(str(job["outputs"]).removeprefix("ipc://"))
        for listener in (web, inputs, outputs):
            listener.listen(2048)
        command = [
            str(program), "frontend", "--listen-fd", str(web.fileno()),
            "--input-listener-fd", str(inputs.fileno()),
            "--output-listener-fd", str(outputs.fileno()),
            "--args-json", json.dumps(options),
        ]  # fmt: skip
        given = [web.fileno(), inputs.fileno(), outputs.fileno()]
        return Process(command, cpu, pass_fds=given, env=SETTINGS)


def _warm(port: int, path: str, headers: Mapping[str, str], body: bytes) -> None:
    """The first request of each kind takes a tenth of a second, in which tokens are joined.

    Raises ``OSError`` if it is not answered with a stream.
    """
    connection = HTTPConnection("127.0.0.1", port, timeout=READY_S)
    with closing(connection):
        connection.request("POST", path, body, {**headers, "content-type": "application/json"})
        answer = connection.getresponse()
        read = answer.read()
        if answer.status != HTTPStatus.OK or not read.startswith((b"data:", b"event:")):
            raise OSError(f"POST {path}: {answer.status} {read[:200].decode(errors='replace')}")


PEERS: Mapping[str, Peer] = {
    "vllm": Vllm("python", "within"),
    "vllm-zmq": Vllm("python", "zmq"),
    "vllm-rust": Vllm("rust", "zmq"),
}
