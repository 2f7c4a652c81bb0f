"""From a request to a sequence: taken, refused, or held until something it needs is there.

What a request may need is its form, which another thread compiles: ``inbox.Formed`` tells when.
"""

from __future__ import annotations

from antiphon.engines.port import EngineError, EngineInfo, EngineRequest, GrammarSpec
from antiphon.engines.torch.admission import refusal
from antiphon.engines.torch.grammar.compiler import Compiled, Compiler, form_of
from antiphon.engines.torch.grammar.refused import GrammarRefused, GrammarUnavailable
from antiphon.engines.torch.grammar.state import begun
from antiphon.engines.torch.sequence import Sequence


class Intake:
    """What the loop asks about every request that comes in, before the scheduler hears of it.

    Without a ``compiler``, what has a grammar is refused.
    """

    def __init__(self, info: EngineInfo, compiler: Compiler | None = None) -> None:
        self._info = info
        self._compiler = compiler
        self._held: dict[int, EngineRequest] = {}
        """Requests that are neither taken nor refused yet."""
        self._waiting: dict[GrammarSpec, dict[int, EngineRequest]] = {}
        """The same, by their forms."""

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, key: int) -> bool:
        return key in self._held

    def keys(self) -> list[int]:
        """Of all that is held, in order of arrival."""
        return list(self._held)

    def take(self, request: EngineRequest) -> Sequence | EngineError | None:
        """The sequence of a request, or why it cannot run; None: it is held."""
        error = refusal(request, self._info)
        if error is not None:
            return error
        spec = request.grammar
        if spec is None:
            return self._sequence(request)
        if self._compiler is None:
            return EngineError(code="unsupported", message="grammar is not supported")
        if spec.kind == "any":
            return self._formed(request, None)
        made = self._compiler.want(spec)
        # Siblings stay in order: none goes past one that is held until the form is told of.
        form = form_of(spec)
        if made is None or form in self._waiting:
            self._held[request.key] = request
            self._waiting.setdefault(form, {})[request.key] = request
            return None
        return self._formed(request, made)

    def formed(self, form: GrammarSpec, made: Compiled) -> list[tuple[int, Sequence | EngineError]]:
        """The keys that were held for this form, in order of arrival, and what becomes of them."""
        waiting = self._waiting.pop(form, {})
        for key in waiting:
            del self._held[key]
        if self._compiler is not None:
            # What is too large to be kept may have been asked for again.
            self._compiler.leave(form)
        return [(key, self._formed(request, made)) for key, request in waiting.items()]

    def drop(self, key: int) -> bool:
        """Forget a held request, which is aborted; False if none of this key is held.

        A form that nobody waits for any more is not compiled.
        """
        request = self._held.pop(key, None)
        if request is None or request.grammar is None:
            return False
        form = form_of(request.grammar)
        waiting = self._waiting[form]
        del waiting[key]
        if not waiting:
            del self._waiting[form]
            if self._compiler is not None:
                self._compiler.leave(form)
        return True

    def _sequence(self, request: EngineRequest) -> Sequence:
        return Sequence.of(request, self._info.context_length, self._info.eos_ids)

    def _formed(self, request: EngineRequest, made: Compiled | None) -> Sequence | EngineError:
        """The sequence with its own state of the form, or why there is none. None: any text."""
        if isinstance(made, GrammarRefused):
            return EngineError(code="grammar_invalid", message=str(made))
        if isinstance(made, GrammarUnavailable):
            return EngineError(code="engine_overloaded", message=str(made))
        sequence, spec = self._sequence(request), request.grammar
        if self._compiler is not None and spec is not None:
            matcher = None if made is None else made.deep_copy()
            grammar = begun(matcher, spec, self._compiler.vocabulary)
            if request.allowed_ids is not None and not grammar.begins_with(request.allowed_ids):
                return EngineError(
                    code="grammar_invalid", message="the form can begin with no allowed token id"
                )
            sequence.grammar = grammar
        return sequence
