from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.template_rules.sample import changed, components

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Seatrial


def test_findings_are_told_with_resource_property_rule_and_hint(seatrial: Seatrial, project: Path) -> None:
    document = changed(components(), "Component.Properties.RuntimeConfig.CopyCount", 0)
    (project / "a.json").write_text(json.dumps(changed(document, "Tracking", {"Type": "AWS::S3::Bucket"})))
    done = seatrial("check", "a.json")
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout == (
        "a.json:1: Component: Properties.RuntimeConfig.CopyCount: SEA730: error: "
        "a component can't be created with CopyCount 0\n"
        "  hint: set CopyCount to 1, and let Application Auto Scaling remove the copy: MinCapacity 0\n"
    )


def test_json_has_one_object_a_finding(seatrial: Seatrial, project: Path) -> None:
    (project / "a.json").write_text(json.dumps(components()))
    done = seatrial("check", "a.json", "--format", "json")
    assert (done.returncode, json.loads(done.stdout)["findings"]) == (0, [])
    done = seatrial("check", "a.json", "--format", "json", "--region", "eu-west-3")
    assert [(row["rule"], row["severity"], row["resource"]) for row in json.loads(done.stdout)["findings"]] == [
        ("SEA736", "warning", "Component"),
        ("SEA706", "warning", "Config"),
    ]
    assert done.returncode == 1


def test_what_is_no_template_exits_2(seatrial: Seatrial, project: Path) -> None:
    done = seatrial("check", "endpoints/falcon-40b.yaml", "missing")
    assert (done.returncode, done.stdout) == (2, "")
    assert [line.split(": ")[1] for line in done.stderr.splitlines()[::2]] == ["SEA451", "SEA101"]


def test_what_terraform_wrote_is_named_as_unchecked(seatrial: Seatrial, project: Path) -> None:
    (project / "plan.json").write_text(json.dumps({"planned_values": {"root_module": {"resources": []}}}))
    (project / "main.tf").write_text('resource "aws_sagemaker_model" "chat" {}\n')
    done = seatrial("check", "plan.json", "main.tf")
    assert (done.returncode, done.stdout) == (2, "")
    told = done.stderr.splitlines()[::2]
    assert [line.endswith("its roles, scaling and alarms are not checked") for line in told] == [True, True]
