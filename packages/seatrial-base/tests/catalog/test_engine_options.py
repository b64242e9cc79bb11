from __future__ import annotations

import itertools

import pytest

from seatrial_base.catalog.engine_options import (
    EFFECTS,
    ENGINE_OPTIONS,
    SPELLING_SOURCES,
    Spelling,
    all_known_options,
    all_spellings,
    bare_name,
    effect_of,
    every_known_name,
    find_spellings,
    option_env,
    unknown_options,
)
from seatrial_base.catalog.engine_versions import (
    DIALECT_NAMES,
    DIALECTS,
    EngineName,
    Version,
    existing_dialects,
    read_version,
    version_text,
)
from seatrial_base.catalog.engines import Engine
from seatrial_lint.engines.config import ServingConfig


@pytest.mark.parametrize(
    ("engine", "text", "version"),
    [
        ("lmi", "0.23.0", (5,)),
        ("lmi", "0.25.0-deepspeed0.11.0-cu118", (7,)),
        ("lmi", "0.26.0", (8,)),
        ("lmi", "0.33.0-tensorrtllm0.21.0-cu128", (15,)),
        ("lmi", "0.35.0", (17,)),
        ("lmi", "0.36.0", (27,)),  # the newest of its builds that was read
        ("lmi", "0.36.0-lmi18.0.0-cu128", (18,)),
        ("lmi", "lmi28", (28,)),
        ("lmi", "27", (27,)),
        ("lmi", "4", None),
        ("lmi", "0.22.1", None),
        ("lmi", "", None),
        ("tgi", "3.3.6", (3, 3, 6)),
        ("tgi", "2.7.0-tgi3.3.6-gpu-py311", (3, 3, 6)),
        ("tgi", "2.0", (2, 0, 0)),
        ("vllm", "v0.11.1", (0, 11, 1)),
        ("sglang", "0.5.20-gpu-py312", (0, 5, 20)),
        ("sglang", "newest", None),
    ],
)
def test_versions_of_an_engine_have_one_order(engine: EngineName, text: str, version: Version | None) -> None:
    assert read_version(engine, text) == version


def test_versions_are_called_what_people_call_them() -> None:
    assert version_text("lmi", (7,)) == "DJL 0.25"
    assert version_text("lmi", (8,)) == "LMI 8"
    assert version_text("tgi", (3, 3, 6)) == "TGI 3.3.6"


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("0.23.0", ("lmi-vllm", "lmi-dist", "lmi-neuronx", "lmi-deepspeed", "lmi-python")),
        ("lmi9", ("lmi-vllm", "lmi-dist", "lmi-trtllm", "lmi-neuronx", "lmi-deepspeed", "lmi-python")),
        ("lmi10", ("lmi-vllm", "lmi-dist", "lmi-trtllm", "lmi-neuronx", "lmi-python")),
        ("lmi14", ("lmi-vllm", "lmi-dist", "lmi-trtllm", "lmi-neuronx", "lmi-python")),
        ("lmi15", ("lmi-async", "lmi-vllm", "lmi-trtllm", "lmi-neuronx", "lmi-python")),
        ("lmi17", ("lmi-async", "lmi-vllm", "lmi-trtllm", "lmi-python")),
        ("unknown", ()),
    ],
)
def test_dialects_come_and_go(version: str, expected: tuple[str, ...]) -> None:
    assert existing_dialects("lmi", version) == expected


def leaves() -> set[str]:
    found: set[str] = set()
    for name, field in ServingConfig.model_fields.items():
        found.add(name)
        for part in getattr(field.annotation, "__args__", ()):
            found |= {f"{name}.{member}" for member in getattr(part, "model_fields", {})}
    return found


def test_every_row_names_a_field_that_exists() -> None:
    named = {name for row in all_spellings() for name in (row.field, row.when, *row.implies) if name}
    assert named - leaves() == set()


def test_every_row_names_dialects_and_a_source_that_exist() -> None:
    assert {row.source for row in all_spellings()} <= {source.label for source in SPELLING_SOURCES.rows}
    assert set(itertools.chain.from_iterable(row.dialects for row in all_spellings())) == set(DIALECT_NAMES)
    assert tuple(row.name for row in DIALECTS.rows) == DIALECT_NAMES


def test_every_row_can_be_read_back() -> None:
    for row in all_spellings():
        assert row.key or row.env or row.leave, row


def _same_place(first: Spelling, second: Spelling) -> bool:
    return first.field != second.field and first.key is not None and first.key == second.key


@pytest.mark.parametrize("dialect", ["lmi-async", "lmi-vllm"])
def test_only_a_field_beside_its_dialect_s_own_key_shares_a_key(dialect: str) -> None:
    rows = find_spellings("lmi-async" if dialect == "lmi-async" else "lmi-vllm", "lmi27").rows
    assert [pair for pair in itertools.combinations(rows, 2) if _same_place(*pair)] == []


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("engine", "OPTION_ENGINE"),
        ("option.entryPoint", "OPTION_ENTRYPOINT"),
        ("option.max_model_len", "OPTION_MAX_MODEL_LEN"),
        ("option.pythonExecutable", "OPTION_pythonExecutable"),
        ("job_queue_size", "SERVING_JOB_QUEUE_SIZE"),
    ],
)
def test_lmi_s_keys_have_their_variables(key: str, name: str) -> None:
    assert option_env(key) == name


@pytest.mark.parametrize(
    ("tag", "version"),
    [
        ("2.7.0-optimum3.3.6-neuronx-py310-ubuntu22.04", (3, 3, 6)),
        ("1.13.1-optimum0.0.18-neuronx-py310-ubuntu22.04", (0, 0, 18)),
        ("3.3.6", (3, 3, 6)),
    ],
)
def test_a_tag_that_leads_with_another_version_is_not_taken_for_tgis(tag: str, version: tuple[int, ...] | None) -> None:
    assert read_version("tgi", tag) == version


@pytest.mark.parametrize(
    ("name", "lmi", "known"),
    [
        ("gpu_memory_utilization", 27, True),
        ("enable_prefix_caching", 27, True),
        ("chat_template", 27, True),  # LMI's own
        ("swap_space", 20, True),
        ("swap_space", 27, False),  # left vLLM by 0.23
        ("rope_scaling", 16, True),
        ("rope_scaling", 17, False),  # left vLLM by 0.11.1
        ("max_rolling_batch", 27, False),  # a seed's slip for max_rolling_batch_size
    ],
)
def test_an_option_is_known_to_the_builds_that_read_it(name: str, lmi: int, known: bool) -> None:  # noqa: FBT001 (a table)
    assert (name not in unknown_options((name,), lmi)) == known


def test_an_unknown_option_comes_with_the_nearest_known() -> None:
    assert unknown_options(("enable_prefix_cache",), 27)["enable_prefix_cache"][0] == "enable_prefix_caching"


def test_a_build_that_was_not_read_knows_no_unknown_option() -> None:
    assert unknown_options(("anything",), 29) == {}


def test_every_row_names_its_source_and_date() -> None:
    assert all(row.source and row.date and row.options for row in all_known_options())


def test_every_option_is_counted_named_or_declared_neutral() -> None:
    spelled = {bare_name(text) for row in all_spellings() for text in (row.key, row.env) if text}
    every = {*every_known_name(), *spelled, *(row.name for row in ENGINE_OPTIONS.rows)}
    assert [name for name in sorted(every) if effect_of(name) is None] == []
    assert {row.sets for row in EFFECTS.rows} - {""} <= Engine.__dataclass_fields__.keys()
