"""The checker of a whole stream: bytes in any pieces in, a report out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from responsory.check.chunks.chat import ChatCheck
from responsory.check.chunks.completions import CompletionsCheck
from responsory.check.chunks.notes import is_note
from responsory.check.ending import DONE, END
from responsory.check.json_data import BadData, is_compact, read_object
from responsory.check.judge import Judge, RuleBroken, brief
from responsory.check.profiles import PROFILES, ProfileName
from responsory.check.report import Api, Report, Violation
from responsory.check.responses.stream import ResponsesCheck
from responsory.check.responses.vocabulary import BEAT, BEATS, RESERVED
from responsory.check.rules import UNREADABLE
from responsory.check.sse import Frame, Malformed, Reader

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class ApiCheck(Protocol):
    """What the checks of the three APIs have in common."""

    @property
    def legal(self) -> tuple[str, ...]: ...
    @property
    def outcome(self) -> str: ...
    @property
    def result(self) -> dict[str, Any]: ...
    def take(self, name: str | None, data: dict[str, Any]) -> None: ...
    def end(self, *, marked: bool) -> None: ...


CHECKS: Mapping[Api, type[ResponsesCheck | ChatCheck | CompletionsCheck]] = {
    "responses": ResponsesCheck,
    "chat": ChatCheck,
    "completions": CompletionsCheck,
}
FIRST_EVENTS = (
    "response.created",
    ChatCheck.object_name,
    CompletionsCheck.object_name,
    "error chunk",
)
Bytes: TypeAlias = "bytes | bytearray | memoryview[Any]"


def check_stream(
    data: Bytes | Iterable[Bytes], *, profile: ProfileName = "openai", api: Api | None = None
) -> Report:
    """The report on one whole stream, given in one piece or in many.

    ``api`` None reads it off the first event. Raises ValueError for an unknown profile or API; a
    broken stream is a report, never an exception.
    """
    checker = StreamChecker(profile=profile, api=api)
    if isinstance(data, (bytes, bytearray, memoryview)):
        checker.feed(data)
    else:
        for piece in data:
            checker.feed(piece)
    return checker.close()


class StreamChecker:
    """Checks a stream while it comes, in a proxy or a test. It stops at the first broken rule: what
    comes after a fault can be judged by guesswork only. Raises ValueError for an unknown profile or
    API."""

    def __init__(self, *, profile: ProfileName = "openai", api: Api | None = None) -> None:
        if profile not in PROFILES:
            raise ValueError(f"no profile {profile!r}; known: {', '.join(PROFILES)}")
        if api is not None and api not in CHECKS:
            raise ValueError(f"no API {api!r}; known: {', '.join(CHECKS)}")
        self.api: Api | None = api
        self.violation: Violation | None = None
        """The first one, as soon as it is known."""
        self._judge = Judge(PROFILES[profile])
        self._reader = Reader()
        self._check: ApiCheck | None = None if api is None else CHECKS[api](self._judge)
        self._done = False
        """``[DONE]`` has come."""
        self._malformed_event = False
        """The bytes broke off inside an event, which the reader does not count."""
        self._report: Report | None = None

    def feed(self, data: Bytes) -> None:
        """The next bytes, cut anywhere; ignored once a rule is broken. Raises ValueError after
        ``close``, TypeError for what is not bytes."""
        if self._report is not None:
            raise ValueError("the stream was closed")
        # memoryview takes bytes of any type, and raises TypeError for all else.
        whole = data if type(data) is bytes else bytes(memoryview(data))
        if self.violation is not None:
            return
        try:
            for frame in self._reader.feed(whole):
                if not self._take(frame):
                    return
        except Malformed as error:
            self._malformed(error)

    def close(self) -> Report:
        """The end of the bytes, and the report; again and again the same one."""
        if self._report is None:
            if self.violation is None:
                self._end()
            self._report = self._make_report()
        return self._report

    def _make_report(self) -> Report:
        outcome, result = "", None
        if self.violation is None and self._check is not None:
            outcome, result = self._check.outcome, self._check.result
        return Report(
            profile=self._judge.profile.name,
            api=self.api,
            events=self._reader.events + self._malformed_event,
            outcome=outcome,
            result=result,
            violation=self.violation,
        )

    # --- events ---------------------------------------------------------------------------------

    def _take(self, frame: Frame) -> bool:
        """Whether the event is legal."""
        data: dict[str, Any] = {}
        try:
            if frame.oddity is not None:
                self._judge.broken(
                    "plain-framing", f"line {frame.oddity.line}: {frame.oddity.what}"
                )
            if self._done:
                self._judge.broken("done-last", f"an event after {DONE}", END)
            if frame.data == DONE:
                self._take_done(frame)
                return True
            data = read_object(frame.data)
            if self._judge.keeps("compact-json") and not is_compact(frame.data):
                self._judge.broken("compact-json", f"the data {brief(frame.data, 60)}")
            check = self._check_of(data)
            if check is not None:
                check.take(frame.name, data)
        except BadData as error:
            self._break(error.rule, str(error), "", frame.number, frame.line, None)
            return False
        except RuleBroken as error:
            number = data.get("sequence_number")
            if type(number) is not int:
                number = None
            self._break(error.rule, error.found, error.due, frame.number, frame.line, number)
            return False
        return True

    def _take_done(self, frame: Frame) -> None:
        if self._check is None:
            self._check = self._bare(DONE)
        if frame.name is not None:
            self._judge.broken("event-line", f"an `event:` line before {DONE}", "no such line")
        self._check.end(marked=True)
        self._done = True

    def _check_of(self, data: dict[str, Any]) -> ApiCheck | None:
        """The check that judges the event; None for one that comes before the answer and does not
        tell the API."""
        if self._check is None:
            api = detect(data)
            if api is not None:
                self.api, self._check = api, CHECKS[api](self._judge)
            elif "error" in data and "choices" not in data:
                self._check = self._bare("an error")
            elif self._judge.keeps("exact-keys") or not is_note(data):
                shown = {key: data[key] for key in ("type", "object") if key in data}
                self._judge.broken("first-event", f"an event with {brief(shown or list(data))}")
        return self._check

    def _bare(self, found: str) -> ApiCheck:
        """The check of a stream without an answer: an error chunk, or ``[DONE]`` alone. In some
        profiles it tells the API, in others an error chunk is the same in both of chunks."""
        self.api = self._judge.profile.bare
        if self.api is None and found == DONE:
            self._judge.broken("first-event", found)
        return CHECKS[self.api or "completions"](self._judge)

    def _end(self) -> None:
        reader = self._reader
        try:
            reader.close()
            if reader.oddity is not None:
                odd = reader.oddity
                self._judge.broken("plain-framing", f"line {odd.line}: {odd.what}")
            if self._check is None:
                self._judge.broken("first-event", "the stream ends before its answer begins")
            elif not self._done:
                self._check.end(marked=False)
        except Malformed as error:
            self._malformed(error)
        except RuleBroken as error:
            self._break(error.rule, error.found, error.due, reader.events + 1, reader.line, None)

    # --- the first violation --------------------------------------------------------------------

    def _malformed(self, error: Malformed) -> None:
        self._malformed_event = error.rule not in UNREADABLE
        self._break(error.rule, error.found, "", self._reader.events + 1, error.line, None)

    def _break(
        self, rule: str, found: str, due: str, event: int, line: int, number: int | None
    ) -> None:
        self.violation = Violation(rule, event, line, number, found, due, self._legal())

    def _legal(self) -> tuple[str, ...]:
        if self._done:
            return (END,)
        if self._check is not None:
            return self._check.legal
        bare = () if self._judge.profile.bare is None else (DONE,)
        beats = () if self._judge.keeps("own-events") else BEATS
        return (*FIRST_EVENTS, *beats, *bare)


def detect(data: Mapping[str, Any]) -> Api | None:
    """The API whose event this is, or None."""
    kind, name = data.get("type"), data.get("object")
    if isinstance(kind, str) and (
        kind.startswith(RESERVED) or kind == "error" or BEAT.fullmatch(kind)
    ):
        return "responses"
    if name == ChatCheck.object_name:
        return "chat"
    return "completions" if name == CompletionsCheck.object_name else None
