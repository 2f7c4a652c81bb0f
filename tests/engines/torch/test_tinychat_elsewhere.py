"""The fixture model in the library its layout comes from: the same prompts, the same replies."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from known_replies import FOLDER, REPLIES

TRIED = [name for number, name in enumerate(REPLIES) if number % 8 == 3]


@pytest.fixture(scope="module")
def library() -> Any:
    import transformers  # it takes seconds, so not where tests are collected

    return transformers


@pytest.fixture(scope="module")
def tokenizer(library: Any) -> Any:
    return library.AutoTokenizer.from_pretrained(FOLDER)


@pytest.fixture(scope="module")
def model(library: Any) -> Any:
    return library.AutoModelForCausalLM.from_pretrained(FOLDER, dtype=torch.float32)


def test_the_library_writes_the_same_prompts(tokenizer: Any) -> None:
    for known in REPLIES.values():
        rendered = tokenizer.apply_chat_template(
            known.messages,
            tools=known.tools,
            add_generation_prompt=True,
            tokenize=False,
            **known.template_kwargs,
        )
        assert rendered == known.prompt, known.name


@pytest.mark.parametrize("name", TRIED)
def test_the_library_gives_the_same_replies(tokenizer: Any, model: Any, name: str) -> None:
    known = REPLIES[name]
    prompt = tokenizer(known.prompt, return_tensors="pt", add_special_tokens=False)
    ids = model.generate(**prompt, max_new_tokens=400, do_sample=False)
    new = ids[0, prompt["input_ids"].shape[1] :]
    assert new[-1] == tokenizer.eos_token_id
    assert tokenizer.decode(new[:-1], skip_special_tokens=False) == known.reply
