"""Properties of mending, over configurations that are made from what the rules know."""

from __future__ import annotations

import random

import pytest

from seatrial_lint.lint.lint import Given, lint_sources, mended_text
from seatrial_lint.lint.read import read_content
from seatrial_lint.lint.source import ConfigSource

SEED, FILES = 20261123, 12
WORDS = {
    "lmi": {
        "option.dtype": ("bfloat16", "fp16", "float16", "auto"),
        "option.data_type": ("bf16",),
        "option.rolling_batch": ("lmi-dist", "vllm", "auto", "disable"),
        "option.max_num_seqs": ("8", "64"),
        "option.max_rolling_batch_size": ("8", "64"),
        "option.Max_Model_Len": ("4096",),
        "option.max_model_len": ("4096", "8192"),
        "option.entryPoint": ("model.py", "djl_python.huggingface"),
        "engine": ("Python", "MPI", "Rust"),
        "option.tensor_parallel_degree": ("1", "max", "-1"),
        "option.max_rolling_batch_prefill_tokens": ("4", "8192"),
    },
    "tgi": {
        "MAX_INPUT_LENGTH": ("1024", "4096"),
        "MAX_INPUT_TOKENS": ("1024",),
        "MAX_TOTAL_TOKENS": ("2048", "1024"),
        "USE_PREFIX_CACHING": ("1", "0"),
        "PREFIX_CACHING": ("1",),
        "DTYPE": ("fp16", "bf16", "float16"),
        "QUANTIZE": ("awq", "bitsandbytes"),
        "SHARDED": ("true", "True"),
        "SM_NUM_GPUS": ("1", "4"),
    },
    "vllm": {
        "SM_VLLM_DTYPE": ("fp16", "bf16", "half"),
        "SM_VLLM_ENFORCE_EAGER": ("true", "", "false"),
        "SM_VLLM_MAX_MODEL_LEN": ("4096", "4K", "0"),
        "HF_MODEL_ID": ("org/model",),
    },
}
VERSIONS = {
    "lmi": (None, "0.23.0", "lmi9", "lmi14", "lmi17", "lmi27"),
    "tgi": (None, "1.1.0", "2.4.0", "3.3.6"),
    "vllm": (None, "0.16.0", "0.26.0"),
}


def configurations() -> list[tuple[str, str | None, str]]:
    """Return texts with keys of an engine, some of them twice, for each version."""
    chance = random.Random(SEED)  # noqa: S311 (no secret)
    made = []
    for engine, words in WORDS.items():
        for version in VERSIONS[engine]:
            for _ in range(FILES):
                keys = chance.choices(tuple(words), k=chance.randint(1, 8))
                lines = [f"{key}={chance.choice(words[key])}" for key in keys]
                made.append((engine, version, "# kept\n" + "\n".join(lines) + "\n"))
    return made


def read(text: str, engine: str) -> ConfigSource:
    (source,) = read_content(text.encode(), "serving.properties" if engine == "lmi" else "c.env")
    assert isinstance(source, ConfigSource)
    return source


def values(source: ConfigSource) -> set[str]:
    return {entry.value.lower() for entry in source.entries}


SAME = {"bfloat16": "bf16", "float16": "fp16", "half": "fp16", "lmi-dist": "vllm"}


@pytest.mark.parametrize("engine", WORDS)
def test_mending_twice_is_mending_once_and_makes_nothing_wrong(engine: str) -> None:
    mended = 0
    for of, version, text in configurations():
        if of != engine:
            continue
        given = Given(engine, version)  # type: ignore[arg-type]  # of the table
        source = read(text, engine)
        before = lint_sources([source], given).findings
        after = mended_text(source, before, given)
        again = read(after, engine)
        left = lint_sources([again], given).findings
        assert mended_text(again, left, given) == after
        assert {one.rule for one in left if one.severity != "note"} <= {one.rule for one in before}
        assert {SAME.get(one, one) for one in values(again)} == {SAME.get(one, one) for one in values(source)}
        assert after.startswith("# kept\n")
        mended += after != text
    assert mended > 3


def test_what_a_handler_of_ones_own_reads_is_left() -> None:
    text = "option.entryPoint=model.py\noption.dtype=bfloat16\noption.Max_Model_Len=8\noption.max_num_seqs=8\n"
    source = read(text, "lmi")
    given = Given("lmi", "lmi27")
    assert mended_text(source, lint_sources([source], given).findings, given) == text
