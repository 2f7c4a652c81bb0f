"""Starts the mutation test: ``python tests/mutation/run.py --help``."""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parents[1])  # the folder above, as it is for pytest
    from mutation.command import main

    sys.exit(main())
