"""What is kept of compiled forms is bounded in number and in bytes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from antiphon.engines.port import GrammarSpec
from antiphon.engines.torch.grammar.kept import Kept

MOST, MOST_BYTES = 4, 100


def form(number: int) -> GrammarSpec:
    return GrammarSpec(kind="regex", text=str(number))


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 150)), max_size=40))
def test_bounds_hold_and_small_ones_stay(puts: list[tuple[int, int]]) -> None:
    kept: Kept[int] = Kept(MOST, MOST_BYTES)
    sizes: dict[int, int] = {}
    for number, size in puts:
        kept.put(form(number), number, size)
        sizes[number] = size
        there = [one for one in sizes if kept.get(form(one)) is not None]
        assert len(kept) == len(there) <= MOST
        assert kept.bytes == sum(sizes[one] for one in there) <= MOST_BYTES


def test_the_largest_goes_first() -> None:
    kept: Kept[int] = Kept(MOST, MOST_BYTES)
    for number, size in ((0, 60), (1, 30), (2, 20)):
        kept.put(form(number), number, size)
    assert [kept.get(form(number)) for number in range(3)] == [None, 1, 2]
