"""The local engine proves it: F16, Q8_0 and Q4_0 of one random model differ in memory and in log-probabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks.recipes_local.engines import LocalEngine, local_engine
from seatrial.quality.comparison import compare_quality
from seatrial.quality.pairs import pairs_of
from seatrial_load.documents.request import EvaluationPrompt

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seatrial_load.documents.result import EvaluationAnswer

PROMPTS = tuple(EvaluationPrompt(id=f"{n}", prompt=f"Tell me more of the number {n} and of") for n in range(24))


@pytest.fixture(scope="module")
def measured(
    tmp_path_factory: pytest.TempPathFactory,
) -> Mapping[str, tuple[LocalEngine, tuple[EvaluationAnswer, ...]]]:
    found = {}
    for kind in ("F16", "Q8_0", "Q4_0"):
        with local_engine(kind, tmp_path_factory.mktemp("model")) as engine:
            found[kind] = engine, engine.answers(PROMPTS, 12)
    return found


def test_weights_shrink_with_the_bits(measured: Mapping[str, tuple[LocalEngine, object]]) -> None:
    f16, q8, q4 = (measured[kind][0] for kind in ("F16", "Q8_0", "Q4_0"))
    assert [engine.gguf_type for engine in (f16, q8, q4)] == ["F16", "Q8_0", "Q4_0"]
    assert f16.weights_bytes > q8.weights_bytes > q4.weights_bytes


def test_log_probabilities_move_away_with_fewer_bits(
    measured: Mapping[str, tuple[LocalEngine, tuple[EvaluationAnswer, ...]]],
) -> None:
    def distance(kind: str) -> float:
        pairs = pairs_of(PROMPTS, measured["F16"][1], measured[kind][1])
        told = compare_quality(pairs, len(PROMPTS)).likeness
        return next(each.value for each in told if each.metric == "logprob_distance")

    assert distance("F16") == 0
    assert 0 < distance("Q8_0") < distance("Q4_0")


def test_the_same_weights_differ_in_nothing(
    measured: Mapping[str, tuple[LocalEngine, tuple[EvaluationAnswer, ...]]],
) -> None:
    pairs = pairs_of(PROMPTS, measured["F16"][1], measured["F16"][1])
    same = compare_quality(pairs, len(PROMPTS))
    assert {each.verdict for each in same.differences} == {"no real difference"}
    assert next(each.value for each in same.likeness if each.metric == "identical_answers") == 1
