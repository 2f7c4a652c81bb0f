"""What the host says of itself in every answer."""

from __future__ import annotations

import attrs
import pytest

from antiphon.transport import settings
from antiphon.transport.settings import HostConfig
from transport.hosting import new_request_id


@attrs.define
class Clock:
    """Seconds since 1970, and how often they were rendered."""

    now: float
    rendered: int = 0

    def __call__(self) -> float:
        return self.now

    def render(self, second: float, *, usegmt: bool) -> str:
        self.rendered += 1
        return f"{second} {usegmt}"


def test_the_date_is_that_of_the_clock() -> None:
    clock = Clock(784111777.0)
    config = HostConfig(new_request_id, clock=clock)
    assert config.response_headers("h2") == [
        (b"date", b"Sun, 06 Nov 1994 08:49:37 GMT"),
        (b"server", b"antiphon"),
    ]
    clock.now += 0.999
    first = config.response_headers("h11")[0]
    assert first[1] == b"Sun, 06 Nov 1994 08:49:37 GMT"
    clock.now += 0.001
    assert config.response_headers("h2")[0][1] == b"Sun, 06 Nov 1994 08:49:38 GMT"
    clock.now -= 3600  # A clock that is set back is believed.
    assert config.response_headers("h2")[0][1] == b"Sun, 06 Nov 1994 07:49:38 GMT"


def test_a_burst_of_answers_renders_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(1000.0)
    monkeypatch.setattr(settings, "formatdate", clock.render)
    config = HostConfig(new_request_id, clock=clock)
    for _ in range(100):
        config.response_headers("h2").append((b"of", b"one answer"))
        clock.now += 0.015
    assert clock.rendered == 2
    assert len(config.response_headers("h2")) == 2
