"""Wrong uses of the library: mypy --strict and pyright reject each of the marked lines, and no
other.

A mark is ``# error: <mypy's codes> | <pyright's rules>``. Checked, never run: ``checkers.py``
beside it.
"""

from __future__ import annotations

from responsory import EventLog, Logprob, Response, State, Usage
from responsory import events as ev
from responsory.commands import Accept, CallOpened, Cancel, Command, Finish, Start, Text
from responsory.events import Event
from responsory.projections import ChatStream, ResponsesStream, chat_body, resume, tail
from responsory.segments import Piece, Segmenter
from responsory.table import Table
from responsory.testing import a_response


class Machine:
    """The machine of the table below."""


class Fuller(Machine):
    """One that has more."""


TABLE: Table[Machine] = Table()
IDLE = frozenset({State.IDLE})

# --- handlers -----------------------------------------------------------------------------------


@TABLE.on(IDLE, Start)  # error: arg-type | reportArgumentType
def takes_another_command(m: Machine, command: Text) -> list[Event]:
    return []


@TABLE.on(IDLE, Text)  # error: arg-type | reportArgumentType
def takes_another_machine(m: Response, command: Text) -> list[Event]:
    return []


@TABLE.on(IDLE, Text)  # error: arg-type | reportArgumentType
def needs_more_of_the_machine(m: Fuller, command: Text) -> list[Event]:
    return []


@TABLE.on(IDLE, Text)  # error: arg-type | reportArgumentType
def gives_one_event(m: Machine, command: Text) -> Event:
    return ev.InProgress(0)


@TABLE.on(IDLE, Text)  # error: arg-type | reportArgumentType
def gives_commands(m: Machine, command: Text) -> list[Command]:
    return [command]


@TABLE.on(IDLE, Text)  # error: arg-type | reportArgumentType
def takes_no_machine(command: Text) -> list[Event]:
    return []


@TABLE.on(IDLE, Text)  # error: arg-type | reportArgumentType
def wants_more(m: Machine, command: Text, usage: Usage) -> list[Event]:
    return []


# --- cells --------------------------------------------------------------------------------------

TABLE.on({State.RUNNING}, Text)  # error: attr-defined | reportAttributeAccessIssue
TABLE.on({"idle"}, Text)  # error: arg-type | reportArgumentType
TABLE.on([State.IDLE], Text)  # error: arg-type | reportArgumentType
TABLE.on(State.IDLE, Text)  # error: arg-type | reportArgumentType
TABLE.on(IDLE, ev.TextDelta)  # error: type-var | reportArgumentType
TABLE.on(IDLE, Text("a"))  # error: arg-type | reportArgumentType
TABLE.refuse(IDLE, ev.TextDelta)  # error: arg-type | reportArgumentType
TABLE.refuse(IDLE, Text, "Start")  # error: arg-type | reportArgumentType

# --- commands -----------------------------------------------------------------------------------

usage = Usage(3, 2)
Usage("3", 2)  # error: arg-type | reportArgumentType
Accept(7, 1764500000)  # error: arg-type | reportArgumentType
Accept("r1", 1764500000, echo={"model": object()})  # error: dict-item | reportArgumentType
Text(b"a")  # error: arg-type | reportArgumentType
Text("a", [Logprob("a", -0.5, b"a")])  # error: arg-type | reportArgumentType
Text("a", phase="analysis")  # error: arg-type | reportArgumentType
Text("a", colour="red")  # error: call-arg | reportCallIssue
CallOpened("builtin", "f")  # error: arg-type | reportArgumentType
Finish("eos", usage)  # error: arg-type | reportArgumentType
Finish("stop")  # error: call-arg | reportCallIssue
Finish("stop", usage, stop=b"END")  # error: arg-type | reportArgumentType
Cancel()  # error: call-arg | reportCallIssue

# --- the machine and its log --------------------------------------------------------------------

machine = Response()
machine.receive("Accept")  # error: arg-type | reportArgumentType
machine.receive(Text)  # error: arg-type | reportArgumentType
machine.receive(ev.InProgress(0))  # error: arg-type | reportArgumentType
machine.receive()  # error: call-arg | reportCallIssue
machine.state = State.IDLE  # error: misc | reportAttributeAccessIssue
machine.apply(ev.InProgress(0))  # error: arg-type | reportArgumentType
text: str = machine.receive(Start())  # error: assignment | reportAssignmentType

log = EventLog()
log.extend([Text("a")])  # error: list-item | reportArgumentType
log["a"]  # error: call-overload | reportArgumentType reportCallIssue
log.terminal = True  # error: misc | reportAttributeAccessIssue

# --- values that do not change ------------------------------------------------------------------

delta = ev.TextDelta(4, 0, 0, "a")
delta.seq = 5  # error: misc | reportAttributeAccessIssue
delta.text += "b"  # error: misc | reportAttributeAccessIssue
delta.colour = "red"  # error: attr-defined | reportAttributeAccessIssue
log[0].seq = 5  # error: misc | reportAttributeAccessIssue
said: str = log[0].text  # error: attr-defined | reportAttributeAccessIssue
Text("a").text = "b"  # error: misc | reportAttributeAccessIssue
usage.output_tokens += 1  # error: misc | reportAttributeAccessIssue
Piece("a").text = "b"  # error: misc | reportAttributeAccessIssue

# --- projections and segments -------------------------------------------------------------------

ResponsesStream(profile="chat")  # error: arg-type | reportArgumentType
ResponsesStream("openai")  # error: call-arg | reportCallIssue
ResponsesStream().feed(events=log[:])  # error: call-arg | reportCallIssue
ChatStream().feed(0, [Text("a")])  # error: list-item | reportArgumentType
ChatStream().feed(log)  # error: call-arg arg-type | reportCallIssue
chat_body(log)  # error: arg-type | reportArgumentType
tail(log[:])  # error: arg-type | reportArgumentType
resume(ChatStream(), log)  # error: arg-type | reportArgumentType
Segmenter(stop=[17])  # error: list-item | reportArgumentType
Segmenter().feed(["a"])  # error: list-item | reportArgumentType
a_response().finish("eos")  # error: arg-type | reportArgumentType
