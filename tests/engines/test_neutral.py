from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from seatrial_base.errors import RenderError
from seatrial_lint.engines.config import ServingConfig, SpeculativeDecoding
from seatrial_lint.engines.engine_options import Adapter, DynamicBatching, Lora, RopeScaling
from seatrial_lint.engines.neutral import Form, Rendered, render_config
from seatrial_lint.engines.parse import parse
from seatrial_lint.engines.properties import parse_properties, write_env
from tests.engines.features import FEATURES, PLAIN

if TYPE_CHECKING:
    from seatrial_base.catalog.engine_versions import DialectName

GOLDEN = Path(__file__).parent / "golden"


def form_of(dialect: DialectName) -> Form:
    return "properties" if dialect.startswith("lmi") else "env"


def text_of(rendered: Rendered) -> str:
    notes = "".join(f"# note: {note}\n" for note in rendered.notes)
    return "".join(rendered.files.values()) + write_env(rendered.env) + notes


@pytest.mark.parametrize(("name", "dialect", "version", "config"), FEATURES, ids=[feature[0] for feature in FEATURES])
def test_each_feature_renders_as_its_golden_file(
    name: str, dialect: DialectName, version: str, config: ServingConfig
) -> None:
    rendered = render_config(config, dialect, version, form_of(dialect))
    assert text_of(rendered) == (GOLDEN / "features" / name).read_text()


@pytest.mark.parametrize(("name", "dialect", "version", "config"), FEATURES, ids=[feature[0] for feature in FEATURES])
def test_each_golden_file_reads_back_in_the_engine_s_own_syntax(
    name: str, dialect: DialectName, version: str, config: ServingConfig
) -> None:
    text = (GOLDEN / "features" / name).read_text()
    parsed = parse(dialect, version, properties=text, env=None if dialect.startswith("lmi") else text)
    assert parsed.unknown == ()
    assert parsed.config == config


def render(
    config: ServingConfig, dialect: DialectName = "lmi-async", version: str = "lmi27", form: Form = "env"
) -> Rendered:
    return render_config(config, dialect, version, form)


class TestForms:
    def test_a_file_says_everything_and_the_environment_nothing(self) -> None:
        rendered = render(PLAIN, form="properties")
        assert rendered.env == {}
        assert parse_properties(rendered.files["serving.properties"])["option.model_id"] == "org/model"

    def test_the_environment_says_everything_and_there_is_no_file(self) -> None:
        rendered = render(PLAIN, form="env")
        assert rendered.files == {}
        assert rendered.env["HF_MODEL_ID"] == "org/model"

    def test_both_never_name_the_model_twice_because_the_container_would_load_two(self) -> None:
        rendered = render(PLAIN, form="both")
        assert parse_properties(rendered.files["serving.properties"])["option.model_id"] == "org/model"
        assert {"HF_MODEL_ID", "OPTION_MODEL_ID"} & set(rendered.env) == set()
        assert rendered.env["OPTION_MAX_MODEL_LEN"] == "4096"

    def test_both_say_the_same(self) -> None:
        rendered = render(PLAIN, form="both")
        in_file = parse("lmi-async", "lmi27", properties=rendered.files["serving.properties"]).config
        in_env = parse("lmi-async", "lmi27", env=rendered.env).config
        assert in_env == in_file.model_copy(update={"model_id": None})

    def test_what_a_variable_can_not_hold_stays_in_the_file(self) -> None:
        config = PLAIN.model_copy(update={"extra": {"chat_template": "x" * 1025, "system": "a\nb"}})
        rendered = render(config, form="both")
        assert "option.chat_template" in parse_properties(rendered.files["serving.properties"])
        assert {"OPTION_CHAT_TEMPLATE", "OPTION_SYSTEM"} & set(rendered.env) == set()

    @pytest.mark.parametrize("form", ["properties", "both"])
    def test_only_lmi_reads_a_properties_file(self, form: Form) -> None:
        with pytest.raises(RenderError) as caught:
            render(PLAIN, "vllm", "0.26.0", form)
        assert str(caught.value) == (
            "form: SEA310: vLLM 0.26.0 reads no serving.properties\n  hint: render the environment (form env)"
        )

    def test_an_lmi_that_takes_its_engine_from_the_file_alone_can_not_be_told_by_the_environment(self) -> None:
        render(PLAIN.model_copy(update={"max_model_len": None}), "lmi-dist", "0.27.0", "env")
        with pytest.raises(RenderError) as caught:
            render(PLAIN.model_copy(update={"max_model_len": None}), "lmi-dist", "0.26.0", "env")
        assert str(caught.value) == (
            "form: SEA310: lmi-dist on LMI 8 can't set its engine through the environment\n"
            "  hint: render serving.properties (form properties), or use LMI 9 or newer"
        )


class TestVersions:
    def test_a_dialect_that_is_gone_says_what_there_is(self) -> None:
        with pytest.raises(RenderError) as caught:
            render(PLAIN, "lmi-dist", "lmi15")
        assert str(caught.value) == (
            "SEA307: lmi-dist does not exist in LMI 15\n"
            "  hint: it exists from DJL 0.23 to LMI 14; "
            "LMI 15 has lmi-async, lmi-vllm, lmi-trtllm, lmi-neuronx, lmi-python"
        )

    def test_a_text_that_is_no_version(self) -> None:
        with pytest.raises(RenderError) as caught:
            render(PLAIN, "tgi", "newest")
        assert str(caught.value) == (
            "SEA307: 'newest' is not a version of tgi\n"
            "  hint: write an LMI number (lmi27), a DJL version (0.25.0) or an engine version (3.3.6)"
        )

    def test_the_last_image_of_a_frozen_batcher_is_told(self) -> None:
        config = ServingConfig(model_id="org/model")
        assert render(config, "lmi-trtllm", "lmi15").notes == ()
        assert [str(note) for note in render(config, "lmi-trtllm", "lmi16").notes] == [
            "No image of TensorRT-LLM, rolling batch was published after LMI 15."
        ]

    @pytest.mark.parametrize(
        ("version", "name"),
        [("1.4.5", "MAX_INPUT_LENGTH"), ("2.0.0", "MAX_INPUT_TOKENS"), ("3.3.6", "MAX_INPUT_TOKENS")],
    )
    def test_tgi_renamed_the_longest_prompt_in_2_0(self, version: str, name: str) -> None:
        env = render(ServingConfig(max_input_len=100), "tgi", version).env
        assert env == {name: "100"}

    def test_tgi_bounds_the_sequences_of_a_batch_since_1_4_1(self) -> None:
        assert render(ServingConfig(max_num_seqs=8), "tgi", "1.4.1").env == {"MAX_BATCH_SIZE": "8"}
        older = render(ServingConfig(max_num_seqs=8), "tgi", "1.4.0")
        assert older.env == {}
        assert [str(note) for note in older.notes] == [
            "max_num_seqs: Before TGI 1.4.1 only tokens bound a batch: see max_batch_total_tokens."
        ]

    @pytest.mark.parametrize(
        ("version", "env"),
        [("1.4.1", {}), ("2.0.0", {"CUDA_GRAPHS": "0"})],
    )
    def test_tgi_s_eager_mode_was_the_default_before_2_0(self, version: str, env: dict[str, str]) -> None:
        assert render(ServingConfig(enforce_eager=True), "tgi", version).env == env

    def test_deepspeed_s_flag_is_the_opposite(self) -> None:
        config = ServingConfig(model_id="org/model", enforce_eager=True)
        text = render(config, "lmi-deepspeed", "0.27.0", "properties").files["serving.properties"]
        assert parse_properties(text)["option.enable_cuda_graph"] == "false"


class TestWhatAnEngineHasNoOptionFor:
    def test_everything_that_would_be_missed_is_listed_at_once(self) -> None:
        config = ServingConfig(
            dtype="fp32",
            pipeline_parallel_degree=2,
            rope_scaling=RopeScaling(kind="yarn", factor=2),
            quantization="smoothquant",
        )
        with pytest.raises(RenderError) as caught:
            render(config, "tgi", "3.3.6")
        assert str(caught.value) == (
            "pipeline_parallel_degree: SEA308: TGI 3.3.6 has no option for 2\n"
            "  hint: leave it out, or choose another engine or version\n"
            "dtype: SEA308: TGI 3.3.6 has no option for fp32\n"
            "  hint: it has fp16, bf16, auto\n"
            "quantization: SEA308: TGI 3.3.6 has no option for smoothquant\n"
            "  hint: it has bitsandbytes8, gptq, awq, eetq, bitsandbytes4, fp8, exl2, marlin, compressed-tensors\n"
            "rope_scaling.kind: SEA308: TGI 3.3.6 has no option for yarn\n"
            "  hint: it has linear, dynamic\n"
            "dtype and quantization: SEA309: TGI 3.3.6 refuses dtype and quantization together\n"
            "  hint: leave dtype out"
        )

    def test_a_sub_model_is_named_once(self) -> None:
        with pytest.raises(RenderError) as caught:
            render(ServingConfig(lora=Lora(max_rank=8)), "lmi-trtllm", "lmi15")
        assert str(caught.value) == (
            "lora: SEA308: lmi-trtllm on LMI 15 has no option for it\n"
            "  hint: leave it out, or choose another engine or version"
        )

    def test_the_reason_is_told_where_one_is_known(self) -> None:
        with pytest.raises(RenderError) as caught:
            render(ServingConfig(dynamic_batching=DynamicBatching(batch_size=4)))
        assert str(caught.value).splitlines()[0] == (
            "dynamic_batching: SEA308: lmi-async on LMI 27 has no option for it: Only whole requests are batched "
            "dynamically, and this dialect batches continuously"
        )

    def test_what_the_engine_does_anyway_needs_no_word(self) -> None:
        rendered = render(ServingConfig(paged_attention=True, continuous_batching=True, pipeline_parallel_degree=1))
        assert rendered.notes == ()

    def test_a_false_that_the_container_would_drop_is_said_by_the_opposite_flag(self) -> None:
        rendered = render(ServingConfig(prefix_caching=False), "vllm", "0.26.0")
        assert rendered.env == {"SM_VLLM_NO_ENABLE_PREFIX_CACHING": "true"}
        assert [str(note) for note in rendered.notes] == [
            "prefix_caching: `false` would be left out by the container, so the opposite flag is set."
        ]

    @pytest.mark.parametrize(
        ("dialect", "version"), [("lmi-async", "lmi27"), ("lmi-vllm", "lmi15"), ("vllm", "0.26.0")]
    )
    def test_quantized_checkpoints_are_left_to_say_so_themselves(self, dialect: DialectName, version: str) -> None:
        rendered = render(ServingConfig(quantization="awq"), dialect, version)
        assert "awq" not in rendered.env.values()
        assert [str(note) for note in rendered.notes] == [
            "quantization: The checkpoint says so itself; written out, `awq` turns the faster Marlin kernels off."
        ]


class TestConflicts:
    @pytest.mark.parametrize(
        ("config", "dialect", "version", "message"),
        [
            (
                ServingConfig(max_input_len=512, max_model_len=512),
                "tgi",
                "3.3.6",
                "max_input_len and max_model_len: SEA309: a prompt of 512 tokens leaves no room for output in 512\n"
                "  hint: lower max_input_len below 512",
            ),
            (
                ServingConfig(max_input_len=512, max_num_batched_tokens=511),
                "tgi",
                "2.3.1",
                "max_num_batched_tokens and max_input_len: SEA309: "
                "511 prefill tokens are below the longest prompt, 512\n"
                "  hint: set it to at least 512",
            ),
            (
                ServingConfig(max_model_len=513, max_batch_total_tokens=512),
                "tgi",
                "3.3.6",
                "max_model_len and max_batch_total_tokens: SEA309: 513 tokens exceed the 512 of a whole batch\n"
                "  hint: raise max_batch_total_tokens to 513",
            ),
            (
                ServingConfig(quantization="exl2", tensor_parallel_degree=2),
                "tgi",
                "3.3.6",
                "quantization and tensor_parallel_degree: SEA309: exl2 weights can't be sharded\n"
                "  hint: set tensor_parallel_degree to 1",
            ),
            (
                ServingConfig(max_queued_requests=8),
                "tgi",
                "3.3.6",
                "max_queued_requests and max_num_seqs: SEA309: TGI 3.3.6 limits running and waiting requests "
                "together, but max_num_seqs is missing\n  hint: set max_num_seqs as well",
            ),
            (
                ServingConfig(lora=Lora(), speculative_decoding=SpeculativeDecoding(model="org/draft")),
                "lmi-dist",
                "lmi12",
                "lora and speculative_decoding: SEA309: lmi-dist refuses LoRA and speculative decoding together\n"
                "  hint: leave one of them out",
            ),
            (
                ServingConfig(speculative_decoding=SpeculativeDecoding(draft_tokens=3)),
                "lmi-async",
                "lmi27",
                "speculative_decoding.method and speculative_decoding.model: SEA309: draft_model needs a draft model, "
                "but none is set\n  hint: name the draft model, or use the method ngram",
            ),
            (
                ServingConfig(quantization="smoothquant", dtype="bf16"),
                "lmi-deepspeed",
                "lmi9",
                "dtype and quantization: SEA309: DeepSpeed's SmoothQuant refuses bf16\n  hint: set dtype to fp16",
            ),
            (
                ServingConfig(chunked_prefill=False, max_num_batched_tokens=2048),
                "sglang",
                "0.5.20",
                "max_num_batched_tokens and chunked_prefill: SEA309: SGLang 0.5.20 writes both as "
                "SM_SGLANG_CHUNKED_PREFILL_SIZE\n  hint: leave one of them out",
            ),
            (
                ServingConfig(lora=Lora(adapters=(Adapter(name="a", path="b"), Adapter(name="c", path="d")))),
                "sglang",
                "0.5.20",
                "lora.adapters: SEA309: SGLang's container passes one adapter at start, not 2\n"
                "  hint: load the others through the server's API, or use vllm or tgi",
            ),
        ],
    )
    def test_each_is_told_whole(self, config: ServingConfig, dialect: DialectName, version: str, message: str) -> None:
        with pytest.raises(RenderError) as caught:
            render(config, dialect, version)
        assert message in str(caught.value)

    def test_tgi_takes_a_type_beside_bitsandbytes_since_1_2(self) -> None:
        config = ServingConfig(dtype="fp16", quantization="bitsandbytes4")
        assert render(config, "tgi", "1.2.0").env == {"DTYPE": "float16", "HF_MODEL_QUANTIZE": "bitsandbytes-nf4"}
        with pytest.raises(RenderError, match=r"SEA309: TGI 1\.1\.0 refuses dtype and quantization together"):
            render(config, "tgi", "1.1.0")

    def test_just_inside_the_bounds_all_is_well(self) -> None:
        render(ServingConfig(max_input_len=511, max_model_len=512, max_num_batched_tokens=511), "tgi", "2.3.1")
        render(ServingConfig(max_model_len=512, max_batch_total_tokens=512), "tgi", "3.3.6")
        render(ServingConfig(max_input_len=512, max_num_batched_tokens=511), "tgi", "3.3.6")  # it has chunks


class TestExtra:
    def test_a_spelling_of_a_field_that_is_set_is_refused(self) -> None:
        config = ServingConfig(max_num_seqs=8, extra={"max_rolling_batch_size": "9", "rolling_batch": "auto"})
        with pytest.raises(RenderError) as caught:
            render(config)
        assert str(caught.value) == (
            "extra.max_rolling_batch_size: SEA304: max_rolling_batch_size is how lmi-async on LMI 27 spells "
            "max_num_seqs (8)\n  hint: leave it out of extra\n"
            "extra.rolling_batch: SEA304: rolling_batch is how lmi-async on LMI 27 spells the dialect itself\n"
            "  hint: leave it out of extra"
        )

    def test_a_spelling_of_a_field_that_is_not_set_passes(self) -> None:
        assert render(ServingConfig(extra={"max_rolling_batch_size": "9"})).env["OPTION_MAX_ROLLING_BATCH_SIZE"] == "9"

    def test_it_comes_last_and_sorted(self) -> None:
        env = render(ServingConfig(max_num_seqs=8, extra={"seed": "1", "block_size": "16"}), "vllm", "0.26.0").env
        assert list(env) == ["SM_VLLM_MAX_NUM_SEQS", "SM_VLLM_BLOCK_SIZE", "SM_VLLM_SEED"]
