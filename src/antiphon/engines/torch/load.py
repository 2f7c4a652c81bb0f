"""Puts an engine together: files and settings to a loop that is ready to run."""

from __future__ import annotations

from collections.abc import Callable

import torch

from antiphon.engines.port import Capability, EngineInfo, EngineStartError, StepFrame
from antiphon.engines.torch.admission import CAPABILITIES
from antiphon.engines.torch.device import resolve_device, resolve_dtype, spare_bytes
from antiphon.engines.torch.grammar.compiler import Compiler
from antiphon.engines.torch.grammar.masks import Masks
from antiphon.engines.torch.grammar.vocabulary import GrammarVocabulary
from antiphon.engines.torch.inbox import Formed, Inbox
from antiphon.engines.torch.loop import EngineLoop
from antiphon.engines.torch.models.config import DecoderConfig
from antiphon.engines.torch.models.decoder import Decoder
from antiphon.engines.torch.models.kv_cache import KVCache, cache_dtype, page_bytes
from antiphon.engines.torch.options import EngineOptions
from antiphon.engines.torch.pages import PAGE_SIZE, PagePool, pages_for
from antiphon.engines.torch.runner import Runner
from antiphon.engines.torch.sampling.sampler import Sampler
from antiphon.engines.torch.scheduler import Scheduler
from antiphon.engines.torch.weights.converted import load_weights
from antiphon.engines.torch.weights.gguf_file import GgufFile
from antiphon.engines.torch.weights.hf_directory import HfDirectory
from antiphon.models.end_tokens import read_end_ids
from antiphon.models.token_table import TokenTable

HELD = frozenset({Capability.GRAMMAR, Capability.FORCED_CALLS, Capability.THOUGHT_BUDGET})
"""What an engine can do that knows how its tokens are spelt."""

STEP_TOKENS = {"cpu": 256, "cuda": 2_048}
"""Default budget of a step. A 135M model reads 256 tokens in about a fifth of a second on one core
(AVX512-BF16), which is what a running stream may have to wait for somebody else's prompt."""


def load(options: EngineOptions, inbox: Inbox, emit: Callable[[StepFrame], None]) -> EngineLoop:
    """Load the model on the calling thread. Raises ``EngineStartError`` or ``StartupError``."""
    torch.set_num_threads(options.threads)
    device = resolve_device(options.device)
    dtype = resolve_dtype(options.dtype, device)
    files = options.files
    source = GgufFile(files.path) if files.kind == "gguf" else HfDirectory(files.path)
    config = source.config
    eos_ids = read_end_ids(files)
    if strange := [token for token in eos_ids if token >= config.vocab_size]:
        raise EngineStartError(
            f"{files.path} ends its texts by the id {strange[0]}; the vocabulary has "
            f"{config.vocab_size} tokens"
        )
    weights = load_weights(files, source, dtype, device, options.weights, options.cache)
    kept_in = cache_dtype(dtype, device)
    pages = _kv_pages(config, kept_in, device, options)
    cache = KVCache(config, pages, kept_in, device)
    context_length = min(config.context_length, pages * PAGE_SIZE)
    sampler = Sampler(options.max_running, config.vocab_size, device)
    masks = Masks(config.vocab_size)
    runner = Runner(Decoder(config, weights, context_length), cache, sampler, masks)
    compiler = _compiler(options, config.vocab_size, eos_ids, inbox)
    info = EngineInfo(
        name="torch",
        model_id=files.name,
        vocab_size=config.vocab_size,
        context_length=context_length,
        eos_ids=eos_ids,
        max_running=options.max_running,
        page_size=PAGE_SIZE,
        kv_pages=pages,
        dtype=str(dtype).removeprefix("torch."),
        device=str(device),
        capabilities=CAPABILITIES if compiler is None else CAPABILITIES | HELD,
    )
    scheduler = Scheduler(
        PagePool(pages),
        max_running=options.max_running,
        max_waiting=options.max_waiting,
        step_tokens=options.step_tokens or STEP_TOKENS[device.type],
        prefix_cache=options.prefix_cache,
    )
    return EngineLoop(info, scheduler, runner, inbox, emit, compiler=compiler)


def _compiler(
    options: EngineOptions, vocab_size: int, eos_ids: frozenset[int], inbox: Inbox
) -> Compiler | None:
    """What compiles forms; None if it is not known what the tokens spell, or where texts end."""
    if options.vocabulary is None or not eos_ids:
        return None
    vocabulary = GrammarVocabulary.of(TokenTable.from_text(options.vocabulary), vocab_size, eos_ids)
    return Compiler(vocabulary, lambda form, made: inbox.put(Formed(form, made)))


def _kv_pages(
    config: DecoderConfig, dtype: torch.dtype, device: torch.device, options: EngineOptions
) -> int:
    """As many pages as full contexts can use, within the bytes given or spare."""
    budget = spare_bytes(device) if options.kv_bytes is None else options.kv_bytes
    size = page_bytes(config, dtype)
    if budget < size:
        raise EngineStartError(
            f"the KV cache may take {budget} bytes, and one page of {PAGE_SIZE} tokens takes {size}"
        )
    return min(budget // size, options.max_running * pages_for(config.context_length))
