"""What a configuration means is kept in another container, told as lost, or refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial_base.catalog.instances import find_instance
from seatrial_base.errors import RenderError
from seatrial_lint.convert import Converted, convert_config, default_dialect
from seatrial_lint.engines.config import ServingConfig
from seatrial_lint.engines.neutral import render_config
from seatrial_lint.engines.properties import write_env
from seatrial_lint.lint.lint import Given, lint_sources
from seatrial_lint.lint.read import read_content
from seatrial_lint.lint.source import ConfigSource

if TYPE_CHECKING:
    from seatrial_base.catalog.engine_versions import EngineName

NEWEST: dict[EngineName, str] = {"lmi": "lmi27", "tgi": "3.3.6", "vllm": "0.26.0", "sglang": "0.5.20"}
OLDEST: dict[EngineName, str] = {"lmi": "lmi9", "tgi": "0.9.3", "vllm": "0.8.4", "sglang": "0.5.5"}
LMI = "option.model_id=a/b\n"


def converted(text: str, to: EngineName, version: str = "", *, instance: str = "", name: str = "a.env") -> Converted:
    source = read_content(text.encode(), "serving.properties" if text.startswith("option.") else name)[0]
    assert isinstance(source, ConfigSource)
    number = version or NEWEST[to]
    return convert_config(
        source, default_dialect(to, number), number, instance=find_instance(instance) if instance else None
    )


def lost(done: Converted) -> list[str]:
    return [one.key for one in done.lost]


class TestDegree:
    def test_every_gpu_is_written_where_the_instance_type_tells_how_many(self) -> None:
        done = converted(LMI, "vllm", instance="ml.g5.12xlarge")
        assert (done.rendered.env["SM_VLLM_TENSOR_PARALLEL_SIZE"], lost(done)) == ("4", [])

    @pytest.mark.parametrize("to", ["vllm", "tgi", "sglang"])
    def test_every_gpu_is_told_where_nothing_does(self, to: EngineName) -> None:
        assert lost(converted(LMI, to)) == ["tensor_parallel_degree"]

    def test_one_gpu_is_written_for_lmi(self) -> None:
        assert converted("SM_VLLM_MODEL=a/b\n", "lmi").rendered.env["TENSOR_PARALLEL_DEGREE"] == "1"

    @pytest.mark.parametrize("text", ["option.tensor_parallel_degree=24\n", ""])
    def test_neuron_cores_are_no_gpus(self, text: str) -> None:
        done = converted(f"{LMI}option.entryPoint=djl_python.transformers_neuronx\n{text}", "vllm")
        assert "SM_VLLM_TENSOR_PARALLEL_SIZE" not in done.rendered.env
        assert any("it counts NeuronCores" in one.because for one in done.lost)


class TestSource:
    @pytest.mark.parametrize("to", ["vllm", "tgi", "sglang"])
    def test_s3_is_mounted_and_told(self, to: EngineName) -> None:
        done = converted("option.model_id=s3://bucket/llama/\noption.tensor_parallel_degree=1\n", to)
        assert "/opt/ml/model" in done.rendered.env.values()
        assert lost(done) == ["option.model_id"]

    def test_s3_stays_in_lmi(self) -> None:
        assert lost(converted("option.model_id=s3://bucket/llama/\n", "lmi")) == []

    def test_a_packaged_model_is_where_sagemaker_mounts_it(self) -> None:
        done = converted("option.tensor_parallel_degree=1\n", "tgi")
        assert (done.rendered.env["HF_MODEL_ID"], lost(done)) == ("/opt/ml/model", [])


@pytest.mark.parametrize(
    ("text", "to"),
    [
        (f"{LMI}option.entryPoint=model.py\n", "vllm"),
        (f"{LMI}option.engine=x\nengine=Rust\n", "tgi"),
        (f"{LMI}engine=OnnxRuntime\noption.task=text-embedding\n", "vllm"),
        (f"{LMI}option.task=text-embedding\n", "tgi"),
        ("option.rolling_batch=trtllm\noption.tensor_parallel_degree=4\n", "vllm"),
        ("option.model_id=s3://bucket/trtllm/llama/\noption.rolling_batch=trtllm\n", "vllm"),
    ],
)
def test_what_no_other_container_can_mean_is_refused(text: str, to: EngineName) -> None:
    with pytest.raises(RenderError, match="SEA387"):
        converted(text, to)


class TestVariables:
    TEXT = (
        "OPTION_ROLLING_BATCH=vllm\nTENSOR_PARALLEL_DEGREE=1\nHF_MODEL_ID=a/b\nVLLM_ATTENTION_BACKEND=FLASHINFER\n"
        "SERVING_FAIL_FAST=true\nHF_HOME=/tmp/hf\nHUGGING_FACE_HUB_TOKEN=$TOKEN\nMY_OWN=1\n"
    )

    @pytest.mark.parametrize(
        ("to", "kept", "gone"),
        [
            ("lmi", ["VLLM_ATTENTION_BACKEND", "SERVING_FAIL_FAST", "HF_HOME"], []),
            ("vllm", ["VLLM_ATTENTION_BACKEND", "HF_HOME"], ["SERVING_FAIL_FAST"]),
            ("tgi", ["HF_HOME"], ["VLLM_ATTENTION_BACKEND", "SERVING_FAIL_FAST"]),
        ],
    )
    def test_those_of_libraries_stay_and_each_other_has_a_reason(
        self, to: EngineName, kept: list[str], gone: list[str]
    ) -> None:
        done = converted(self.TEXT, to)
        beside = ("VLLM_ATTENTION_BACKEND", "SERVING_FAIL_FAST", "HF_HOME", "HUGGING_FACE_HUB_TOKEN", "MY_OWN")
        assert [name for name in done.rendered.env if name in beside] == kept
        assert lost(done) == [*gone, "HUGGING_FACE_HUB_TOKEN", "MY_OWN"]

    def test_a_packaged_file_holds_none(self) -> None:
        source = read_content(b"OPTION_DTYPE=fp16\nHF_MODEL_ID=a/b\nHF_HOME=/tmp\n", "a.env")[0]
        assert isinstance(source, ConfigSource)
        assert lost(convert_config(source, "lmi-async", "lmi27", form="properties")) == ["HF_HOME"]


def test_what_chooses_an_engine_of_lmi_is_no_loss() -> None:
    text = f"{LMI}engine=MPI\noption.rolling_batch=trtllm\noption.entryPoint=djl_python.tensorrt_llm\n"
    done = converted(f"{text}option.tensor_parallel_degree=1\n", "lmi", "lmi9")
    assert done.rendered.env["OPTION_ROLLING_BATCH"] == "lmi-dist"
    assert ("OPTION_ENTRYPOINT" in done.rendered.env, lost(done)) == (False, [])


@pytest.mark.parametrize(("version", "written"), [("0.8.4", ""), ("0.26.0", "true")])
def test_passed_flags_are_written_as_the_version_reads_them(version: str, written: str) -> None:
    text = f"{LMI}option.tensor_parallel_degree=1\noption.disable_log_stats=true\noption.enable_sleep_mode=false\n"
    done = converted(text, "vllm", version)
    assert done.rendered.env["SM_VLLM_DISABLE_LOG_STATS"] == written
    assert lost(done) == ["option.enable_sleep_mode"]


CONFIGS = st.builds(
    ServingConfig,
    model_id=st.sampled_from(["org/model", "s3://bucket/model/", None]),
    revision=st.sampled_from([None, "abc"]),
    tensor_parallel_degree=st.sampled_from([None, 1, 8]),
    dtype=st.sampled_from([None, "auto", "fp16", "bf16"]),
    quantization=st.sampled_from([None, "awq", "fp8"]),
    max_input_len=st.sampled_from([None, 512, 3000]),
    max_model_len=st.sampled_from([None, 1000, 8192]),
    max_num_seqs=st.sampled_from([None, 8]),
    max_num_batched_tokens=st.sampled_from([None, 500, 8192]),
    gpu_memory_utilization=st.sampled_from([None, 0.8]),
    prefix_caching=st.sampled_from([None, True, False]),
    chunked_prefill=st.sampled_from([None, True, False]),
    enforce_eager=st.sampled_from([None, True, False]),
    trust_remote_code=st.sampled_from([None, True]),
    predict_timeout_s=st.sampled_from([None, 300]),
    max_queued_requests=st.sampled_from([None, 100]),
)
ORIGINS = st.sampled_from([("lmi-async", "lmi27"), ("lmi-dist", "lmi9"), ("tgi", "3.3.6"), ("vllm", "0.26.0")])
TARGETS = st.sampled_from([*NEWEST.items(), *OLDEST.items()])


@settings(max_examples=60, deadline=None)
@given(CONFIGS, ORIGINS, TARGETS)
def test_what_is_written_passes_the_lint(
    config: ServingConfig, origin: tuple[str, str], target: tuple[EngineName, str]
) -> None:
    dialect, version = origin
    try:
        env = render_config(config, dialect, version, "env").env  # type: ignore[arg-type]  # names of dialects
        source = read_content(write_env(env).encode(), "container.env")[0]
        assert isinstance(source, ConfigSource)
        engine: EngineName = "lmi" if dialect.startswith("lmi") else dialect  # type: ignore[assignment]
        done = convert_config(source, default_dialect(*target), target[1], engine=engine, version=version)
    except RenderError:
        return
    report = lint_sources(read_content(write_env(done.rendered.env).encode(), "container.env"), Given(*target))
    assert [str(one) for one in report.findings if one.severity != "note"] == []


@pytest.mark.parametrize(
    ("text", "to", "version", "gone"),
    [
        ("SM_VLLM_MODEL=a/b\nSM_VLLM_QUANTIZATION=mxfp4\n", "vllm", "0.10.1", []),
        ("SM_VLLM_MODEL=a/b\nSM_VLLM_QUANTIZATION=mxfp4\n", "lmi", "", []),
        ("option.model_id=a/b\noption.quantize=mxfp4\noption.tensor_parallel_degree=1\n", "vllm", "", []),
        (
            "SM_VLLM_MODEL=a/b\nSM_VLLM_ENABLE_LORA=true\nSM_VLLM_FULLY_SHARDED_LORAS=true\n",
            "sglang",
            "",
            ["SHARDED_LORAS"],
        ),
        ("HF_MODEL_ID=a/b\nTENSOR_PARALLEL_DEGREE=1\nOPTION_MAX_NUM_SEQS=8\nMAX_BATCH_SIZE=8\n", "vllm", "", []),
        ("HF_MODEL_ID=a/b\nTENSOR_PARALLEL_DEGREE=1\nPREDICT_TIMEOUT=300\nMODEL_LOADING_TIMEOUT=900\n", "lmi", "", []),
    ],
)
def test_what_lint_takes_is_converted(text: str, to: EngineName, version: str, gone: list[str]) -> None:
    """What the linter calls right is no mistake for the conversion; a loss is told of the key that is lost."""
    left = lost(converted(text, to, version))
    assert [key.rpartition("FULLY_")[2] for key in left] == gone


def test_a_flag_that_an_old_image_passes_on_is_the_flag_that_was_meant() -> None:
    text = "SM_VLLM_MODEL=a/b\nSM_VLLM_ENABLE_AUTO_TOOL_CHOICE=true\nSM_VLLM_TOOL_CALL_PARSER=hermes\n"
    source = read_content(text.encode(), "a.env")[0]
    assert isinstance(source, ConfigSource)
    done = convert_config(source, default_dialect("lmi", None), engine="vllm", version="0.10.1")
    assert lost(done) == []
    assert done.rendered.env["OPTION_ENABLE_AUTO_TOOL_CHOICE"] == "true"
