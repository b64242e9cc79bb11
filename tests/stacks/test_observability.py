"""What an environment's file asks for: dashboards of endpoints and environment, and a budget; nothing by default."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from aws_cdk import App
from aws_cdk.assertions import Template

from seatrial.specs.environment import EnvironmentSpec
from seatrial.specs.load import fingerprint
from seatrial_stacks.app_stacks import add_stacks
from tests.stacks.conftest import deployment, serving, spec

if TYPE_CHECKING:
    from pathlib import Path

BASE = {"name": "dev", "region": "us-east-1", "removal": "destroy"}
ASKED = {"dashboards": "both", "budget_usd_per_month": 2000, "budget_emails": ["team@example.com"]}


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("watched")
    app = App(outdir=str(folder), analytics_reporting=False)
    asked = deployment({**BASE, "observability": ASKED}, endpoint=spec(), serving=serving())
    topic = "arn:aws:sns:eu-west-1:123456789012:on-call"
    other = {"name": "lab", "region": "eu-west-1", "account": "123456789012", "alarms": {"topic_arn": topic}}
    budget = deployment({**other, "observability": {"budget_usd_per_month": 5}}, endpoint=spec(), serving=serving())
    add_stacks(app, (asked, budget))
    app.synth()
    return folder


def template(folder: Path, stack: str) -> Template:
    return Template.from_string((folder / f"{stack}.template.json").read_text())


def dashboards(found: Template) -> dict[str, Any]:
    resources = found.find_resources("AWS::CloudWatch::Dashboard").values()
    return {each["Properties"]["DashboardName"]: each["Properties"]["DashboardBody"] for each in resources}


def test_each_endpoint_and_the_environment_have_a_dashboard(watched: Path) -> None:
    assert set(dashboards(template(watched, "seatrial-dev-chat"))) == {"seatrial-dev-chat"}
    assert set(dashboards(template(watched, "seatrial-dev-trials"))) == {"seatrial-dev"}
    assert dashboards(template(watched, "seatrial-lab-chat")) == {}
    assert dashboards(template(watched, "seatrial-lab-trials")) == {}


def test_the_dashboard_draws_the_target_that_the_trial_found(watched: Path) -> None:
    (body,) = dashboards(template(watched, "seatrial-dev-chat")).values()
    parts = body["Fn::Join"][1]
    number = next(place for place, part in enumerate(parts) if "TargetConcurrencyPerCopy" in json.dumps(part))
    assert parts[number - 1].endswith('{"label":"target","value":')
    assert parts[number + 1].startswith("}")
    filled = json.loads("".join(part if isinstance(part, str) else "1" for part in parts))
    assert filled["widgets"][0]["properties"]["markdown"].startswith("# dev-chat\n\nml.g5.2xlarge, 1 accelerators each")


def test_the_budget_tells_the_topic_of_the_environment(watched: Path) -> None:
    for environment, kinds in (("dev", ["EMAIL", "SNS"]), ("lab", ["SNS"])):
        (found,) = template(watched, f"seatrial-{environment}-trials").find_resources("AWS::Budgets::Budget").values()
        subscribers = found["Properties"]["NotificationsWithSubscribers"][0]["Subscribers"]
        assert [each["SubscriptionType"] for each in subscribers] == kinds


def test_nothing_is_added_by_default(assembly: Path) -> None:
    for stack in ("seatrial-dev-chat", "seatrial-dev-trials", "seatrial-prod-trials"):
        found = template(assembly, stack)
        for resource_type in ("AWS::CloudWatch::Dashboard", "AWS::Budgets::Budget"):
            found.resource_count_is(resource_type, 0)


def test_what_is_watched_makes_no_lock_stale() -> None:
    plain, asked = (EnvironmentSpec.model_validate(each) for each in (BASE, {**BASE, "observability": ASKED}))
    assert fingerprint(spec(), plain) == fingerprint(spec(), asked)
