from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seatrial_base.catalog.engine_options import find_spellings
from seatrial_base.catalog.engine_versions import DIALECT_NAMES, DialectName, existing_dialects
from seatrial_base.errors import RenderError
from seatrial_lint.engines.config import (
    PRESENT,
    Dtype,
    Quantization,
    QueryGroups,
    ServingConfig,
    SmoothQuant,
    SpeculativeDecoding,
    flatten,
    neutral_text,
    unflatten,
)
from seatrial_lint.engines.engine_options import Adapter, DynamicBatching, KvCacheDtype, Lora, OutputFormat, RopeScaling
from seatrial_lint.engines.neutral import Form, Rendered, render_config
from seatrial_lint.engines.parse import parse, property_of_env

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seatrial_base.catalog.engine_options import Spelling, SpellingTable
    from seatrial_base.findings import Finding
    from seatrial_lint.engines.config import Neutral

VERSIONS: dict[str, tuple[str, ...]] = {
    "lmi": ("0.23.0", "0.25.0", *(f"lmi{number}" for number in range(8, 30))),
    "tgi": ("0.9.4", "1.1.0", "1.4.5", "2.0.0", "2.3.1", "2.4.0", "3.0.1", "3.3.6"),
    "vllm": ("0.10.2", "0.11.1", "0.12.0", "0.26.0"),
    "sglang": ("0.5.20",),
    "tgi-neuronx": ("0.0.28", "0.3.0"),
    "vllm-neuronx": ("0.4.1", "0.4.5"),
}
TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1, max_size=12)
PATHS = st.from_regex(r"[a-z]{1,6}/[a-z0-9.-]{1,8}", fullmatch=True)
EXTRA = st.dictionaries(st.from_regex(r"zz_[a-z]{1,5}", fullmatch=True), TEXTS, max_size=2)
WHOLE = st.none() | st.integers(1, 65_536)
DEGREE = st.none() | st.integers(1, 1024)
SWITCH = st.none() | st.booleans()
SHARE = st.none() | st.floats(0.01, 1)
FACTOR = st.none() | st.floats(0.5, 1e7)


def one_of(hint: object) -> st.SearchStrategy[str | None]:
    return st.none() | st.sampled_from(get_args(hint))


ADAPTERS = st.builds(Adapter, name=st.from_regex(r"[a-z]{1,5}", fullmatch=True), path=PATHS)
CONFIGS = st.builds(
    ServingConfig,
    model_id=PATHS | st.none(),
    revision=TEXTS | st.none(),
    trust_remote_code=SWITCH,
    tensor_parallel_degree=DEGREE,
    pipeline_parallel_degree=DEGREE,
    dtype=one_of(Dtype),
    quantization=one_of(Quantization),
    max_input_len=WHOLE,
    max_output_len=WHOLE,
    max_model_len=WHOLE,
    max_num_seqs=WHOLE,
    max_num_batched_tokens=WHOLE,
    max_batch_total_tokens=WHOLE,
    gpu_memory_utilization=SHARE,
    kv_cache_dtype=one_of(KvCacheDtype),
    prefix_caching=SWITCH,
    chunked_prefill=SWITCH,
    paged_attention=SWITCH,
    enforce_eager=SWITCH,
    speculative_decoding=st.none()
    | st.builds(
        SpeculativeDecoding,
        method=st.sampled_from(["draft_model", "ngram", "eagle", "eagle3", "medusa"]),
        model=PATHS | st.none(),
        draft_tokens=WHOLE,
        draft_tensor_parallel_degree=st.none() | st.just(1),
    ),
    lora=st.none()
    | st.builds(
        Lora,
        max_adapters=WHOLE,
        max_rank=WHOLE,
        max_cpu_adapters=WHOLE,
        fully_sharded=SWITCH,
        adapters=st.none() | st.lists(ADAPTERS, min_size=1, max_size=2).map(tuple),
    ),
    rope_scaling=st.none()
    | st.builds(
        RopeScaling,
        kind=st.sampled_from(["linear", "dynamic", "yarn", None]),
        factor=FACTOR,
        original_max_position_embeddings=WHOLE,
        theta=FACTOR,
    ),
    group_query_attention=one_of(QueryGroups),
    smoothquant=st.none() | st.builds(SmoothQuant, alpha=SHARE, per_token=SWITCH, per_channel=SWITCH),
    continuous_batching=SWITCH,
    dynamic_batching=st.none() | st.builds(DynamicBatching, batch_size=st.integers(1, 64), max_delay_ms=WHOLE),
    streaming=SWITCH,
    output_format=one_of(OutputFormat),
    max_queued_requests=WHOLE,
    model_loading_timeout_s=WHOLE,
    predict_timeout_s=WHOLE,
    extra=EXTRA,
)


def writes(row: Spelling, text: str) -> bool:
    if row.alias or not (row.key or row.env) or text in row.leave:
        return False
    return text in row.translation if row.translation else not row.leave


def sayable(config: ServingConfig, table: SpellingTable) -> ServingConfig:
    """Return what a dialect writes of a configuration: no field that it lacks, or says by writing nothing."""
    kept: dict[str, Neutral] = {}
    for name, value in flatten(config).items():
        parent, _, member = name.rpartition(".")
        in_json = any(member in row.members for row in table.rows if parent and row.field == parent)
        rows = [row for row in table.rows if row.field == name]
        if value != PRESENT and (in_json or any(writes(row, neutral_text(value)) for row in rows)):
            kept[name] = value if isinstance(value, tuple) else neutral_text(value)
    restricted, _ = unflatten(kept, config.extra)
    return restricted


def without(config: ServingConfig, problems: Iterable[Finding]) -> ServingConfig:
    """Return a configuration without the fields that contradict others."""
    wrong = {problem.field.partition(" and ")[0].partition(".")[0] for problem in problems}
    return config.model_copy(update=dict.fromkeys(wrong))


def rendered_without_contradictions(
    config: ServingConfig, dialect: DialectName, version: str, form: Form
) -> tuple[ServingConfig, Rendered]:
    while True:
        try:
            return config, render_config(config, dialect, version, form)
        except RenderError as error:
            smaller = without(config, error.problems)
            if smaller == config:
                raise
            config = smaller


def forms(dialect: DialectName, version: str) -> list[Form]:
    if not dialect.startswith("lmi"):
        return ["env"]
    return ["properties"] if find_spellings(dialect, version).version < (9,) else ["properties", "env"]


PLACES = [
    (dialect, version, form)
    for dialect in DIALECT_NAMES
    for version in VERSIONS["lmi" if dialect.startswith("lmi") else dialect]
    if not dialect.startswith("lmi") or dialect in existing_dialects("lmi", version)
    for form in forms(dialect, version)
]


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(PLACES), CONFIGS)
def test_what_is_rendered_reads_back_as_the_same_configuration(
    place: tuple[DialectName, str, Form], drawn: ServingConfig
) -> None:
    dialect, version, form = place
    said = sayable(drawn, find_spellings(dialect, version))
    config, rendered = rendered_without_contradictions(said, dialect, version, form)
    parsed = parse(dialect, version, properties=rendered.files.get("serving.properties", ""), env=rendered.env)
    assert parsed.unknown == ()
    assert parsed.config == config


@given(st.sampled_from(DIALECT_NAMES), st.text(max_size=300), st.text(max_size=300))
def test_any_text_is_read(dialect: DialectName, properties: str, env: str) -> None:
    version = {"lmi": "lmi9", "lmi-async": "lmi27", "tgi-neuronx": "0.3.0", "vllm-neuronx": "0.4.5"}.get(
        dialect, "lmi9" if dialect.startswith("lmi") else "3.3.6"
    )
    parse(dialect, version, properties=properties, env=env)


KNOWN = (
    *find_spellings("lmi-async", "lmi27").rows,
    *find_spellings("vllm", "0.26.0").rows,
    *find_spellings("sglang", "0.5.20").rows,
)
KEYS = st.sampled_from(sorted({row.env for row in KNOWN if row.env}))


@given(st.sampled_from(["lmi-async", "vllm", "sglang", "tgi"]), st.dictionaries(KEYS, st.text(max_size=20), max_size=6))
def test_a_known_key_with_any_value_is_read_or_listed(dialect: DialectName, env: dict[str, str]) -> None:
    version = {"lmi-async": "lmi27", "vllm": "0.26.0", "sglang": "0.5.20", "tgi": "3.3.6"}[dialect]
    parsed = parse(dialect, version, env=env)
    assert [entry.key for entry in parsed.entries] == list(env)


def unknown(dialect: DialectName, version: str, text: str) -> list[str]:
    parsed = parse(dialect, version, properties=text, env=None if dialect.startswith("lmi") else text)
    return [f"{entry.line}: {entry.because}" for entry in parsed.unknown]


@pytest.mark.parametrize(
    ("dialect", "version", "text", "expected"),
    [
        ("lmi-async", "lmi27", "# hello\nbatch=3\n", ["2: lmi-async on LMI 27 does not know batch"]),
        (
            "lmi-async",
            "lmi27",
            "option.dtype=half\n",
            ["1: 'half' is not valid for option.dtype in lmi-async on LMI 27"],
        ),
        (
            "lmi-async",
            "lmi27",
            "option.rolling_batch=vllm\n",
            ["1: lmi-async on LMI 27 has option.rolling_batch=disable"],
        ),
        (
            "lmi-async",
            "lmi27",
            "option.max_rolling_batch_prefill_tokens=1\noption.max_num_batched_tokens=2\n",
            ["2: option.max_num_batched_tokens sets max_num_batched_tokens again to another value"],
        ),
        (
            "lmi-async",
            "lmi27",
            "option.tensor_parallel_degree=0\n",
            ["1: '0': Input should be greater than 0"],
        ),
        (
            "tgi",
            "3.3.6",
            "MAX_CONCURRENT_REQUESTS=128\n",
            ["1: it limits running and waiting requests together; the limit of running requests is missing"],
        ),
        ("tgi", "3.3.6", "HF_TOKEN=x\n", ["1: TGI 3.3.6 does not know HF_TOKEN"]),
        ("vllm", "0.26.0", "MAX_MODEL_LEN=4\n", ["1: vLLM 0.26.0 does not know MAX_MODEL_LEN"]),
        ("lmi-async", "lmi27", "option.tensor_parallel_degree=max\n", []),
        (
            "lmi-async",
            "lmi27",
            "option.hf_overrides=[1]\n",
            ["1: '[1]' is not valid for option.hf_overrides in lmi-async on LMI 27"],
        ),
    ],
)
def test_what_is_not_understood_is_listed_with_its_line(
    dialect: DialectName, version: str, text: str, expected: list[str]
) -> None:
    assert unknown(dialect, version, text) == expected


def test_an_object_that_says_more_than_the_neutral_field_is_passed_on() -> None:
    text = '{"method":"ngram","num_speculative_tokens":4,"prompt_lookup_max":4}'
    parsed = parse("lmi-async", "lmi27", properties=f"option.speculative_config={text}\n")
    assert parsed.unknown == ()
    assert parsed.config.speculative_decoding is None
    assert parsed.config.extra == {"speculative_config": text}


def test_a_value_that_is_no_number_is_listed_and_the_rest_is_kept() -> None:
    parsed = parse("lmi-async", "lmi27", properties="option.max_model_len=long\noption.dtype=bf16\n")
    assert parsed.config == ServingConfig(dtype="bf16")
    assert [entry.key for entry in parsed.unknown] == ["option.max_model_len"]


def test_the_file_wins_over_the_environment() -> None:
    parsed = parse("lmi-async", "lmi27", properties="option.dtype=bf16\n", env={"OPTION_DTYPE": "fp16"})
    assert parsed.config.dtype == "bf16"
    assert [entry.because for entry in parsed.unknown] == ["OPTION_DTYPE sets dtype again to another value"]


@pytest.mark.parametrize(
    ("env", "field", "value"),
    [
        ({"SM_NUM_GPUS": "4"}, "tensor_parallel_degree", 4),
        ({"OPTION_TENSOR_PARALLEL_DEGREE": "4"}, "tensor_parallel_degree", 4),
        ({"ENABLE_CUDA_GRAPHS": "true"}, "enforce_eager", False),
        ({"ENABLE_CUDA_GRAPHS": "false"}, "enforce_eager", True),
        ({"HF_MODEL_TRUST_REMOTE_CODE": "true"}, "trust_remote_code", True),
        ({"MAX_BATCH_SIZE": "8"}, "max_num_seqs", 8),
        ({"MAX_CONCURRENT_REQUESTS": "8"}, "max_queued_requests", 8),
        ({"CUDA_MEMORY_FRACTION": "0.8"}, "gpu_memory_utilization", 0.8),
        ({"OPTION_DTYPE": "bfloat16"}, "dtype", "bf16"),
    ],
)
def test_names_that_lmi_renames_at_start_are_understood(env: dict[str, str], field: str, value: object) -> None:
    parsed = parse("lmi-async", "lmi27", env=env)
    assert parsed.unknown == ()
    assert parsed.config == ServingConfig.model_validate({field: value})


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("OPTION_MAX_MODEL_LEN", "option.max_model_len"),
        ("OPTION_pythonExecutable", "option.pythonExecutable"),
        ("OPTION_ENTRYPOINT", "option.entryPoint"),
        ("OPTION_ENGINE", "engine"),
        ("HF_MODEL_ID", None),
    ],
)
def test_lmi_lowers_names_in_capitals_alone(name: str, key: str | None) -> None:
    assert property_of_env(name) == key


def test_passed_options_are_kept() -> None:
    assert parse("lmi-async", "lmi27", properties="option.seed=1\n").config == ServingConfig(extra={"seed": "1"})
    assert parse("vllm", "0.26.0", env={"SM_VLLM_SEED": "1"}).config == ServingConfig(extra={"seed": "1"})
    assert parse("tgi", "3.3.6", env={"WAITING_SERVED_RATIO": "1"}).config == ServingConfig(
        extra={"waiting_served_ratio": "1"}
    )


def test_running_requests_are_taken_off_those_that_tgi_admits() -> None:
    parsed = parse("tgi", "3.3.6", env={"MAX_CONCURRENT_REQUESTS": "164", "MAX_BATCH_SIZE": "64"})
    assert parsed.config.max_queued_requests == 100
