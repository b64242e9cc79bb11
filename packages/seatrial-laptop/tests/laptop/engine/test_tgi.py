from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from seatrial_base.errors import LocalError
from seatrial_laptop.engine.family import read_settings, tgi_settings
from seatrial_laptop.engine.settings import EngineSettings, WireFormat

if TYPE_CHECKING:
    from pathlib import Path

MODEL = {"HF_MODEL_ID": "m"}


def test_the_environment_becomes_settings() -> None:
    environment = {
        **MODEL,
        "MAX_BATCH_SIZE": "8",
        "MAX_CONCURRENT_REQUESTS": "64",
        "MAX_INPUT_TOKENS": "1000",
        "MAX_TOTAL_TOKENS": "2048",
        "MAX_BATCH_TOTAL_TOKENS": "16384",
        "MAX_BATCH_PREFILL_TOKENS": "4096",
    }
    assert tgi_settings(environment) == EngineSettings(
        wire_format=WireFormat.TGI,
        model_id="m",
        max_num_seqs=8,
        max_in_flight=64,
        max_input_tokens=1000,
        max_total_tokens=2048,
        batch_total_tokens=16384,
        prefill_tokens=4096,
        default_output_tokens=None,
    )


def test_without_a_batch_size_the_admitted_requests_are_the_bound() -> None:
    assert tgi_settings(MODEL).max_num_seqs == tgi_settings(MODEL).max_in_flight == 128


def test_max_input_length_is_an_alias() -> None:
    assert tgi_settings({**MODEL, "MAX_INPUT_LENGTH": "100"}).max_input_tokens == 100


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"HF_MODEL_ID": ""}, "HF_MODEL_ID: SEA605: HF_MODEL_ID must be set"),
        (
            {"MAX_INPUT_TOKENS": "2048", "MAX_TOTAL_TOKENS": "2048"},
            "SEA605: `max_input_tokens` must be < `max_total_tokens`: 2048 and 2048",
        ),
        (
            {"MAX_INPUT_TOKENS": "10", "MAX_INPUT_LENGTH": "10"},
            "SEA605: both `max_input_tokens` and `max_input_length` are set: set `max_input_tokens` alone",
        ),
        (
            {"MAX_TOTAL_TOKENS": "2049", "MAX_BATCH_TOTAL_TOKENS": "2048"},
            "SEA605: `max_total_tokens` must be <= `max_batch_total_tokens`: 2049 and 2048",
        ),
        (
            {"MAX_TOTAL_TOKENS": "100", "MAX_BATCH_TOTAL_TOKENS": "2048", "MAX_BATCH_PREFILL_TOKENS": "2049"},
            "SEA605: `max_batch_prefill_tokens` must be <= `max_batch_total_tokens`: 2049 and 2048",
        ),
        ({"MAX_BATCH_SIZE": "0"}, "MAX_BATCH_SIZE: SEA605: 0 must be at least 1"),
    ],
)
def test_what_the_launcher_refuses_is_refused(environment: dict[str, str], message: str) -> None:
    with pytest.raises(LocalError) as refused:
        tgi_settings({**MODEL, **environment})
    assert str(refused.value) == message


def test_the_image_tells_the_family(tmp_path: Path) -> None:
    (tmp_path / "serving.properties").write_text("option.model_id=lmi\n")
    lmi = read_settings("1.dkr/djl-inference:0.36.0-lmi27", {}, tmp_path)
    tgi = read_settings("1.dkr/huggingface-pytorch-tgi-inference:2.7.0-tgi3.3.6", {"HF_MODEL_ID": "tgi"}, tmp_path)
    vllm = read_settings("1.dkr/vllm:0.26.0-gpu-py312", {"SM_VLLM_MODEL": "vllm"}, tmp_path)
    assert (lmi.model_id, tgi.model_id, vllm.model_id) == ("lmi", "tgi", "vllm")


def test_an_unknown_image_is_named(tmp_path: Path) -> None:
    with pytest.raises(LocalError) as refused:
        read_settings("public.ecr.aws/sglang:1", {}, tmp_path)
    assert str(refused.value) == (
        "SEA605: the local engine can't stand for image public.ecr.aws/sglang:1: "
        "it knows djl-inference, *tgi-inference* and vllm"
    )
