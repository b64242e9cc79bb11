"""What is told of a probe, and what it decides."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from seatrial.probe.answer import conclusion, probe_answer
from seatrial.probe.pinned import ProbedHardware, pin, probed_as
from seatrial.probe.view import estimate_lines, longest_s, probe_view
from seatrial_load.documents.stop import Void, VoidReason
from tests.probe.conftest import CHEAP, NOTE, locked_as, result_of

if TYPE_CHECKING:
    from typing import Literal

    from seatrial.documents.plan import Plan
    from seatrial.probe.answer import ProbeAnswer
    from tests.probe.conftest import Locked

    Status = Literal["pass", "fail", "inconclusive"]

GOLDEN = Path(__file__).parent / "golden"


def shown(plan: Plan, answers: tuple[ProbeAnswer, ...]) -> str:
    console = Console(width=100, record=True, file=open(os.devnull, "w"), color_system=None)  # noqa: PTH123, SIM115
    console.print(probe_view(plan, answers, conclusion(plan, answers)))
    return "".join(f"{line.rstrip()}\n" for line in console.export_text().splitlines())


def test_measured_stands_beside_predicted(locked: Locked) -> None:
    (candidate,) = locked.pinned("candidate")
    answer = probe_answer(candidate, result_of(candidate, tok_s=300.0), 1800.0)
    throughput, tpot = answer.metrics
    assert throughput.measured == 300.0
    assert throughput.predicted == pytest.approx(candidate.plan.curve[0].output_tok_s, rel=0.01)
    assert (tpot.name, tpot.measured) == ("TPOT p95, ms", 45.5)
    assert tpot.predicted == pytest.approx(candidate.plan.curve[0].tpot_p95_ms, rel=0.01)
    assert tpot.bound is not None
    assert tpot.bound == locked.loaded.endpoint.slo.tpot_ms.p95
    assert tpot.predicted / tpot.bound == pytest.approx(1.05, rel=0.01)
    hourly = candidate.plan.cost.usd_per_hour
    assert hourly is not None
    assert answer.spent_usd == pytest.approx(hourly / 2)


def test_the_table_is_the_golden_file(locked: Locked) -> None:
    plan, candidate = locked.pinned()
    answers = (
        replace_predictions(probe_answer(plan, result_of(plan), 1500.0)),
        replace_predictions(probe_answer(candidate, result_of(candidate, "fail"), 1200.0)),
    )
    path, text = GOLDEN / "probe.100.txt", shown(locked.plan, answers)
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def replace_predictions(answer: ProbeAnswer) -> ProbeAnswer:
    """Return the answer with predictions and bounds that no fit of the catalog changes."""
    metrics = tuple(
        replace(metric, predicted=100.0 + number, bound=metric.bound and 96.0)
        for number, metric in enumerate(answer.metrics)
    )
    return replace(answer, metrics=metrics, spent_usd=1.25)


@pytest.mark.parametrize(
    ("statuses", "told"),
    [
        (("pass", "pass"), "The candidate meets the SLO and costs $"),
        (("pass", "fail"), "The candidate misses the SLO. The plan stays."),
        (("fail", "fail"), "The candidate misses the SLO. The plan misses it too."),
        (("pass", "inconclusive"), "The probe decides nothing"),
        (("pass",), "The plan's deployment meets the SLO."),
        (("fail",), "The plan's deployment misses the SLO."),
    ],
)
def test_the_candidate_decides(locked: Locked, statuses: tuple[Status, ...], told: str) -> None:
    answers = [
        probe_answer(pinned, result_of(pinned, status))
        for pinned, status in zip(locked.pinned(), statuses, strict=False)
    ]
    assert conclusion(locked.plan, answers).startswith(told)


def test_a_local_engine_decides_nothing(locked: Locked) -> None:
    answers = tuple(probe_answer(pinned, result_of(pinned, note=NOTE), 60.0) for pinned in locked.pinned())
    text = shown(locked.plan, answers)
    assert conclusion(locked.plan, answers).endswith("simulated and decide nothing.")
    assert text.count(f"simulated, measured on: {NOTE}") == 2
    assert "cost: " not in text


def test_a_copy_that_misses_its_share_of_the_throughput_misses_the_slo(tmp_path: Path) -> None:
    locked = locked_as(tmp_path, slo={"output_tok_s": 60.0}, serving={"instance_types": [CHEAP]})
    (pinned,) = pin(
        locked.loaded, [probed_as(locked.plan, ProbedHardware(CHEAP, 1), None)], tmp_path / "probe", locked.environments
    )
    slow, fast = (probe_answer(pinned, result_of(pinned, tok_s=tok_s)) for tok_s in (59.0, 61.0))
    assert (slow.meets_slo, fast.meets_slo) == (False, True)
    assert probe_answer(pinned, result_of(pinned, "fail", tok_s=61.0)).meets_slo is False
    assert probe_answer(pinned, result_of(pinned, "inconclusive", tok_s=61.0)).meets_slo is None
    assert probe_answer(pinned, replace(result_of(pinned), levels=())).meets_slo is None
    assert "slo.output_tok_s is not reached. " in shown(locked.plan, (slow,))


def test_a_level_that_measured_the_client_has_no_numbers(locked: Locked) -> None:
    (candidate,) = locked.pinned("candidate")
    result = result_of(candidate, "inconclusive")
    void = Void(reasons=(VoidReason.READ_LATE,), because="the client was late")
    answer = probe_answer(candidate, replace(result, levels=(replace(result.levels[0], void=void),)))
    assert {metric.measured for metric in answer.metrics} == {None}
    assert probe_answer(candidate, replace(result, levels=())).metrics == answer.metrics


def test_the_cost_is_told_before(locked: Locked) -> None:
    pinned = locked.pinned()
    *each, total = estimate_lines(pinned)
    assert [line.partition(":")[0] for line in each] == [one.deployment.stack_name for one in pinned]
    plan = pinned[0].plan
    assert longest_s(pinned[0]) == plan.download_timeout_s.value + plan.startup_timeout_s.value + 600
    assert total.startswith("cost of the probe: up to $")


def test_an_unknown_price_is_told(locked: Locked) -> None:
    (one,) = locked.pinned("candidate")
    plan = one.plan.model_copy(update={"cost": one.plan.cost.model_copy(update={"usd_per_hour": None})})
    unpriced = replace(one, deployment=replace(one.deployment, plan=plan))
    assert list(estimate_lines([unpriced]))[-1].startswith("cost of the probe: unknown")
    cost = one.plan.cost.model_copy(update={"price_region": "us-east-1"})
    elsewhere = replace(one.deployment, plan=one.plan.model_copy(update={"cost": cost}))
    assert "(the price of us-east-1: this region's is not known)" in next(
        estimate_lines([replace(one, deployment=elsewhere)])
    )
    assert probe_answer(unpriced, result_of(one), 60.0).spent_usd is None
