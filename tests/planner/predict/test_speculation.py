"""Speculative decoding: it pays where reading the weights bounds a step, and costs where arithmetic does."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import pytest

from seatrial.planner.predict.band import FITTED_DRAFTS, band_of
from seatrial.planner.predict.closed_form import predict_at, running_batch
from seatrial.planner.predict.copy_model import Speculation
from seatrial.planner.predict.iteration_cost import costs_of
from seatrial.planner.predict.memory import fit_memory, kv_bytes_per_token, weights_bytes
from seatrial.planner.tables.options import usual_speculation
from seatrial.planner.tables.steady import steady
from seatrial_base.catalog.engines import find_engine
from seatrial_base.catalog.instances import find_instance
from seatrial_base.catalog.models import find_model
from seatrial_base.catalog.speculation import Draft, draft_of

from .conftest import placed

if TYPE_CHECKING:
    from seatrial.planner.predict.copy_model import Copy
    from seatrial_base.catalog.architecture import Architecture
    from seatrial_base.catalog.instances import Instance

QWEN = "Qwen/Qwen3-32B"
VLLM = find_engine("vllm", "0.11.0")


def qwen() -> tuple[Architecture, Instance]:
    architecture, instance = find_model(QWEN), find_instance("ml.g5.12xlarge")
    assert architecture is not None
    assert instance is not None
    return architecture, instance


def plain() -> Copy:
    return placed(
        QWEN, "ml.g5.12xlarge", degree=4, engine=VLLM, input_tokens=557, output_tokens=512, prefix_hit_rate=0.9
    )


def drafting(method: Literal["eagle3", "ngram"] = "eagle3") -> Copy:
    copy = plain()
    return replace(copy, speculation=usual_speculation(method, copy.architecture))


@pytest.mark.parametrize("form", ["closed", "simulation"])
def test_it_pays_at_one_request_and_costs_at_many(form: str) -> None:
    def gain(concurrency: int) -> float:
        both = (plain(), drafting())
        if form == "closed":
            before, after = (predict_at(copy, concurrency).e2e_latency_ms for copy in both)
        else:
            before, after = (steady(copy, concurrency).e2e_ms for copy in both)
        return before / after

    gains = [gain(concurrency) for concurrency in (1, 8, 32, 64)]
    assert gains == sorted(gains, reverse=True)
    assert gains[0] == pytest.approx(1.6, abs=0.15)  # measured: 22.5 s without, 14.2 s with
    assert gains[2] == pytest.approx(0.87, abs=0.15)  # measured: 37.9 s without, 43.0 s with
    assert gains[3] < 1


def test_a_draft_reads_its_own_weights_for_each_drafted_token() -> None:
    copy = drafting()
    costs = costs_of(copy)
    drafter = costs.drafter

    assert drafter is not None
    assert costs.verified == 5
    assert costs.draft == 0
    assert costs.drafting(1) == pytest.approx(drafter.device(5) + 3 * drafter.device(1))
    assert costs.step(1) - costs.drafting(1) == pytest.approx(costs.device(5) + costs.sequence)
    assert drafter.weights < costs.weights / 30
    assert costs.attention(1) == pytest.approx(costs.attention_token + 4 * drafter.attention_token)


def test_tokens_of_the_prompt_are_drafted_for_nothing() -> None:
    costs = costs_of(drafting("ngram"))

    assert (costs.draft, costs.drafting(8)) == (0.0, 0.0)
    assert costs.verified == 5


def test_a_draft_takes_memory_for_its_weights_and_its_cache() -> None:
    architecture, instance = qwen()

    def fit(draft: Draft | None) -> tuple[int, int]:
        found = fit_memory(
            architecture, instance, VLLM, degree=4, quantization=None, tokens=1_024, batched_tokens=2_048, draft=draft
        )
        return found.weights_bytes, found.kv_room_bytes

    draft = draft_of("eagle3", architecture)
    assert draft is not None
    (bare, room), (weights, left) = fit(None), fit(draft)
    assert weights - bare == pytest.approx(draft.weights_bytes / 4, abs=1)
    own, drafted = kv_bytes_per_token(architecture, 4), kv_bytes_per_token(draft.shape, 4)
    assert left == pytest.approx((room - draft.weights_bytes / 4) * own / (own + drafted), abs=2)


def test_verified_tokens_take_their_part_of_the_iterations_budget() -> None:
    few = replace(plain(), batched_tokens=64, max_num_seqs=64)
    copy = replace(few, speculation=drafting().speculation)

    assert running_batch(few, 64)[0] == pytest.approx(64 * 511 / (511 + 56))
    assert running_batch(copy, 64)[0] < 13  # 64 tokens, 5 a sequence


def test_the_band_widens_by_what_the_rate_may_be_off_and_says_so() -> None:
    architecture, instance = qwen()

    def band(speculation: Speculation | None) -> tuple[float, bool, str]:
        found = band_of(VLLM, "0.11.0", architecture, instance, degree=4, speculation=speculation)
        return found.throughput, found.measured, found.because

    bare, _, _ = band(None)
    fitted, measured, because = band(usual_speculation("eagle3", architecture))
    assert (fitted, measured) == (max(bare, FITTED_DRAFTS), True)
    assert "acceptance rate 0.564 is fitted (AWS" in because
    assumed, is_measured, words = band(usual_speculation("ngram", architecture))
    assert assumed > fitted
    assert not is_measured
    assert "acceptance rate 0.35 is assumed (" in words
    given = band(Speculation(4, 0.6, 0.05))
    assert not given[1]
    assert "acceptance rate 0.6 is given by the spec" in given[2]


class TestStatementsOfTheArticles:
    """`facts.csv` of the published benchmarks: single numbers without their conditions."""

    def test_awq_70b_takes_35_gb_but_for_scales_and_embeddings(self) -> None:
        llama = find_model("meta-llama/Meta-Llama-3-70B")
        assert llama is not None

        assert weights_bytes(llama, None) / 1e9 == pytest.approx(140, rel=0.01)
        assert llama.params_total * 4 / 8 / 1e9 == pytest.approx(35, rel=0.01)
        assert weights_bytes(llama, "awq") / 1e9 == pytest.approx(39.8, abs=0.1)

    def test_70b_on_p5_doubles_at_less_than_twice_the_load(self) -> None:
        """1,200 tokens/s without and 2,400 with optimization: FP8 and a draft model; no load is named."""
        llama = find_model("meta-llama/Meta-Llama-3-70B")
        assert llama is not None
        speculation = replace(
            usual_speculation("draft_model", llama), draft=draft_of("draft_model", llama, "meta-llama/Llama-3.2-1B")
        )

        def output_tok_s(in_flight: int, quantization: str | None, drafted: Speculation | None) -> float:
            copy = placed(
                llama.id,
                "ml.p5.48xlarge",
                degree=8,
                engine=VLLM,
                input_tokens=622,
                output_tokens=250,
                quantization=quantization,
            )
            return predict_at(replace(copy, speculation=drafted), in_flight).output_tok_s

        assert output_tok_s(17, None, None) == pytest.approx(1_200, rel=0.05)
        assert output_tok_s(17, "fp8", speculation) < 2_400 < output_tok_s(32, "fp8", speculation)
