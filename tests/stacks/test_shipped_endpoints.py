"""What the repository ships synthesizes, and neither cfn-lint nor the rule book finds anything."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from aws_cdk import App

from seatrial.deployment.load import load_deployments
from seatrial.specs.guardrails.enforcement import guard_rules
from seatrial.specs.load import load_environment
from seatrial_lint.cloudformation.template import read_templates
from seatrial_lint.template_rules.check import check_templates
from seatrial_stacks.app_stacks import add_stacks
from tests.policy_findings import HAS_GUARD, broken_rails

ROOT = Path(__file__).parents[2]
ENDPOINTS = ("falcon-40b", "llama-2-7b-chat", "mixtral-8x7b")
CFN_LINT = str(Path(sys.executable).with_name("cfn-lint"))


ENVIRONMENTS = ("dev", "prod", "local")


@pytest.fixture(scope="module")
def assemblies(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Synthesize what is shipped for every environment."""
    folders = {name: tmp_path_factory.mktemp(name) for name in ENVIRONMENTS}
    for environment, folder in folders.items():
        app = App(outdir=str(folder), context=json.loads((ROOT / "cdk.json").read_text())["context"])
        add_stacks(app, load_deployments(ROOT / "endpoints", ROOT / "environments", environment).deployments)
        app.synth()
    return folders


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_every_shipped_endpoint_synthesizes_and_the_rule_book_finds_nothing(
    environment: str, assemblies: dict[str, Path]
) -> None:
    templates = sorted(assemblies[environment].glob("*.template.json"))
    stacks = (*ENDPOINTS, "trials")
    assert [file.name for file in templates] == [f"seatrial-{environment}-{name}.template.json" for name in stacks]
    (group,) = read_templates([assemblies[environment]])
    assert check_templates(group.templates, group.region) == ()
    rules = guard_rules(load_environment(ROOT / "environments", environment))
    for file in templates if HAS_GUARD else ():
        assert broken_rails(json.loads(file.read_text()), rules) == {}, file.name


def test_cfn_lint_finds_nothing(assemblies: dict[str, Path]) -> None:
    templates = [str(file) for folder in assemblies.values() for file in sorted(folder.glob("*.template.json"))]
    assert len(templates) == len(ENVIRONMENTS) * (len(ENDPOINTS) + 1)
    # W3005 dislikes a DependsOn beside a reference; CDK writes both, and our teardown order is meant to be read.
    command = [CFN_LINT, "--ignore-checks", "W3005", "--regions", "us-east-1", "--template", *templates]
    linted = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (linted.stdout, linted.stderr, linted.returncode) == ("", "", 0)
