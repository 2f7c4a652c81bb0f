"""What the engine says of itself at each step, for ``/metrics``: pages, and whom it put back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector


class Told(Protocol):
    """What is read of an engine's gauges."""

    @property
    def running(self) -> int: ...
    @property
    def waiting(self) -> int: ...
    @property
    def pages_free(self) -> int: ...
    @property
    def pages_cached(self) -> int: ...
    @property
    def preemptions(self) -> int: ...


class EngineLoad(Collector):
    """The latest gauges of an engine and its number of pages, read when they are asked for.

    Both are those of its present life: another life may have more pages, or fewer.
    """

    def __init__(self, gauges: Callable[[], Told], pages: Callable[[], int]) -> None:
        self._gauges = gauges
        self._pages = pages

    def collect(self) -> Iterator[Metric]:
        """Pages by state, which add up to all there are, and the preemptions."""
        told, total = self._gauges(), self._pages()
        # An engine that has made no step has said nothing of its pages; nobody holds one then.
        idle = not (told.running or told.waiting or told.pages_free)
        free = total if idle else told.pages_free
        states = {
            "held": total - free,
            "cached": told.pages_cached,
            "free": free - told.pages_cached,
        }
        pages = GaugeMetricFamily("antiphon_kv_pages", "Pages of the KV cache", labels=("state",))
        for state, count in states.items():
            pages.add_metric((state,), count)
        yield pages
        yield CounterMetricFamily(
            "antiphon_preemptions",
            "Sequences put back to be read again, since the engine was started",
            value=told.preemptions,
        )
