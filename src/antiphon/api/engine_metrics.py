"""What the engine says of itself at each step, for ``/metrics``: pages, and whom it put back."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from antiphon.engines.port import Gauges

SILENT = Gauges()
"""Of an engine that has not made a step yet: all its pages are free."""


class EngineLoad(Collector):
    """The latest gauges of an engine of ``pages`` pages, read when they are asked for."""

    def __init__(self, gauges: Callable[[], Gauges], pages: int) -> None:
        self._gauges = gauges
        self._pages = pages

    def collect(self) -> Iterator[Metric]:
        """Pages by state, which add up to all there are, and the preemptions."""
        told = self._gauges()
        free = self._pages if told == SILENT else told.pages_free
        states = {
            "held": self._pages - free,
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
