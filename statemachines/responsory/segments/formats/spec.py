"""What a spec says about a model family: data, read by the segmenter."""

from __future__ import annotations

import attrs

from responsory.commands import Text
from responsory.immutable import immutable


@immutable
class Spec:
    """``unmarked``: the command that text outside all markup becomes.

    The answer (``Text``) is what the segmenter can make of it, and there is no markup yet that it
    can read. Raises ValueError for anything else.
    """

    unmarked: type[Text] = attrs.field(validator=attrs.validators.in_((Text,)))
