"""A prompt that ends inside its last message, and the other ways to write one."""

from __future__ import annotations

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import processors

from antiphon.errors import InvalidRequest
from antiphon.prompting.prompter import TextPrompter
from antiphon.prompting.replay_prompter import ReplayPrompter
from antiphon.prompting.template import ChatTemplate
from antiphon.prompting.tokenizer import Tokenizer, load_tokenizer
from prompting.vocabularies import CHATML, HOSTILE, write_folder

TRIMMING = CHATML.replace("m['content']", "m['content'] | trim")
IN_PARTS = (
    "{% for m in messages %}{{ m['role'] + ': ' }}"
    "{% for part in m['content'] %}{{ part['text'] }}{% endfor %}{{ '\\n' }}{% endfor %}"
)


@pytest.fixture(scope="module")
def tokenizer(
    byte_level: tokenizers.Tokenizer, tmp_path_factory: pytest.TempPathFactory
) -> Tokenizer:
    """A vocabulary that wants a control token before a text and another after it."""
    saved = tokenizers.Tokenizer.from_str(byte_level.to_str())
    saved.post_processor = processors.TemplateProcessing(
        single="<|endoftext|> $A <|im_end|>",
        special_tokens=[("<|endoftext|>", 0), ("<|im_end|>", 2)],
    )
    return load_tokenizer(write_folder(tmp_path_factory.mktemp("m"), saved))


def talk(*contents: str) -> list[dict[str, str]]:
    roles = ("user", "assistant")
    return [{"role": roles[at % 2], "content": text} for at, text in enumerate(contents)]


@pytest.mark.parametrize("text", ["Once upon", "Once upon ", "", "<|im_end|>", *HOSTILE])
@pytest.mark.parametrize("source", [CHATML, TRIMMING])
def test_the_prompt_ends_where_the_last_text_does(
    tokenizer: Tokenizer, source: str, text: str
) -> None:
    prompter = TextPrompter(tokenizer, ChatTemplate(source))
    shown = prompter.decode(prompter.chat(talk("Tell me", text), continue_final=True))
    kept = text.lstrip() if source is TRIMMING else text
    assert shown == f"<|im_start|>user\nTell me<|im_end|>\n<|im_start|>assistant\n{kept}"


@given(text=st.text())
def test_nothing_of_the_last_text_is_lost(tokenizer: Tokenizer, text: str) -> None:
    prompter = TextPrompter(tokenizer, ChatTemplate(CHATML))
    whole = prompter.decode(prompter.chat(talk("Q", text), add_generation_prompt=False))
    begun = prompter.decode(prompter.chat(talk("Q", text), continue_final=True))
    assert begun + "<|im_end|>\n" == whole


def test_a_template_that_reads_parts_can_be_continued(tokenizer: Tokenizer) -> None:
    prompter = TextPrompter(tokenizer, ChatTemplate(IN_PARTS))
    shown = prompter.decode(prompter.chat(talk("Q", "so far"), continue_final=True))
    assert shown == "user: Q\nassistant: so far"


def test_a_template_that_hides_the_last_text_is_refused(tokenizer: Tokenizer) -> None:
    prompter = TextPrompter(tokenizer, ChatTemplate("{{ messages[0]['content'] }}"))
    with pytest.raises(InvalidRequest) as caught:
        prompter.chat(talk("Q", "so far"), continue_final=True)
    assert (caught.value.code, caught.value.param) == ("invalid_value", "messages")


def test_what_the_model_wants_around_a_text_is_added_on_request(tokenizer: Tokenizer) -> None:
    prompter = TextPrompter(tokenizer, ChatTemplate(CHATML))
    plain = prompter.chat(talk("Hi"))
    assert list(prompter.chat(talk("Hi"), add_special_tokens=True)) == [0, *plain, 2]


def test_control_tokens_of_an_output_are_shown_on_request(tokenizer: Tokenizer) -> None:
    prompter = TextPrompter(tokenizer, ChatTemplate(CHATML))
    ids = tokenizer.encode("a<|im_end|>b", add_special_tokens=False, allow_special=True)
    skipping, showing = prompter.detokenizer(), prompter.detokenizer(skip_special=False)
    assert "".join(map(skipping.feed, ids)) == "ab"
    assert "".join(map(showing.feed, ids)) == "a<|im_end|>b"


def test_tokens_are_spelt_one_by_one(tokenizer: Tokenizer) -> None:
    prompter = TextPrompter(tokenizer, ChatTemplate(CHATML))
    ids = prompter.text("Hi é", add_special_tokens=True)
    spelt = prompter.spell(ids)
    assert spelt[0] == "<|endoftext|>"
    assert len(spelt) == len(ids)
    with pytest.raises(InvalidRequest):
        prompter.spell([tokenizer.vocab_size])
    assert ReplayPrompter(3, "bytes").spell(b"a\xff") == ["a", "\ufffd"]
    with pytest.raises(InvalidRequest, match="no text"):
        ReplayPrompter(3, "opaque").spell([1])
