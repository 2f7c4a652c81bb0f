"""A template that would run for ever or write without end is a 400 in a time that can be told."""

from __future__ import annotations

import itertools

import pytest

from antiphon.errors import InvalidRequest, StartupError
from antiphon.prompting.template import ChatTemplate

HI = [{"role": "user", "content": "Hi"}]
TWO = HI * 2
DEEP = (
    "{% set n = namespace(a=(1,), b=(1,)) %}{% for i in range(60) %}"
    "{% set n.a = (n.a, n.a) %}{% set n.b = (n.b, n.b) %}{% endfor %}"
)
LOOP = "{% for a in range(99999) %}"
ENDLESS = {
    "loops": LOOP * 3 + "{% endfor %}" * 3,
    "a loop that filters": "{% for a in range(9) if a < 9 %}" + LOOP * 3 + "{% endfor %}" * 4,
    "recursion": "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}"
    "{{ f(60) }}",
    "a filter in a loop's filter": "{% for i in range(90000) "
    "if range(90000)|select('eq', -1)|list %}x{% endfor %}",
    "a loop's filter": LOOP * 2 + "{% for i in range(90000) if false %}" + "{% endfor %}" * 3,
    "values one by one": "{{ range(90000)|map('string')|select('eq', '')|list }}",
    "written": DEEP + "{{ n.a }}",
    "written with its name": DEEP + "{{ n }}",
    "written as JSON": DEEP + "{{ n.a|tojson }}",
    "joined to a text": DEEP + "{{ n.a ~ 'x' }}",
    "formatted": DEEP + "{{ '{}'.format(n.a) }}",
    "compared": DEEP + "{{ n.a == n.b }}",
    "compared by a test": DEEP + "{{ n.a is eq(n.b) }}",
    "compared by a method": DEEP + "{{ (n.a,).count(n.b) }}",
    "looked up": DEEP + "{{ {}[n.a] }}",
    "looked up by a method": DEEP + "{{ {}.get(n.a) }}",
    "a key": DEEP + "{{ {n.a: 1} }}",
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
    "padded by a field": "{{ '{:>1000000000}'.format('a') }}",
    "padded by a field of a field": "{{ '{:>{}}'.format('a', 1000000000) }}",
    "padded by a mapped field": "{{ '{a:>1000000000}'.format_map({'a': 1}) }}",
    "padded by a named argument": "{{ '%(a)1000000000d' % {'a': 1} }}",
    "padded by a method": "{{ 'a'.ljust(1000000000) }}",
    "padded by a method of marked text": "{{ ('a'|safe).ljust(1000000000) }}",
    "padded by a filter": "{{ 'a'|center(1000000000) }}",
    "bytes of a number": "{{ (5).to_bytes(1000000000, 'big')|length }}",
    "indented": "{{ ('a\n' * 1000000)|indent(100000) }}",
    "indented JSON": "{{ (range(90000)|list)|tojson(indent=100000) }}",
    "indented by a block": "{% filter indent(100000000) %}a\nb{% endfilter %}",
    "replaced": "{{ ('a' * 1000000)|replace('a', 'b' * 100000) }}",
    "replaced by a method": "{{ ('a' * 1000000).replace('', 'b' * 100000) }}",
    "translated": "{{ ('a' * 100000).translate({97: 'b' * 100000}) }}",
    "with tabs": "{{ ('\t' * 100000).expandtabs(100000) }}",
    "joined by a filter": "{{ range(90000)|join('x' * 100000) }}",
    "joined as it comes": "{% set x = 'y' * 1000000 %}"
    "{{ range(90000)|map('replace', '', x)|join }}",
    "joined by a method": "{{ ('x' * 1000).join(range(90000)|map('string')) }}",
    "repeated by a form": "{{ '%(a)s%(a)s%(a)s' % {'a': 'x' * 16000000} }}",
    "repeated by fields": "{{ ('{0}' * 1000).format('y' * 16000000) }}",
    "filled up": "{{ [1]|batch(1000000000, 'x')|list }}",
    "sliced": "{{ [1]|slice(1000000000)|list }}",
    "squared": "{% set n = namespace(a=9) %}" + LOOP + "{% set n.a = n.a * n.a %}{% endfor %}",
    "rounded": "{{ 1.5|round(1000000000, 'ceil') }}",
    "filler": "{{ lipsum(n=1000000000) }}",
    "filled up by a block": "{% set x %}"
    + LOOP[:-2]
    + " if a < 500 %}{{ messages[0].content * 40000 }}{% endfor %}{% endset %}{{ x|length }}",
    "a power": "{{ 9 ** 399999999 }}",
    "printed": LOOP * 2 + "{{ 'x' * 100000 }}" + "{% endfor %}" * 2,
}


def hidden(source: str) -> str:
    """The source, for a second message only: no probe of the template comes to it."""
    return "{% if messages|length > 1 %}" + source + "{% endif %}"


def seconds_by_turns() -> itertools.count[float]:
    """A clock that goes on by a tenth of a second each time it is looked at."""
    return itertools.count(0.0, 0.1)


@pytest.mark.parametrize("source", ENDLESS.values(), ids=ENDLESS)
def test_a_template_has_its_time(source: str) -> None:
    looks = seconds_by_turns()
    template = ChatTemplate(hidden(source), clock=lambda: next(looks))
    with pytest.raises(InvalidRequest, match=r"takes too long|recursion depth") as refusal:
        template.render(TWO)
    assert (refusal.value.status, refusal.value.param) == (400, "messages")
    assert next(looks) < 30


@pytest.mark.parametrize("source", HUGE.values(), ids=HUGE)
def test_nothing_of_a_template_grows_beyond_all_prompts(source: str) -> None:
    template = ChatTemplate(hidden(source), clock=lambda: 0.0)
    with pytest.raises(InvalidRequest, match=r"longer than 16777216 characters"):
        template.render(TWO)


@pytest.mark.parametrize(
    "source",
    [
        "{% set x %}" + LOOP + "{{ 'x' * 3999999 }}{% endfor %}{% endset %}",
        "{% macro m() %}" + LOOP + "{{ 'x' * 3999999 }}{% endfor %}{% endmacro %}{{ m() }}",
        "{% set n = namespace(l=[]) %}"
        + LOOP
        + "{% set n.l = n.l + ['x' * 3999999] %}{% endfor %}",
    ],
    ids=["block", "macro", "list"],
)
def test_what_a_template_keeps_has_its_limit(source: str) -> None:
    template = ChatTemplate(hidden(source), clock=lambda: 0.0)
    with pytest.raises(InvalidRequest, match="takes too much memory"):
        template.render(TWO)


@pytest.mark.parametrize(
    ("source", "words"),
    [(ENDLESS["loops"], "takes too long"), (HUGE["padded by a method"], "longer than 16777216")],
)
def test_a_template_that_comes_to_no_end_is_no_template(source: str, words: str) -> None:
    looks = seconds_by_turns()
    with pytest.raises(StartupError, match=words):
        ChatTemplate(source, clock=lambda: next(looks))
    assert next(looks) < 30


BROKEN = {
    "a break without a loop": "{% break %}",
    "too many loops": "{% for i in [1] %}" * 25 + "x" + "{% endfor %}" * 25,
    "an argument twice": "{{ range(a=1, a=2) }}",
    "a macro's argument twice": "{% macro m(a, a) %}{% endmacro %}",
    "a long number": "{{ " + "9" * 5000 + " }}",
    "parentheses": "{{ " + "(" * 3000 + "1" + ")" * 3000 + " }}",
    "summands": "{{ " + "+".join(["1"] * 5000) + " }}",
}


@pytest.mark.parametrize("source", BROKEN.values(), ids=BROKEN)
def test_what_python_cannot_compile_is_broken(source: str) -> None:
    with pytest.raises(StartupError, match=r"^The model's chat template is broken, ") as refusal:
        ChatTemplate(source)
    assert "\n" not in str(refusal.value)


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


def test_filters_tests_and_methods_are_what_they_were() -> None:
    source = (
        "{{ [1, 2, 3]|select('odd')|join('-') }} {{ 'a\nb'|indent(2) }} {{ [3, 1]|sort|list }} "
        "{{ 'x'.ljust(3) }}. {{ '{:>3}{a!r}'.format(1, a='b') }} {{ '{b}'.format_map({'b': 2}) }} "
        "{{ 'aXb'.replace('X', '--')|upper }} {{ ', '.join(['a', 'b']) }} "
        "{{ {'a': 1}.get('b', 7) }} "
        "{{ {'a': [1]}|tojson(indent=1)|length }} {{ 5 in [5] }} {{ 'k' in {'k': 0} }} "
        "{{ (messages == messages) }} {{ [[1, 2], [3]]|sum(start=[]) }} {{ '%3d|%-3s' % (1, 'a') }}"
    )
    wanted = "1-3 a\n  b [1, 3] x  .   1'b' 2 A--B a, b 7 18 True True True [1, 2, 3]   1|a  "
    assert ChatTemplate(source).render(HI) == wanted
