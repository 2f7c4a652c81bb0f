"""Fixtures of the tests of an engine in a process of its own."""

from __future__ import annotations

from engines.torch.conftest import tiny

__all__ = ["tiny"]
