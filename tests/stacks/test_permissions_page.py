"""`docs/reference/permissions.md` says what the synthesized roles and policies may do, each statement with a reason."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest
from aws_cdk import App, Environment, Stack
from aws_cdk.assertions import Template
from cfnlint.decode import cfn_yaml  # type: ignore[import-untyped]  # no type information published

from scripts import permissions_page
from seatrial.repository.answers import Answers, new_targets
from seatrial.repository.write import repository_files
from seatrial.specs.environment import Audit, EnvironmentSpec
from seatrial.specs.guardrails.limits import Enforcement, GuardRails
from seatrial_cdk.jobs.optimization_job import OptimizationsStack
from seatrial_cdk.trials.trials_stack import TrialScheduleGroup, TrialsStack
from seatrial_cdk.vending.launch_role import LaunchRole
from tests.stacks.conftest import KEY_ARN, ROOT, optimization_request, prod

if TYPE_CHECKING:
    from pathlib import Path

PAGE = ROOT / "docs" / "reference" / "permissions.md"
BEGIN, END = "<!-- begin permissions: UPDATE_GOLDEN=1 pytest tests/stacks -->\n", "<!-- end permissions -->"


@pytest.fixture(scope="module")
def templates(assembly: Path) -> list[permissions_page.Template]:
    synthesized = [json.loads(file.read_text()) for file in sorted(assembly.glob("*.template.json"))]
    return [
        *synthesized,
        audited_trials(),
        workflow_roles(),
        watched_trials(),
        schedules_role(),
        launch_role(),
        jobs_roles(),
    ]


def audited_trials() -> permissions_page.Template:
    """Return the trial service of an environment with records of what serves and a hook."""
    context = json.loads((ROOT / "cdk.json").read_text())["context"]
    audited = prod().environment.model_copy(
        update={"audit": Audit(mode="compliance", years=7), "guard_rails": GuardRails(enforcement=Enforcement())}
    )
    stack = TrialsStack(App(analytics_reporting=False, context=context), environment=audited)
    template: permissions_page.Template = json.loads(json.dumps(Template.from_stack(stack).to_json()))
    return template


def watched_trials() -> permissions_page.Template:
    """Return the trial service of an environment with a budget, a schedule, and channels that are notified."""
    context = json.loads((ROOT / "cdk.json").read_text())["context"]
    place = prod().environment
    written = place.model_dump(mode="json", exclude_unset=True)
    written |= {"trial_schedule": "rate(7 days)", "observability": {"budget_usd_per_month": 100.0}}
    slack = {"workspace_id": "T0123ABCD", "channel_id": "C0123ABCD"}
    watched = EnvironmentSpec.model_validate({**written, "alarms": {"notify": [{"teams": ["team"], "slack": slack}]}})
    stack = TrialsStack(App(analytics_reporting=False, context=context), environment=watched)
    template: permissions_page.Template = json.loads(json.dumps(Template.from_stack(stack).to_json()))
    return template


def workflow_roles() -> permissions_page.Template:
    """Return the template of the roles that workflows assume, as `seatrial init` writes it."""
    targets = new_targets({"dev": "123456789012"}, "us-east-1")
    answers = Answers(name="team", ci="github", targets=targets, source="acme/team", owner="@acme/platform")
    found: permissions_page.Template = cfn_yaml.loads(repository_files(answers)["bootstrap/roles.yaml"])
    return found


def schedules_role() -> permissions_page.Template:
    """Return the role of an environment's scheduled trials."""
    stack = Stack(
        App(analytics_reporting=False), "Schedules", env=Environment(account="123456789012", region="eu-west-1")
    )
    TrialScheduleGroup(stack, "Schedules", environment="prod")
    template: permissions_page.Template = json.loads(json.dumps(Template.from_stack(stack).to_json()))
    return template


def jobs_roles() -> permissions_page.Template:
    """Return the roles of an optimization job in an environment with a network and a key."""
    context = json.loads((ROOT / "cdk.json").read_text())["context"]
    stack = OptimizationsStack(App(analytics_reporting=False, context=context), environment=prod().environment)
    stack.add_job(optimization_request("prod"))
    template: permissions_page.Template = json.loads(json.dumps(Template.from_stack(stack).to_json()))
    return template


def launch_role() -> permissions_page.Template:
    """Return the launch role of products in an environment with a network, weights, a key and a secret."""
    context = json.loads((ROOT / "cdk.json").read_text())["context"]
    place = Environment(account="123456789012", region="eu-west-1")
    stack = Stack(App(analytics_reporting=False, context=context), "Products", env=place)
    LaunchRole(
        stack,
        "LaunchRole",
        environment="prod",
        network=prod().environment.network,
        weights=("arn:aws:s3:::model-weights/llama-2-7b/*",),
        kms_key_arns=(KEY_ARN,),
        secrets=("seatrial/hub-token",),
    )
    template: permissions_page.Template = json.loads(json.dumps(Template.from_stack(stack).to_json()))
    return template


def test_the_page_is_current(templates: list[permissions_page.Template]) -> None:
    text = PAGE.read_text(encoding="utf-8")
    head, _, rest = text.partition(BEGIN)
    tail = rest.partition(END)[2]
    part = permissions_page.permissions_text(permissions_page.permissions(templates))
    built = f"{head}{BEGIN}\n{part}\n{END}{tail}"
    if os.environ.get("UPDATE_GOLDEN"):
        PAGE.write_text(built, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == built


def test_a_statement_without_a_reason_is_refused(templates: list[permissions_page.Template]) -> None:
    found = permissions_page.permissions(templates)
    unknown = permissions_page.Permission(permissions_page.WORKFLOW, "Allow", ("iam:PassRole",), ("*",), ())
    with pytest.raises(ValueError, match=r"no reason for \('Workflow of the trial service', 'iam:PassRole'\)"):
        permissions_page.permissions_text([*found, unknown])
    with pytest.raises(ValueError, match="no statement for the reason of"):
        permissions_page.permissions_text(found[1:2])


def test_a_role_without_a_name_is_refused() -> None:
    statement = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "*"}
    role = {"Type": "AWS::IAM::Role", "Properties": {"Policies": [{"PolicyDocument": {"Statement": [statement]}}]}}
    with pytest.raises(ValueError, match=r"Other \(AWS::IAM::Role\) has no name"):
        permissions_page.permissions([json.loads(json.dumps({"Resources": {"Other": role}}))])
