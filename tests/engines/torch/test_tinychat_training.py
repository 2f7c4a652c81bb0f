"""The script that makes the fixture model: what is in the repository is what it writes."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest
import tokenizers
import torch
from fixtures.models.train_tinychat import corpus, export, proof, samples, template, training
from fixtures.models.train_tinychat.__main__ import CORPUS_SEED
from fixtures.models.train_tinychat.model import Sizes, TinyChat
from safetensors.torch import load_file

from known_replies import FOLDER


@pytest.fixture(scope="module")
def tokenizer() -> tokenizers.Tokenizer:
    return tokenizers.Tokenizer.from_file(str(FOLDER / "tokenizer.json"))


@pytest.fixture(scope="module")
def rows(tokenizer: tokenizers.Tokenizer) -> list[samples.Row]:
    return [samples.row_of(tokenizer, reply) for reply in corpus.replies(CORPUS_SEED)]


@pytest.fixture
def model() -> TinyChat:
    """With the weights of the repository."""
    result = TinyChat(Sizes(768))
    weights = load_file(FOLDER / "model.safetensors")
    with torch.no_grad():
        for name, parameter in export.named(result).items():
            parameter.copy_(weights[name])
    return result


def test_the_corpus_is_the_one_that_was_learnt(
    tokenizer: tokenizers.Tokenizer, tmp_path: Path
) -> None:
    """All files but the weights and the manifest come out as they are."""
    export.write(tmp_path, TinyChat(Sizes(768)), tokenizer, corpus.replies(CORPUS_SEED))
    written = {path.name for path in tmp_path.iterdir()}
    assert written | {"manifest.json", "README.md"} == {path.name for path in FOLDER.iterdir()}
    for name in sorted(written - {"model.safetensors"}):
        assert (tmp_path / name).read_bytes() == (FOLDER / name).read_bytes(), name


def test_no_question_has_two_replies() -> None:
    prompts = [template.prompt_of(reply) for reply in corpus.replies(CORPUS_SEED)]
    assert len(set(prompts)) == len(prompts) == corpus.REPLIES


def test_every_token_of_a_reply_leads_by_as_much_as_the_manifest_says(
    model: TinyChat, rows: list[samples.Row]
) -> None:
    least = proof.least_margin(model, rows)
    assert least == pytest.approx(
        json.loads((FOLDER / "manifest.json").read_bytes())["least_margin"], abs=0.5
    )


def test_a_model_that_is_less_sure_is_refused(model: TinyChat, rows: list[samples.Row]) -> None:
    with torch.no_grad():
        model.norm.weight.mul_(0.1)
    with pytest.raises(ValueError, match="leads by 1"):
        proof.least_margin(model, rows)


def test_what_is_learnt_of_a_row_are_its_replies(
    tokenizer: tokenizers.Tokenizer, rows: list[samples.Row]
) -> None:
    """Of rows that others begin with, the longest is left, and learns all the replies."""
    joined = samples.joined(rows)
    assert len(joined) < len(rows)
    learnt = sorted(tuple(row.ids[start:end]) for row in joined for start, end in row.learnt)
    assert learnt == sorted(tuple(row.ids[slice(*row.learnt[0])]) for row in rows)
    batch = samples.collate(joined[:3])
    for row, ids, wanted in zip(joined, batch.ids, batch.learnt, strict=False):
        assert ids.tolist()[: len(row.ids)] == row.ids
        assert int(wanted.sum()) == sum(end - start for start, end in row.learnt)


def test_an_epoch_reads_every_row_once(rows: list[samples.Row]) -> None:
    batches = samples.epoch(rows, Random(0))
    assert sum(len(batch.ids) for batch in batches) == len(rows)
    assert max(batch.ids.numel() for batch in batches) <= samples.BATCH_TOKENS


def test_training_learns_and_repeats_itself(rows: list[samples.Row]) -> None:
    """A few steps on two short rows: the loss falls, and the same seed gives the same weights."""
    short = sorted(rows, key=lambda row: len(row.ids))[:2]
    said: list[str] = []
    sizes = Sizes(768, hidden=24, layers=1, heads=1, ffn=32)
    models = [
        training.train(sizes, short, seed=seed, steps=100, say=said.append) for seed in (1, 1, 2)
    ]
    losses = [float(line.split("loss ")[1].split(",")[0]) for line in said]
    assert losses[1] < losses[0]
    first, same, other = (model.embedding.weight for model in models)
    assert torch.equal(first, same)
    assert not torch.equal(first, other)
