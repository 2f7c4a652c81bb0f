"""The engine requests of one call: n per prompt, sharing a group, aborted together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from antiphon.engines.port import EngineRequest
from antiphon.errors import InvalidRequest
from antiphon.runs.begun import begun
from antiphon.runs.choice import Choice
from antiphon.runs.forms import TAIL, grammar_spec
from antiphon.runs.markup import markup
from antiphon.runs.plan import RunPlan
from responsory.segments import Segmenter, Spec

SEEDS = 2**64


def engine_requests(
    plan: RunPlan, next_key: Callable[[], int], arrival_ns: int
) -> Iterator[EngineRequest]:
    """One request per choice, in index order.

    Raises ``InvalidRequest`` for a prompt that is empty or too long.
    """
    info, sampling = plan.model.info, plan.sampling
    for place, prompt in enumerate(plan.prompts):
        if not prompt:
            of_many = f"[{place}]" if len(plan.prompts) > 1 else ""
            raise InvalidRequest("The prompt has no tokens.", param=plan.prompt_param + of_many)
    group = next_key()
    for index in range(len(plan.prompts) * plan.n):
        prompt = plan.prompts[index // plan.n]
        limit = plan.limit.resolve(len(prompt), info.context_length, plan.prompt_param)
        if sampling.min_tokens > limit:
            raise InvalidRequest(
                f"`min_tokens` is {sampling.min_tokens}, but at most {limit} tokens can come.",
                code="integer_above_max_value",
                param="min_tokens",
            )
        yield EngineRequest(
            key=group if index == 0 else next_key(),
            id=f"{plan.tail}-{index}",
            group=group,
            model=plan.model.id,
            choice=index,
            prompt=prompt,
            max_tokens=limit,
            min_tokens=sampling.min_tokens,
            stop_ids=sampling.stop_ids,
            ignore_eos=sampling.ignore_eos,
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            top_k=sampling.top_k,
            min_p=sampling.min_p,
            seed=(sampling.seed + index) % SEEDS,
            presence=sampling.presence,
            frequency=sampling.frequency,
            repetition=sampling.repetition,
            logit_bias=sampling.logit_bias,
            allowed_ids=sampling.allowed_ids,
            logprobs=sampling.logprobs,
            prompt_logprobs=sampling.prompt_logprobs,
            grammar=grammar_spec(plan, prompt),
            cache_salt=sampling.cache_salt.encode(),
            priority=sampling.priority,
            arrival_ns=arrival_ns,
        )


def _format(plan: RunPlan, prompt: Sequence[int]) -> Spec:
    """How the raw text behind this prompt is read."""
    prompter = plan.model.prompter
    if not (plan.model.marks_thought and prompter.writes_prompts):
        return plan.format
    return begun(plan.format, prompter.decode(prompt[-TAIL:]), within=plan.within)


def choice_for(plan: RunPlan, request: EngineRequest) -> Choice:
    """The choice that this engine request is for."""
    return Choice(
        key=request.key,
        index=request.choice,
        prompt=request.prompt,
        detokenizer=plan.model.prompter.detokenizer(
            skip_special=plan.skip_special,
            markup=markup(
                plan.model.format if plan.shows_thought else plan.format, calls=plan.calls
            ),
        ),
        segmenter=Segmenter(
            _format(plan, request.prompt),
            stop=plan.stop,
            include_stop=plan.include_stop,
            reasoning=plan.include_reasoning,
            calls=plan.calls,
            parallel=plan.parallel_calls,
            tools=plan.tools,
            tokens=plan.tell_tokens,
        ),
        logprobs=request.logprobs is not None,
        stop_ids=frozenset(request.stop_ids),
        tell_tokens=plan.tell_tokens,
        tokens_as_ids=plan.tokens_as_ids,
        echoed=plan.echoed[request.choice // plan.n] if plan.echoed else None,
        echo_logprobs=request.prompt_logprobs is not None,
        keep_deltas=False,  # nobody can come back to a stream, and bodies need none
    )
