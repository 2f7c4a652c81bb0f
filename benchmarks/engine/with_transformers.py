"""``generate`` of transformers in bfloat16, on the weights that we read from the file."""

from __future__ import annotations

import time
from typing import Any

import torch
from benchmarks.engine.loads import NotMeasured, Sizes, Task, Timing, prompt, rate

from antiphon.engines.torch.weights.gguf_file import GgufFile
from antiphon.models.files import ModelFiles, resolve


class WithTransformers:
    """A model of the library; its streams are a batch of one length."""

    def __init__(self, model: str | None) -> None:
        torch.set_num_threads(1)
        try:
            import transformers
        except ImportError as failure:
            raise NotMeasured(f"transformers is not installed: {failure}") from failure
        files = resolve(model)
        if files.kind == "hf":
            factory: Any = transformers.AutoModelForCausalLM
            self._model = factory.from_pretrained(files.path, dtype=torch.bfloat16).eval()
        else:
            self._model = _from_gguf(files, transformers)

    def measure(self, task: Task, sizes: Sizes, number: int) -> Timing:
        if task == "turns":
            raise NotMeasured("generate keeps nothing from one call to the next")
        if task == "prefill":
            began, times = self._generate([prompt(sizes.prefill, number)], 1)
            return rate(sizes.prefill, times[0] - began)
        if task == "single":
            _, times = self._generate([prompt(sizes.prompt, number)], sizes.decode)
            return rate(sizes.decode - 1, times[-1] - times[0])
        prompts = [prompt(sizes.prompt, number, stream) for stream in range(sizes.streams)]
        began, times = self._generate(prompts, sizes.decode)
        return rate(sizes.streams * sizes.decode, times[-1] - began)

    @torch.inference_mode()
    def _generate(self, prompts: list[list[int]], count: int) -> tuple[float, list[float]]:
        """When it began, and when each token (of all rows) was there."""
        ids, times = torch.tensor(prompts), list[float]()

        def noted(ids: torch.Tensor, _scores: Any, **_rest: Any) -> torch.Tensor:
            times.append(time.perf_counter())
            return torch.zeros(len(ids), dtype=torch.bool)

        began = time.perf_counter()
        self._model.generate(
            ids, attention_mask=torch.ones_like(ids), max_new_tokens=count, min_new_tokens=count,
            do_sample=False, eos_token_id=-1, pad_token_id=0, stopping_criteria=[noted],
        )  # fmt: skip
        return began, times

    def close(self) -> None:
        """Nothing runs."""


def _from_gguf(files: ModelFiles, transformers: Any) -> Any:
    """Its Llama with our reading of the tensors: its own reader of GGUF needs a package more."""
    source = GgufFile(files.path)
    held = source.config
    if held.qk_norm or held.biases or held.sliding_window or held.rope_scaling:
        raise NotMeasured("of GGUF files, only plain Llamas are given to it")
    config = transformers.LlamaConfig(
        vocab_size=held.vocab_size, hidden_size=held.hidden_size,
        intermediate_size=held.ffn_size, num_hidden_layers=held.layers,
        num_attention_heads=held.heads, num_key_value_heads=held.kv_heads,
        head_dim=held.head_dim, rms_norm_eps=held.norm_eps,
        rope_parameters={"rope_type": "default", "rope_theta": held.rope_theta},
        max_position_embeddings=held.context_length, tie_word_embeddings=held.tied_embeddings,
    )  # fmt: skip
    model = transformers.LlamaForCausalLM(config)
    tensors = {name: source.tensor(name) for name in source.names()}
    lacking, strange = model.load_state_dict(tensors, strict=False)
    if strange or set(lacking) - ({"lm_head.weight"} if held.tied_embeddings else set()):
        raise NotMeasured(f"its Llama has other tensors: {[*lacking, *strange][:3]}")
    return model.to(torch.bfloat16).eval()
