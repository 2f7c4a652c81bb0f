"""What can be wrong with a drawing: the machine cannot be shown, or a page cannot be read."""

from __future__ import annotations


class DrawError(Exception):
    """The machine has something that the tables cannot tell, or a page has markers that are none.

    The message says what, and for a page on which line.
    """
