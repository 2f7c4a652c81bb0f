"""Why a form cannot be had."""

from __future__ import annotations


class GrammarRefused(Exception):
    """The form is wrong, or too much to compile; the message is for the client."""


class GrammarUnavailable(Exception):
    """The form cannot be had now, and it is not to blame; the message is for our log."""
