from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from seatrial_base.errors import LocalError
from seatrial_laptop.engine import weights
from seatrial_laptop.engine.family import read_settings
from seatrial_laptop.engine.weights import MODEL_VARIABLE, Shape, served_weights

if TYPE_CHECKING:
    from pathlib import Path

LMI = "r/djl-inference:0.36.0"
TGI = "r/huggingface-pytorch-tgi-inference:3"
TINY = Shape(hidden=32, layers=1, heads=2, kv_heads=1, intermediate=32, vocabulary=300)


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(weights.SHAPES, "small", TINY)


@pytest.mark.parametrize(
    ("image", "environment", "told"),
    [
        (LMI, {"HF_MODEL_ID": "org/m"}, "GGUF F16 of random weights"),
        (LMI, {"HF_MODEL_ID": "org/m", "OPTION_QUANTIZE": "fp8"}, "GGUF Q8_0 of random weights, in place of fp8"),
        (LMI, {"HF_MODEL_ID": "org/m-AWQ"}, "GGUF Q4_0 of random weights, in place of awq"),
        (LMI, {"HF_MODEL_ID": "openai/gpt-oss-20b"}, "GGUF Q4_0 of random weights, in place of mxfp4"),
        (TGI, {"HF_MODEL_ID": "m", "HF_MODEL_QUANTIZE": "gptq"}, "GGUF Q4_0 of random weights, in place of gptq"),
        (
            LMI,
            {"HF_MODEL_ID": "m", "OPTION_QUANTIZE": "exl2"},
            "GGUF F16 of random weights; no GGUF type stands for exl2",
        ),
    ],
)
@pytest.mark.usefixtures("tiny")
def test_the_configuration_decides_how_the_weights_are_quantized(
    tmp_path: Path, image: str, environment: dict[str, str], told: str
) -> None:
    found = served_weights(read_settings(image, environment, tmp_path), tmp_path, tmp_path / "cache", {})
    assert (found.text, found.bytes) == (told, found.path.stat().st_size)
    assert found.gguf_type.lower() in found.path.name


@pytest.mark.parametrize(
    ("config", "quantization"),
    [
        ({}, ""),
        ({"quantization_config": {"quant_method": "awq", "bits": 4}}, "awq"),
        ({"quantization_config": {"quant_method": "hqq"}}, "hqq"),
        ([], ""),
    ],
)
def test_a_mounted_checkpoint_tells_its_quantization(tmp_path: Path, config: object, quantization: str) -> None:
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert read_settings(LMI, {"HF_MODEL_ID": "/opt/ml/model"}, tmp_path).quantization == quantization


def test_a_checkpoint_whose_config_is_no_json_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(LocalError, match="SEA605"):
        read_settings(LMI, {"HF_MODEL_ID": "/opt/ml/model"}, tmp_path)


def test_a_mounted_gguf_file_is_served_and_two_are_refused(tmp_path: Path) -> None:
    settings = read_settings(LMI, {"HF_MODEL_ID": "/opt/ml/model"}, tmp_path)
    (tmp_path / "a.gguf").write_bytes(b"GGUF")
    found = served_weights(settings, tmp_path, tmp_path, {})
    assert found.sentence == "weights: a.gguf, as it was mounted; 4 bytes (0.0 MiB)"
    (tmp_path / "b.gguf").write_bytes(b"GGUF")
    with pytest.raises(LocalError, match="SEA605"):
        served_weights(settings, tmp_path, tmp_path, {})


def test_an_unknown_random_model_is_refused(tmp_path: Path) -> None:
    settings = read_settings(LMI, {"HF_MODEL_ID": "m"}, tmp_path)
    with pytest.raises(LocalError, match="SEA605"):
        served_weights(settings, tmp_path, tmp_path, {MODEL_VARIABLE: "huge"})
