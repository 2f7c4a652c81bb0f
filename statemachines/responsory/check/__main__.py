"""``python -m responsory.check FILE.sse|-``: exit status 0 accepted, 1 refused, 2 no stream."""

from __future__ import annotations

import sys

from responsory.check.command import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
