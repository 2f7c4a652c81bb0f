"""What the golden tests share is imported by its own name, wherever this folder is copied to."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "goldens"))
