"""Where templates are found, and with which variables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tokenizers

from antiphon.errors import StartupError
from antiphon.models.files import ModelFiles
from antiphon.prompting.template import load_template
from antiphon.prompting.template_source import read_source
from prompting.vocabularies import CHATML, write_folder, write_gguf


def test_gguf_metadata(byte_level: tokenizers.Tokenizer, tmp_path: Path) -> None:
    files = write_gguf(
        tmp_path / "a.gguf", byte_level, template=CHATML, bos_token_id=1, eos_token_id=2
    )
    text, variables = read_source(files)
    assert text == CHATML
    assert variables == {"bos_token": "<|im_start|>", "eos_token": "<|im_end|>"}
    template = load_template(files)
    assert template is not None
    assert template.render([{"role": "user", "content": "Hi"}]).startswith("<|im_start|>user")


def test_a_model_without_a_template(byte_level: tokenizers.Tokenizer, tmp_path: Path) -> None:
    assert load_template(write_gguf(tmp_path / "a.gguf", byte_level)) is None
    assert load_template(write_folder(tmp_path / "m", byte_level)) is None


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"chat_template": "one"}, "one"),
        ({"chat_template": [{"name": "tool_use", "template": "two"}]}, "two"),
        (
            {
                "chat_template": [
                    {"name": "tool_use", "template": "two"},
                    {"name": "default", "template": "one"},
                ]
            },
            "one",
        ),
        ({"chat_template": []}, None),
    ],
)
def test_the_tokenizer_config(
    config: dict[str, Any], expected: str | None, byte_level: tokenizers.Tokenizer, tmp_path: Path
) -> None:
    assert read_source(write_folder(tmp_path, byte_level, tokenizer_config=config)).text == expected


def test_a_file_of_its_own_comes_first(byte_level: tokenizers.Tokenizer, tmp_path: Path) -> None:
    files = write_folder(
        tmp_path,
        byte_level,
        chat_template="{{ bos_token }}own {{ eos_token }}{{ pad_token }}",
        tokenizer_config={
            "chat_template": "config",
            "eos_token": {"content": "</s>"},
            "pad_token": "<pad>",
        },
    )
    template = load_template(files)
    assert template is not None
    # The model has no BOS: it is nothing, and not undefined.
    assert template.render([]) == "own </s><pad>"


@pytest.mark.parametrize("value", [7, [{"name": "x"}], ["x"]])
def test_another_shape_is_refused(
    value: Any, byte_level: tokenizers.Tokenizer, tmp_path: Path
) -> None:
    files = write_folder(tmp_path, byte_level, tokenizer_config={"chat_template": value})
    with pytest.raises(StartupError, match="chat_template is neither a text nor a list"):
        read_source(files)


def test_a_template_that_is_not_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "chat_template.jinja").write_bytes(b"\xff\xfe")
    with pytest.raises(StartupError, match=r"chat_template\.jinja cannot be read"):
        read_source(ModelFiles("m", "hf", tmp_path))


def test_a_broken_tokenizer_config_is_refused(tmp_path: Path) -> None:
    (tmp_path / "tokenizer_config.json").write_text("[]")
    with pytest.raises(StartupError, match=r"tokenizer_config\.json does not hold a JSON object"):
        read_source(ModelFiles("m", "hf", tmp_path))
