"""How long to wait before something that failed is tried again."""

from __future__ import annotations

import attrs


@attrs.define
class Backoff:
    """Each wait is twice the one before, up to ``most_s``; after a life of ``calm_s`` seconds it is
    the first again.

    So what dies at once, again and again, takes no machine for itself, and what dies once a day is
    back soon.
    """

    first_s: float = 0.5
    most_s: float = 60.0
    calm_s: float = 60.0
    _next_s: float = attrs.field(init=False, default=0.0)

    def after(self, lived_s: float) -> float:
        """Seconds to wait now that it has failed, ``lived_s`` seconds after it began to work."""
        if lived_s >= self.calm_s:
            self._next_s = 0.0
        wait_s = self._next_s or self.first_s
        self._next_s = min(2 * wait_s, self.most_s)
        return wait_s
