"""The segmenter: pieces of raw text in, commands out.

Invariant under chunking: any split of the same text gives the same concatenated segments. Append-
only: nothing is emitted that later text could contradict. Text of one kind that one feed makes
certain is one segment, so one engine step makes one delta of an item.

The way of the text: ``markup`` cuts it into regions and drops the markers; text of the answer goes
through the stop strings (``stops``); ``tokens`` keeps the count and the logprobs in step with what
is shown. Most text needs none of this: where nothing is held, no marker can begin in it and no stop
string is looked for, a piece is its own segment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from responsory.commands import CallClosed, CallInput, CallOpened, Reasoning, Text
from responsory.segments.clean import are_clean, is_clean
from responsory.segments.formats import PLAIN, Spec
from responsory.segments.markup import Scanner, holds_no_markup
from responsory.segments.pieces import Aligner, Piece
from responsory.segments.regions import Region
from responsory.segments.shown import Segment, Shown
from responsory.segments.stops import StopMatcher
from responsory.segments.token_ids import TokenIds
from responsory.segments.tokens import TokenCount, VisibleLogprobs
from responsory.segments.tools import NO_TOOLS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from responsory.segments.tools import Tools
    from responsory.values import Phase, Tokens


class Segmenter:
    """One response's raw text, read by the rules of ``spec``.

    ``stop``: a stop string or several, matched in the answer alone, never across a call or a
    reasoning item; ``include_stop`` leaves the matched one in it. ``reasoning`` False leaves
    reasoning out of the segments; it counts all the same. ``calls`` False looks for no call: what
    would open one is text; ``tools``: what may be called. ``parallel`` False ends with the first
    call. Once ``ended``, by a stop string or by that, everything further is ignored, and
    the engine's request should be aborted. Raises ``ValueError`` for an empty stop string.

    ``output_tokens`` counts ids, up to and including the token that completes a match, or the
    closer of the call that ended it; where a piece of several ids does not show their borders (by
    one logprob per id), all its ids count.
    ``tokens`` True makes text, reasoning and arguments tell the ids of their tokens and the tokens
    so far (see ``TokenIds``); a stop string cuts ids where it cuts text, so a token keeps its id if
    any of its text stands before the match. ``rest``, after ``finish``, holds what no segment told.

    ``reasoning_tokens`` are those between the markers (see ``TokenCount``); what is held is not
    counted there before it is certain.
    """

    __slots__ = ("_aligner", "_at_a_glance", "_count", "_end", "_glanced", "_ids", "_in_call",
                 "_logprobs", "_matcher", "_parallel", "_phase", "_quiet", "_reasoning", "_scanner",
                 "_starts", "ended", "rest")  # fmt: skip

    def __init__(
        self,
        spec: Spec = PLAIN,
        *,
        stop: str | Sequence[str] = (),
        include_stop: bool = False,
        reasoning: bool = True,
        calls: bool = True,
        parallel: bool = True,
        tools: Tools = NO_TOOLS,
        tokens: bool = False,
    ) -> None:
        # For callers who are not type-checked: a family's name is what one tries first.
        if not isinstance(spec, Spec):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"not a Spec: {spec!r}; FORMATS holds those of the known families")
        self._scanner = Scanner(spec if calls else spec.without_calls, tools)
        stops = (stop,) if isinstance(stop, str) else tuple(stop)
        self._matcher = StopMatcher(stops, include=include_stop)
        self._aligner = Aligner()
        self._count = TokenCount()
        self._logprobs = VisibleLogprobs()
        self._ids = TokenIds() if tokens else None
        self._reasoning = reasoning
        self._parallel = parallel
        self._phase: Phase | None = None
        """Of the text of the answer that came last."""
        self.ended = False
        """Nothing further is wanted: a stop string was matched, or the only call was closed."""
        self.rest: tuple[int, ...] = ()
        """The ids that no segment told; known after ``finish``."""
        self._at_a_glance: Callable[[str], Segment] | None = None
        """What a piece without logprobs becomes at a glance; None while it must be looked at."""
        self._in_call: Callable[[str], str | None] | None = None
        """What takes such a piece inside a call."""
        self._quiet = False
        """Nothing is held or pending, but for the start of a stop string."""
        self._glanced = 0
        """Tokens read at a glance that are not in the count yet."""
        self._starts: tuple[str, ...] = ()
        self._end = 0
        """Where the next piece begins in the raw text. What is read at a glance is left out: its
        place is compared with nothing."""
        self._rest()

    @property
    def stop(self) -> str | None:
        """The stop string that was matched."""
        return self._matcher.hit

    @property
    def output_tokens(self) -> int:
        return self._count.output + self._glanced

    @property
    def reasoning_tokens(self) -> int:
        reasoning = self._scanner.channel is Reasoning
        return self._count.reasoning + (self._glanced if reasoning else 0)

    def feed(self, pieces: Sequence[Piece]) -> list[Segment]:
        """The segments that one engine step makes certain."""
        try:
            (piece,) = pieces
        except ValueError:
            if (
                self._quiet
                and pieces
                and are_clean(pieces, self._starts, looked=self._matcher.looks)
            ):
                return self._pass(pieces)
            return self._read(pieces)
        if not piece.logprobs and (segment := self.glance(piece.text, len(piece.ids))):
            return [segment]
        if self._quiet and is_clean(piece, self._starts, looked=self._matcher.looks):
            return self._pass_piece(piece)
        return self._read(pieces)

    def glance(self, text: str, ids: int = 1) -> Segment | None:
        """The one segment that ``feed`` gives of a piece of this text, of ``ids`` tokens without
        logprobs, where a glance at it tells. None: nothing was taken, and ``feed`` is due."""
        channel, starts = self._at_a_glance, self._starts
        if channel is None:
            look = self._in_call
            if look is None or not text or (shown := look(text)) is None:
                return None
            self._glanced += ids
            return CallInput(shown)
        if not text or (starts and not holds_no_markup(text, starts)):
            return None
        self._glanced += ids
        return channel(text)

    def finish(self, *, cut: bool = False) -> list[Segment]:
        """The segments of what was held: the text has ended.

        ``cut``: not by the model (a token limit, a failure, an abort). Then a call without its
        closer stays open, and what may have become a call is dropped; else it is text.
        """
        shown = Shown()
        for region in self._scanner.flush(cut=cut):
            self._show(region, shown)
        if not self.ended:
            self._answer(self._matcher.flush(), shown)
            if entries := self._logprobs.rest(self._scanner.mode.channel):
                shown.add(Text, "", self._tokens(self._end + 1), entries, self._phase)
        self._count.flush(self._scanner.mode.channel)
        if self._ids is not None:
            self.rest = self._ids.rest()
        return shown.segments()

    def _pass_piece(self, piece: Piece) -> list[Segment]:
        """The segment of a clean piece."""
        self._glanced += len(piece.ids)
        tokens = None if self._ids is None else self._ids.tell(piece.ids)
        if self._scanner.mode.channel is Reasoning:
            return [Reasoning(piece.text, tokens)] if self._reasoning else []
        phase = self._phase = self._scanner.mode.phase
        text = self._matcher.feed(piece.text)
        if self._matcher.hit is not None:
            self.ended = True
            self._rest()
        return [Text(text, piece.logprobs, phase, tokens)] if text else []

    def _pass(self, pieces: Sequence[Piece]) -> list[Segment]:
        """The segment of a clean step."""
        channel, matcher = self._scanner.mode.channel, self._matcher
        logprobs = tuple([entry for piece in pieces for entry in piece.logprobs])
        texts = []
        for piece in pieces:
            self._glanced += len(piece.ids)
            texts.append(matcher.feed(piece.text) if channel is Text else piece.text)
            if matcher.hit is not None:
                self.ended = True
                self._rest()
                break
        text = "".join(texts)
        if not text or (channel is Reasoning and not self._reasoning):
            return []
        tokens = None
        if self._ids is not None:
            tokens = self._ids.tell([token for piece in pieces for token in piece.ids])
        if channel is Text:
            self._phase = self._scanner.mode.phase
            return [Text(text, logprobs, self._phase, tokens)]
        return [Reasoning(text, tokens)]

    def _rest(self) -> None:
        """See whether the next piece can be read at a glance, and if so as what."""
        mode, ids = self._scanner.mode, self._ids
        hidden = mode.channel is Reasoning and not self._reasoning
        settled = not (self.ended or self._logprobs or self._count.pending)
        # Ids wait for the text behind a stop string, and hidden ones for what is shown next.
        told = ids is None or not (ids or hidden or self._matcher.looks)
        self._quiet = settled and told and self._scanner.idle
        self._in_call = self._scanner.glance if settled and ids is None else None
        glance = self._quiet and ids is None and not hidden and not self._matcher.looks
        self._at_a_glance = mode.told if glance else None
        self._starts = mode.starts

    def _read(self, pieces: Sequence[Piece]) -> list[Segment]:
        if self._glanced:
            self._count.pass_by(self._scanner.channel, self._glanced)
            self._logprobs.pass_by(self._scanner.channel)
            self._glanced = 0
        shown = Shown()
        for piece in pieces:
            if self.ended:
                break
            self._take(piece)
            for region in self._scanner.feed(piece.text):
                self._show(region, shown)
        self._rest()
        return shown.segments()

    def _take(self, piece: Piece) -> None:
        """Note where the piece's tokens begin and end."""
        start, self._end = self._end, self._end + len(piece.text)
        ids = self._ids
        extents = self._aligner.extents(piece, start) if piece.logprobs else []
        self._logprobs.add(extents)
        if len(extents) != len(piece.ids):
            self._count.add(start, self._end, len(piece.ids))
            if ids is not None:
                ids.add(start, piece.ids)
            return
        for token, (begin, end, _) in zip(piece.ids, extents, strict=True):
            self._count.add(begin, end, 1)
            if ids is not None:
                ids.add(begin, (token,))

    def _show(self, region: Region, shown: Shown) -> None:
        if self.ended:
            # What comes after the end is no reasoning to count.
            self._count.settle(Region(Text, region.start, region.end, ""))
            return
        matcher, channel = self._matcher, region.channel
        origin = matcher.end
        self._logprobs.settle(region, origin)
        if channel is Text:
            if region.text and region.phase != self._phase:
                # Another message begins, and no stop string is looked for across the two.
                self._answer(matcher.flush(), shown)
                self._phase = region.phase
            if self._ids is not None and region.text:
                self._ids.answer(origin, region.start)
            self._answer(matcher.feed(region.text), shown)
            if matcher.hit is not None:
                self._end_at(region.start + matcher.hit_end - origin, matcher.released)
        elif region.text and (channel is CallInput or (channel is Reasoning and self._reasoning)):
            # What was held of the answer comes before, and ends an item.
            self._answer(matcher.flush(), shown)
            shown.add(channel, region.text, self._tokens(region.end))
        if region.says is not None:
            self._border(region.says, region.end, shown)
        self._count.settle(region)

    def _border(self, says: CallOpened | CallClosed, end: int, shown: Shown) -> None:
        """A call opens, or closes at ``end``."""
        if isinstance(says, CallOpened):
            self._answer(self._matcher.flush(), shown)
        elif not self._parallel:
            self._end_at(end, None)
        shown.add_border(says)

    def _end_at(self, end: int, released: int | None) -> None:
        """No token is wanted that begins at ``end`` or later in the raw text; its id only if it
        begins among the first ``released`` characters of the answer, where those are the end."""
        self.ended = True
        self._count.cut(end)
        if self._ids is not None:
            self._ids.cut(end if released is None else self._ids.place(released))

    def _answer(self, text: str, shown: Shown) -> None:
        if text:
            released = self._matcher.released
            tokens = None if self._ids is None else self._tokens(self._ids.place(released - 1) + 1)
            shown.add(Text, text, tokens, self._logprobs.take(released), self._phase)

    def _tokens(self, end: int) -> Tokens | None:
        return None if self._ids is None else self._ids.take(end)
