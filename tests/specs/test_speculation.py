"""`serving.overrides.speculative_decoding`: its bounds, and when it contradicts the workload or itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.specs.load import load_spec
from seatrial.specs.recipe import speculation_problems, tokens_per_cycle
from seatrial.specs.yaml_source import Document
from seatrial_base.errors import SpecError

if TYPE_CHECKING:
    from pathlib import Path

    from seatrial.specs.yaml_source import Yaml

AT = "endpoints/chat.yaml:8: serving.overrides.speculative_decoding"
SLOWER = "  hint: draft fewer tokens, use a cheaper or better draft, or leave speculative_decoding out"


class Write(Protocol):
    def __call__(self, text: str, name: str = ...) -> Path: ...


def text_with(endpoint_text: str, speculation: str) -> str:
    return f"{endpoint_text}serving: {{overrides: {{speculative_decoding: {{{speculation}}}}}}}\n"


def test_drafting_a_token_costs_a_twentieth_of_a_step_by_default(
    write: Write, environments: Path, endpoint_text: str
) -> None:
    spec = write(text_with(endpoint_text, "draft_tokens: 4, acceptance_rate: 0.7"))
    read = load_spec(spec, "dev", environments=environments).endpoint.serving.overrides.speculative_decoding

    assert read is not None
    assert (read.draft_tokens, read.acceptance_rate, read.draft_cost) == (4, 0.7, 0.05)


@pytest.mark.parametrize(
    "speculation",
    [
        "draft_tokens: 1, acceptance_rate: 0.06",
        "draft_tokens: 16, acceptance_rate: 0.999, draft_cost: 0.9",
        "draft_tokens: 4, acceptance_rate: 0.001, draft_cost: 0",
    ],
)
def test_what_saves_time_is_accepted(speculation: str, write: Write, environments: Path, endpoint_text: str) -> None:
    spec = write(text_with(endpoint_text, speculation))
    overrides = load_spec(spec, "dev", environments=environments).endpoint.serving.overrides
    assert overrides.speculative_decoding is not None


@pytest.mark.parametrize(
    ("speculation", "expected"),
    [
        pytest.param(
            "draft_tokens: 17, acceptance_rate: 0.7",
            f"{AT}.draft_tokens: SEA107: should be less than or equal to 16, not 17",
            id="too-many",
        ),
        pytest.param(
            "draft_tokens: 4, acceptance_rate: 1",
            f"{AT}.acceptance_rate: SEA107: should be less than 1, not 1",
            id="certain",
        ),
        pytest.param(
            "draft_tokens: 4, acceptance_rate: 0.7, draft_cost: -0.1",
            f"{AT}.draft_cost: SEA107: should be greater than or equal to 0, not -0.1",
            id="negative-cost",
        ),
        pytest.param(
            "draft_tokens: 4",
            f"{AT}.acceptance_rate: SEA106: the field is required\n  hint: add `acceptance_rate: …`",
            id="no-assumption",
        ),
        pytest.param(
            "draft_tokens: 1, acceptance_rate: 0.05",
            f"{AT}: SEA116: speculative decoding would slow the endpoint: 1.05 tokens in the time of 1.05 steps\n"
            f"{SLOWER}",
            id="saves-as-much-as-it-costs",
        ),
        pytest.param(
            "draft_tokens: 8, acceptance_rate: 0.5, draft_cost: 0.25",
            f"{AT}: SEA116: speculative decoding would slow the endpoint: 2.00 tokens in the time of 3.00 steps\n"
            f"{SLOWER}",
            id="too-dear-a-draft",
        ),
    ],
)
def test_one_mistake_gives_one_whole_message(
    speculation: str, expected: str, write: Write, environments: Path, endpoint_text: str
) -> None:
    with pytest.raises(SpecError) as caught:
        load_spec(write(text_with(endpoint_text, speculation)), "dev", environments=environments)

    told = [str(problem).replace(f"{environments.parent.as_posix()}/", "") for problem in caught.value.problems]
    assert told == [expected]


@pytest.mark.parametrize(("output_tokens", "is_refused"), [(4, True), (5, False)])
def test_a_draft_is_shorter_than_the_output(output_tokens: int, is_refused: bool) -> None:  # noqa: FBT001
    data: dict[str, Yaml] = {
        "workload": {"output_tokens": output_tokens},
        "serving": {"overrides": {"speculative_decoding": {"draft_tokens": 4, "acceptance_rate": 0.7}}},
    }
    told = [str(problem) for problem in speculation_problems(Document("chat.yaml", data, {}, {}))]

    expected = (
        "chat.yaml: serving.overrides.speculative_decoding.draft_tokens: SEA108: draft_tokens 4 is not below "
        "workload.output_tokens 4\n  hint: draft fewer tokens, or leave speculative_decoding out"
    )
    assert told == ([expected] if is_refused else [])


@given(st.integers(1, 16), st.floats(0.001, 0.999))
def test_a_cycle_gives_between_one_token_and_all_of_them(draft_tokens: int, acceptance_rate: float) -> None:
    expected = sum(acceptance_rate**accepted for accepted in range(draft_tokens + 1))

    assert tokens_per_cycle(draft_tokens, acceptance_rate) == pytest.approx(expected)
    assert 1 < expected < draft_tokens + 1


@given(st.dictionaries(st.sampled_from(["draft_tokens", "acceptance_rate", "draft_cost"]), st.integers() | st.floats()))
def test_any_numbers_are_compared_without_failing(numbers: dict[str, int | float]) -> None:
    data: dict[str, Yaml] = {"serving": {"overrides": {"speculative_decoding": dict(numbers)}}}

    assert all(problem.rule == "SEA116" for problem in speculation_problems(Document("any.yaml", data, {}, {})))
