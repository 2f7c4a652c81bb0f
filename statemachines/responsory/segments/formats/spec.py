"""What a spec says about a model family."""

from __future__ import annotations

from responsory.immutable import immutable


@immutable
class Spec:
    """``name`` as in a server's settings. A spec without markers marks nothing: all text is the
    answer."""

    name: str
