from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from gguf import GGMLQuantizationType, GGUFReader

from seatrial_laptop.engine.weights import GgufType, Shape, quantize_file, weights_file

if TYPE_CHECKING:
    from pathlib import Path

TINY = Shape(hidden=32, layers=1, heads=2, kv_heads=1, intermediate=32, vocabulary=300)


def test_the_file_is_made_once_and_names_its_recipe(tmp_path: Path) -> None:
    first = weights_file(tmp_path, shape=TINY)
    stamp = first.stat().st_mtime_ns
    assert first.name == "random-llama-v2-32x1x2x1x32x300-seed0-f16.gguf"
    assert weights_file(tmp_path, shape=TINY) == first
    assert first.stat().st_mtime_ns == stamp


def test_equal_seeds_give_equal_bytes_and_others_do_not(tmp_path: Path) -> None:
    one, two = weights_file(tmp_path / "a", shape=TINY), weights_file(tmp_path / "b", shape=TINY)
    assert one.read_bytes() == two.read_bytes()
    assert one.read_bytes() != weights_file(tmp_path, shape=TINY, seed=1).read_bytes()


def test_racing_makers_leave_one_whole_file(tmp_path: Path) -> None:
    with ThreadPoolExecutor(2) as pool:
        made = list(pool.map(lambda _: weights_file(tmp_path, shape=TINY), range(2)))
    assert [path.name for path in tmp_path.iterdir()] == [made[0].name]
    assert made[0].read_bytes()[:4] == b"GGUF"


def stored_types(path: Path) -> dict[str, GGMLQuantizationType]:
    return {tensor.name: tensor.tensor_type for tensor in GGUFReader(path).tensors}


@pytest.mark.parametrize("kind", [GgufType.Q8_0, GgufType.Q4_0])
def test_a_quantized_file_keeps_embedding_output_and_norms(tmp_path: Path, kind: GgufType) -> None:
    half, narrow = (weights_file(tmp_path, shape=TINY, kind=each) for each in (GgufType.F16, kind))
    types = stored_types(narrow)
    assert types["blk.0.ffn_up.weight"] is GGMLQuantizationType[kind]
    assert types["token_embd.weight"] is types["output.weight"] is GGMLQuantizationType.F16
    assert types["blk.0.attn_norm.weight"] is types["output_norm.weight"] is GGMLQuantizationType.F32
    assert narrow.stat().st_size < half.stat().st_size


def test_a_file_that_is_quantized_again_has_the_same_metadata(tmp_path: Path) -> None:
    half = weights_file(tmp_path, shape=TINY)
    quantize_file(half, tmp_path / "q8.gguf", GgufType.Q8_0)
    before, after = GGUFReader(half), GGUFReader(tmp_path / "q8.gguf")
    assert {name: field.contents() for name, field in before.fields.items() if not name.startswith("GGUF.")} == {
        name: field.contents() for name, field in after.fields.items() if not name.startswith("GGUF.")
    }
    assert stored_types(tmp_path / "q8.gguf")["blk.0.ffn_up.weight"] is GGMLQuantizationType.Q8_0


def test_what_is_no_gguf_file_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "model.gguf").write_bytes(b"no")
    with pytest.raises(ValueError, match=r"model\.gguf is not a GGUF file"):
        quantize_file(tmp_path / "model.gguf", tmp_path / "out.gguf", GgufType.Q8_0)
    assert not (tmp_path / "out.gguf").exists()
