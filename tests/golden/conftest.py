"""How a golden folder is made lies with the library's tests: those run without these."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "responsory" / "goldens"))
