"""How many bodies are tried, and which: both can be set from outside."""

from __future__ import annotations

import os

BODIES = int(os.environ.get("FUZZ_BODIES", "300"))
"""Bodies over all endpoints and servers."""
SEED = int(os.environ.get("FUZZ_SEED", "0"))
"""The same seed gives the same bodies."""
