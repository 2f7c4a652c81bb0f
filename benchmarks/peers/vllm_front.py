"""vLLM's own Python front end: its FastAPI application on uvicorn, with a core that has no model.

``python -m benchmarks.peers.vllm_front JOB`` with the interpreter that has vLLM. Everything between
the socket and the core is vLLM's, with the settings it has by default. The core is within this
process, or where the job has addresses, behind the ZeroMQ client that vLLM deploys.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable
from importlib import import_module
from typing import Any

from .vllm_steps import Job, Steps

SERVED = "scripted"


class CoreWithin:
    """Stands where vLLM's client of a core stands, without a process or a socket behind it.

    A step waits until every stream has taken what the last one brought it: vLLM joins tokens that
    its writer did not keep up with, and then an event would stand for several.
    """

    engine_ranks_managed = (0,)

    def __init__(self, job: Job) -> None:
        self.resources = Alive()
        self.processor: Any = None
        """vLLM's output processor, set before the first request."""
        self._steps = Steps(job)
        self._asked = asyncio.Event()

    async def get_supported_tasks_async(self) -> tuple[str, ...]:
        return ("generate",)

    async def add_request_async(self, request: Any) -> None:
        self._steps.add(request)
        self._asked.set()

    async def abort_requests_async(self, ids: Iterable[str]) -> None:
        self._steps.abort(ids)

    async def reset_mm_cache_async(self) -> None:
        return None

    async def get_output_async(self) -> Any:
        while True:
            wait = self._steps.wait()
            if wait is None:
                self._asked.clear()
                await self._asked.wait()
                continue
            # uvloop counts in milliseconds: less than one is none, and would be asked for in vain.
            await asyncio.sleep(math.ceil(wait * 1000) / 1000)
            tries = 0
            while self._untaken():
                # A writer that waits for its client must not be charged for our asking.
                await asyncio.sleep(0 if tries < 50 else 0.001)
                tries += 1
            outputs = self._steps.step()
            if outputs is not None:
                return outputs

    def get_kv_event_sources(self) -> dict[int, Any]:
        return {}

    def shutdown(self, timeout: float | None = None) -> None:  # noqa: ARG002  # vLLM's signature
        return None

    def _untaken(self) -> bool:
        return any(
            state.queue is not None and state.queue.output is not None
            for state in self.processor.request_states.values()
        )


class Alive:
    """What vLLM's watchdog looks at."""

    engine_dead = False


async def serve(job: Job) -> None:
    """Serve until SIGTERM."""
    arguments = import_module("vllm.engine.arg_utils")
    cli_args = import_module("vllm.entrypoints.common.cli_args")
    entry = import_module("vllm.entrypoints.launchers.api_server.entry")
    launcher = import_module("vllm.entrypoints.launchers.launcher")
    usage = import_module("vllm.usage.usage_lib").UsageContext.OPENAI_API_SERVER
    parser = import_module("vllm.utils.argparse_utils").FlexibleArgumentParser()
    core_client = import_module("vllm.v1.engine.core_client")
    async_llm = import_module("vllm.v1.engine.async_llm").AsyncLLM

    options = {
        "--model": job.model,
        "--served-model-name": SERVED,
        "--max-model-len": str(job.context),
        "--max-num-seqs": str(job.streams),
        "--host": "127.0.0.1",
        "--port": str(job.port),
    }
    given = [word for option in options.items() for word in option]
    args = cli_args.make_arg_parser(parser).parse_args(given)
    config = arguments.AsyncEngineArgs.from_cli_args(args).create_engine_config(usage_context=usage)
    within = None
    if not job.inputs:
        within = CoreWithin(job)
        client = staticmethod(lambda *_args, **_options: within)
        setattr(core_client.EngineCoreClient, "make_async_mp_client", client)  # noqa: B010
    engine = async_llm.from_vllm_config(
        vllm_config=config,
        usage_context=usage,
        client_addresses=(
            {"input_address": job.inputs, "output_address": job.outputs} if job.inputs else None
        ),
    )
    if within is not None:
        within.processor = engine.output_processor
    address, listener = launcher.setup_server(args, reuse_port=False)
    try:
        await (await entry.build_and_serve(engine, address, listener, args))
    finally:
        listener.close()


if __name__ == "__main__":
    import_module("uvloop").run(serve(Job.of_argument()))
