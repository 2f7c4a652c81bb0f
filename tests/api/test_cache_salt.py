"""Prompts are cached for the callers of one key and salt: nobody can time another's."""

from __future__ import annotations

import anyio

from antiphon.engines.port import Finish
from api.hosted import Hosted, hosted


async def salt_of(host: Hosted, key: str | None, cache_salt: str | None) -> bytes:
    """What the engine is told for a request of this key."""
    told = len(host.engine.requests)
    headers = {} if key is None else {"authorization": f"Bearer {key}"}
    body = {"model": "m", "prompt": "hi"} | (
        {} if cache_salt is None else {"cache_salt": cache_salt}
    )
    async with host.client() as client, anyio.create_task_group() as tasks:

        async def ask() -> None:
            response = await client.post("/v1/completions", json=body, headers=headers)
            assert response.status_code == 200

        tasks.start_soon(ask)
        await host.engine.until(lambda: len(host.engine.requests) > told)
        request = host.engine.requests[-1]
        host.engine.end(request.key, Finish.LENGTH)
    return request.cache_salt


async def test_every_key_has_its_own_salts() -> None:
    async with hosted(api_key=("one", "two")) as host:
        salts = [
            await salt_of(host, key, salt)
            for key in ("one", "two")
            for salt in (None, "x", "0:x", "1:x")
        ]
        assert len(set(salts)) == len(salts)
        assert await salt_of(host, "two", "x") == salts[5]


async def test_without_keys_the_salt_is_the_clients_own() -> None:
    async with hosted() as host:
        assert [await salt_of(host, None, salt) for salt in (None, "x")] == [b"", b"x"]
