"""The rule book as a validation plugin in an app of L1 constructs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from aws_cdk import Acknowledgment, App, Environment, Stack, Validations
from aws_cdk import aws_sagemaker as sagemaker

from seatrial_base.printer import text_lines
from seatrial_cdk.delivery.hosting_checks import HostingChecks
from seatrial_lint.cloudformation.template import read_templates
from seatrial_lint.template_rules.check import check_templates
from tests.stacks.conftest import ROOT


def app_of_others(folder: Path) -> tuple[App, Stack]:
    """Return an app with one stack of L1 constructs that breaks SEA701 (an error) and SEA706 (a warning)."""
    app = App(outdir=str(folder), analytics_reporting=False)
    stack = Stack(app, "Chat", env=Environment(region="eu-west-3"))
    sagemaker.CfnEndpointConfig(
        stack,
        "Config",
        endpoint_config_name="chat",
        execution_role_arn="arn:aws:iam::123456789012:role/hosting",
        production_variants=[
            sagemaker.CfnEndpointConfig.ProductionVariantProperty(
                variant_name="AllTraffic",
                instance_type="ml.g6e.xlarge",
                initial_instance_count=1,
                managed_instance_scaling=sagemaker.CfnEndpointConfig.ManagedInstanceScalingProperty(
                    status="ENABLED", min_instance_count=0, max_instance_count=2
                ),
            )
        ],
    )
    HostingChecks.add_to(app)
    return app, stack


def reported(folder: Path) -> dict[str, dict[str, object]]:
    document = json.loads((folder / "validation-report.json").read_text())
    (report,) = (each for each in document["pluginReports"] if each["pluginName"] == "Seatrial")
    return {each["ruleName"]: each for each in report["violations"]}


def test_an_error_fails_the_synthesis_and_the_report_has_every_finding(tmp_path: Path) -> None:
    app, _ = app_of_others(tmp_path)
    with pytest.raises(RuntimeError, match="ValidationFailed"):
        app.synth()
    found = reported(tmp_path)
    assert {rule: each["severity"] for rule, each in found.items()} == {"SEA701": "error", "SEA706": "warning"}
    constructs = found["SEA701"]["violatingConstructs"]
    assert isinstance(constructs, list)
    assert [each["constructPath"] for each in constructs] == ["Chat/Config"]
    assert found["SEA701"]["suggestedFix"] == "leave out EndpointConfigName: CloudFormation makes a new name"


def test_an_acknowledged_error_and_a_warning_let_the_synthesis_go_on(tmp_path: Path) -> None:
    app, stack = app_of_others(tmp_path)
    Validations.of(stack).acknowledge(Acknowledgment(id="Seatrial::SEA701", reason="The configuration never changes."))
    app.synth()
    assert set(reported(tmp_path)) == {"SEA706"}


def test_the_page_shows_what_is_found_in_its_app() -> None:
    page = (ROOT / "docs" / "how-to" / "check-templates.md").read_text(encoding="utf-8")
    app, *_ = re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    (shown,) = re.findall(r"^\$ seatrial check cdk\.out\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    names: dict[str, App] = {}
    with pytest.raises(RuntimeError, match="ValidationFailed"):
        exec(compile(app, "app.py", "exec"), names)  # noqa: S102 (the page's own example)
    folder = Path(names["app"].outdir)
    (group,) = read_templates([folder])
    found = "".join(f"{line}\n" for line in text_lines(check_templates(group.templates, group.region)))
    assert found.replace(folder.as_posix(), "cdk.out") == shown
