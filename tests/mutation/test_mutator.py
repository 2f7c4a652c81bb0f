"""The mutation test itself: which mutants a snippet has, and that a missing test is found."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mutation import equivalents
from mutation.mutants import mutants
from mutation.plan import TESTS
from mutation.report import survivors, table, unproven
from mutation.trials import Verdict

COMMAND = Path(__file__).with_name("run.py")


def changes(source: str, *families: str) -> list[str]:
    return [mutant.change for mutant in mutants("snippet", source, families)]


# --- operators ----------------------------------------------------------------------------------

EXPRESSIONS = {
    "a < b": ["a < b → a <= b", "a < b → a >= b"],
    "a < b < c": [
        "a < b < c → a <= b < c", "a < b < c → a >= b < c",
        "a < b < c → a < b <= c", "a < b < c → a < b >= c",
    ],
    "a == b": ["a == b → a != b"],
    "a is b": ["a is b → a is not b"],
    "a in b": ["a in b → a not in b"],
    "a and b": ["a and b → a or b", "a and b → without `a`", "a and b → without `b`"],
    "not a": ["not a → a"],
    "-a": [],
    "a + b": ["a + b → a - b"],
    "a - b": ["a - b → a + b", "a - b → a | b"],
    "a | b": ["a | b → a & b", "a | b → a - b"],
    "a[b:]": ["b: → :"],
    "a[b]": [],
    "1": ["1 → 2", "1 → 0"],
    "None": [],
    "True": ["True → False"],
    "'a'": ["'a' → 'aZ'"],
    "b'a'": ["b'a' → b'aZ'"],
    "f'a{b}'": ["'a' → 'aZ'"],
    "f()": [],
    "f(a)": ["f(…) without argument `a`"],
    "f(a, b=c)": ["f(…) without argument `b=c`"],
    "f(a, strict=False)": ["False → True"],
    "a if b else c": ["if b → if True", "if b → if False"],
    "[a, b]": ["without element `a`", "without element `b`", "`a` and `b` swapped"],
    "[a, a]": ["without element `a`", "without element `a` (2)"],
    "a in (b, c)": [
        "a in (b, c) → a not in (b, c)", "without element `b`", "without element `c`",
    ],
    "{a, b}": ["without element `a`", "without element `b`"],
    "{a: b, c: d}": ["without entry `a`", "a: b → d", "without entry `c`", "c: d → b"],
    "[a for a in b if c]": ["if c → if True", "if c → if False"],
}  # fmt: skip


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_mutants_of_an_expression(expression: str) -> None:
    whole = f"x = {expression} → pass"
    assert changes(f"x = {expression}") == [whole, *EXPRESSIONS[expression]]


STATEMENTS = {
    "if a: b()": ["if a → if True", "if a → if False", "b() → pass"],
    "while a: b()": ["while a → while False", "b() → pass"],
    "for a in b: continue": ["for … in b → for … in ()", "continue → pass"],
    "a: int = b": ["a: int = b → pass"],
    "a += b": ["a += b → a -= b", "a += b → pass"],
    "raise E(a, 'b')": [
        "raise E(a, 'b') → pass",
        "E(…) without argument `'b'`",
    ],
    "raise E(a)": ["raise E(a) → pass", "E(…) without argument `a`"],
    "def f(): return a": ["return a → return None"],
    "def f(): return None": [],
    "def f(a=True): pass": ["True → False"],
}


@pytest.mark.parametrize("statement", STATEMENTS)
def test_mutants_of_a_statement(statement: str) -> None:
    assert changes(statement) == STATEMENTS[statement]


@pytest.mark.parametrize(
    "source",
    [
        '"""What it is."""',
        "import a",
        "from a import b",
        "a: dict['b', 1 | 2]",
        "A: TypeAlias = 1 | 2",
        "T = TypeVar('T', bound='C')",
        "__slots__ = ('a', 'b')",
        "__all__ = ['a', 'b']",
        "if TYPE_CHECKING:\n    a = 1",
        "class A(B | C):\n    a: int\n    '''What it is.'''",
        "@a.b\ndef f(a: 1 | 'b') -> 'c': ...",
    ],
)
def test_what_is_left_alone(source: str) -> None:
    assert changes(source) == []


@pytest.mark.parametrize("words", ["'no'", "f'no {a + 1}'"])
def test_the_words_of_a_raised_error_are_left_alone(words: str) -> None:
    assert changes(f"raise E({words}, 1)") == [
        f"raise E({words}, 1) → pass", "E(…) without argument `1`", "1 → 2", "1 → 0",
    ]  # fmt: skip


def test_names_of_one_family_stand_in_for_one_another() -> None:
    assert changes("x = min", "min max") == ["x = min → pass", "min → max"]
    assert changes("x = S.A", "S.A S.B S.C") == ["x = S.A → pass", "S.A → S.B", "S.A → S.C"]
    assert changes("x = T.A", "S.A S.B S.C") == ["x = T.A → pass"]
    assert changes("x = a.b", ".b .c") == ["x = a.b → pass", "a.b → a.c"]
    assert changes("min = x", "min max") == ["min = x → pass"]


def test_a_mutant_differs_in_one_place_and_says_where() -> None:
    source = "a = 1\nif a < 2:\n    b(\n        3,\n    )\n"
    grown = {}
    for number in range(len(changes(source))):
        mutant = list(mutants("snippet", source))[number]
        grown[mutant.number, mutant.line, mutant.change] = ast.unparse(mutant.grown())
    assert grown[1, "a = 1", "1 → 2"] == "a = 2\nif a < 2:\n    b(3)"
    assert grown[2, "if a < 2:", "a < 2 → a >= 2"] == "a = 1\nif a >= 2:\n    b(3)"
    assert grown[3, "b(", "b(…) without argument `3`"] == "a = 1\nif a < 2:\n    b()"
    assert grown[4, "3,", "3 → 4"] == "a = 1\nif a < 2:\n    b(4)"
    assert len(set(grown.values())) == len(grown)
    assert ast.unparse(ast.parse(source)) not in grown.values()


# --- trials -------------------------------------------------------------------------------------

PLANTED = """
def smaller(a, b):
    return a if a < b else b
"""
COUNTS = """
def smaller(a, b):
    while b > a:
        b -= 1
    return b if b < a else a
"""
TESTED = """
from planted.numbers import smaller

def test_smaller():
    assert smaller(1, 2) == smaller(2, 1) == 1
"""


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """A package, and tests of it that miss nothing."""
    for name, text in {
        "planted/__init__.py": "",
        "planted/numbers.py": PLANTED,
        "tests/planted/test_numbers.py": TESTED,
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def run(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """The command on the planted package, from a folder that is neither's."""
    return subprocess.run(
        [sys.executable, COMMAND, "--tests", folder / "tests" / "planted", "--package", "planted",
         "--modules", "numbers", *options],
        cwd=folder / "tests", env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_what_no_test_would_notice_is_found(planted: Path) -> None:
    done = run(planted)
    assert done.returncode == 1, done.stderr
    assert "survived: numbers:3: return a if a < b else b\n    a < b → a <= b\n" in done.stdout
    assert done.stdout.count("survived: ") == 1, done.stdout
    (planted / "planted/numbers.py").write_text(PLANTED.replace("a if a < b else b", "min(a, b)"))
    done = run(planted)
    assert done.returncode == 0, done.stdout + done.stderr
    *_, module, whole, _ = done.stdout.splitlines()
    assert module.split()[0] == "numbers"
    assert module.split()[1] == module.split()[2]
    assert whole.split()[1:] == module.split()[1:]


def test_a_mutant_that_hangs_is_killed(planted: Path) -> None:
    (planted / "planted/numbers.py").write_text(COUNTS)
    done = run(planted, "--matching", "b -= 1 → pass", "--seconds", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-2].split() == ["all", "1", "1", "1", "0", "0"]


def test_tests_that_fail_without_a_mutant_are_no_verdict(planted: Path) -> None:
    (planted / "tests/planted/test_numbers.py").write_text("def test_it(): assert False")
    done = run(planted)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "the tests of planted.numbers fail without a mutant\n"
    (planted / "tests/planted/test_numbers.py").write_text("")
    assert "no verdict" in run(planted).stderr
    assert "there is no module planted.letters" in run(planted, "--modules", "letters").stderr


# --- equivalents --------------------------------------------------------------------------------


def test_an_equivalent_is_a_survivor_that_is_listed() -> None:
    one, two, three, four = (
        mutant for line in "abcd" for mutant in mutants("snippet", f"{line} = x")
    )
    verdicts = [
        (one, Verdict.SURVIVED), (two, Verdict.SURVIVED),
        (three, Verdict.FAILED), (four, Verdict.TIMED_OUT),
    ]  # fmt: skip
    listed = {equivalents.key(one): "why"}
    assert survivors(verdicts, listed) == [two]
    assert unproven(verdicts, listed, ["snippet"]) == []
    assert table(verdicts, listed).splitlines() == [
        "module   mutants  killed  timed out  equivalent  survived",
        "snippet        4       2          1           1         1",
        "all            4       2          1           1         1",
    ]
    killed, gone = equivalents.key(three), ("snippet", "e = x", "e = x → pass")
    listed |= {killed: "why", gone: "why", ("other", "e = x", "e = x → pass"): "why"}
    assert unproven(verdicts, listed, ["snippet"]) == [killed, gone]


def test_the_list_of_equivalents_gives_a_reason_for_each(tmp_path: Path) -> None:
    assert all(reason.endswith(".") for reason in equivalents.read().values())
    assert {module for module, _, _ in equivalents.read()} <= set(TESTS)
    file = tmp_path / "equivalent.toml"
    entry = '[[equivalent]]\nmodule = "m"\nline = "a"\nchanges = ["c"]\nbecause = "%s"\n'
    file.write_text(entry % "It is.")
    assert equivalents.read(file) == {("m", "a", "c"): "It is."}
    for text in (entry % " ", 2 * (entry % "It is.")):
        file.write_text(text)
        with pytest.raises(ValueError, match="named twice, or without a reason"):
            equivalents.read(file)
