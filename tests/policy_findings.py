"""What rules of IAM policies and of guard rails find in templates, without the exceptions that have a reason."""

from __future__ import annotations

import json
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from seatrial_lint.cloudformation.template import read_templates
from seatrial_lint.template_rules.check import check_templates

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

HAS_GUARD = find_spec("cfn_guard_rs") is not None
"""cfn-guard-rs has wheels for Python 3.11 and 3.12 on Linux."""
POLICIES = ("SEA78", "SEA79")
EXCEPTIONS = {
    (
        "endpoints-pipeline.template.json",
        "SEA782",
    ): "the CDK allows the source the action of the older prefix beside ours",
    ("bootstrap-template.yaml", "SEA785"): "the CDK's bootstrap: its deploy role passes the CDK's own execution role",
}
"""Findings that stay, by the template's file and the rule."""


def policy_findings(paths: Iterable[Path], region: str = "us-east-1") -> list[str]:
    """Return the findings of policies in templates as texts.

    Args:
        paths: Templates, or folders that `cdk synth` wrote.
        region: Of templates whose folder names none.
    """
    groups = read_templates(paths, region)
    found = [each for group in groups for each in check_templates(group.templates, group.region)]
    of_policies = (each for each in found if each.rule.startswith(POLICIES))
    return [f"{each}" for each in of_policies if (each.place.file.rpartition("/")[2], each.rule) not in EXCEPTIONS]


def broken_rails(template: object, rules: str) -> dict[str, set[str]]:
    """Return the rules of a Guard rule set that a template fails, each with its messages, as cfn-guard says."""
    # The binding's own report can't be read where a property is missing: it mixes a piece of the template in.
    run_checks = import_module("cfn_guard_rs.cfn_guard_rs").run_checks_rs
    report = json.loads(run_checks(json.dumps(template), rules, True))  # noqa: FBT003 (its signature)
    broken: dict[str, set[str]] = {}
    for rule in report["children"]:
        check = rule["container"].get("RuleCheck", {})
        if check.get("status") == "FAIL":
            broken[check["name"]] = set(_messages(rule))
    assert (report["container"]["FileCheck"]["status"] == "FAIL") == bool(broken)
    return broken


def _messages(node: Any) -> Iterator[str]:  # noqa: ANN401 (JSON of cfn-guard, which leaves out what passes)
    if isinstance(node, str) and node.startswith("SEA"):
        yield node
    elif isinstance(node, dict | list):
        for each in node.values() if isinstance(node, dict) else node:
            yield from _messages(each)
