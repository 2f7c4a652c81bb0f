"""The rules as a page of Markdown: ``docs/stream-rules.md``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from responsory.check.profiles import PROFILES
from responsory.check.rules import RULES
from responsory.check.rules.rule import (
    CALLING,
    CHAT,
    CHUNKS,
    COMPLETIONS,
    EVERY_API,
    RESPONSES,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

HEAD = """\
# The rules of a stream

`python -m responsory.check FILE.sse` (`-` is standard input) reads a stream of the Responses, Chat
Completions or Completions API, from any server, and accepts it or names the first rule it breaks,
where, what was found and what would have been legal there:

```
stream.sse: refused: seq-dense at event 5, line 13, sequence_number 7
  rule: `sequence_number` is 0, 1, 2, …; a server may leave it out of all events alone.
  found: sequence_number 7
  due: 4
  legal: response.output_text.delta, response.output_text.done
```

The exit status is 0 for an accepted stream, 1 for a broken rule, 2 where there is no stream to
read. Events are counted from 1, `[DONE]` too, comments not. Only the first breach is told: what
comes after it can be judged by guesswork only. `--json` prints the same for machines, with the
folded object. In code it is `responsory.check.check_stream`, or `StreamChecker` for a stream that
is still coming.

The profile says whose streams they are:

"""
TITLES = {
    EVERY_API: "Every stream",
    CALLING: "Responses and Chat Completions",
    RESPONSES: "Responses",
    CHUNKS: "Chat Completions and Completions",
    CHAT: "Chat Completions",
    COMPLETIONS: "Completions",
}
FOOT = """
This page is written by `python -m responsory.check --rules`.
"""


def page() -> str:
    """The whole page."""
    return HEAD + "".join(_profiles()) + "".join(_tables()) + FOOT


def _profiles() -> Iterator[str]:
    for profile in PROFILES.values():
        default = " (the default)" if profile.name == "openai" else ""
        yield f"* `{profile.name}`{default}: {profile.sentence}.\n"


def _tables() -> Iterator[str]:
    for apis, title in TITLES.items():
        yield f"\n## {title}\n\n| rule | says | profiles |\n|---|---|---|\n"
        for rule in RULES.values():
            if rule.apis == apis:
                sentence = rule.sentence.replace("|", "\\|")
                yield f"| `{rule.name}` | {sentence} | {_whose(rule.profiles)} |\n"


def _whose(profiles: tuple[str, ...]) -> str:
    return "all" if len(profiles) == len(PROFILES) else ", ".join(profiles)
