"""A template that would run for ever or write without end is a 400 in a time that can be told."""

from __future__ import annotations

import itertools

import pytest

from antiphon.errors import InvalidRequest
from antiphon.prompting.template import ChatTemplate

HI = [{"role": "user", "content": "Hi"}]
LOOP = "{% for a in range(99999) %}"
ENDLESS = {
    "loops": LOOP * 3 + "{% endfor %}" * 3,
    "a loop that filters": "{% for a in range(9) if a < 9 %}" + LOOP * 3 + "{% endfor %}" * 4,
    "recursion": "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}"
    "{{ f(60) }}",
    "a recursive loop": "{% for a in [0] recursive %}{{ loop([0]) }}{{ loop([0]) }}{% endfor %}",
}
HUGE = {
    "repeated": "{{ 'x' * 1000000000 }}",
    "repeated the other way": "{{ 1000000000 * 'x' }}",
    "a repeated list": "{{ ([0] * 1000000000)|length }}",
    "doubled": "{% set n = namespace(s='xx') %}" + LOOP + "{% set n.s = n.s + n.s %}{% endfor %}",
    "joined": "{% set n = namespace(s='xx') %}" + LOOP + "{% set n.s = n.s ~ n.s %}{% endfor %}",
    "padded": "{{ '%1000000000d' % 1 }}",
    "padded by an argument": "{{ '%*d' % (1000000000, 1) }}",
    "a power": "{{ 9 ** 999999999 }}",
    "printed": LOOP * 2 + "{{ 'x' * 100000 }}" + "{% endfor %}" * 2,
}


def seconds_by_turns() -> itertools.count[float]:
    """A clock that goes on by a tenth of a second each time it is looked at."""
    return itertools.count(0.0, 0.1)


@pytest.mark.parametrize("source", ENDLESS.values(), ids=ENDLESS)
def test_a_template_has_its_time(source: str) -> None:
    looks = seconds_by_turns()
    template = ChatTemplate(source, clock=lambda: next(looks))
    with pytest.raises(InvalidRequest, match=r"takes too long|recursion depth") as refusal:
        template.render(HI)
    assert (refusal.value.status, refusal.value.param) == (400, "messages")
    assert next(looks) < 30


@pytest.mark.parametrize("source", HUGE.values(), ids=HUGE)
def test_nothing_of_a_template_grows_beyond_all_prompts(source: str) -> None:
    template = ChatTemplate(source, clock=lambda: 0.0)
    with pytest.raises(InvalidRequest, match=r"longer than 16777216 characters"):
        template.render(HI)


def test_each_rendering_has_its_own_time() -> None:
    looks = itertools.count(0.0, 1.0)
    template = ChatTemplate("{% for m in messages %}x{% endfor %}", clock=lambda: next(looks))
    assert [template.render(HI) for _ in range(20)] == ["x"] * 20


def test_what_is_within_the_limits_is_what_it_was() -> None:
    source = (
        "{{ 'a' ~ 1 ~ none }} {{ 'ab' * 3 }} {{ [1] + [2] }} {{ '%05.1f' % 2 }} {{ 2 ** 10 }}"
        "{% macro m(x) %}<{{ x ~ caller() }}>{% endmacro %}{% call m('y') %}z{% endcall %}"
    )
    assert ChatTemplate(source).render(HI) == "a1None ababab [1, 2] 002.0 1024<yz>"
