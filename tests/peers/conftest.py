"""What is measured beside ours is no part of the package: it is found from the root."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2]))
