"""The roles that the workflows assume: whom they trust, and what they may do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cfnlint.decode import cfn_yaml  # type: ignore[import-untyped]  # no type information published

from seatrial.repository.write import job_s

if TYPE_CHECKING:
    from seatrial.repository.answers import Ci

CFN_LINT = Path(sys.executable).parent / "cfn-lint"
GITHUB = "token.actions.githubusercontent.com"
TRUST = {
    "github": {
        "DeployRole": {
            f"{GITHUB}:aud": "sts.amazonaws.com",
            f"{GITHUB}:sub": {"Fn::Sub": "${Subject}:environment:${Environment}"},
        },
        "ReadRole": {
            f"{GITHUB}:aud": "sts.amazonaws.com",
            f"{GITHUB}:sub": {"Fn::Sub": "${Subject}:ref:refs/heads/main"},
        },
    },
    "gitlab": {
        name: {"gitlab.com:aud": "https://gitlab.com", "gitlab.com:sub": {"Fn::Sub": "${Subject}"}}
        for name in ("DeployRole", "ReadRole")
    },
}
UNNAMED = {
    "lambda:GetAccountSettings",
    "sagemaker:ListEndpoints",
    "sagemaker:ListInferenceComponents",
    "servicequotas:ListAWSDefaultServiceQuotas",
    "servicequotas:ListServiceQuotas",
}


@pytest.mark.parametrize("ci", ["github", "gitlab"])
def test_the_template_is_valid_and_trusts_one_repository(repositories: dict[Ci, Path], ci: Ci) -> None:
    file = repositories[ci] / "bootstrap" / "roles.yaml"
    done = subprocess.run([CFN_LINT, file], capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("", 0)
    template = cfn_yaml.load(str(file))
    roles = {name: each["Properties"] for name, each in template["Resources"].items() if "Role" in each["Type"]}
    found = {
        name: role["AssumeRolePolicyDocument"]["Statement"][0]["Condition"]["StringEquals"]
        for name, role in roles.items()
    }
    assert found == TRUST[ci]
    assert template["Parameters"]["Enabled"]["Default"] == "false"
    for role in roles.values():
        (trust,) = role["AssumeRolePolicyDocument"]["Statement"]
        assert trust["Effect"] == {"Fn::If": ["IsEnabled", "Allow", "Deny"]}
        assert role["Path"] == {"Ref": "RolePath"}
        bound = ["HasBoundary", {"Ref": "PermissionsBoundary"}, {"Ref": "AWS::NoValue"}]
        assert role["PermissionsBoundary"] == {"Fn::If": bound}
    defaults = {name: template["Parameters"][name]["Default"] for name in ("PermissionsBoundary", "RolePath")}
    assert defaults == {"PermissionsBoundary": "", "RolePath": "/"}
    assert template["Resources"]["DeployRole"]["Properties"]["MaxSessionDuration"] == job_s(ci)
    subject = {"github": "repo:acme/endpoints", "gitlab": "project_path:acme/endpoints:ref_type:branch:ref:main"}
    assert template["Parameters"]["Subject"]["Default"] == subject[ci]


@pytest.mark.parametrize("ci", ["github", "gitlab"])
def test_no_role_reads_the_environment_of_a_container(repositories: dict[Ci, Path], ci: Ci) -> None:
    """A model's environment may hold a token in plain text; a log may too."""
    template = cfn_yaml.load(str(repositories[ci] / "bootstrap" / "roles.yaml"))
    statements = [
        statement
        for role in ("DeployRole", "ReadRole")
        for policy in template["Resources"][role]["Properties"]["Policies"]
        for statement in policy["PolicyDocument"]["Statement"]
    ]
    of_models = [each["Action"] for each in statements if "model/*" in str(each["Resource"])]
    assert of_models == ["sagemaker:ListTags"] * 2
    actions = {
        one for each in statements for one in ([each["Action"]] if isinstance(each["Action"], str) else each["Action"])
    }
    assert actions & {"sagemaker:DescribeModel", "cloudformation:GetTemplate", "secretsmanager:GetSecretValue"} == set()
    assert not {each for each in actions if each.startswith("logs:")}


def test_only_what_has_no_resource_is_allowed_on_all(repositories: dict[Ci, Path]) -> None:
    template = cfn_yaml.load(str(repositories["github"] / "bootstrap" / "roles.yaml"))
    statements = {
        name: template["Resources"][name]["Properties"]["Policies"][0]["PolicyDocument"]["Statement"]
        for name in ("DeployRole", "ReadRole")
    }
    assume, *reading = statements["DeployRole"]
    assert (assume["Action"], reading) == ("sts:AssumeRole", statements["ReadRole"])
    unnamed = [set(each["Action"]) for each in statements["ReadRole"] if each["Resource"] == "*"]
    assert unnamed == [UNNAMED]
    actions = [each["Action"] for each in statements["ReadRole"]]
    named = {action for each in actions for action in ([each] if isinstance(each, str) else each)}
    reading = ("Describe", "Get", "List", "Decrypt")
    assert [action for action in sorted(named) if not action.partition(":")[2].startswith(reading)] == []
