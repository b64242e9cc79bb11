"""The search for the cheapest schedule beside the simulation, what it writes into a spec, and what it refuses."""

from __future__ import annotations

import shutil
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pytest

from seatrial.cli.simulate import schedule_lines
from seatrial.deployment.starts import start_parts
from seatrial.locks.locked_plan import read_locked_plan
from seatrial.operations.schedule_search import ScheduleSearch, write_schedule
from seatrial.planner.planner import make_plan
from seatrial.specs.load import load_spec
from seatrial.specs.yaml_edit import edited_text
from seatrial_base.errors import PlanError, SpecError
from tests.operations.test_simulation import ROOT, hourly, traffic_of

if TYPE_CHECKING:
    from pathlib import Path

    from seatrial.specs.yaml_source import Yaml

STARTS = partial(start_parts, instance_s=600, copy_s=300)


def slow_copies(folder: Path) -> ScheduleSearch:
    """Return a search over a day in which a copy answers some 2.4 requests/s, and up to four run."""
    loaded = load_spec(ROOT / "endpoints/llama-2-7b-chat.yaml", "dev", environments=ROOT / "environments")
    plan = read_locked_plan(loaded)
    fields = {"target_concurrency_per_copy": 12.0, "max_num_seqs": 16}
    held = {name: getattr(plan, name).model_copy(update={"value": value}) for name, value in fields.items()}
    saved = plan.cost.model_copy(update={"savings_plan_usd_per_hour": 0.75 * (plan.cost.usd_per_hour or 0)})
    plan = plan.model_copy(update={**held, "cost": saved, "max_instances": 4})
    scaling = loaded.endpoint.scaling.model_copy(update={"max_copies": 4})
    limits: dict[str, Yaml] = {"min_copies": 1, "max_copies": 4}
    document: dict[str, Yaml] = {**loaded.document.data, "scaling": limits}
    rails = loaded.environment.guard_rails.model_copy(update={"max_copies": 4})
    loaded = replace(
        loaded,
        endpoint=loaded.endpoint.model_copy(update={"scaling": scaling}),
        environment=loaded.environment.model_copy(update={"guard_rails": rails}),
        document=replace(loaded.document, data=document),
    )
    office = 'profile: {peak_requests_per_second: 8, hours: {"09-14": 1}, other_hours: 0.02}'
    return ScheduleSearch(loaded, plan, traffic_of(folder, office), 1, 1, STARTS)


def raised(copies: int, at: str) -> Yaml:
    actions = (("up", at, copies), ("down", "0 14", 1))
    return [{"name": name, "schedule": f"cron({when} * * ? *)", "min_copies": least} for name, when, least in actions]


def test_the_fluid_model_costs_and_keeps_what_the_simulation_does(tmp_path: Path) -> None:
    search = slow_copies(tmp_path)
    every: list[dict[str, Yaml]] = [
        {"scaling.scale_out_cooldown_s": 3600},
        {"scaling.instance_scale_in.cooldown_minutes": 5, "scaling.scale_in_cooldown_s": 900},
        {"scaling.schedules": raised(3, "15 8"), "scaling.instance_scale_in.cooldown_minutes": 5},
        {"scaling.schedules": raised(4, "0 6")},
    ]
    screened, simulated = [search.screen(fields) for fields in every], [search.simulate(fields) for fields in every]
    pairs = [(fluid, whole) for fluid, whole in zip(screened, simulated, strict=True) if fluid and whole]
    assert len(pairs) == len(every)
    for fluid, whole in pairs:
        assert fluid.usd_per_day == pytest.approx(whole.usd_per_month / 730 * 24, rel=0.02)
        assert fluid.within_slo == pytest.approx(whole.within_slo, abs=0.03)
        assert (fluid.shortfall <= 0) == whole.keeps_share
        # One instance runs all the time; a quarter of its price is saved.
        hourly_usd = whole.cost.usd_per_instance_hour
        assert whole.base_instances == 1
        assert whole.savings_plan_usd_per_month == pytest.approx(0.25 * hourly_usd * 730)
        assert whole.usd_per_month == pytest.approx(whole.cost.usd_per_month - whole.savings_plan_usd_per_month)
    ranks = [
        sorted(range(len(every)), key=costs.__getitem__)
        for costs in zip(*((f[0], w.usd_per_month) for f, w in pairs), strict=True)
    ]
    assert ranks[0] == ranks[1]
    assert {whole.keeps_share for _, whole in pairs} == {True, False}


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at a fourth of the schedules: it is the same search."""
    few = {"scaling.target_utilization": (0.9,), "scaling.instance_scale_in.cooldown_minutes": (5,)}
    monkeypatch.setattr("seatrial.operations.schedule_search._REFINEMENTS", few)
    monkeypatch.setattr("seatrial.operations.schedule_search._REFINED", 1)
    monkeypatch.setattr("seatrial.operations.schedule_search._AT_ONCE", 2)


@pytest.fixture(scope="module")
def search(tmp_path_factory: pytest.TempPathFactory) -> ScheduleSearch:
    """Return a search over one instance type, up to two copies of it and two busy hours."""
    folder = tmp_path_factory.mktemp("one-type")
    (folder / "endpoints").mkdir()
    shutil.copytree(ROOT / "environments", folder / "environments")
    text = (ROOT / "endpoints/llama-2-7b-chat.yaml").read_text(encoding="utf-8")
    text = text.replace("[ml.g5.2xlarge, ml.g5.12xlarge, ml.g6e.2xlarge]", "[ml.g6e.2xlarge]  # ours")
    spec = folder / "endpoints/llama-2-7b-chat.yaml"
    spec.write_text(text.replace("min_copies: 1", "min_copies: 2"), encoding="utf-8")
    loaded = load_spec(spec, "dev", environments=folder / "environments")
    return ScheduleSearch(loaded, make_plan(loaded), hourly({9: 7.5}, 1), 1, 1, STARTS)


def test_the_cheapest_is_found_by_any_number_of_processes_and_written(search: ScheduleSearch) -> None:
    loaded, best = search.loaded, search.run(jobs=1)
    assert search.run(jobs=2) == best
    assert best.cheapest.keeps_share
    assert best.cheapest.usd_per_month < 0.8 * best.current.usd_per_month
    assert best.runner_up is not None
    assert best.runner_up.usd_per_month >= best.cheapest.usd_per_month
    assert {change.field for change in best.changes} == set(best.cheapest.fields) > {"scaling.min_copies"}
    assert len(list(schedule_lines(best, "spec -e dev", is_written=True))) <= 15

    before = loaded.path.read_text(encoding="utf-8")
    environments = loaded.path.parents[1] / "environments"
    write_schedule(loaded, best.cheapest, environments)
    after = loaded.path.read_text(encoding="utf-8")
    assert set(before.splitlines()) <= set(after.splitlines())
    written, other = (load_spec(loaded.path, name, environments=environments) for name in ("dev", "prod"))
    again = replace(search, loaded=written, plan=make_plan(written), _plans={}).simulate({})
    assert again is not None
    assert again.usd_per_month == pytest.approx(best.cheapest.usd_per_month)
    assert other.endpoint.scaling.min_copies == 2
    assert "schedules" not in other.document.data["scaling"]  # type: ignore[operator]  # a mapping


def test_no_schedule_and_no_price_are_told(search: ScheduleSearch) -> None:
    flood = replace(search, traffic=hourly({0: 20.0}, 1), share=0.99)
    expected = r"(?s)SEA566: none of \d+ schedules keeps the share.* refused.*raise scaling.max_copies"
    with pytest.raises(PlanError, match=expected):
        flood.run(jobs=1)
    cost = search.plan.cost.model_copy(update={"usd_per_hour": None})
    with pytest.raises(PlanError, match="SEA567"):
        replace(search, plan=search.plan.model_copy(update={"cost": cost}), _plans={}).run(jobs=1)


def test_without_requests_everything_is_kept(search: ScheduleSearch) -> None:
    idle = replace(search, traffic=hourly({}, 1)).run(jobs=1)
    assert (idle.cheapest.keeps_share, idle.cheapest.fields["scaling.min_copies"]) == (True, 0)
    assert idle.cheapest.usd_per_month < 0.1 * idle.current.usd_per_month


def test_actions_come_before_the_busy_hours_of_weekdays_and_past_midnight(search: ScheduleSearch) -> None:
    search = replace(search, traffic=hourly({}, 7), days=7)
    for hours, expected in (
        ([9, 10], ("cron(45 8 ? * MON,TUE,WED,THU,FRI *)", "cron(0 11 ? * MON,TUE,WED,THU,FRI *)")),
        ([22, 23, 0, 1], ("cron(45 21 * * ? *)", "cron(0 2 * * ? *)")),
        ([0, 1], ("cron(45 23 ? * MON,TUE,WED,THU,SUN *)", "cron(0 2 ? * MON,TUE,WED,THU,FRI *)")),
    ):
        days = range(7 if 23 in hours else 5)
        search.counts = [
            480 if minute // 1440 in days and minute // 60 % 24 in hours else 1 for minute in range(7 * 1440)
        ]
        every = [fields for fields in search.candidates() if fields.get("scaling.min_copies") == 1]
        actions = [fields["scaling.schedules"] for fields in every if fields.get("scaling.schedules")]
        assert tuple(action["schedule"] for action in actions[0]) == expected  # type: ignore[union-attr,index,call-overload]  # mappings


OVER = ("environments", "dev", "scaling")
SET: dict[tuple[str, ...], Yaml] = {(*OVER, "min_copies"): 2, (*OVER, "schedules"): [{"name": "up"}]}
NEW = "      min_copies: 2\n      schedules:\n        - {name: up}\n"
BLOCK = "environments:\n  dev:\n    scaling:\n"
FLOW = "environments:\n  dev: {scaling: "


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: 1 # x\n", f"a: 1 # x\n{BLOCK}{NEW}"),
        (BLOCK, f"{BLOCK}{NEW}"),
        (f"{FLOW}{{min_copies: 1}}}} # y\n", f"{FLOW}{{min_copies: 2, schedules: [{{name: up}}]}}}} # y\n"),
        (
            f"{BLOCK}      schedules: [] # z\n      min_copies: 1 # y\nb: |\n  text\n",
            f"{BLOCK}      schedules:\n        - {{name: up}} # z\n      min_copies: 2 # y\nb: |\n  text\n",
        ),
        ("environments:\n  prod: &p {scaling: {min_copies: 1}}\n  dev: *p\n", None),
        (f"{BLOCK}      schedules:\n        - {{name: a}}\n        # why\n        - {{name: b}}\n", None),
    ],
)
def test_a_field_is_set_and_the_rest_of_the_text_stays(text: str, expected: str | None) -> None:
    if expected is not None:
        assert edited_text(text, SET, "x.yaml") == expected
        return
    with pytest.raises(SpecError, match=r"(?s)SEA568.*write them by hand: environments.dev.scaling.min_copies: 2"):
        edited_text(text, SET, "x.yaml")
