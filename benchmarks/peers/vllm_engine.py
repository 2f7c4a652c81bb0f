"""A core of vLLM in a process of its own, without a model, spoken to over ZeroMQ as the real one.

``python -m benchmarks.peers.vllm_engine JOB`` with the interpreter that has vLLM.
"""

from __future__ import annotations

import time
from importlib import import_module
from typing import Any

from .vllm_steps import Job, Steps

IDENTITY = (0).to_bytes(2, "little")
"""A core's address on the front end's router: its rank."""


class Core:
    """The two sockets of a core, and what is said over them."""

    def __init__(self, job: Job) -> None:
        zmq = import_module("zmq")
        serial = import_module("vllm.v1.serial_utils")
        self._engine = import_module("vllm.v1.engine")
        self._kinds = self._engine.EngineCoreRequestType
        self._answer = serial.UtilityResult
        self._encoder = serial.MsgpackEncoder()
        self._requests = serial.MsgpackDecoder(self._engine.EngineCoreRequest)
        self._others = serial.MsgpackDecoder()
        self._steps = Steps(job)
        context = zmq.Context()
        self._inputs = context.socket(zmq.DEALER)
        self._inputs.setsockopt(zmq.IDENTITY, IDENTITY)
        self._inputs.connect(job.inputs)
        self._outputs = context.socket(zmq.PUSH)
        self._outputs.setsockopt(zmq.SNDHWM, 0)
        self._outputs.connect(job.outputs)
        self._inputs.send(import_module("msgspec").msgpack.encode(self._ready(job)))

    def run(self) -> None:
        """Step at the pace, and take in what arrives meanwhile, until the process is ended."""
        while True:
            wait = self._steps.wait()
            while self._inputs.poll(None if wait is None else int(wait * 1000)):
                self._take(*self._inputs.recv_multipart())
                wait = self._steps.wait()
            # What is left is less than the millisecond that poll counts in.
            time.sleep(self._steps.wait() or 0)
            outputs = self._steps.step()
            if outputs is not None:
                self._send(outputs)

    def _take(self, kind: bytes, *body: bytes) -> None:
        if kind == self._kinds.ADD.value:
            self._steps.add(self._requests.decode(body))
        elif kind == self._kinds.ABORT.value:
            self._steps.abort(self._others.decode(body))
        elif kind == self._kinds.UTILITY.value:
            _, call, method, _ = self._others.decode(body)
            output = self._engine.UtilityOutput(call)
            tasks = ("generate",) if method == "get_supported_tasks" else None
            output.result = self._answer(tasks)
            self._send(self._engine.EngineCoreOutputs(utility_output=output))

    def _send(self, outputs: Any) -> None:
        self._outputs.send_multipart(self._encoder.encode(outputs), copy=False)

    def _ready(self, job: Job) -> Any:
        return self._engine.EngineCoreReadyResponse(
            max_model_len=job.context,
            num_gpu_blocks=job.context,
            block_size=16,
            dp_stats_address=None,
            dtype="float32",
            vllm_version=import_module("vllm").__version__,
            world_size=1,
            data_parallel_size=1,
            tensor_parallel_size=1,
            pipeline_parallel_size=1,
            decode_context_parallel_size=1,
            data_parallel_rank=0,
            max_num_seqs=job.streams,
            max_num_batched_tokens=job.context,
            instance_id="scripted",
            supports_lora=False,
            max_loras=0,
        )


if __name__ == "__main__":
    Core(Job.of_argument()).run()
