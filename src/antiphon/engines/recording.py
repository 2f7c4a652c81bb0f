"""Recordings: what an engine once delivered, as files that can be served and tested against.

A recording is a ``.jsonl`` file of one request: a header, then one line per engine step of each of
its choices (the lines are described in ``recording_rows``). It is served as a model whose name is
the file's path below the recordings directory, without the suffix: ``plain/hello``.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import attrs

from antiphon.engines.port import EngineError, Finish
from antiphon.engines.recording_rows import (
    FinishRow,
    Header,
    HoldRow,
    StepRow,
    parse_header,
    parse_row,
)
from antiphon.errors import StartupError

NO_FINISH = EngineError(
    code="engine_failed", message="the recorded engine ended without a finish reason"
)


@attrs.define(kw_only=True)
class RecordedChoice:
    """One choice of a recording: its steps that hold tokens or text, in order, and its end.

    A step of text without ids goes on with the text of the last token before it.
    """

    steps: list[StepRow] = attrs.field(factory=list)
    end_ms: float = 0
    """When it ended: the time of its last step, with or without tokens."""
    holds: bool = False
    """It never ends by itself, only by an abort."""
    finish: Finish = Finish.ERROR
    error: EngineError | None = NO_FINISH

    @property
    def spelled(self) -> bool:
        """Whether its tokens were recorded with their text and logprob: all of them or none."""
        return bool(self.steps) and self.steps[0].spelling is not None


@attrs.frozen(kw_only=True)
class Recording(Header):
    """A parsed file: its header and its choices, of which there is at least one."""

    name: str
    """``<family>/<what>``: the id of the model it is served as."""
    choices: tuple[RecordedChoice, ...]

    @property
    def answers(self) -> bool:
        """Whether it says something and then stops by itself, as an ordinary answer does."""
        first = self.choices[0]
        return bool(first.steps) and first.finish is Finish.STOP

    def choice(self, index: int, turn: int = 0) -> RecordedChoice:
        """What is played for choice ``index`` of a request.

        Beyond the recorded ones they are played again from the first. Of a recording of turns every
        choice is that ``turn``, the last one if there are no more.
        """
        if self.turns:
            return self.choices[min(turn, len(self.choices) - 1)]
        return self.choices[index % len(self.choices)]


def load_recordings(directory: Path) -> dict[str, Recording]:
    """Every ``*.jsonl`` below ``directory``, by name; a ``tokens`` folder in it is the root.

    Raises ``StartupError``, with file and line where there is one, for a missing directory, a
    directory without recordings, and a file that is not a sound recording.
    """
    root = directory / "tokens" if (directory / "tokens").is_dir() else directory
    if not root.is_dir():
        raise StartupError(f"{directory.absolute()} is not a directory of recordings")
    paths = sorted(root.rglob("*.jsonl"))
    if not paths:
        raise StartupError(f"{root} holds no recordings (*.jsonl)")
    names = [path.relative_to(root).with_suffix("").as_posix() for path in paths]
    return {name: _load(name, path) for name, path in zip(names, paths, strict=True)}


def _load(name: str, path: Path) -> Recording:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise StartupError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise StartupError(f"{path}: not UTF-8: {error.reason} at byte {error.start}") from error
    return parse_recording(name, text, str(path))


def parse_recording(name: str, text: str, place: str) -> Recording:
    """The recording in ``text``; ``place`` names it in the ``StartupError`` of an unsound one."""
    number = 1
    # Not splitlines(): U+2028 and its like may stand in a JSON string.
    lines = text.removesuffix("\n").split("\n")
    try:
        header = parse_header(lines[0])
        choices = _Choices(header.tokenizer == "bytes")
        for line in lines[1:]:
            number += 1
            row = parse_row(line, header.tokenizer)
            match row:
                case StepRow():
                    choices.step(row)
                case HoldRow():
                    choices.hold()
                case FinishRow():
                    choices.finish(row)
        return Recording(
            name=name, choices=choices.complete(), **attrs.asdict(header, recurse=False)
        )
    except ValueError as error:
        raise StartupError(f"{place}, line {number}: {error}") from error


class _Choices:
    """Sorts the rows by choice and checks what one row alone cannot show."""

    def __init__(self, ids_are_bytes: bool) -> None:
        self._ids_are_bytes = ids_are_bytes
        self._choices: dict[int, RecordedChoice] = {}
        self._finished: set[int] = set()
        self._held = False

    def step(self, row: StepRow) -> None:
        if self._held:
            raise ValueError("a step after a hold is never played")
        if row.choice in self._finished:
            raise ValueError(f"choice {row.choice} has finished already")
        choice = self._choices.setdefault(row.choice, RecordedChoice())
        if row.ms < choice.end_ms:
            raise ValueError(f"time goes backwards, from {choice.end_ms} to {row.ms} ms")
        choice.end_ms = row.ms
        if not row.ids and not row.text:
            return
        if row.ids and choice.steps and choice.spelled != (row.spelling is not None):
            raise ValueError(f"choice {row.choice} has logprobs on some of its steps only")
        choice.steps.append(row)

    def hold(self) -> None:
        if self._held:
            raise ValueError("a second hold is never reached")
        self._held = True

    def finish(self, row: FinishRow) -> None:
        if row.choice in self._finished:
            raise ValueError(f"choice {row.choice} has finished already")
        if self._held and row.finish is not Finish.ABORT:
            raise ValueError("after a hold a choice can only finish with abort")
        self._finished.add(row.choice)
        choice = self._choices.setdefault(row.choice, RecordedChoice())
        choice.finish, choice.error, choice.holds = row.finish, row.error, self._held

    def complete(self) -> tuple[RecordedChoice, ...]:
        """All choices in order, once the last line has been read."""
        count = max(self._choices, default=0) + 1
        if missing := sorted(
            set(range(count)) - self._choices.keys() - ({0} if count == 1 else set())
        ):
            raise ValueError(f"choice {missing[0]} has no line")
        choices = tuple(self._choices.get(index, RecordedChoice()) for index in range(count))
        for index, choice in enumerate(choices):
            if self._held and index not in self._finished:
                choice.holds = True
            self._check_spelling(index, choice)
        return choices

    def _check_spelling(self, index: int, choice: RecordedChoice) -> None:
        if not choice.spelled:
            return
        data = spelled_bytes(choice.steps)
        if self._ids_are_bytes:
            agree = data == bytes(token for step in choice.steps for token in step.ids)
        else:
            text = "".join(step.text or "" for step in choice.steps)
            agree = text == data.decode("utf-8", "replace")
        if not agree:
            raise ValueError(f"the logprobs of choice {index} do not spell its text")


def spelled_bytes(steps: Iterable[StepRow]) -> bytes:
    """The bytes of all recorded tokens of these steps."""
    return b"".join(token.data for step in steps for token in step.spelling or ())
