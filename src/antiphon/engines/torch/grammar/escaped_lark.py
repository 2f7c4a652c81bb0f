"""A grammar of a text as the grammar of how JSON spells that text inside a string.

Only the characters differ that JSON cannot hold as they are: the quote, the backslash and control
characters. So each literal is spelled out, and each thing of a regular expression that stands for
one character becomes the same without those, or one of their spellings.
"""

from __future__ import annotations

import json
import re

from antiphon.engines.torch.grammar.refused import GrammarRefused

SPECIAL = '"\\' + "".join(map(chr, range(0x20)))
"""What JSON spells with a backslash in a string."""

_LARK = re.compile(
    r"""(?P<range>"(?:[^"\\]|\\.)*"\s*\.\.\s*"(?:[^"\\]|\\.)*")
      | (?P<string>"(?:[^"\\]|\\.)*")(?P<fold>i?)
      | (?P<comment>//[^\n]*|\#[^\n]*)
      | /(?P<regex>(?:[^/\\\n\[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+)/(?P<flags>[a-z]*)
      | (?P<special><[^<>\s]*>)""",
    re.VERBOSE,
)
_ATOM = re.compile(
    r"""(?P<group>\(\?(?:P?<\w+>|[a-z-]*:|[a-z-]+\))|\(|\)|\||\*|\+|\?|\^|\$|\{\d*,?\d*\})
      | (?P<anchor>\\[bBAzZ])
      | (?P<one>\[\^?\]?(?:[^\]\\]|\\.)*\]
          |\\(?:[pP](?:\{[^}]*\}|\w)|x[0-9A-Fa-f]{2}|[xu]\{[0-9A-Fa-f]+\}|u[0-9A-Fa-f]{4}|.)
          |.)""",
    re.VERBOSE | re.DOTALL,
)


def escaped_lark(text: str) -> str:
    """The grammar. Raises ``GrammarRefused`` for what it cannot be made of."""
    return _LARK.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    if found["range"]:
        ends = re.findall(r'"(?:[^"\\]|\\.)*"', found["range"])
        first, last = (_read(end) for end in ends)
        if len(first) != 1 or len(last) != 1:
            raise GrammarRefused(f"{found['range']} is no range of characters")
        return f"/{escaped_regex(f'[{_one(first)}-{_one(last)}]')}/"
    if found["string"]:
        spelled = json.dumps(_read(found["string"]), ensure_ascii=False)[1:-1]
        return json.dumps(spelled, ensure_ascii=False) + found["fold"]
    if found["regex"]:
        flags = found["flags"]
        regex = f"(?{flags}:{found['regex']})" if flags else found["regex"]
        return f"/{escaped_regex(regex)}/"
    if found["special"]:
        raise GrammarRefused(f"{found['special']}: inside a string of JSON are no control tokens")
    return found[0]


def escaped_regex(regex: str) -> str:
    """The regular expression of what JSON writes in a string for a text that ``regex`` matches."""
    dot_all = "s" in (flags[1] if (flags := re.match(r"\(\?([a-z]*)[:)]", regex)) else "")
    pieces, at = [], 0
    while at < len(regex):
        found = _ATOM.match(regex, at)
        if found is None:
            raise GrammarRefused(f"the regular expression {regex} cannot be read")
        at = found.end()
        if found["anchor"]:
            raise GrammarRefused(f"{found['anchor']} is not taken inside a string of JSON")
        pieces.append(found[0] if found["group"] else _spelled(found["one"], dot_all=dot_all))
    return "".join(pieces)


def _spelled(one: str, *, dot_all: bool) -> str:
    """What stands for one character, in the spelling of JSON."""
    try:
        known = re.compile(_for_python(one), re.DOTALL if dot_all else 0)
    except re.error:
        raise GrammarRefused(f"{one}: it cannot be read inside a string of JSON") from None
    matched = [char for char in SPECIAL if known.fullmatch(char)]
    if not matched:
        return one
    spelled = [_literally(json.dumps(char)[1:-1]) for char in matched]
    rest = f"[{one}&&[^{_literally(SPECIAL)}]]" if one != "." else f"[^{_literally(SPECIAL)}]"
    if len(one) == 1 and one != ".":  # it is that character and no other
        return f"(?:{'|'.join(spelled)})"
    return f"(?:{rest}|{'|'.join(spelled)})"


def _for_python(one: str) -> str:
    """As Python writes it: whether a property holds for these characters is known without it."""
    if one[:2] in ("\\p", "\\P"):
        # Of the special characters two are punctuation and the others control characters.
        name = one[2:].strip("{}")
        members = "" if name[:1] in "LNSZM" else ('"\\\\' if name[:1] == "P" else "\\x00-\\x1f")
        negated = one[1] == "P"
        return f"[{'^' if negated else ''}{members}]" if members else ("." if negated else r"(?!)")
    return re.sub(r"\\[xu]\{([0-9A-Fa-f]+)\}", lambda found: _one(chr(int(found[1], 16))), one)


def _literally(text: str) -> str:
    return "".join(map(_one, text))


def _one(char: str) -> str:
    """The character itself in a regular expression, in a class or outside, between slashes."""
    if char.isalnum() or ord(char) > 0x7F:
        return char
    return f"\\x{ord(char):02x}"


def _read(literal: str) -> str:
    try:
        return str(json.loads(literal))
    except ValueError:
        raise GrammarRefused(f"the string {literal} cannot be read") from None
