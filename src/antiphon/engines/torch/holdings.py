"""What a running sequence holds on the device, and when it comes back (pure Python, no torch).

Every launched step has a number. The slot and the pages of a sequence that leaves come back once
the last step that could touch them is booked, and not before: whatever happens meanwhile, nobody
else writes where a launched step still reads.
"""

from __future__ import annotations

from antiphon.engines.torch.pages import PagePool, PageTable
from antiphon.engines.torch.sequence import NO_SLOT, Sequence


class Holdings:
    """Slots 0 to ``slots - 1``, and the pages of a pool."""

    def __init__(self, pool: PagePool, slots: int) -> None:
        self.pool = pool
        self.booked = 0
        """The latest step whose work is known to be done."""
        self.returning = 0
        """Pages that are as good as free: they come back with steps in flight."""
        self._slots = list(range(slots - 1, -1, -1))
        self._parting: list[tuple[int, int, PageTable]] = []
        """(last step, slot, pages) of those that have left."""

    @property
    def free_slots(self) -> int:
        """Slots that nobody holds."""
        return len(self._slots)

    def in_flight(self, sequence: Sequence) -> bool:
        """Whether a launched step may still touch what the sequence holds or held."""
        return sequence.last_step > self.booked

    def enter(self, sequence: Sequence) -> None:
        """Give it a slot: there is one."""
        sequence.slot = self._slots.pop()

    def leave(self, sequence: Sequence) -> None:
        """Take its slot and pages away, for others as soon as that is safe."""
        slot, table = sequence.slot, sequence.table
        sequence.slot, sequence.table = NO_SLOT, PageTable()
        if self.in_flight(sequence):
            self._parting.append((sequence.last_step, slot, table))
            self._count()
        else:
            self._slots.append(slot)
            self.pool.release(table)

    def book(self, number: int) -> None:
        """A step and all before it are done: what waited for it comes back."""
        self.booked = number
        if not self._parting:
            return
        staying = []
        for last_step, slot, table in self._parting:
            if last_step > number:
                staying.append((last_step, slot, table))
                continue
            self._slots.append(slot)
            self.pool.release(table)
        self._parting = staying
        self._count()

    def _count(self) -> None:
        self.returning = self.pool.only_held_by(table for _, _, table in self._parting)
