"""The first screen of a plan: what a person decides by."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from seatrial.deployment.starts import start_parts
from seatrial.documents.plan import Proposal, RatePoint
from seatrial.report.planned import measure_first
from seatrial.report.scaling_cost import scaling_cost_lines
from seatrial.report.terminal.first_screen import MOST_LINES, fitted, gate_point, load_tok_s, slo_state, warnings_of
from seatrial.report.terminal.plan import SECTIONS, plan_view, price_sentence
from seatrial.specs.endpoint import EndpointSpec
from seatrial_base.units import usd
from tests.sample_plan import decided

if TYPE_CHECKING:
    from seatrial.documents.plan import Plan
    from seatrial.specs.load import LoadedSpec
    from tests.report.terminal.conftest import Shown

GOLDEN = Path(__file__).parent / "golden"


def with_slo(loaded: LoadedSpec, *, part: str = "slo", **fields: object) -> LoadedSpec:
    endpoint = EndpointSpec.model_validate({**loaded.endpoint.model_dump(), part: fields})
    return replace(loaded, endpoint=endpoint)


with_scaling = partial(with_slo, part="scaling")


def lines_of(text: str) -> dict[str, str]:
    """Return the first line of each row by its name."""
    rows = [line.split(maxsplit=1) for line in text.splitlines()[1:] if not line.startswith(" ")]
    return {name: rest.strip() for name, rest in rows}


def test_the_first_screen_is_the_golden_file(plan: Plan, loaded: LoadedSpec, shown: Shown) -> None:
    path, loaded = GOLDEN / "first.80.txt", replace(loaded, path=Path("endpoints/chat.yaml"))
    text = shown(plan_view(plan, loaded))
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")
    assert "deploy specs/chat.yaml -e dev" in shown(plan_view(plan, replace(loaded, path=Path("specs/chat.yaml"))))


def test_it_is_short_and_has_what_a_person_decides_by(plan: Plan, loaded: LoadedSpec, shown: Shown) -> None:
    text = shown(plan_view(plan, loaded))
    assert len(text.splitlines()) <= MOST_LINES
    rows = ["model", "load", "deployment", "cost", "latency", "SLO", "runner-up"]
    assert [name for name in lines_of(text) if name in rows] == rows


def test_hosting_is_told_where_it_is_not_the_default(plan: Plan, loaded: LoadedSpec, shown: Shown) -> None:
    assert "hosting" not in lines_of(shown(plan_view(plan, loaded)))
    hosting = {"kind": "single_model", "asynchronous": {"output_s3_uri": "s3://answers/a/"}}
    changed = {**loaded.endpoint.model_dump(), "hosting": hosting, "scaling": {"min_copies": 0, "max_copies": 2}}
    text = shown(plan_view(plan, replace(loaded, endpoint=EndpointSpec.model_validate(changed))))
    assert lines_of(text)["hosting"] == "model in the production variant, asynchronous"
    assert "at zero requests wait; wake-up" in text


def test_hours_of_schedules_and_a_wake_up_are_in_the_cost(plan: Plan, loaded: LoadedSpec, shown: Shown) -> None:
    assert list(scaling_cost_lines(plan, with_scaling(loaded, max_copies=4))) == []
    night = {"name": "night", "schedule": "cron(0 20 * * ? *)", "timezone": "Europe/Berlin", "min_copies": 0}
    day = {"name": "day", "schedule": "cron(0 7 ? * MON-FRI *)", "timezone": "Europe/Berlin", "min_copies": 2}
    office = with_scaling(loaded, min_copies=1, max_copies=4, schedules=(night, day | {"max_copies": 3}))
    # 5 days of 13 hours at 2 copies; of the rest each night's maximum is the day's.
    week = f"a week from {usd(65 * 2 * 1.515)} (103 h at 0, 65 h at 2) to {usd(168 * 3 * 1.515)} (max_copies)"
    start_s = sum(part.likely_s or part.seconds for part in start_parts(plan, loaded) if part.likely_s != 0)
    wake = f"wake-up {usd(1.515 * start_s / 3600)} ({start_s / 60:.3g} min), idle tail {usd(1.515 * 35 / 60)} (35 min)"
    assert list(scaling_cost_lines(plan, office)) == [week, f"at zero requests are refused; {wake}"]
    text = " ".join(shown(plan_view(plan, office, ["cost"])).split())
    assert f"{week} at zero requests are refused; {wake} At zero a request is refused, not queued" in text
    unpriced = plan.model_copy(update={"cost": plan.cost.model_copy(update={"usd_per_hour": None, "purchase": "x"})})
    assert [
        line.count("unknown") for line in scaling_cost_lines(unpriced, office) if "hours that are bought" in line
    ] == [2, 2]


def test_instances_that_stay_and_copies_that_are_kept_are_paid(plan: Plan, loaded: LoadedSpec) -> None:
    more = plan.model_copy(update={"instance_count": decided(2), "copy_count": decided(2)})
    night = {"name": "night", "schedule": "rate(12 hours)", "min_copies": 1, "max_copies": 1}
    (week,) = scaling_cost_lines(more, with_scaling(loaded, max_copies=4, schedules=(night,)))
    assert week == f"a week from {usd(168 * 1.515)} (168 h at 1) to {usd(168 * 1.515)} (max_copies)"
    kept = with_scaling(loaded, max_copies=4, schedules=(night | {"min_copies": 0},), scale_in_protection=True)
    week, never = scaling_cost_lines(more, kept)
    assert (f"{usd(84 * 1.515)} (168 h at 1)" in week, never.partition(":")[0]) == (True, "never at zero")


def test_warnings_are_whole_where_there_is_room_and_a_start_that_may_time_out_is_first(
    plan: Plan, loaded: LoadedSpec, shown: Shown
) -> None:
    slow = "Assumed: 300 s engine start, loading 448.9 GiB at 500 MB/s: above SageMaker's maximum. It may time out."
    warned = plan.model_copy(update={"warnings": ("The price is old.", slow, *(["Much more is to be said. " * 9] * 9))})
    text = shown(plan_view(warned, loaded))
    assert f"warnings 11: {slow} The price is old. 9 more: --section warnings" in " ".join(text.split())
    assert "The price is old. Much more" in shown(plan_view(warned, loaded, columns=300), width=300)


def test_what_the_prediction_leaves_out_has_a_line_of_its_own(plan: Plan, loaded: LoadedSpec, shown: Shown) -> None:
    left = plan.model_copy(update={"warnings": ("Not in the prediction: enforce_eager, swap_space.",)})
    rows = lines_of(shown(plan_view(left, loaded)))
    assert rows["left"] == "out    Not in the prediction: enforce_eager, swap_space"
    assert "warnings" not in rows


def test_the_longest_request_is_shown(plan: Plan, loaded: LoadedSpec, shown: Shown) -> None:
    row = lines_of(shown(plan_view(plan, loaded)))["deployment"]
    assert row.endswith(f"; requests of at most {plan.max_model_len.value:,} tokens")


def test_the_price_of_another_region_and_an_unknown_offer(plan: Plan, loaded: LoadedSpec, shown: Shown) -> None:
    place = loaded.environment.model_copy(update={"region": "me-south-1"})
    cost = plan.cost.model_copy(update={"price_region": "us-east-1"})
    there, elsewhere = replace(loaded, environment=place), plan.model_copy(update={"cost": cost})
    rows = lines_of(shown(plan_view(elsewhere, there), width=200))
    home = lines_of(shown(plan_view(plan, loaded), width=200))
    assert rows["cost"] == f"price not known in me-south-1 (us-east-1: {home['cost']})"
    assert rows["deployment"] == f"{home['deployment']}; not known to be offered in me-south-1"
    assert price_sentence(cost).endswith(" (the price of us-east-1: this region's is not known).")


def test_an_unknown_price_and_an_open_slo_are_said(plan: Plan, loaded: LoadedSpec, shown: Shown) -> None:
    cost = plan.cost.model_copy(update={"usd_per_hour": None})
    rows = lines_of(shown(plan_view(plan.model_copy(update={"cost": cost}), with_slo(loaded))))
    assert rows["cost"].startswith("unknown")
    assert rows["SLO"].startswith("none")
    assert rows["latency"].startswith("TTFT p95 ")


def test_the_slo_is_met_at_risk_or_missed_by_the_band(plan: Plan, loaded: LoadedSpec) -> None:
    point = gate_point(plan)
    assert point is not None
    tpot, band = point.tpot_p95_ms, plan.band.latency
    bounds = {"met": tpot * (1 + band) * 1.01, "at risk": tpot * 1.01, "missed": tpot * 0.99}
    for state, bound in bounds.items():
        assert slo_state(plan, with_slo(loaded, tpot_ms={"p95": bound})) == state
    assert slo_state(plan, with_slo(loaded)) == "none"


def test_a_wide_band_asks_to_be_measured_first(plan: Plan, loaded: LoadedSpec, shown: Shown) -> None:
    def rows_of(share: float) -> dict[str, str]:
        band = plan.band.model_copy(update={"throughput": share, "latency": 0.1})
        return lines_of(shown(plan_view(plan.model_copy(update={"band": band}), loaded)))

    spec, gate = loaded.path.as_posix(), plan.gate_concurrency_per_copy.value
    wide = plan.model_copy(update={"band": plan.band.model_copy(update={"latency": 0.36}), "safer": None})
    command = f"seatrial probe {spec} -e {loaded.environment.name} --level {gate}"
    assert measure_first(wide, loaded) == f"first, since the band is ±36 %: {command}"
    assert "measure" not in rows_of(0.35)
    assert rows_of(0.36)["measure"].startswith("first, since the band is ±36 %: seatrial")


def test_the_throughput_is_that_of_all_copies(plan: Plan) -> None:
    chosen = next(one for one in plan.pareto if one.chosen)
    assert load_tok_s(plan) == chosen.output_tok_s
    bare, point = plan.model_copy(update={"pareto": ()}), gate_point(plan)
    assert point is not None
    assert load_tok_s(bare) == pytest.approx(point.output_tok_s * plan.copy_count.value)


def test_the_offered_load_is_no_prediction_and_the_saturation_is_one(
    plan: Plan, loaded: LoadedSpec, shown: Shown
) -> None:
    point = RatePoint(**dict.fromkeys(RatePoint.model_fields, 1.0) | {"output_tok_s": 128.0})
    rated = {"rates": (point,), "carried_chance": 0.962, "saturation_requests_per_second": 6.5}
    workload = loaded.endpoint.workload.model_copy(update={"concurrency": None, "requests_per_second": 4})
    of_rate = replace(loaded, endpoint=loaded.endpoint.model_copy(update={"workload": workload}))
    text = shown(plan_view(plan.model_copy(update=rated), of_rate), width=100)
    rows = lines_of(text)
    assert rows["load"].endswith(f"4 requests/s, at random: {load_tok_s(plan):,.0f} output tok/s offered")
    assert rows["rate"] == "96 % to be carried; the queue diverges beyond 6.50 requests/s"
    assert "saturation of all copies: 6.50 requests/s ±30 % (5.00 to 8.45), 832 output tok/s\n" in text
    assert "tok/s" not in rows["runner-up"]


@pytest.mark.parametrize("feasible", [True, False])
def test_the_runner_up_meets_the_slo(feasible: bool, plan: Plan, loaded: LoadedSpec, shown: Shown) -> None:  # noqa: FBT001 (a case)
    loser = plan.rejected[0].model_copy(update={"feasible": feasible, "instance_type": "ml.x.large"})
    rows = lines_of(shown(plan_view(plan.model_copy(update={"rejected": (loser,)}), loaded)))
    assert rows["runner-up"].startswith("ml.x.large") is feasible


@pytest.mark.parametrize(
    ("instance_type", "paid", "told"),
    [
        ("ml.p6-b200.48xlarge", 437.0, "wins below $218.50/h for an instance; estimated $131.02/h"),
        ("ml.p6-b200.48xlarge", 250.0, None),  # two would cost $262 by the estimate
        ("ml.p5e.48xlarge", 437.0, "wins below $218.50/h for an instance; estimated $69.62/h; not known to be"),
        ("ml.p5e.48xlarge", 139.0, None),  # two would cost $139.24 by the estimate
    ],
)
def test_a_deployment_that_would_win_by_its_price_is_never_left_out(
    instance_type: str, paid: float, told: str | None, plan: Plan, loaded: LoadedSpec, shown: Shown
) -> None:
    unpriced = plan.pareto[0].model_copy(
        update={"instance_type": instance_type, "instance_count": 2, "tensor_parallel_degree": 8, "usd_per_hour": None}
    )
    cost = plan.cost.model_copy(update={"usd_per_hour": paid})
    text = " ".join(shown(plan_view(plan.model_copy(update={"cost": cost, "unpriced": (unpriced,)}), loaded)).split())

    assert ("unpriced" in text) is (told is not None)
    assert told is None or f"unpriced 2 x {instance_type}, TP 8 meets the SLO too and {told} " in text


def proposal(quantization: str, usd_per_hour: float) -> Proposal:
    return Proposal(
        quantization=quantization,
        instance_type="ml.g6.xlarge",
        tensor_parallel_degree=1,
        copy_count=1,
        instance_count=1,
        usd_per_hour=usd_per_hour,
        output_tok_s=100,
        highest_tok_s=500,
        ms_per_token_alone=20,
        because="It costs less.",
        gives_up="Its answers may differ.",
    )


@pytest.mark.parametrize(
    ("quantization", "share", "row"),
    [("fp8", 0.5, "best buy"), ("fp8", 0.6, "proposed"), ("nvfp4", 0.4, "proposed")],
)
def test_a_precision_that_keeps_quality_and_halves_the_bill_stands_above_the_plan(
    quantization: str, share: float, row: str, plan: Plan, loaded: LoadedSpec, shown: Shown
) -> None:
    paid = plan.cost.usd_per_hour
    assert paid is not None
    offered = plan.model_copy(update={"proposals": (proposal(quantization, paid * share),)})

    lines = shown(plan_view(offered, loaded)).splitlines()

    (line,) = (each for each in lines if each.startswith(row))
    assert f"{quantization}: 1 x ml.g6.xlarge, TP 1" in line
    assert (lines[1] == line) is (row == "best buy")
    assert any("2411.02355" in each for each in lines) is (row == "best buy")


def test_of_several_proposals_the_one_that_keeps_quality_is_shown(plan: Plan, loaded: LoadedSpec, shown: Shown) -> None:
    offered = plan.model_copy(update={"proposals": (proposal("fp8", 1.4), proposal("nvfp4", 1.2))})

    assert lines_of(shown(plan_view(offered, loaded)))["proposed"].startswith("fp8: ")


def test_what_finds_no_room_goes_in_order() -> None:
    rows = [(name, "one line") for name in ("load", "runner-up", "probe", "warnings")]
    assert fitted(tuple(rows)) == tuple(rows)
    tall = ("cost", "\n".join("one line" for _ in range(MOST_LINES - 4)))
    assert [name for name, _ in fitted((tall, *rows))] == ["cost", "load", "probe", "warnings"]
    # The warnings stay: their row has at least how many there are.
    assert [name for name, _ in fitted((tall, ("model", "x " * 60), *rows))] == ["cost", "model", "load", "warnings"]


def test_how_hours_are_bought_stands_below_their_price(plan: Plan, loaded: LoadedSpec, shown: Shown) -> None:
    cost = plan.cost.model_copy(
        update={"usd_per_hour": 0.8, "purchase": "savings_plan_3y", "on_demand_usd_per_hour": 1.7}
    )
    text = " ".join(shown(plan_view(plan.model_copy(update={"cost": cost}), loaded)).split())
    assert "cost $0.80/h, $584/month" in text
    assert (
        "under a Savings Plan of 3 years without upfront payment: paid every hour of three years, used or not; $1.70/h "
        "on demand latency"
    ) in text


def test_the_runner_up_has_its_instances(plan: Plan, loaded: LoadedSpec, shown: Shown) -> None:
    rejected = plan.rejected[0].model_copy(update={"feasible": True, "instance_count": 2})
    text = shown(plan_view(plan.model_copy(update={"rejected": (rejected,)}), loaded))
    assert lines_of(text)["runner-up"].startswith(f"2 x {rejected.instance_type}, TP ")


def test_without_a_rival_it_says_so(plan: Plan, loaded: LoadedSpec, shown: Shown) -> None:
    alone = plan.model_copy(update={"rejected": (), "pareto": ()})
    assert lines_of(shown(plan_view(alone, loaded)))["runner-up"].startswith("none")


def test_a_broken_rule_is_the_first_warning(plan: Plan) -> None:
    warned = plan.model_copy(update={"warnings": ("Something.", plan.band.because, "SEA205, accepted: a miss.")})
    assert warnings_of(warned) == ("SEA205, accepted: a miss.", "Something.")


@pytest.mark.parametrize("name", SECTIONS)
def test_each_section_is_shown_alone(name: str, plan: Plan, loaded: LoadedSpec, shown: Shown) -> None:
    warned = plan.model_copy(update={"warnings": ("Something.",)})
    titles = {
        "decisions": "\nDecisions\n",
        "memory": "\nMemory of one accelerator\n",
        "regime": "\nRegime\n",
        "curve": "\nPredicted for one copy",
        "cost": "\nCost $",
        "start": "\nStart of a copy\n",
        "alternatives": "\nPareto front\n",
        "warnings": "\nwarning: ",
    }
    text = shown(plan_view(warned, loaded, [section for section in SECTIONS if section == name]))
    assert [section for section, title in titles.items() if title in text] == [name]
