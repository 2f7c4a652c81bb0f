"""The phases of the end of a server, without a server."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from antiphon.transport.drain import CLOSE_S, FLUSH_S, Drain, Phase

GRACE_S = 10.0
NOBODY = {"answers": 0, "connections": 0}
STUCK = {"answers": 1, "connections": 1}


def asked(*, heard: bool = True) -> Drain:
    drain = Drain(GRACE_S, heard=heard)
    drain.ask(0.0)
    return drain


def test_nothing_happens_before_it_is_asked() -> None:
    drain = Drain(GRACE_S)
    drain.look(1e9, **NOBODY)
    assert drain.phase is Phase.SERVING


def test_where_nothing_is_open_it_is_over_at_once() -> None:
    drain = asked()
    drain.look(0.0, **NOBODY)
    assert drain.phase is Phase.DONE


def test_answers_get_their_time_then_their_last_words_and_connections_a_moment() -> None:
    drain = asked()
    now, seen = 0.0, []
    while drain.phase is not Phase.DONE:
        drain.look(now, **STUCK)
        seen.append((drain.phase, now))
        now = drain.until
    cut, closing = GRACE_S, GRACE_S + FLUSH_S
    assert seen == [
        (Phase.DRAINING, 0.0),
        (Phase.CUT, cut),
        (Phase.CLOSING, closing),
        (Phase.DONE, closing + CLOSE_S),
    ]


def test_connections_without_answers_may_take_the_rest_of_the_time() -> None:
    drain = asked()
    drain.look(1.0, answers=0, connections=1)
    assert (drain.phase, drain.until) == (Phase.CLOSING, GRACE_S)
    drain.ask(2.0)
    assert drain.until == 2.0 + CLOSE_S


def test_who_is_not_heard_is_closed_and_answers_have_their_time_all_the_same() -> None:
    drain = asked(heard=False)
    drain.look(GRACE_S - 0.1, **STUCK)
    assert (drain.phase, drain.until) == (Phase.CLOSING, GRACE_S)
    drain.look(GRACE_S, **STUCK)
    assert (drain.phase, drain.until) == (Phase.DONE, GRACE_S)


STEPS = st.lists(
    st.tuples(st.floats(0, 2 * GRACE_S), st.integers(0, 2), st.integers(0, 2), st.booleans()),
    max_size=40,
)


@given(STEPS, st.booleans())
def test_no_phase_comes_back_and_the_end_is_never_more_than_two_seconds_late(
    steps: list[tuple[float, int, int, bool]], heard: bool
) -> None:
    drain = asked(heard=heard)
    now, deadline, before = 0.0, GRACE_S, drain.phase
    for wait, answers, connections, again in steps:
        # Whoever drives it looks when something has changed, and when the phase is over.
        now = min(now + wait, max(now, drain.until))
        if again:
            drain.ask(now)
            deadline = min(deadline, now)
        drain.look(now, answers=answers, connections=connections)
        assert drain.phase >= before
        before = drain.phase
        if drain.phase is Phase.DONE:
            break
        assert drain.until <= deadline + FLUSH_S + CLOSE_S
    for _ in Phase:
        now = max(now, min(drain.until, now + 1e9))
        drain.look(now, **STUCK)
    assert drain.phase is Phase.DONE
    assert now <= deadline + FLUSH_S + CLOSE_S
    assert FLUSH_S + CLOSE_S < 2
