"""Traps as data: every row is found where its conditions hold, and not where one of them doesn't."""

from __future__ import annotations

import json
import re

import pytest

from seatrial_base.catalog.engine_options import RANGES, Range
from seatrial_base.catalog.engine_versions import DIALECTS, DialectName, EngineName, version_text
from seatrial_base.findings import lint_rules
from seatrial_lint.lint.checks.traps import TRAPS, Trap
from seatrial_lint.lint.lint import Given, lint_sources
from seatrial_lint.lint.read import read_content
from tests.lint.cases import Case, said

BATCHERS = {
    "lmi-async": {},
    "lmi-vllm": {"rolling_batch": "vllm"},
    "lmi-dist": {"rolling_batch": "lmi-dist"},
    "lmi-trtllm": {"rolling_batch": "trtllm"},
    "lmi-neuronx": {"rolling_batch": "tnx"},
    "lmi-deepspeed": {"rolling_batch": "deepspeed"},
    "lmi-python": {"rolling_batch": "disable", "device_map": "auto"},
}
SERVER = ("maxWorkers", "gpu.maxWorkers", "batch_size")
SOURCE = re.compile(
    r"@[0-9a-f]{40}|pull \d+|issues? \d+|API|guide|docs|documentation|vllm-project|sgl-project|AWS|NVIDIA"
)


def value_of(wanted: str, names: dict[str, str]) -> str:
    """Return a value that meets a condition."""
    plain = {"*": "x", "hub": "org/model", "capital": "True"}
    if wanted in plain:
        return plain[wanted]
    if wanted[:1] in "<>" and wanted:
        than = wanted[1:]
        number = int(than) if than.isdigit() else 8
        if not than.isdigit():
            names[than.split("|")[0]] = "8"
        return str(number - 1 if wanted[0] == "<" else number + 1)
    return "other" if wanted.startswith("!") else wanted.removeprefix("~").split("|")[0]


def written(names: dict[str, str], dialect: DialectName) -> str:
    """Write options as the container reads them."""
    engine = DIALECTS[dialect].engine
    if engine == "lmi":
        lines = [
            f"{name}={text}" if name in SERVER or name.isupper() else f"option.{name}={text}"
            for name, text in names.items()
        ]
        return "\n".join(lines)
    prefix = {"vllm": "SM_VLLM_", "sglang": "SM_SGLANG_", "tgi": ""}[engine]
    return "\n".join(f"{name if name.isupper() else prefix + name.upper()}={text}" for name, text in names.items())


def version_of(row: Trap | Range, dialect: DialectName) -> str:
    since = row.since or DIALECTS[dialect].since
    newest = {"lmi": "27", "tgi": "3.3.6", "vllm": "0.33.0", "sglang": "0.5.23"}[DIALECTS[dialect].engine]
    last = row.until or DIALECTS[dialect].until
    return since if last else newest


def rules_of(names: dict[str, str], row: Trap | Range, dialect: DialectName) -> list[tuple[str, str]]:
    engine = DIALECTS[dialect].engine
    if engine == "lmi":
        names = {**BATCHERS[dialect], **names}
    file = "serving.properties" if engine == "lmi" and not any(name.isupper() for name in names) else "c.env"
    text = written(names, dialect)
    if file == "c.env" and engine == "lmi":
        text = "\n".join(
            line
            if line[0].isupper()
            else f"OPTION_{line.removeprefix('option.').partition('=')[0].upper()}={line.partition('=')[2]}"
            for line in text.splitlines()
        )
    report = lint_sources(read_content(text.encode(), file), Given(engine=engine, version=version_of(row, dialect)))
    return [(one.rule, one.message) for one in report.findings]


@pytest.mark.parametrize("row", TRAPS.rows, ids=lambda row: f"{row.rule}-{next(iter(row.when))}")
def test_a_trap_is_found_where_it_is_and_nowhere_else(row: Trap) -> None:
    dialect: DialectName = row.dialects[0]  # type: ignore[assignment]  # of data
    names: dict[str, str] = {}
    for name, wanted in row.when.items():
        names.setdefault(name.split("|")[0], value_of(wanted, names))
    start = row.message.partition("{")[0]
    found = [rule for rule, message in rules_of(names, row, dialect) if message.startswith(start)]
    assert row.rule in found, (names, version_text(DIALECTS[dialect].engine, (0,)))
    for name in row.without:
        left = [rule for rule, message in rules_of({**names, name: "true"}, row, dialect) if message == row.message]
        assert row.rule not in left


@pytest.mark.parametrize("row", RANGES.rows, ids=lambda row: f"{row.dialects[0]}-{row.names[0]}")
def test_a_range_ends_where_it_says(row: Range) -> None:
    dialect: DialectName = row.dialects[0]  # type: ignore[assignment]  # of data
    below = -7.0 if row.values or row.above is not None else (row.least or 0) - 7
    for name in row.names:
        assert not row.takes(below)
        outside = rules_of({name: f"{below:g}"}, row, dialect)
        assert ("SEA318", f"{below:g}") in [(rule, message.split()[0]) for rule, message in outside], name
    assert all(row.takes(number) for number in (*row.but, *row.values))
    if row.most is not None:
        assert row.takes(row.most)
        assert not row.takes(row.most + 0.01)


def test_every_rule_says_where_it_holds_and_where_that_was_read() -> None:
    for rule in lint_rules():
        assert rule.engines
        assert rule.versions
        assert rule.images
        assert SOURCE.search(rule.source) or "Java SE" in rule.source or "Hugging Face Hub" in rule.source, rule.id
    assert {row.rule for row in TRAPS.rows} <= {rule.id for rule in lint_rules()}
    assert all(row.source and row.date and row.fix for row in TRAPS.rows)


def case(rule: str, text: str, place: str, name: str = "serving.properties", **given: str) -> Case:
    return Case(rule, text, place, name, Given(**given))  # type: ignore[arg-type]


MODEL = {"ModelName": "m", "PrimaryContainer": {"Image": "r/djl-inference:0.29.0-lmi11.0.0-cu124"}}


def model(**environment: object) -> str:
    image = {"PrimaryContainer": {**MODEL["PrimaryContainer"], "Environment": environment}}  # type: ignore[dict-item]
    return json.dumps({**MODEL, **image})


OWN = "option.model_id=org/model\noption.revision=abc\n"
CASES = (
    # Who reads the options: a handler of the user, an engine of the Java side, an image of another kind.
    case("SEA317", OWN + "option.entryPoint=serve.py\noption.dtype=float16", "", engine="lmi", version="lmi20"),
    case("SEA318", OWN + "option.entryPoint=serve.py\noption.rolling_batch=mine", "", engine="lmi", version="lmi20"),
    case("SEA318", "engine=PyTorch\n" + OWN, "", engine="lmi", version="lmi27"),
    case("SEA321", "engine=Rust\n" + OWN, "", engine="lmi", version="lmi27"),
    case("SEA316", OWN + "max_model_len=512\nnormalize=false", "", engine="lmi", version="lmi27"),
    case("SEA316", OWN + "predict_timeout=9", "3: predict_timeout: warning", engine="lmi", version="lmi27"),
    case("SEA313", OWN + "option.env=A=1\noption.blockFactory=x", "", engine="lmi", version="lmi27"),
    case("SEA318", OWN + "option.load_in_8bit=TRUE\noption.device_map=auto", "", engine="lmi", version="0.23.0"),
    case("SEA317", "HF_MODEL_ID=o/m\nDTYPE=float16", "", "a.env", engine="lmi", version="lmi20"),
    case("SEA315", "engine=MPI\n" + OWN + "option.num_engine_workers=1", "", engine="lmi", version="lmi9"),
    case(
        "SEA341",
        json.dumps(
            {
                "ModelName": "m",
                "PrimaryContainer": {"Image": "r/tei:2.0.1-tei1.2.3", "Environment": {"SM_NUM_GPUS": "1"}},
            }
        ),
        "",
        "m.json",
    ),
    # Variables of an environment.
    case(
        "SEA316",
        "HF_MODEL_ID=o/m\nMAX_MODEL_LEN=8",
        "2: MAX_MODEL_LEN: warning",
        "a.env",
        engine="lmi",
        version="lmi20",
    ),
    case(
        "SEA316",
        "HF_MODEL_ID=o/m\nSERVING_ENGINE=MPI",
        "2: SERVING_ENGINE: warning",
        "a.env",
        engine="lmi",
        version="lmi9",
    ),
    case("SEA316", "HF_MODEL_ID=o/m\nSM_NUM_GPUS=2", "2: SM_NUM_GPUS: warning", "a.env", engine="lmi", version="lmi8"),
    case("SEA316", "HF_MODEL_ID=o/m\nSM_NUM_GPUS=2", "", "a.env", engine="lmi", version="lmi9"),
    case("SEA316", "HF_MODEL_ID=o/m\nvolume_size=2", "2: volume_size: warning", "a.env", engine="tgi", version="3.3.6"),
    case("SEA316", "HF_MODEL_ID=o/m", "1: HF_MODEL_ID: warning", "a.env", engine="vllm", version="0.16.0"),
    case("SEA316", "HF_MODEL_ID=o/m", "", "a.env", engine="vllm", version="0.17.1"),
    case("SEA302", model(HF_MODEL_ID="o/m", TENSOR_PARALLEL_DEGREE=4), "1: TENSOR_PARALLEL_DEGREE: error", "m.json"),
    # Values.
    case("SEA318", OWN + "option.dtype='fp16'", "3: option.dtype: error", engine="lmi", version="lmi11"),
    case(
        "SEA318",
        OWN + "option.tensor_parallel_degree=4 ",
        "3: option.tensor_parallel_degree: error",
        engine="lmi",
        version="lmi11",
    ),
    case("SEA318", "SM_VLLM_MODEL=o/m\nSM_VLLM_ENFORCE_EAGER=", "", "a.env", engine="vllm", version="0.16.0"),
    case(
        "SEA318",
        "SM_VLLM_MODEL=o/m\nSM_VLLM_ENFORCE_EAGER=True",  # one stray word is taken for `model_tag`
        "2: SM_VLLM_ENFORCE_EAGER: note",
        "a.env",
        engine="vllm",
        version="0.16.0",
    ),
    case(
        "SEA318",
        "SM_VLLM_ENFORCE_EAGER=false",
        "1: SM_VLLM_ENFORCE_EAGER: warning",
        "a.env",
        engine="vllm",
        version="0.16.0",
    ),
    case("SEA318", "SM_VLLM_MODEL=o/m\nSM_VLLM_ENFORCE_EAGER=True", "", "a.env", engine="vllm", version="0.17.1"),
    case(
        "SEA318",
        'SM_VLLM_MODEL=o/m\nSM_VLLM_LORA_MODULES=["a=/x","b=/y"]',
        "2: SM_VLLM_LORA_MODULES: error",
        "a.env",
        engine="vllm",
        version="0.26.0",
    ),
    # Pairs and defaults.
    case(
        "SEA319",
        OWN + "option.enable_auto_tool_choice=true",
        "3: option.enable_auto_tool_choice: error",
        engine="lmi",
        version="lmi16",
    ),
    case(
        "SEA319",
        OWN + "option.enable_auto_tool_choice=true\noption.tool_call_parser=hermes",
        "",
        engine="lmi",
        version="lmi16",
    ),
    case("SEA319", OWN + "option.quantize=bitsandbytes8", "3: option.quantize: error", engine="lmi", version="0.24.0"),
    case(
        "SEA319",
        OWN + "option.enable_lora=true\noption.rolling_batch=disable",
        "3: option.enable_lora: warning",
        engine="lmi",
        version="lmi12",
    ),
    case(
        "SEA319",
        "HF_MODEL_ID=o/m\nSM_NUM_GPUS=1\nSHARDED=true",
        "3: SHARDED: error",
        "a.env",
        engine="tgi",
        version="2.0.2",
    ),
    case(
        "SEA322",
        "HF_MODEL_ID=o/m\nMAX_INPUT_LENGTH=5000\nMAX_TOTAL_TOKENS=6000",
        "2: MAX_INPUT_LENGTH: error",
        "a.env",
        engine="tgi",
        version="1.1.0",
    ),
    case(
        "SEA322",
        "HF_MODEL_ID=o/m\nMAX_INPUT_LENGTH=5000\nMAX_TOTAL_TOKENS=6000",
        "",
        "a.env",
        engine="tgi",
        version="2.0.2",
    ),
    case(
        "SEA326",
        "option.model_id=Qwen/Qwen2-7B\noption.rolling_batch=vllm\noption.tensor_parallel_degree=8",
        "3: option.tensor_parallel_degree: error",
        engine="lmi",
        version="lmi13",
    ),
    case(
        "SEA326",
        "option.model_id=Qwen/Qwen2-7B\noption.entryPoint=djl_python.transformers_neuronx\noption.tensor_parallel_degree=8",
        "",
        engine="lmi",
        version="lmi11",
    ),
    case("SEA339", OWN + "option.rolling_batch=vllm\noption.quantize=awq", "", engine="lmi", version="lmi10"),
    # Without a version, only what holds for all is said.
    case("SEA315", OWN + "option.rolling_batch=vllm\noption.swap_space=4", ""),
    case(
        "SEA315",
        OWN + "option.rolling_batch=vllm\noption.swap_space=4",
        "4: option.swap_space: warning",
        engine="lmi",
        version="lmi27",
    ),
)


@pytest.mark.parametrize("one", CASES, ids=str)
def test_facts_of_upstream_are_judged_as_they_are(one: Case) -> None:
    assert one.found() == ([one.place] if one.place else [])


@pytest.mark.parametrize(
    ("rule", "tag", "env", "word"),
    [
        (
            "SEA254",
            "2.3.0-tgi2.2.0-gpu",
            {"HF_MODEL_ID": "unsloth/Meta-Llama-3.1-8B-Instruct-bnb-4bit"},
            "bitsandbytes",
        ),
        ("SEA254", "2.3.0-tgi2.2.0-gpu", {"HF_MODEL_ID": "unsloth/Meta-Llama-3.1-8B-Instruct"}, ""),
        ("SEA254", "2.0.1-tgi1.1.0-gpu", {"HF_MODEL_ID": "01-ai/Yi-34B-Chat-4bits", "QUANTIZE": "awq"}, "tgi-awq"),
        ("SEA254", "2.0.1-tgi1.1.0-gpu", {"HF_MODEL_ID": "TheBloke/Llama-2-7B-AWQ"}, "tgi-awq"),
        ("SEA254", "2.1.1-tgi1.2.0-gpu", {"HF_MODEL_ID": "01-ai/Yi-34B-Chat-4bits", "QUANTIZE": "awq"}, ""),
        ("SEA254", "2.7.0-tgi3.3.6-gpu", {"HF_MODEL_ID": "org/model-GGUF"}, "GGUF"),
        ("SEA393", "2.7.0-tgi3.3.6-gpu", {"HF_MODEL_ID": "s3://weights/chat/"}, "does not download from S3"),
        ("SEA398", "1.13.1-optimum0.0.20-neuronx", {"HF_BATCH_SIZE": "4"}, "write MAX_BATCH_SIZE=4"),
        ("SEA398", "1.13.1-optimum0.0.20-neuronx", {"HF_BATCH_SIZE": "4", "MAX_BATCH_SIZE": "4"}, ""),
        ("SEA398", "2.1.2-optimum0.0.28-neuronx", {"HF_BATCH_SIZE": "4", "MAX_BATCH_SIZE": "8"}, "the same number"),
        ("SEA398", "2.1.2-optimum0.0.28-neuronx", {"HF_BATCH_SIZE": "4"}, ""),
    ],
)
def test_what_a_version_of_tgi_can_not_load(rule: str, tag: str, env: dict[str, str], word: str) -> None:
    image = f"763104351884.dkr.ecr.us-east-1.amazonaws.com/huggingface-pytorch-tgi-inference:{tag}"
    text = json.dumps({"PrimaryContainer": {"Image": image, "Environment": env}})
    found = said(rule, text, name="m.json")
    assert [word in one for one in found] == [True] * bool(word)


@pytest.mark.parametrize(
    ("rule", "engine", "version", "text", "word"),
    [
        ("SEA399", "sglang", "0.5.13", "DISABLE_CUDA_GRAPH=true", ""),
        ("SEA399", "sglang", "0.5.14", "DISABLE_CUDA_GRAPH=true", "CUDA_GRAPH_BACKEND_DECODE=disabled and SM_SGLANG_"),
        ("SEA399", "sglang", "0.5.14", "DISABLE_CUDA_GRAPH=false", ""),
        ("SEA399", "sglang", "0.5.21", "ENABLE_DP_ATTENTION=true\nSM_SGLANG_DP=2", ""),
        ("SEA399", "sglang", "0.5.22", "ENABLE_DP_ATTENTION=true\nSM_SGLANG_DP=2", "after 2026-12-31"),
        ("SEA399", "sglang", "0.5.23", "ENABLE_FLASHINFER_ALLREDUCE_FUSION=true", "ALLREDUCE_FUSION_BACKEND=auto"),
        ("SEA399", "sglang", "0.5.19", "CUDA_GRAPH_MAX_BS=8", "SM_SGLANG_CUDA_GRAPH_MAX_BS_DECODE=8"),
        ("SEA399", "sglang", "0.5.20", "CUDA_GRAPH_MAX_BS=8", ""),  # SEA315: it is gone
        ("SEA399", "sglang", "0.5.20", "TOOL_CALL_PARSER=qwen25", "write qwen"),
        ("SEA399", "sglang", "0.5.20", "TOOL_CALL_PARSER=qwen", ""),
        ("SEA348", "sglang", "0.5.21", "ENABLE_DP_ATTENTION=true", "does not start"),
        ("SEA348", "sglang", "0.5.22", "ENABLE_DP_ATTENTION=true", "has no effect"),
        ("SEA357", "sglang", "0.5.22", "ATTN_DP_SIZE=4\nSM_SGLANG_TP=2", "a divisor"),
        ("SEA399", "vllm", "0.30.0", "DISABLE_CASCADE_ATTN=true", ""),
        ("SEA399", "vllm", "0.33.0", "DISABLE_CASCADE_ATTN=true", "the option has no effect"),
        ("SEA399", "vllm", "0.33.0", "MAMBA_CACHE_MODE=align", "ENABLE_PREFIX_CACHING"),
        ("SEA399", "vllm", "0.33.0", "IR_OP_PRIORITY=x", "0.34"),
        ("SEA377", "vllm", "0.22.1", "KV_OFFLOADING_BACKEND=lmcache\nSM_VLLM_KV_OFFLOADING_SIZE=8", ""),
        ("SEA377", "vllm", "0.23.0", "KV_OFFLOADING_BACKEND=lmcache\nSM_VLLM_KV_OFFLOADING_SIZE=8", "LMCache server"),
        ("SEA377", "vllm", "0.23.0", "KV_OFFLOADING_BACKEND=native\nSM_VLLM_KV_OFFLOADING_SIZE=8", ""),
        ("SEA356", "vllm", "0.30.0", 'KV_TRANSFER_CONFIG={"kv_connector": "LMCacheConnectorV1", "kv_rank": 0}', ""),
        (
            "SEA356",
            "vllm",
            "0.33.0",
            'KV_TRANSFER_CONFIG={"kv_connector": "LMCacheConnectorV1", "kv_rank": 0}',
            "kv_rank",
        ),
    ],
)
def test_options_that_an_engine_is_giving_up(rule: str, engine: EngineName, version: str, text: str, word: str) -> None:
    found = said(rule, f"SM_{engine.upper()}_{text}\n", name="c.env", given=Given(engine, version))
    assert [word in one for one in found] == [True] * bool(word)
