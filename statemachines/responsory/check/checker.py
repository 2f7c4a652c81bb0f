"""The checker of a whole stream: bytes in any pieces in, a report out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from responsory.check.chunks.chat import ChatCheck
from responsory.check.chunks.completions import CompletionsCheck
from responsory.check.json_data import BadData, is_compact, read_object
from responsory.check.judge import Judge, RuleBroken, brief
from responsory.check.profiles import PROFILES, ProfileName
from responsory.check.report import Api, Report, Violation
from responsory.check.responses.stream import ResponsesCheck
from responsory.check.sse import Frame, Malformed, Reader

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

DONE = "[DONE]"


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
FIRST_EVENTS = ("response.created", ChatCheck.object_name, CompletionsCheck.object_name)


def check_stream(
    data: bytes | Iterable[bytes], *, profile: ProfileName = "openai", api: Api | None = None
) -> Report:
    """The report on one whole stream, given in one piece or in many.

    ``api`` None reads it off the first event. Raises ValueError for an unknown profile or API; a
    broken stream is a report, never an exception.
    """
    checker = StreamChecker(profile=profile, api=api)
    for piece in (data,) if isinstance(data, bytes) else data:
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
        self._report: Report | None = None

    def feed(self, data: bytes) -> None:
        """The next bytes, cut anywhere; ignored once a rule is broken. Raises ValueError after
        ``close``."""
        if self._report is not None:
            raise ValueError("the stream was closed")
        if self.violation is not None:
            return
        try:
            for frame in self._reader.feed(data):
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
            events=self._reader.events,
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
                self._judge.broken("done-last", "an event after [DONE]", "the end of the stream")
            if frame.data == DONE:
                self._take_done(frame)
                return True
            data = read_object(frame.data)
            if self._judge.keeps("compact-json") and not is_compact(frame.data):
                self._judge.broken("compact-json", f"the data {brief(frame.data, 60)}")
            self._api_of(data).take(frame.name, data)
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
            self._judge.broken("first-event", DONE)
            return
        if frame.name is not None:
            self._judge.broken("event-line", f"an `event:` line before {DONE}", "no such line")
        self._check.end(marked=True)
        self._done = True

    def _api_of(self, data: dict[str, Any]) -> ApiCheck:
        if self._check is None:
            api = detect(data)
            if api is None and "error" in data and self._judge.keeps("roles-first"):
                # A chat stream of such a profile begins with roles, however it ends.
                api = "completions"
            if api is None:
                shown = {key: data[key] for key in ("type", "object") if key in data}
                self._judge.broken("first-event", f"an event with {brief(shown or list(data))}")
                raise LookupError("the rule first-event is in every profile")
            self.api = api
            self._check = CHECKS[api](self._judge)
        return self._check

    def _end(self) -> None:
        reader = self._reader
        try:
            reader.close()
            if reader.oddity is not None:
                odd = reader.oddity
                self._judge.broken("plain-framing", f"line {odd.line}: {odd.what}")
            if not self._done and self._check is not None:
                self._check.end(marked=False)
        except Malformed as error:
            self._malformed(error)
        except RuleBroken as error:
            self._break(error.rule, error.found, error.due, reader.events + 1, reader.line, None)

    # --- the first violation --------------------------------------------------------------------

    def _malformed(self, error: Malformed) -> None:
        self._break(error.rule, error.found, "", self._reader.events + 1, error.line, None)

    def _break(
        self, rule: str, found: str, due: str, event: int, line: int, number: int | None
    ) -> None:
        self.violation = Violation(rule, event, line, number, found, due, self._legal())

    def _legal(self) -> tuple[str, ...]:
        if self._done:
            return ("end of the stream",)
        return FIRST_EVENTS if self._check is None else self._check.legal


def detect(data: Mapping[str, Any]) -> Api | None:
    """The API whose event this is, or None."""
    kind, name = data.get("type"), data.get("object")
    if isinstance(kind, str) and (kind.startswith("response.") or kind == "error"):
        return "responses"
    if name == ChatCheck.object_name:
        return "chat"
    return "completions" if name == CompletionsCheck.object_name else None
