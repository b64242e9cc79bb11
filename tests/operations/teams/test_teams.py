"""What each team runs: from the locks alone, and with the account's own endpoints of products."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast

import pytest
import yaml

from seatrial.locks.lock_file import write_lock
from seatrial.operations.teams import (
    NO_TEAM,
    TeamEndpoint,
    locked_endpoint,
    spent_this_month,
    teams_csv,
    teams_document,
    teams_lines,
    teams_markdown,
    with_account,
)
from seatrial.planner.planner import make_plan
from seatrial.specs.load import load_spec
from seatrial_base.catalog.instances import find_instance
from tests.operations.drift.test_drift import DEPLOYMENT, NOW, Live, locked
from tests.operations.test_preflight import refused

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

CHAT = TeamEndpoint(
    team="search", endpoint="chat", environment="dev", plan_digest=DEPLOYMENT.plan.digest, usd_per_hour=1.515
)


@dataclass
class Tagged:
    """Resources by their tags, one a page."""

    found: list[dict[str, str]] = field(default_factory=list)
    error: Exception | None = None

    def get_resources(self, **asked: Any) -> Mapping[str, object]:  # noqa: ANN401 (boto3's)
        if self.error is not None:
            raise self.error
        assert asked["TagFilters"][0] == {"Key": "seatrial:environment", "Values": ["dev"]}
        number = int(asked["PaginationToken"] or 0)
        page = [
            {
                "ResourceARN": f"arn:aws:sagemaker:us-east-1:123456789012:endpoint/{tags['name']}",
                "Tags": [{"Key": key, "Value": value} for key, value in tags.items()],
            }
            for tags in self.found[number : number + 1]
        ]
        token = f"{number + 1}" if number + 1 < len(self.found) else ""
        return {"ResourceTagMappingList": page, "PaginationToken": token}


def asked(live: Live, tagged: Tagged) -> tuple[tuple[TeamEndpoint, ...], tuple[str, ...]]:
    return with_account([CHAT], locked(), live.clients(), cast("Any", tagged), now=NOW)


def test_the_account_says_what_runs_and_what_the_trial_found() -> None:
    (found,), unasked = asked(Live(), Tagged())
    assert (found.trial_verdict, found.trial_date, found.drift, unasked) == ("pass", "2026-11-21", "no", ())
    (drifted,), _ = asked(Live(instance_type="ml.g5.12xlarge"), Tagged())
    assert drifted.drift == "yes"


def test_endpoints_of_products_are_found_by_their_tags() -> None:
    product = {"name": "dev-p1", "seatrial:product": "chat-small", "seatrial:product-version": "2", "team": "ads"}
    found, unasked = asked(Live(), Tagged([product, {"name": "dev-p2", "seatrial:product": "chat-small"}]))
    assert unasked == ()
    first, second = found[1:]
    assert (first.team, first.endpoint, first.product, first.product_version) == ("ads", "dev-p1", "chat-small", "2")
    assert (first.usd_per_hour, first.trial_verdict, first.trial_date) == (1.515, "pass", "2026-11-21")
    assert (second.team, second.drift, second.price_region) == (NO_TEAM, "unknown", None)


def test_what_could_not_be_asked_is_told() -> None:
    found, unasked = asked(Live(), Tagged(error=refused("AccessDeniedException", "GetResources")))
    assert (len(found), len(unasked), unasked[0].startswith("products: ")) == (1, 1, True)


def test_the_lock_alone_says_team_version_and_cost(tmp_path: Path) -> None:
    (tmp_path / "environments").mkdir()
    place = {"name": "dev", "region": "us-east-1", "tags": {"team": "platform"}}
    (tmp_path / "environments" / "dev.yaml").write_text(yaml.safe_dump(place), encoding="utf-8")
    spec: dict[str, object] = {
        "name": "chat",
        "model": {"hub_id": "meta-llama/Llama-2-7b-chat-hf", "accept_eula": True},
        "workload": {"input_tokens": 256, "output_tokens": 256, "concurrency": 4},
        "serving": {"instance_types": ["ml.g5.2xlarge"]},
    }
    path = tmp_path / "chat.yaml"
    teams = []
    for tags in ({}, {"team": "search"}):
        path.write_text(yaml.safe_dump({**spec, "tags": tags}), encoding="utf-8")
        loaded = load_spec(path, "dev", environments=tmp_path / "environments")
        plan = make_plan(loaded)
        write_lock(plan, path)
        found = locked_endpoint(loaded)
        assert (found.plan_digest, found.usd_per_hour) == (plan.digest, plan.cost.usd_per_hour)
        teams.append(found.team)
    assert teams == ["platform", "search"]


UNKNOWN = TeamEndpoint(team="=ads", endpoint="b", environment="prod", product="chat-small", product_version="2")


def test_a_cost_at_another_regions_price_names_it() -> None:
    total, _, row, *_ = teams_lines([replace(CHAT, price_region="us-east-1")], [])
    assert total == "search: 1 endpoint, $1.51/h, $1,106/month planned, 1 at the price of another region"
    assert " 1.51 (us-east-1) " in row


def test_every_view_has_each_endpoint_with_its_team() -> None:
    lines = list(teams_lines([CHAT, UNKNOWN], ["prod: no credentials"]))
    assert lines[0] == "=ads: 1 endpoint, $0.00/h, $0/month planned, 1 of unknown cost"
    assert "search: 1 endpoint, $1.51/h, $1,106/month planned" in lines
    assert lines[-1] == "could not be read: prod: no credentials"
    assert "## search" in teams_markdown([CHAT, UNKNOWN], [])
    rows = list(csv.DictReader(io.StringIO(teams_csv([CHAT, UNKNOWN]))))
    assert [(row["team"], row["endpoint"], row["usd_per_month"]) for row in rows] == [
        ("'=ads", "b", ""),
        ("search", "chat", f"{1.515 * 730}"),
    ]
    document = teams_document([CHAT], ())
    assert document["teams"] == [
        {
            "team": "search",
            "endpoints": [
                {
                    "team": "search",
                    "endpoint": "chat",
                    "environment": "dev",
                    "plan_digest": DEPLOYMENT.plan.digest,
                    "product": "",
                    "product_version": "",
                    "usd_per_hour": 1.515,
                    "usd_per_month": pytest.approx(1105.95),
                    "price_region": None,
                    "trial_verdict": "",
                    "trial_date": "",
                    "drift": "unknown",
                }
            ],
        }
    ]


def test_nothing_is_told_as_nothing() -> None:
    assert list(teams_lines([], ())) == ["no endpoint has a lock, and no product is deployed"]


@dataclass
class Explorer:
    """Cost Explorer with one group a page."""

    groups: list[tuple[str, str]] = field(default_factory=list)
    error: Exception | None = None

    def get_cost_and_usage(self, **asked: Any) -> Mapping[str, object]:  # noqa: ANN401 (boto3's)
        if self.error is not None:
            raise self.error
        assert asked["TimePeriod"] == {"Start": f"{NOW:%Y-%m}-01", "End": f"{NOW + timedelta(days=1):%Y-%m-%d}"}
        assert asked["Filter"] == {"Tags": {"Key": "seatrial:environment", "Values": ["dev"]}}
        number = int(asked.get("NextPageToken", 0))
        page = [
            {"Keys": [key], "Metrics": {"UnblendedCost": {"Amount": amount, "Unit": "USD"}}}
            for key, amount in self.groups[number : number + 1]
        ]
        more = {"NextPageToken": f"{number + 1}"} if number + 1 < len(self.groups) else {}
        return {"ResultsByTime": [{"Groups": page}], **more}


def spent(explorer: Explorer | None) -> tuple[dict[str, float], tuple[str, ...]]:
    return spent_this_month(DEPLOYMENT.environment, cast("Any", explorer), now=NOW)


def test_the_cost_of_the_month_stands_beside_the_planned_one() -> None:
    found, because = spent(Explorer([("team$search", "812.4"), ("team$", "3"), ("team$search", "0.1")]))
    assert (found, because) == ({"search": 812.5, NO_TEAM: 3.0}, ())
    total = "search: 1 endpoint, $1.51/h, $1,106/month planned, $812.50 this month so far"
    assert next(iter(teams_lines([CHAT], [], found))) == total
    assert f"{total.partition(': ')[2]}." in teams_markdown([CHAT], [], found)
    (team,) = cast("list[dict[str, object]]", teams_document([CHAT], (), found)["teams"])
    assert team["usd_this_month"] == 812.5


@pytest.mark.parametrize(
    ("explorer", "because"),
    [
        (None, "the embedded AWS has no Cost Explorer"),
        (Explorer(), "no cost of it carries both tags"),
        (Explorer([("team$", "3")]), "TagKey=team,Status=Active"),
        (Explorer(error=refused("AccessDeniedException", "GetCostAndUsage")), "GetCostAndUsage"),
        (Explorer(error=refused("DataUnavailableException", "GetCostAndUsage")), "DataUnavailableException"),
    ],
)
def test_a_cost_that_is_unknown_has_its_reason(explorer: Explorer | None, because: str) -> None:
    found, told = spent(explorer)
    assert found == {}
    assert told[0].startswith("cost of the month: ")
    assert because in told[0]
    assert next(iter(teams_lines([CHAT], told, found))).endswith("planned, unknown this month so far")


def test_a_launch_without_a_readable_trial_costs_its_own_instances() -> None:
    live = Live(documents={}, instance_type="ml.g5.12xlarge", least=2)
    product = {"name": "dev-chat", "seatrial:product": "chat-small"}
    found, _ = asked(live, Tagged([product]))
    known = find_instance("ml.g5.12xlarge")
    assert known is not None
    assert known.usd_per_hour is not None
    assert found[1].usd_per_hour == 2 * known.usd_per_hour
