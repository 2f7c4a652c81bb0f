"""What the host counts is shown, each number under its own name."""

from __future__ import annotations

import attrs
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from antiphon.api.counters import Metrics
from antiphon.transport.counted import GAUGES, Counted, meanings


def shown(metrics: Metrics) -> dict[str, float]:
    families = text_string_to_metric_families(generate_latest(metrics.registry).decode())
    return {each.name: each.value for family in families for each in family.samples}


def test_each_number_is_shown_as_it_is_at_that_time() -> None:
    metrics = Metrics()
    names = list(meanings())
    assert names == [field.name for field in attrs.fields(Counted)]
    assert {shown(metrics)[name_of(name)] for name in names} == {0}
    for value, name in enumerate(names, start=1):
        setattr(metrics.transport, name, value)
    after = shown(metrics)
    assert [after[name_of(name)] for name in names] == [*range(1, len(names) + 1)]


def name_of(number: str) -> str:
    return f"antiphon_transport_{number}" + ("" if number in GAUGES else "_total")


def test_servers_do_not_count_for_each_other() -> None:
    one, other = Metrics(), Metrics()
    one.transport.slow_bodies += 1
    assert shown(other)["antiphon_transport_slow_bodies_total"] == 0
