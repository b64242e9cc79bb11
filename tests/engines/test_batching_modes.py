from __future__ import annotations

import pytest

from examples.batching_modes.batching_modes import Mode, Model, batching_mode, render_mode
from seatrial_base.errors import RenderError
from seatrial_lint.engines.properties import parse_properties

ARTICLE = {"option.model_id": "tiiuae/falcon-40b", "option.tensor_parallel_degree": "8", "option.dtype": "fp16"}
CONTINUOUS = {
    "engine": "MPI",
    "option.rolling_batch": "auto",
    "option.max_rolling_batch_size": "32",
    "option.max_rolling_batch_prefill_tokens": "1024",
}
ASYNC = {
    "engine": "Python",
    "option.async_mode": "true",
    "option.rolling_batch": "disable",
    "option.entryPoint": "djl_python.lmi_vllm.vllm_async_service",
    "option.max_rolling_batch_size": "32",
    "option.max_rolling_batch_prefill_tokens": "1024",
}
DYNAMIC = {"engine": "Python", "batch_size": "4", "max_batch_delay": "100"}
GONE = "paged_attention: DJL 0.26 removed continuous batching without paged attention: this is the paged mode."
ALWAYS = "paged_attention: Always on since DJL 0.26, so nothing is written."
NO_DIST = "continuous_batching: LMI 15 removed lmi-dist: vLLM batches in a separate process (engine=Python, not MPI)."
TOKENS = "max_num_batched_tokens: vLLM counts decode tokens in this limit and splits long prompts."


@pytest.mark.parametrize("version", ["0.23.0", "0.24.0", "0.25.0"])
@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("dynamic", DYNAMIC),
        ("continuous", CONTINUOUS | {"option.paged_attention": "False"}),
        ("continuous-paged", CONTINUOUS | {"option.paged_attention": "True"}),
    ],
)
def test_containers_of_their_day_are_told_what_the_articles_measured(
    mode: Mode, version: str, expected: dict[str, str]
) -> None:
    rendered = render_mode(mode, version)
    assert parse_properties(rendered.files["serving.properties"]) == ARTICLE | expected
    assert rendered.notes == ()


@pytest.mark.parametrize(
    ("mode", "version", "expected", "notes"),
    [
        ("continuous", "lmi8", CONTINUOUS, [GONE]),
        ("continuous-paged", "lmi8", CONTINUOUS, [ALWAYS]),
        ("continuous", "lmi27", ASYNC, [GONE, NO_DIST, TOKENS]),
        ("continuous-paged", "lmi27", ASYNC, [ALWAYS, NO_DIST, TOKENS]),
        (
            "dynamic",
            "lmi27",
            DYNAMIC | {"option.rolling_batch": "disable", "option.entryPoint": "djl_python.huggingface"},
            ["dynamic_batching: Written as rolling_batch=disable: the default since LMI 8 is continuous batching."],
        ),
    ],
)
def test_later_containers_are_told_the_nearest_and_people_what_changed(
    mode: Mode, version: str, expected: dict[str, str], notes: list[str]
) -> None:
    rendered = render_mode(mode, version)
    assert parse_properties(rendered.files["serving.properties"]) == ARTICLE | expected
    assert [str(note) for note in rendered.notes] == notes


def test_any_model_can_be_batched_so() -> None:
    chosen = batching_mode("dynamic", "0.25.0", Model("org/model", 1, "bf16"))
    assert (chosen.config.model_id, chosen.config.dtype, chosen.dialect) == ("org/model", "bf16", "lmi-python")


def test_a_version_that_is_none() -> None:
    with pytest.raises(RenderError, match="SEA307: 'old' is not a version of lmi"):
        batching_mode("dynamic", "old")
