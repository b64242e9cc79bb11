from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from seatrial.planner.comparisons import explain
from seatrial.planner.planner import make_plan
from seatrial_base.errors import PlanError
from tests.planner.conftest import reads

if TYPE_CHECKING:
    from tests.planner.conftest import Ask

PUBLISHED_TYPES = ["ml.g5.2xlarge", "ml.g5.12xlarge", "ml.p4d.24xlarge"]


def test_the_winner_says_why_it_won(ask: Ask) -> None:
    loaded = ask(serving={"instance_types": PUBLISHED_TYPES})
    (verdict,) = explain(loaded, "ml.g5.2xlarge")

    assert (verdict.won, verdict.stage, verdict.tensor_parallel_degree) == (True, "chosen", 1)
    assert verdict.because == make_plan(loaded).instance_type.because


def test_a_loser_has_a_verdict_for_each_degree(ask: Ask) -> None:
    verdicts = explain(ask(serving={"instance_types": PUBLISHED_TYPES}), "ml.g5.12xlarge")

    assert [(verdict.tensor_parallel_degree, verdict.won, verdict.stage) for verdict in verdicts] == [
        (1, False, "ranking"),
        (2, False, "ranking"),
        (4, False, "ranking"),
    ]
    assert verdicts[0].because == (
        "Meets the SLO at $7.09/h, $5.575/h above the chosen one. Chosen: ml.g5.2xlarge with degree 1."
    )
    assert verdicts[0].usd_per_hour == 7.09


def test_what_fails_says_at_which_question(ask: Ask) -> None:
    loaded = ask(
        model={"hub_id": "meta-llama/Llama-2-70b-hf"}, serving={"instance_types": ["ml.g5.12xlarge", "ml.g5.48xlarge"]}
    )
    verdicts = explain(loaded, "ml.g5.12xlarge")

    assert {verdict.stage for verdict in verdicts} == {"memory"}
    assert " GiB weights, " in verdicts[0].because


def test_an_instance_type_that_is_not_allowed_says_so_and_what_it_would_be(ask: Ask) -> None:
    (verdict,) = explain(ask(serving={"instance_types": ["ml.g5.12xlarge"]}), "ml.g5.2xlarge")

    assert (verdict.won, verdict.stage, verdict.usd_per_hour) == (False, "allowed", 1.515)
    assert verdict.because.startswith("Not in `instance_types`. If allowed: ")


def test_an_instance_type_that_would_win_were_it_allowed_says_so(ask: Ask) -> None:
    (verdict,) = explain(ask(serving={"instance_types": ["ml.g5.12xlarge"]}), "ml.g5.2xlarge")

    assert reads(
        verdict.because,
        "Not in `instance_types`. If allowed: predicted to answer within request_timeout_s; ranks above the chosen "
        "ml.g#.12xlarge with degree #: $# per hour, # ms per token for a single request, at most # output tok/s.",
    )


def test_where_nothing_satisfies_the_spec_each_verdict_still_says_what_it_misses(ask: Ask) -> None:
    (verdict,) = explain(ask(slo={"tpot_ms": {"p95": 1}}), "ml.g5.2xlarge")

    assert verdict.stage == "slo"
    assert reads(verdict.because, "A single request is predicted to take # ms against slo.tpot_ms.p95 of 1 ms.")


NEURON = "AWS Neuron is planned only where `instance_types` names it. If allowed: "


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("ml.p6-b300.48xlarge", ("The price is unknown: ", "$163.78 per hour for an instance", "142.416", "170.8992")),
        ("ml.trn1n.32xlarge", (NEURON, "$28.50", "24.78")),
        ("ml.p5en.48xlarge", ("Meets the SLO at ", "Its price in us-east-1 is not known, us-east-2's counts.")),
    ],
)
def test_an_estimate_has_its_derivation_and_neuron_its_reason(name: str, words: tuple[str, ...], ask: Ask) -> None:
    because = [each.because for each in explain(ask(serving={}), name)]

    assert because
    assert all(word in each for each in because for word in words)


def test_an_unknown_instance_type_has_near_names(ask: Ask) -> None:
    with pytest.raises(PlanError) as caught:
        explain(ask(), "ml.g5.3xlarge")

    assert str(caught.value) == (
        "SEA110: ml.g5.3xlarge is not in the catalog\n  hint: similar in the catalog: ml.g5.xlarge, ml.g5.8xlarge, "
        "ml.g5.4xlarge"
    )


def test_neuron_cores_are_counted_and_judged_by_their_own_engine(ask: Ask) -> None:
    small = {"hub_id": "meta-llama/Llama-3.2-1B"}
    (chosen,) = explain(ask(model=small, serving={"instance_types": ["ml.inf2.xlarge"]}), "ml.inf2.xlarge")
    assert (chosen.won, chosen.tensor_parallel_degree) == (True, 2)

    verdicts = explain(ask(model={"hub_id": "meta-llama/Meta-Llama-3-70B-Instruct"}), "ml.inf2.24xlarge")
    assert {each.stage for each in verdicts} == {"allowed"}
    assert all("short per accelerator of 16.0 GiB" in each.because for each in verdicts)


def test_a_family_that_neuron_has_no_code_for_says_so(ask: Ask) -> None:
    (verdict,) = explain(ask(model={"hub_id": "tiiuae/falcon-7b"}), "ml.inf2.xlarge")

    assert "has no code for tiiuae/falcon-7b" in verdict.because
