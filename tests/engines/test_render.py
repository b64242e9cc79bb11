from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pytest

from seatrial.documents.plan import Decision
from seatrial.engines.render import render_plan
from seatrial.engines.rendered import rendered_files, write_config
from seatrial_base.catalog.engine_options import reserved_names
from seatrial_base.errors import RenderError, SpecError
from seatrial_lint.engines.properties import parse_properties

if TYPE_CHECKING:
    from seatrial.documents.plan import Plan
    from seatrial.specs.load import LoadedSpec

GOLDEN = Path(__file__).parent / "golden"
S3_MODEL = "s3_uri: s3://weights/llama/\n  trust_remote_code: true"
HUB_MODEL = "hub_id: org/model\n  revision: abc123\n  trust_remote_code: true"
EXTRA = "serving: {overrides: {extra: {gpu_memory_utilization: 0.9, enable_prefix_caching: true}}}\n"
SECRET = "hub_id: org/model\n  hub_token_secret: seatrial/hub-token\n  trust_remote_code: true"


class Loaded(Protocol):
    def __call__(self, extra: str = ..., *, model: str = ..., isolated: bool = ...) -> LoadedSpec: ...


class MakePlan(Protocol):
    def __call__(
        self, engine: str = ..., *, max_num_batched_tokens: int = ..., dtype: str = ..., quantization: str | None = ...
    ) -> Plan: ...


def golden(name: str) -> str:
    return (GOLDEN / name).read_text()


@pytest.mark.parametrize(
    ("engine", "model", "file", "expected"),
    [
        ("lmi", "hub_id: org/model\n  revision: abc123", "serving.properties", "lmi.serving.properties"),
        ("lmi", "s3_uri: s3://weights/llama/", "container.env", "lmi.container.env"),
        ("tgi", SECRET, "container.env", "tgi.container.env"),
    ],
)
def test_the_rendered_text_is_the_golden_file(
    engine: str, model: str, file: str, expected: str, loaded: Loaded, make_plan: MakePlan
) -> None:
    config = render_plan(loaded(EXTRA, model=model), make_plan(engine))
    assert rendered_files(config)[file] == golden(expected)


def test_quantized_weights_have_no_dtype_in_tgi(loaded: Loaded, make_plan: MakePlan) -> None:
    config = render_plan(loaded(), make_plan("tgi", quantization="awq"))  # TGI: "Only 1 can be set"
    assert rendered_files(config)["container.env"] == golden("tgi.quantized.container.env")


@pytest.mark.parametrize(
    ("engine", "written"),
    [
        ("lmi", "option.enable_expert_parallel=true"),
        ("vllm", "SM_VLLM_ENABLE_EXPERT_PARALLEL=true"),
        ("sglang", "SM_SGLANG_EP_SIZE=8"),
    ],
)
def test_experts_that_the_plan_deals_out_are_an_option(
    engine: str, written: str, loaded: Loaded, make_plan: MakePlan
) -> None:
    plan = make_plan(engine)
    dealt = plan.model_copy(update={"expert_parallel_degree": Decision(value=8, because="It starts only so.")})
    texts = ["".join(rendered_files(render_plan(loaded(), each)).values()) for each in (plan, dealt)]
    assert [written in text for text in texts] == [False, True]


@pytest.mark.parametrize(("engine", "model"), [("lmi", HUB_MODEL), ("lmi", S3_MODEL), ("tgi", HUB_MODEL)])
def test_no_extra_option_can_write_a_rendered_key_again(
    engine: str, model: str, loaded: Loaded, make_plan: MakePlan
) -> None:
    config = render_plan(loaded(model=model), make_plan(engine, quantization="awq"))
    keys = [*config.container_env, *parse_properties(config.files.get("serving.properties", ""))]
    prefix = re.compile("^(option[._]|serving_)")
    names = {prefix.sub("", key.lower()) for key in keys}
    assert len(names) > 8
    assert names - set(reserved_names("lmi" if engine == "lmi" else "tgi")) == set()


class TestLmi:
    def test_a_hub_model_is_configured_by_one_packaged_file_and_no_environment(
        self, loaded: Loaded, make_plan: MakePlan
    ) -> None:
        config = render_plan(loaded(), make_plan())
        assert list(config.files) == ["serving.properties"]
        assert config.container_env == {}
        assert config.weights_s3_uri is None

    def test_mounted_weights_are_configured_by_the_environment_and_no_file(
        self, loaded: Loaded, make_plan: MakePlan
    ) -> None:
        config = render_plan(loaded(model=S3_MODEL, isolated=True), make_plan())
        assert config.files == {}
        assert config.container_env["HF_MODEL_ID"] == "/opt/ml/model"
        assert config.weights_s3_uri == "s3://weights/llama/"
        assert config.isolated

    def test_the_file_reads_back_with_the_planned_values(self, loaded: Loaded, make_plan: MakePlan) -> None:
        values = parse_properties(render_plan(loaded(EXTRA), make_plan()).files["serving.properties"])
        assert values["option.max_rolling_batch_size"] == "64"
        assert values["option.tensor_parallel_degree"] == "4"
        assert values["option.gpu_memory_utilization"] == "0.9"
        assert values["option.enable_prefix_caching"] == "true"

    def test_awkward_values_read_back_as_they_were_written(self, loaded: Loaded, make_plan: MakePlan) -> None:
        spec = 'serving: {overrides: {extra: {chat_template: " a\\\\b\\n# é=\\u2028😀"}}}\n'
        values = parse_properties(render_plan(loaded(spec), make_plan()).files["serving.properties"])
        assert values["option.chat_template"] == " a\\b\n# é=\u2028😀"

    @pytest.mark.parametrize("name", ["max_num_seqs", "tensor_parallel_size", "hf_token", "Async_Mode"])
    def test_an_extra_option_that_the_plan_decides_is_refused(
        self, name: str, loaded: Loaded, make_plan: MakePlan
    ) -> None:
        spec = loaded(f"serving: {{overrides: {{extra: {{{name}: x}}}}}}\n")
        with pytest.raises(RenderError, match=rf"extra\.{name}: SEA304: {name} is decided by the plan\n  hint: set "):
            render_plan(spec, make_plan())

    @pytest.mark.parametrize("name", ["model_loading_timeout", "predict_timeout"])
    def test_an_extra_option_that_no_field_decides_is_to_be_left_out(
        self, name: str, loaded: Loaded, make_plan: MakePlan
    ) -> None:
        spec = loaded(f"serving: {{overrides: {{extra: {{{name}: 3}}}}}}\n")
        with pytest.raises(RenderError) as caught:
            render_plan(spec, make_plan())
        assert str(caught.value).endswith(
            f"chat.yaml:6: serving.overrides.extra.{name}: SEA304: {name} is decided by the plan\n  hint: leave it out"
        )

    def test_one_option_in_two_spellings_is_refused(self, loaded: Loaded, make_plan: MakePlan) -> None:
        spec = loaded("serving: {overrides: {extra: {max_loras: 3, MAX_LORAS: 4}}}\n")
        with pytest.raises(RenderError) as caught:
            render_plan(spec, make_plan())
        assert str(caught.value).endswith(
            "chat.yaml:6: serving.overrides.extra.MAX_LORAS: SEA304: MAX_LORAS and max_loras are one option\n"
            "  hint: keep one of them"
        )

    def test_in_the_environment_a_mixed_case_option_keeps_its_case(self, loaded: Loaded, make_plan: MakePlan) -> None:
        spec = loaded("serving: {overrides: {extra: {pythonExecutable: p, max_loras: 3}}}\n", model=S3_MODEL)
        env = render_plan(spec, make_plan()).container_env
        assert (env["OPTION_pythonExecutable"], env["OPTION_MAX_LORAS"]) == ("p", "3")

    def test_an_extra_option_can_not_smuggle_a_line(self, loaded: Loaded) -> None:
        with pytest.raises(SpecError, match=r"SEA118: the text holds U\+000A"):
            loaded('serving: {overrides: {extra: {"a=1\\nengine": x}}}\n')


class TestTgi:
    def test_prompt_and_total_leave_room_for_the_output(self, loaded: Loaded, make_plan: MakePlan) -> None:
        env = render_plan(loaded(), make_plan("tgi")).container_env
        assert env["MAX_INPUT_TOKENS"] == str(512 - 128)
        assert env["MAX_TOTAL_TOKENS"] == "512"

    def test_running_and_waiting_requests_are_admitted(self, loaded: Loaded, make_plan: MakePlan) -> None:
        assert render_plan(loaded(), make_plan("tgi")).container_env["MAX_CONCURRENT_REQUESTS"] == str(64 + 100)

    @pytest.mark.parametrize(("dtype", "expected"), [("fp16", "float16"), ("bf16", "bfloat16"), ("auto", None)])
    def test_types_are_spelled_as_tgi_spells_them(
        self, dtype: str, expected: str | None, loaded: Loaded, make_plan: MakePlan
    ) -> None:
        assert render_plan(loaded(), make_plan("tgi", dtype=dtype)).container_env.get("DTYPE") == expected

    def test_fewer_prefill_tokens_than_the_longest_prompt_are_refused(
        self, loaded: Loaded, make_plan: MakePlan
    ) -> None:
        render_plan(loaded(), make_plan("tgi", max_num_batched_tokens=384))
        with pytest.raises(RenderError, match="SEA305: 383 prefill tokens are below the longest prompt, 384"):
            render_plan(loaded(), make_plan("tgi", max_num_batched_tokens=383))

    def test_a_line_end_in_the_environment_is_refused(self, loaded: Loaded, make_plan: MakePlan) -> None:
        with pytest.raises(RenderError, match="SEA302: an environment variable holds one line"):
            render_plan(loaded('serving: {overrides: {extra: {x: "a\\nb"}}}\n'), make_plan("tgi"))


class TestEnvironmentLimits:
    def test_1024_characters_pass_and_1025_do_not(self, loaded: Loaded, make_plan: MakePlan) -> None:
        render_plan(loaded(f"serving: {{overrides: {{extra: {{x: {'a' * 1024}}}}}}}\n"), make_plan("tgi"))
        with pytest.raises(RenderError, match="X: SEA302: the value has 1025 characters; the limit is 1024"):
            render_plan(loaded(f"serving: {{overrides: {{extra: {{x: {'a' * 1025}}}}}}}\n"), make_plan("tgi"))

    def test_100_variables_pass_and_101_do_not(self, loaded: Loaded, make_plan: MakePlan) -> None:
        def extra(count: int) -> str:
            names = ", ".join(f"x{i}: 1" for i in range(count))
            return f"serving: {{overrides: {{extra: {{{names}}}}}}}\n"

        fixed = len(render_plan(loaded(), make_plan("tgi")).container_env)
        assert len(render_plan(loaded(extra(100 - fixed)), make_plan("tgi")).container_env) == 100
        with pytest.raises(RenderError, match="SEA302: 101 environment variables exceed 100"):
            render_plan(loaded(extra(101 - fixed)), make_plan("tgi"))

    def test_the_total_is_bounded(self, loaded: Loaded, make_plan: MakePlan) -> None:
        names = ", ".join(f"x{i}: {'a' * 1000}" for i in range(33))
        with pytest.raises(RenderError, match=r"SEA302: the environment's \d+ bytes exceed 32768"):
            render_plan(loaded(f"serving: {{overrides: {{extra: {{{names}}}}}}}\n"), make_plan("tgi"))


def test_a_secret_is_a_reference_everywhere(loaded: Loaded, make_plan: MakePlan) -> None:
    config = render_plan(loaded(model=SECRET), make_plan("tgi"))
    assert config.secret_env == {"HF_TOKEN": "seatrial/hub-token"}
    assert "HF_TOKEN" not in config.container_env
    assert "HF_TOKEN=(from Secrets Manager: seatrial/hub-token)\n" in rendered_files(config)["container.env"]


class TestWriting:
    def test_to_a_new_folder(self, loaded: Loaded, make_plan: MakePlan, tmp_path: Path) -> None:
        config = render_plan(loaded(), make_plan())
        assert write_config(config, tmp_path / "a" / "b") == (tmp_path / "a" / "b" / "serving.properties",)
        assert (tmp_path / "a" / "b" / "serving.properties").read_text() == config.files["serving.properties"]

    def test_a_name_that_is_too_long_is_said(self, loaded: Loaded, make_plan: MakePlan, tmp_path: Path) -> None:
        folder = tmp_path / ("x" * 300)
        with pytest.raises(RenderError) as caught:
            write_config(render_plan(loaded(), make_plan()), folder)
        assert str(caught.value) == f"{folder.as_posix()}: SEA301: can't be written: File name too long"

    def test_a_folder_that_holds_something_is_left_alone(
        self, loaded: Loaded, make_plan: MakePlan, tmp_path: Path
    ) -> None:
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "mine").write_text("x")
        with pytest.raises(RenderError, match="SEA301: the folder is not empty"):
            write_config(render_plan(loaded(), make_plan()), tmp_path / "out")
        assert [file.name for file in (tmp_path / "out").iterdir()] == ["mine"]
