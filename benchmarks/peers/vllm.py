"""vLLM 0.33.0's real front ends, each with a core that has no model and needs no accelerator.

``vllm`` is the Python front end with the core within its process: no hand-off at all, which no
deployment has, and so the lowest figure that front end can have. The core's own work, a small
object a token, is counted with it. ``vllm-zmq`` is the same front end as deployed, the core in
another process behind ZeroMQ. ``vllm-rust`` is the front end written in Rust before that core; it
has no Responses API.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import attrs

from . import Api, Peer, Proto, Server
from . import vllm_install as install
from . import vllm_model as model

ROOT = Path(__file__).parents[2]
PROGRAMS = __name__.rpartition(".")[0]
PATHS: Mapping[Api, str] = {
    "chat": "/v1/chat/completions",
    "completions": "/v1/completions",
    "responses": "/v1/responses",
}
PROMPT = "Tell a long story about a lighthouse."
SERVED = "scripted"
READY_S, END_S = 180, 15
SETTINGS = {
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "VLLM_LOGGING_LEVEL": "WARNING",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_TARGET_DEVICE": "cpu",
}
"""Quiet, off the network, and without looking for an accelerator; nothing that a stream sees."""


@attrs.define
class Running:
    """A ``Server``: the processes of one start, and the folder of their model, sockets and log."""

    protocols: tuple[Proto, ...]
    apis: tuple[Api, ...]
    folder: Path
    processes: list[subprocess.Popen[bytes]] = attrs.Factory(list)
    """The front end last."""

    @property
    def pid(self) -> int:
        return self.processes[-1].pid

    @property
    def log(self) -> Path:
        return self.folder / "log"

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
        if not self.folder.exists():
            return
        for process in self.processes:
            _signal(process, signal.SIGTERM)
        deadline = time.monotonic() + END_S
        for process in self.processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, deadline - time.monotonic()))
            # Also where the head of the session has ended: what it started has not always.
            _signal(process, signal.SIGKILL)
            process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, cpu: int, command: Sequence[str], given: Sequence[int] = ()) -> None:
        """Start a process, pinned, in a session of its own, with the descriptors it is given."""
        environment = {**os.environ, **SETTINGS, "PYTHONPATH": str(ROOT)}
        with self.log.open("ab") as log:
            self.processes.append(
                subprocess.Popen(
                    ["taskset", "-c", str(cpu), *command],
                    cwd=self.folder,
                    env=environment,
                    pass_fds=given,
                    start_new_session=True,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                )
            )

    def wait_until_ready(self, port: int) -> None:
        """Raises ``RuntimeError`` when a process ends, or nothing is answered in three minutes."""
        deadline = time.monotonic() + READY_S
        while not _answers(port):
            ended = [process for process in self.processes if process.poll() is not None]
            if ended or time.monotonic() > deadline:
                why = "ended" if ended else f"did not answer in {READY_S} s"
                lines = self.log.read_text(errors="replace").split("\n")
                said = next((line.strip() for line in reversed(lines) if line.strip()), "nothing")
                raise RuntimeError(f"vLLM {why}; the last it said: {said}")
            time.sleep(0.2)


@attrs.frozen
class Vllm:
    """A ``Peer``."""

    front: Literal["python", "rust"]
    core: Literal["within", "zmq"]

    def available(self) -> str | None:
        try:
            found = install.find()
        except LookupError as missing:
            return str(missing)
        if self.front == "rust" and not os.access(found.rust, os.X_OK):
            return f"{found.rust} is not a program that can be run"
        if shutil.which("taskset") is None:
            return "taskset, which pins processes, is not installed (util-linux)"
        return None

    def start(
        self, port: int, server_cpu: int, engine_cpu: int, streams: int, step_us: int
    ) -> Server:
        missing = self.available()
        if missing is not None:
            raise RuntimeError(missing)
        found = install.find()
        running = Running(
            protocols=("h1",),
            apis=("chat", "completions") if self.front == "rust" else tuple(PATHS),
            folder=Path(tempfile.mkdtemp(prefix="vllm-")),
        )
        try:
            job = self._job(running.folder, port, streams, step_us)
            python = [str(found.python), "-P", "-m"]
            if self.core == "zmq":
                engine = [*python, f"{PROGRAMS}.vllm_engine", json.dumps(job)]
                running.run(engine_cpu, engine)
            if self.front == "rust":
                self._start_rust(running, found.rust, server_cpu, job)
            else:
                running.run(server_cpu, [*python, f"{PROGRAMS}.vllm_front", json.dumps(job)])
            running.wait_until_ready(port)
        except BaseException:
            running.stop()
            raise
        return running

    def _job(self, folder: Path, port: int, streams: int, step_us: int) -> dict[str, str | int]:
        spoken = model.write(folder / "model")
        return {
            "model": str(folder / "model"),
            "port": port,
            "streams": streams,
            "step_us": step_us,
            "first_word": spoken.start,
            "words": len(spoken),
            "inputs": f"ipc://{folder}/inputs" if self.core == "zmq" else "",
            "outputs": f"ipc://{folder}/outputs" if self.core == "zmq" else "",
        }

    def _start_rust(
        self, running: Running, program: Path, cpu: int, job: Mapping[str, str | int]
    ) -> None:
        """It takes its three sockets, already listening, from whoever starts it."""
        options = {
            "model_tag": job["model"],
            "served_model_name": [SERVED],
            "max_model_len": model.CONTEXT,
            "engine_ready_timeout_secs": READY_S,
        }
        with (
            socket.socket() as web,
            socket.socket(socket.AF_UNIX) as inputs,
            socket.socket(socket.AF_UNIX) as outputs,
        ):
            web.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            web.bind(("127.0.0.1", int(job["port"])))
            inputs.bind(str(job["inputs"]).removeprefix("ipc://"))
            outputs.bind(str(job["outputs"]).removeprefix("ipc://"))
            for listener in (web, inputs, outputs):
                listener.listen(2048)
            command = {
                "--listen-fd": str(web.fileno()),
                "--input-listener-fd": str(inputs.fileno()),
                "--output-listener-fd": str(outputs.fileno()),
                "--args-json": json.dumps(options),
            }
            words = [word for option in command.items() for word in option]
            given = [web.fileno(), inputs.fileno(), outputs.fileno()]
            running.run(cpu, [str(program), "frontend", *words], given)


def _answers(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        connection.request("GET", "/v1/models")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """To its whole session."""
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        return


PEERS: Mapping[str, Peer] = {
    "vllm": Vllm("python", "within"),
    "vllm-zmq": Vllm("python", "zmq"),
    "vllm-rust": Vllm("rust", "zmq"),
}
