"""cdk-nag finds nothing in the stacks but what constructs acknowledge, or SECURITY.md explains, with a reason."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from aws_cdk import App, Validations
from cdk_nag import AwsSolutionsChecks, HIPAASecurityChecks, NIST80053R5Checks

from seatrial_stacks.app_stacks import add_stacks
from tests.stacks.conftest import ROOT, dev, prod, weights

if TYPE_CHECKING:
    from pathlib import Path


def test_every_finding_is_acknowledged_or_explained(tmp_path: Path) -> None:
    context = json.loads((ROOT / "cdk.json").read_text())["context"]
    app = App(outdir=str(tmp_path), analytics_reporting=False, context=context)
    Validations.of(app).add_plugins(AwsSolutionsChecks(), NIST80053R5Checks(), HIPAASecurityChecks())
    add_stacks(app, (dev(), prod(), weights()))
    with pytest.raises(RuntimeError, match="ValidationFailed"):  # the packs for auditors find what SECURITY.md explains
        app.synth()
    ours, *others = json.loads((tmp_path / "validation-report.json").read_text())["pluginReports"]
    assert (ours["pluginName"], ours["violations"]) == ("AwsSolutions", [])
    reasons = {each["reason"] for each in ours["suppressedViolations"]}
    assert len(reasons) == 6
    assert all(reason.endswith(".") and len(reason) > 40 for reason in reasons)
    page = (ROOT / "SECURITY.md").read_text(encoding="utf-8").partition("### Findings of cdk-nag")[2]
    explained = set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))
    found = [{each["ruleName"].rpartition("-")[2] for each in pack["violations"]} for pack in others]
    assert found == [explained, explained]
