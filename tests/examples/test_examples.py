"""The apps of `examples/`, as they are: synthesized, linted, and compared with what their users have deployed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from seatrial_base.catalog.resource_types import find_replacement_rule
from tests.policy_findings import policy_findings

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).parents[2]
BASELINES = Path(__file__).parent / "baselines"
EXAMPLES = sorted(folder.name for folder in (ROOT / "examples").iterdir() if (folder / "app.py").is_file())
BIN = Path(sys.executable).parent
LINT = [str(BIN / "cfn-lint"), "--ignore-checks", "W3005", "--regions", "us-east-1", "--template"]
_HASH = re.compile(r"[0-9a-f]{64}")

Kept = dict[str, dict[str, object]]


@pytest.fixture(scope="module")
def assemblies(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Synthesize every example in its own folder, with the context of its `cdk.json`."""
    return {name: synthesized(name, tmp_path_factory.mktemp(name)) for name in EXAMPLES}


def synthesized(name: str, out: Path) -> Path:
    folder = ROOT / "examples" / name
    context = json.loads((folder / "cdk.json").read_text())["context"]
    env = {
        **os.environ,
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        "CDK_OUTDIR": str(out),
        "CDK_CONTEXT_JSON": json.dumps(context),
    }
    subprocess.run([sys.executable, Path(__file__).with_name("with_cdk_nag.py")], cwd=folder, env=env, check=True)
    return out


def kept(assembly: Path) -> dict[str, Kept]:
    """Return each stack's resources: type, and the properties of which a change replaces the resource or fails."""
    found: dict[str, Kept] = {}
    for file in sorted(assembly.glob("*.template.json")):
        resources = json.loads(_HASH.sub("HASH", file.read_text()))["Resources"]
        found[file.name.partition(".")[0]] = {name: _identity(resource) for name, resource in sorted(resources.items())}
    return found


def _identity(resource: Mapping[str, object]) -> dict[str, object]:
    rule = find_replacement_rule(str(resource["Type"]))
    fixed = (*rule.replaced_by, *rule.unchangeable) if rule else ()
    properties = resource.get("Properties", {})
    assert isinstance(properties, dict)
    return {"Type": resource["Type"], **{name: properties[name] for name in sorted(fixed) if name in properties}}


@pytest.mark.parametrize("name", EXAMPLES)
def test_no_resource_is_removed_or_replaced(name: str, assemblies: dict[str, Path]) -> None:
    """UPDATE_GOLDEN=1 writes what is there now; a changed line means work for everyone who deployed the example."""
    baseline, now = BASELINES / f"{name}.json", kept(assemblies[name])
    if os.environ.get("UPDATE_GOLDEN"):
        baseline.write_text(json.dumps(now, indent=1, sort_keys=True) + "\n")
    was: dict[str, Kept] = json.loads(baseline.read_text())
    changed = {
        f"{stack}/{logical_id}": (identity, now.get(stack, {}).get(logical_id))
        for stack, resources in was.items()
        for logical_id, identity in resources.items()
        if now.get(stack, {}).get(logical_id) != identity
    }
    assert changed == {}


def test_cdk_nag_finds_nothing_that_is_not_acknowledged(assemblies: dict[str, Path]) -> None:
    for folder in assemblies.values():
        reports = json.loads((folder / "validation-report.json").read_text())["pluginReports"]
        (pack,) = (each for each in reports if each["pluginName"] == "AwsSolutions")
        assert pack["violations"] == []
        assert all(each["reason"].endswith(".") for each in pack["suppressedViolations"])


def test_policies_of_examples(assemblies: dict[str, Path]) -> None:
    assert policy_findings(assemblies.values()) == []


def test_cfn_lint_finds_nothing(assemblies: dict[str, Path]) -> None:
    templates = [str(file) for folder in assemblies.values() for file in sorted(folder.glob("*.template.json"))]
    assert len(templates) > len(EXAMPLES)
    linted = subprocess.run([*LINT, *templates], capture_output=True, text=True, check=False)
    assert (linted.stdout, linted.stderr, linted.returncode) == ("", "", 0)


def test_endpoints_of_an_example_have_what_its_readme_says(assemblies: dict[str, Path]) -> None:
    def types(name: str, stack: str) -> list[str]:
        resources = json.loads((assemblies[name] / f"{stack}.template.json").read_text())["Resources"]
        return [resource["Type"] for resource in resources.values()]

    one = types("one_endpoint", "Chat")
    assert one.count("AWS::SageMaker::InferenceComponent") == one.count("Custom::SmokeBenchmark") == 1
    props = types("by_props", "Support")
    assert props.count("AWS::EC2::VPCEndpoint") == 9
    assert (
        props.count("AWS::CloudWatch::Alarm") == 4 + 3 + 3
    )  # nobody is told of a component's first tokens; what is imported is not updated, and has no alarm on capacity
    assert props.count("AWS::SSM::Parameter") == 2
    shared = types("shared_endpoint", "Shared")
    assert (shared.count("AWS::SageMaker::Endpoint"), shared.count("AWS::SageMaker::InferenceComponent")) == (1, 2)
