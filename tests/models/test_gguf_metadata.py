"""Metadata written by the ``gguf`` package is read back as it was, and damage is one clear line."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.errors import StartupError
from antiphon.models.files import ModelFiles
from antiphon.models.gguf_metadata import read_header, read_metadata


def write(path: Path, **values: Any) -> Path:
    writer = gguf.GGUFWriter(path, "llama")
    for key, value in values.items():
        kind = gguf.GGUFValueType.get_type(value)
        writer.add_key_value(key, value, kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return path


def test_every_scalar_type(tmp_path: Path) -> None:
    writer = gguf.GGUFWriter(tmp_path / "a.gguf", "llama")
    expected: dict[str, object] = {"general.architecture": "llama"}
    for name, value in {
        "uint8": 255,
        "int8": -128,
        "uint16": 65_535,
        "int16": -32_768,
        "uint32": 2**32 - 1,
        "int32": -(2**31),
        "uint64": 2**64 - 1,
        "int64": -(2**63),
        "float32": 0.5,
        "float64": 0.1,
        "bool": True,
        "string": "ü\0x",
    }.items():
        getattr(writer, f"add_{name}")(name, value)
        expected[name] = value
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    assert read_metadata(tmp_path / "a.gguf") == expected


@given(
    texts=st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1),
    numbers=st.lists(st.integers(-(2**31), 2**31 - 1), min_size=1),
)
def test_arrays(
    texts: list[str], numbers: list[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = write(tmp_path_factory.mktemp("gguf") / "a.gguf", texts=texts, numbers=numbers)
    metadata = read_metadata(path)
    assert metadata["texts"] == texts
    assert metadata["numbers"] == tuple(numbers)


def test_a_file_cut_anywhere_in_its_header_is_refused(tmp_path: Path) -> None:
    whole = write(tmp_path / "a.gguf", texts=["one", "two"], number=3, text="four").read_bytes()
    cut = tmp_path / "cut.gguf"
    for length in range(len(whole)):
        cut.write_bytes(whole[:length])
        with pytest.raises(StartupError, match=r"not a whole GGUF file|not a GGUF file"):
            read_metadata(cut)


@given(noise=st.binary(max_size=200))
def test_noise_after_the_magic_is_refused_or_read(
    noise: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("gguf") / "noise.gguf"
    path.write_bytes(b"GGUF\x03\x00\x00\x00" + noise)
    with suppress(StartupError):
        read_metadata(path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is not a whole GGUF file"),
        (b"PK\x03\x04" + bytes(40), "does not start with 'GGUF'"),
        (b"GGUF\x01\x00\x00\x00" + bytes(40), "is GGUF version 1; versions 2 and 3"),
        (b"GGUF\x00\x00\x00\x03" + bytes(40), "is a big-endian GGUF file"),
        (b"GGUF\x03\x00\x00\x00" + bytes(8) + b"\xff" * 8, "not a whole GGUF file"),
    ],
    ids=["empty", "zip", "version 1", "big-endian", "endless count"],
)
def test_other_files_are_refused(content: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(content)
    with pytest.raises(StartupError, match=words):
        read_metadata(path)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StartupError, match="cannot be read: No such file"):
        read_metadata(tmp_path / "none.gguf")


def with_tensors(path: Path, alignment: int | None = None) -> Path:
    writer = gguf.GGUFWriter(path, "llama")
    if alignment is not None:
        writer.add_custom_alignment(alignment)
    dice = np.random.default_rng(1)
    for number, kind in enumerate(("F32", "F16", "Q4_1", "Q8_0")):
        values = dice.standard_normal((3 + number, 32)).astype(np.float32)
        quantised = gguf.GGMLQuantizationType[kind]
        writer.add_tensor(
            f"t{number}", gguf.quants.quantize(values, quantised), raw_dtype=quantised
        )
    writer.add_tensor("one", np.arange(5, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.mark.parametrize("alignment", [None, 8, 256])
def test_tensors_lie_where_the_gguf_package_finds_them(
    alignment: int | None, tmp_path: Path
) -> None:
    path = with_tensors(tmp_path / "a.gguf", alignment)
    metadata, tensors = read_header(path)
    assert metadata == read_metadata(path)
    expected = gguf.GGUFReader(path).tensors
    assert [(one.name, one.kind, one.start) for one in tensors] == [
        (one.name, int(one.tensor_type), one.data_offset) for one in expected
    ]
    assert [one.shape for one in tensors] == [
        tuple(reversed(one.shape.tolist())) for one in expected
    ]


def test_a_list_of_tensors_cut_anywhere_is_refused(tmp_path: Path) -> None:
    path = with_tensors(tmp_path / "a.gguf")
    whole, cut = path.read_bytes(), tmp_path / "cut.gguf"
    first = min(one.start for one in read_header(path)[1])
    end = whole.rindex(b"one") + len(b"one") + 4 + 8 + 4 + 8
    assert end <= first
    for length in range(end):
        cut.write_bytes(whole[:length])
        with pytest.raises(StartupError, match=r"not a whole GGUF file|not a GGUF file"):
            read_header(cut)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"t1", b"t0"),
        (b"t1\x02\0\0\0", b"t1\x05\0\0\0"),
        (b"t1\x02\0\0\0", b"t1\0\0\0\0"),
        (b"alignment\x04\0\0\0\x08", b"alignment\x04\0\0\0\0"),
    ],
    ids=["a name twice", "five dimensions", "no dimension", "no alignment"],
)
def test_a_senseless_list_of_tensors_is_refused(old: bytes, new: bytes, tmp_path: Path) -> None:
    path = with_tensors(tmp_path / "a.gguf", alignment=8)
    content = path.read_bytes()
    assert content.count(old) == 1
    path.write_bytes(content.replace(old, new))
    with pytest.raises(StartupError, match="not a whole GGUF file"):
        read_header(path)


def test_the_default_model_says_what_it_is(default_model: ModelFiles) -> None:
    metadata = read_metadata(default_model.path)
    assert metadata["general.architecture"] == "llama"
    assert metadata["llama.context_length"] == 8192
    assert metadata["tokenizer.ggml.eos_token_id"] == 2
    tokens, merges = metadata["tokenizer.ggml.tokens"], metadata["tokenizer.ggml.merges"]
    assert isinstance(tokens, list)
    assert isinstance(merges, list)
    assert (len(tokens), len(merges)) == (49_152, 48_900)
    assert tokens[1:3] == ["<|im_start|>", "<|im_end|>"]
