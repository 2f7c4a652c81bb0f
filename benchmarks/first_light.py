"""Whole-server figures on the default model: start, first frame, one stream beside eight.

Run by ``nox -s bench``. Every figure is the median of ``REPEATS``; the ratio of eight to one is
taken within one run of one server, so that a noisy machine moves both.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import anyio
import httpx

REPEATS = 3
TOKENS = 64
BODY = {
    "model": "smollm2",
    "stream": True,
    "temperature": 0,
    "ignore_eos": True,
    "max_tokens": TOKENS,
    "messages": [{"role": "user", "content": "Write a long story about a lighthouse."}],
}


def start() -> tuple[subprocess.Popen[str], str, float]:
    """A server, its address, and the seconds until it was ready."""
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "antiphon", "serve", "--port", "0"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    url = next(line.split()[1] for line in process.stdout if line.startswith("Address"))
    while httpx.get(f"{url}/health").status_code != 200:
        pass
    return process, url, time.perf_counter() - began


async def stream(client: httpx.AsyncClient) -> tuple[float, float, int]:
    """(seconds to the first frame, to the first text, chunks of text) of one streamed chat."""
    began = time.perf_counter()
    first_frame = first_text = 0.0
    texts = 0
    async with client.stream("POST", "/v1/chat/completions", json=BODY) as response:
        async for line in response.aiter_lines():
            if line.startswith("data: {"):
                first_frame = first_frame or time.perf_counter() - began
                if json.loads(line[6:])["choices"][0]["delta"].get("content"):
                    first_text = first_text or time.perf_counter() - began
                    texts += 1
    return first_frame, first_text, texts


async def rate(client: httpx.AsyncClient, streams: int) -> tuple[float, list[float], list[float]]:
    """(tokens a second in total, first frames, first texts) of that many streams at once."""
    results: list[tuple[float, float, int]] = []

    async def one() -> None:
        results.append(await stream(client))

    began = time.perf_counter()
    async with anyio.create_task_group() as tasks:
        for _ in range(streams):
            tasks.start_soon(one)
    seconds = time.perf_counter() - began
    return streams * TOKENS / seconds, [r[0] for r in results], [r[1] for r in results]


async def measure(url: str, say: Callable[[str], None]) -> None:
    async with httpx.AsyncClient(base_url=url, timeout=300) as client:
        await rate(client, 1)
        one = [await rate(client, 1) for _ in range(REPEATS)]
        eight = [await rate(client, 8) for _ in range(REPEATS)]
    frames = [first for _, firsts, _ in one for first in firsts]
    texts = [first for _, _, firsts in one for first in firsts]
    single = statistics.median(r for r, _, _ in one)
    together = statistics.median(r for r, _, _ in eight)
    say(f"first frame, one stream      {statistics.median(frames) * 1e3:8.1f} ms")
    say(f"first text, one stream       {statistics.median(texts) * 1e3:8.1f} ms")
    say(f"one stream                   {single:8.1f} tokens/s")
    say(f"eight streams, in total      {together:8.1f} tokens/s")
    say(f"eight beside one             {together / single:8.2f} x")


def main() -> None:
    process, url, ready_s = start()
    try:
        print(f"start to ready               {ready_s:8.1f} s")
        anyio.run(measure, url, print)
    finally:
        process.terminate()
        process.wait()


if __name__ == "__main__":
    main()
