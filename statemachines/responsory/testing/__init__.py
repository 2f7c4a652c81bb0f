"""What tests of this library use, and tests of a server that builds on it can use too.

``streams`` builds logs, ``invariants`` says what holds for every log, ``folds`` reads streams as a
client does. ``strategies`` needs hypothesis (``pip install "./statemachines[testing]"`` in a clone
of the repository), the rest only the library. What they find raises InvariantError, under
``python -O`` too.
"""

from __future__ import annotations

from responsory.testing.expect import InvariantError
from responsory.testing.folds import fold_chat, fold_completions, fold_responses
from responsory.testing.invariants import check_log
from responsory.testing.streams import a_response

__all__ = [
    "InvariantError",
    "a_response",
    "check_log",
    "fold_chat",
    "fold_completions",
    "fold_responses",
]
