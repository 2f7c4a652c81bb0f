"""Why a form cannot be had."""

from __future__ import annotations


class GrammarRefused(Exception):
    """The form is wrong, or too much to compile; the message is for the client."""
