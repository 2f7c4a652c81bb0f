"""What ``/metrics`` tells of the engine."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry

from antiphon.api.engine_metrics import EngineLoad
from antiphon.engines.port import Gauges

STATES = ("held", "cached", "free")


@pytest.mark.parametrize(
    ("gauges", "expected"),
    [
        (Gauges(), (0, 0, 40)),
        (Gauges(running=2, pages_free=30, pages_cached=12), (10, 12, 18)),
        (Gauges(pages_free=40, pages_cached=7, step_us=5), (0, 7, 33)),
        (Gauges(running=1, pages_free=0), (40, 0, 0)),
    ],
)
def test_every_page_is_in_one_state(gauges: Gauges, expected: tuple[int, ...]) -> None:
    registry = CollectorRegistry()
    registry.register(EngineLoad(lambda: gauges, lambda: 40))
    found = [registry.get_sample_value("antiphon_kv_pages", {"state": state}) for state in STATES]
    assert found == list(expected)


def test_the_latest_word_counts() -> None:
    registry = CollectorRegistry()
    told = Gauges(preemptions=3)
    registry.register(EngineLoad(lambda: told, lambda: 1))
    assert registry.get_sample_value("antiphon_preemptions_total") == 3
    told.preemptions = 5
    assert registry.get_sample_value("antiphon_preemptions_total") == 5
