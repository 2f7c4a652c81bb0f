"""The machine drawn from itself: a Mermaid diagram and Markdown tables that cannot be stale.

``python -m responsory.draw`` prints them; with paths it rewrites the marked sections of these
Markdown files, and with ``--check`` it says which are stale. Everything is learned by running the
machine: its states are found by a search, its table by deciding every command in each of them.
"""

from __future__ import annotations

from responsory.draw.errors import DrawError
from responsory.draw.sections import redrawn, sections

__all__ = ["DrawError", "redrawn", "sections"]
