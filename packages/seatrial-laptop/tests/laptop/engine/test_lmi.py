from __future__ import annotations

import pytest

from seatrial_base.errors import LocalError
from seatrial_laptop.engine.family import UNLIMITED, djl_minor, lmi_settings, options_of_environment
from seatrial_laptop.engine.settings import EngineSettings, WireFormat

LMI_27 = "763104351884.dkr.ecr.us-east-1.amazonaws.com/djl-inference:0.36.0-lmi27.0.0-cu130"
LMI_15 = "763104351884.dkr.ecr.us-east-1.amazonaws.com/djl-inference:0.33.0-lmi15.0.0-cu128"
ASYNC = {
    "engine": "Python",
    "option.model_id": "Qwen/Qwen3-8B",
    "option.async_mode": "true",
    "option.rolling_batch": "disable",
    "option.entryPoint": "djl_python.lmi_vllm.vllm_async_service",
}


def settings(
    properties: dict[str, str], environment: dict[str, str] | None = None, image: str = LMI_27
) -> EngineSettings:
    return lmi_settings(image, environment or {}, {"option.model_id": "m", **properties})


def test_the_limits_of_the_async_form_become_settings() -> None:
    limits = {
        "option.max_rolling_batch_size": "8",
        "option.max_model_len": "4096",
        "option.max_rolling_batch_prefill_tokens": "2048",
        "job_queue_size": "10",
    }
    assert lmi_settings(LMI_27, {}, {**ASYNC, **limits}) == EngineSettings(
        wire_format=WireFormat.LMI_ASYNC,
        model_id="Qwen/Qwen3-8B",
        max_num_seqs=8,
        max_in_flight=UNLIMITED,  # DJL's queue of jobs is empty: each request is handed on at once
        max_input_tokens=4095,
        max_total_tokens=4096,
        batch_total_tokens=262_144,
        prefill_tokens=2048,
        default_output_tokens=30,
    )


def test_the_rolling_batch_refuses_what_its_queue_does_not_hold() -> None:
    rolling = {"option.rolling_batch": "vllm", "option.max_rolling_batch_size": "8", "job_queue_size": "10"}
    assert settings(rolling).max_in_flight == 18


@pytest.mark.parametrize(
    ("image", "rolling_batch", "wire_format", "max_num_seqs"),
    [
        (LMI_27, "auto", WireFormat.LMI_ASYNC, 32),
        (LMI_15, "auto", WireFormat.LMI_ROLLING_BATCH, 256),
        (LMI_27, "vllm", WireFormat.LMI_ROLLING_BATCH, 256),
        (LMI_27, "lmi-dist", WireFormat.LMI_ROLLING_BATCH, 256),
    ],
)
def test_auto_means_async_since_djl_0_35_and_each_form_has_its_default_batch(
    image: str, rolling_batch: str, wire_format: WireFormat, max_num_seqs: int
) -> None:
    found = settings({"option.rolling_batch": rolling_batch}, image=image)
    assert (found.wire_format, found.max_num_seqs) == (wire_format, max_num_seqs)


def test_serving_properties_wins_over_the_environment() -> None:
    environment = {"HF_MODEL_ID": "from/env", "OPTION_MAX_ROLLING_BATCH_SIZE": "4", "OPTION_MAX_MODEL_LEN": "1024"}
    found = lmi_settings(LMI_27, environment, {"option.max_rolling_batch_size": "9"})
    assert (found.model_id, found.max_num_seqs, found.max_total_tokens) == ("from/env", 9, 1024)


def test_the_environment_is_read_under_the_names_that_the_entrypoint_gives_it() -> None:
    environment = {
        "OPTION_DTYPE": "bf16",
        "OPTION_pythonExecutable": "/usr/bin/python",
        "OPTION_ENTRYPOINT": "x.y",
        "SERVING_JOB_QUEUE_SIZE": "7",
        "MAX_BATCH_PREFILL_TOKENS": "512",
        "UNRELATED": "1",
    }
    assert options_of_environment(environment) == {
        "option.dtype": "bf16",
        "option.pythonExecutable": "/usr/bin/python",
        "option.entryPoint": "x.y",
        "job_queue_size": "7",
        "option.max_rolling_batch_prefill_tokens": "512",
    }


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        (
            {"option.dtype": "bfloat16"},
            "option.dtype: SEA605: 'bfloat16' is not one of auto, fp32, fp16, bf16, int8",
        ),
        (
            {"option.max_rolling_batch_size": "many"},
            "option.max_rolling_batch_size: SEA605: 'many' is not a whole number",
        ),
        ({"option.max_rolling_batch_size": "0"}, "option.max_rolling_batch_size: SEA605: 0 must be at least 1"),
        ({"option.max_model_len": "4096.0"}, "option.max_model_len: SEA605: '4096.0' is not a whole number"),
        (
            {"option.tensor_parallel_degree": "all"},
            "option.tensor_parallel_degree: SEA605: 'all' is not a whole number",
        ),
        (
            {"option.gpu_memory_utilization": "90"},
            "option.gpu_memory_utilization: SEA605: 90.0 must be above 0 and at most 1",
        ),
        (
            {"option.max_num_seqs": "8"},
            "option.max_num_seqs: SEA605: conflicts with option.max_rolling_batch_size, which LMI always sets: "
            "write option.max_rolling_batch_size alone",
        ),
        (
            {"option.tensor_parallel_size": "8"},
            "option.tensor_parallel_size: SEA605: conflicts with option.tensor_parallel_degree, which LMI always sets: "
            "write option.tensor_parallel_degree alone",
        ),
        (
            {"option.rolling_batch": "disable"},
            "option.rolling_batch: SEA605: disable without option.async_mode=true loads a text model through "
            "Hugging Face Accelerate: write option.async_mode=true as well",
        ),
        (
            {"option.rolling_batch": "scheduler"},
            "option.rolling_batch: SEA605: 'scheduler' is not one of auto, disable, vllm, trtllm, lmi-dist",
        ),
        (
            {"option.rolling_batch": "vllm", "option.async_mode": "true"},
            "option.rolling_batch: SEA605: excludes option.async_mode=true: 'vllm'",
        ),
        ({"engine": "MPI"}, "engine: SEA605: engine 'MPI' is not an engine of this image: write engine=Python"),
        (
            {"option.model_id": ""},
            "SEA605: no model is set: set option.model_id or the environment's HF_MODEL_ID",
        ),
        (
            {"option.max_rolling_batch_size": "64", "option.max_rolling_batch_prefill_tokens": "63"},
            "option.max_rolling_batch_prefill_tokens: SEA605: max_num_batched_tokens (63) must be greater than or "
            "equal to max_num_seqs (64)",
        ),
        (
            {"option.max_model_len": "262145"},
            "option.max_model_len: SEA605: 262145 tokens exceed the 262144 of the local engine's KV cache",
        ),
    ],
)
def test_what_the_real_container_refuses_is_refused(properties: dict[str, str], message: str) -> None:
    with pytest.raises(LocalError) as refused:
        settings(properties)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    "properties",
    [
        {"option.max_rolling_batch_size": "64", "option.max_rolling_batch_prefill_tokens": "64"},
        {"option.max_model_len": "262144"},
        {"option.gpu_memory_utilization": "1"},
        {"option.tensor_parallel_degree": "max"},
        {"option.dtype": "auto"},
    ],
)
def test_the_bounds_themselves_are_allowed(properties: dict[str, str]) -> None:
    assert settings(properties).model_id == "m"


def test_the_async_form_needs_its_entry_point_before_djl_0_35() -> None:
    async_form = {"option.async_mode": "true", "option.rolling_batch": "disable"}
    with pytest.raises(LocalError, match="vllm_async_service in this image"):
        settings(async_form, image=LMI_15)
    assert settings(async_form).wire_format is WireFormat.LMI_ASYNC
    assert settings({**ASYNC}, image=LMI_15).wire_format is WireFormat.LMI_ASYNC


@pytest.mark.parametrize(("max_model_len", "slots"), [(512, 256), (1024, 256), (4096, 64), (262_144, 1)])
def test_as_many_sequences_are_batched_as_the_kv_cache_holds_of_the_longest_and_256_at_most(
    max_model_len: int, slots: int
) -> None:
    asked = {"option.max_rolling_batch_size": "257", "option.max_model_len": f"{max_model_len}"}
    assert settings(asked).slots == slots


@pytest.mark.parametrize(("image", "minor"), [(LMI_15, 33), (LMI_27, 36), ("r/djl-inference@sha256:00", 36)])
def test_the_tag_tells_the_version_of_djl(image: str, minor: int) -> None:
    assert djl_minor(image) == minor
