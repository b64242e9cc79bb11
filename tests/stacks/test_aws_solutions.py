"""cdk-nag finds nothing in the stacks that our constructs do not acknowledge with a reason."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from aws_cdk import App, Validations
from cdk_nag import AwsSolutionsChecks

from seatrial_stacks.app_stacks import add_stacks
from tests.stacks.conftest import ROOT, dev, prod, weights

if TYPE_CHECKING:
    from pathlib import Path


def test_every_finding_is_acknowledged_in_one_sentence(tmp_path: Path) -> None:
    context = json.loads((ROOT / "cdk.json").read_text())["context"]
    app = App(outdir=str(tmp_path), analytics_reporting=False, context=context)
    Validations.of(app).add_plugins(AwsSolutionsChecks())
    add_stacks(app, (dev(), prod(), weights()))
    app.synth()  # fails on a finding
    report = (tmp_path / "validation-report.json").read_text()
    (pack,) = json.loads(report)["pluginReports"]
    assert (pack["pluginName"], pack["violations"]) == ("AwsSolutions", [])
    reasons = {each["reason"] for each in pack["suppressedViolations"]}
    assert len(reasons) == 6
    assert all(reason.endswith(".") and len(reason) > 40 for reason in reasons)
