"""Products: what a template leaves to the team, what it never has, and the stack that offers it."""

from __future__ import annotations

import json
import re
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from aws_cdk import App, Stack
from aws_cdk.assertions import Template as AssertedTemplate
from cfnlint import lint  # type: ignore[import-untyped]  # no type information published
from ministack.core.iam_evaluator import EvalContext, evaluate, parse_policy_document

from benchmarks.living_endpoint.synthesis import synthesize
from seatrial.specs.product import ProductSpec
from seatrial_base.errors import SpecError
from seatrial_cdk.observability.endpoint_alarms import NEVER
from seatrial_cdk.vending.product_portfolio import Offer, ProductPortfolio
from seatrial_stacks.publish_products import publish
from tests.policy_findings import policy_findings
from tests.resource_types import unknown_types
from tests.sample_product import ENDPOINT, PRODUCT, lock_sizes, write_product
from tests.stacks.conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ROLE = "arn:aws:iam::123456789012:role/team-search"
PAGES = "arn:aws:sns:us-east-1:123456789012:pages"
NOTIFIED = [{"teams": ["search", "sales"], "emails": ["x@example.com"]}, {"teams": ["search"], "topic_arn": PAGES}]
NOTIFYING: dict[str, object] = {"alarms": {"notify": NOTIFIED}}
Template = Any  # a document of CloudFormation
DEPENDENCIES = "W3005"  # CDK writes dependencies out that a reference implies


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Publish a product, in the folder of the feature flags."""
    folder = tmp_path_factory.mktemp("team")
    product = write_product(folder, lab=NOTIFYING)
    lock_sizes(product, folder / "environments")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        publish([product], folder / "environments")
        yield folder


@pytest.fixture(scope="module")
def template(folder: Path) -> Template:
    return json.loads((folder / "products/chat/versions/1.0.0/lab.template.json").read_text())


@pytest.fixture(scope="module")
def offered(folder: Path) -> Template:
    """Return the template of the vending stack, and that of the trials."""
    context = {name: folder / name for name in ("endpoints", "environments", "products")}
    assembly = synthesize(folder / "out", {**context, "environment": "lab"})
    names = ("products", "trials")
    return [json.loads((assembly / f"seatrial-lab-{name}.template.json").read_text()) for name in names]


def test_the_catalog_has_every_resource_type(template: Template, offered: Template) -> None:
    templates = [template, *offered]
    assert unknown_types(each for one in templates for each in one["Resources"].values()) == []


def test_policies_of_products(folder: Path, offered: Template) -> None:
    published = [*folder.glob("products/*/versions/*/*.template.json")]
    assert (len(published), len(offered)) == (1, 2)
    assert policy_findings([*published, folder / "out"]) == []


def of_type(template: Template, kind: str) -> list[Template]:
    return [each for each in template["Resources"].values() if each["Type"] == kind]


def findings(template: Template) -> list[str]:
    found = lint(json.dumps(template), regions=["us-east-1"])
    return [str(each) for each in found if each.rule.id != DEPENDENCIES]


def test_a_template_is_valid_and_needs_no_bootstrap(template: Template) -> None:
    assert findings(template) == []
    assert "cdk-hnb659fds" not in json.dumps(template)


def test_a_team_chooses_within_what_is_declared(template: Template) -> None:
    parameters = template["Parameters"]
    assert {name: each.get("AllowedValues") for name, each in parameters.items()} == {
        "Team": ["search", "support"],
        "EndpointName": None,
        "Size": ["small", "large"],
        "CostCenter": ["4711"],
        "MinCopies": [1, 2, 3],
        "MaxCopies": [1, 2, 3],
        "AlarmTopicArn": None,
        "AlarmEmail": None,
        "RollbackAlarms": ["on", "off"],
    }
    longest = "lab-" + "t" * 12 + "-" + "n" * parameters["EndpointName"]["MaxLength"] + "-large-99-model"
    assert len(longest) <= 63
    shown = template["Metadata"]["AWS::CloudFormation::Interface"]["ParameterGroups"]
    assert sorted(name for group in shown for name in group["Parameters"]) == sorted(parameters)


def test_no_resource_has_a_name_before_the_team_has_chosen(template: Template) -> None:
    assert not re.search("TEAM|COST-CENTER", json.dumps([template["Resources"], template["Outputs"]]))


def test_a_size_has_resources_of_its_own_and_one_alias(template: Template) -> None:
    conditions = [each.get("Condition") for each in of_type(template, "AWS::SageMaker::Endpoint")]
    assert sorted(conditions) == ["IsLarge", "IsSmall"]
    (alias,) = of_type(template, "AWS::SSM::Parameter")
    assert alias["Properties"]["Name"] == {
        "Fn::Join": ["", ["/seatrial/lab/", {"Ref": "Team"}, "-", {"Ref": "EndpointName"}, "/alias"]]
    }
    waited = json.dumps(alias["Properties"]["Description"])
    assert "SmallTrial" in waited
    assert "LargeTrial" in waited


def test_every_resource_with_tags_has_those_of_the_product(template: Template) -> None:
    tagged = [each for each in template["Resources"].values() if isinstance(each["Properties"].get("Tags"), list)]
    wanted = {"team", "seatrial:product", "seatrial:product-version", "seatrial:environment"}
    assert len(tagged) > 10
    assert [each["Type"] for each in tagged if not wanted <= {tag["Key"] for tag in each["Properties"]["Tags"]}] == []


def test_a_team_switches_rollback_by_alarms_off_for_one_update(template: Template) -> None:
    assert template["Parameters"]["RollbackAlarms"]["Default"] == "on"
    assert template["Conditions"]["HasRollbackAlarms"] == {"Fn::Equals": [{"Ref": "RollbackAlarms"}, "on"]}
    alarms = [each["Properties"] for each in of_type(template, "AWS::CloudWatch::Alarm")]
    guards = [each for each in alarms if "AlarmActions" not in each]
    assert len(guards) == 8
    for each in guards:
        condition, on, off = each["Threshold"]["Fn::If"]
        assert (condition, isinstance(on, int | float), off) == ("HasRollbackAlarms", True, NEVER)
    assert all(isinstance(each["Threshold"], int | float) for each in alarms if "AlarmActions" in each)


def test_roles_are_bounded_and_alarms_have_names_that_trials_may_read(template: Template) -> None:
    for role in of_type(template, "AWS::IAM::Role"):
        assert role["Properties"]["Path"] == "/seatrial/lab/"
        assert role["Properties"]["PermissionsBoundary"]["Fn::Sub"].endswith(":policy/seatrial-lab-products-boundary")
    names = [json.dumps(each["Properties"]["AlarmName"]) for each in of_type(template, "AWS::CloudWatch::Alarm")]
    assert len(set(names)) == len(names) == 2 * 7
    assert all('"seatrial-lab-"' in name for name in names)


def test_a_trial_hears_of_tags_that_are_parameters(template: Template) -> None:
    for kind in ("Custom::CandidateTrial", "Custom::SmokeBenchmark"):
        for each in of_type(template, kind):
            assert each["Properties"]["Component"]["Fn::Join"][1][1:] == [{"Ref": "Team"}, {"Ref": "CostCenter"}]


def test_a_published_version_never_changes(folder: Path) -> None:
    product, environments = folder / "products" / "chat.yaml", folder / "environments"
    before = product.read_text()
    path, source = publish([product], environments)
    assert source == path.with_name("lab.source.json")
    published = path.read_bytes()
    write_product(folder, lab=NOTIFYING, endpoint={**ENDPOINT, "slo": {"ttft_ms": {"p95": 10_000}}})
    lock_sizes(product, environments)
    try:
        with pytest.raises(SpecError, match=r"SEA495: version 1\.0\.0 was published for lab from another product"):
            publish([product], environments)
        assert path.read_bytes() == published
    finally:
        product.write_text(before)
        lock_sizes(product, environments)


def test_the_boundary_allows_reading_the_alarms_of_a_rollback(offered: tuple[Template, Template]) -> None:
    (boundary,) = of_type(offered[0], "AWS::IAM::ManagedPolicy")
    (statement,) = (
        each
        for each in boundary["Properties"]["PolicyDocument"]["Statement"]
        if each["Action"] == "cloudwatch:DescribeAlarms"
    )
    assert ":alarm:seatrial-lab-*" in json.dumps(statement["Resource"])


def test_the_boundary_keeps_the_weights_of_what_teams_may_still_run(folder: Path, tmp_path: Path) -> None:
    """A product's file may go before what was launched of it has."""
    shutil.copytree(folder, tmp_path / "team")
    template = tmp_path / "team/products/gone/versions/1.0.0/lab.template.json"
    template.parent.mkdir(parents=True)
    weights = {"S3DataSource": {"S3Uri": "s3://weights/gone/"}}
    model = {"Type": "AWS::SageMaker::Model", "Properties": {"PrimaryContainer": {"ModelDataSource": weights}}}
    template.write_text(json.dumps({"Resources": {"Model": model}}))
    context = {name: tmp_path / "team" / name for name in ("endpoints", "environments", "products")}
    assembly = synthesize(tmp_path / "out", {**context, "environment": "lab"})
    vending = json.loads((assembly / "seatrial-lab-products.template.json").read_text())
    (boundary,) = of_type(vending, "AWS::IAM::ManagedPolicy")
    assert "arn:aws:s3:::weights/gone/*" in json.dumps(boundary)


def test_what_is_published_without_its_source_gets_it_and_stays(folder: Path) -> None:
    """An older Seatrial published templates alone."""
    path, source = publish([folder / "products" / "chat.yaml"], folder / "environments")
    published, written = path.read_bytes(), source.read_bytes()
    source.unlink()
    assert publish([folder / "products" / "chat.yaml"], folder / "environments") == (path, source)
    assert (path.read_bytes(), source.read_bytes()) == (published, written)


def test_a_version_that_a_tightened_guard_rail_forbids_is_not_offered(folder: Path, tmp_path: Path) -> None:
    """Version 1.0.0 has a size of three copies."""
    team = tmp_path / "team"
    shutil.copytree(folder, team)
    sizes = {"small": {"scaling": {"max_copies": 2}}}
    product = write_product(team, version="1.1.0", sizes=sizes)
    lock_sizes(product, team / "environments")
    publish([product], team / "environments")
    folders = {name: team / name for name in ("endpoints", "environments", "products")}
    context: dict[str, str | Path] = {**folders, "environment": "lab"}
    tightened: dict[str, object] = {"guard_rails": {"max_copies": 2}}
    write_product(team, lab=tightened, version="1.1.0", sizes=sizes)
    with pytest.raises(SpecError) as caught:
        synthesize(tmp_path / "refused", context)
    assert [problem.rule for problem in caught.value.problems] == ["SEA487"]
    write_product(team, lab=tightened, version="1.1.0", sizes=sizes, deprecated=["1.0.0"])
    assembly = synthesize(tmp_path / "out", context)
    vending = json.loads((assembly / "seatrial-lab-products.template.json").read_text())
    (offered,) = of_type(vending, "AWS::ServiceCatalog::CloudFormationProduct")
    versions = [each["Name"] for each in offered["Properties"]["ProvisioningArtifactParameters"]]
    assert versions == ["1.0.0", "1.1.0"], "what was launched stays on its version"


def test_too_many_copies_to_choose_from_are_refused(tmp_path: Path) -> None:
    sizes = {"small": {"scaling": {"max_copies": 51}}}
    product = write_product(tmp_path, lab={"guard_rails": {}}, sizes=sizes)
    lock_sizes(product, tmp_path / "environments")
    with pytest.raises(SpecError, match="SEA496: teams would choose among 51 copies, at most 50"):
        publish([product], tmp_path / "environments")


def test_the_portfolio_offers_each_version_with_its_constraints(offered: Template) -> None:
    vending, _ = offered
    kinds = {each["Type"].removeprefix("AWS::ServiceCatalog::") for each in vending["Resources"].values()}
    assert {"LaunchRoleConstraint", "LaunchTemplateConstraint", "ResourceUpdateConstraint"} <= kinds
    (product,) = of_type(vending, "AWS::ServiceCatalog::CloudFormationProduct")
    versions = product["Properties"]["ProvisioningArtifactParameters"]
    assert [each["Name"] for each in versions] == ["1.0.0"]
    assert "ReplaceProvisioningArtifacts" not in product["Properties"]
    (principal,) = of_type(vending, "AWS::ServiceCatalog::PortfolioPrincipalAssociation")
    assert principal["Properties"]["PrincipalType"] == "IAM_PATTERN"
    assert findings(vending) == []


def test_trials_may_read_the_state_of_stacks_that_teams_name(offered: Template) -> None:
    _, trials = offered
    assert "arn:aws:cloudformation:us-east-1:123456789012:stack/*/*" in json.dumps(trials)


def test_products_that_no_selected_environment_offers_are_no_app(folder: Path, tmp_path: Path) -> None:
    (folder / "environments" / "other.yaml").write_text("name: other\nregion: us-east-1\n")
    context = {name: folder / name for name in ("endpoints", "environments", "products")}
    with pytest.raises(SpecError, match="SEA404: no environment offers products"):
        synthesize(tmp_path / "out", {**context, "environment": "other"})


def launch_policy(vending: Template) -> Template:
    (role,) = [each for each in of_type(vending, "AWS::IAM::Role") if "RoleName" in each["Properties"]]
    text = json.dumps(role["Properties"]["Policies"][0]["PolicyDocument"])
    boundary = "arn:aws:iam::123456789012:policy/boundary"
    named = re.sub(r'\{"Ref": "LaunchRoleBoundary[0-9A-F]+"\}', f'"{boundary}"', text)
    return json.loads(named)


@pytest.mark.parametrize(
    ("action", "resource", "context", "allowed"),
    [
        (
            "sagemaker:CreateEndpoint",
            "sagemaker:us-east-1:123456789012:endpoint/lab-a",
            {"aws:requesttag/seatrial:environment": "lab"},
            True,
        ),
        ("sagemaker:CreateEndpoint", "sagemaker:us-east-1:123456789012:endpoint/lab-a", {}, False),
        (
            "sagemaker:CreateEndpoint",
            "sagemaker:us-east-1:123456789012:endpoint/prod-a",
            {"aws:requesttag/seatrial:environment": "lab"},
            False,
        ),
        (
            "sagemaker:DeleteModel",
            "sagemaker:us-east-1:123456789012:model/m",
            {"aws:resourcetag/seatrial:environment": "prod"},
            False,
        ),
        ("iam:CreateRole", "iam::123456789012:role/seatrial/lab/r", {}, False),
        (
            "iam:CreateRole",
            "iam::123456789012:role/seatrial/lab/r",
            {"iam:permissionsboundary": "arn:aws:iam::123456789012:policy/boundary"},
            True,
        ),
        ("iam:PassRole", "iam::123456789012:role/seatrial/lab/r", {"iam:passedtoservice": "ec2.amazonaws.com"}, False),
        ("iam:PassRole", "iam::123456789012:role/admin", {"iam:passedtoservice": "sagemaker.amazonaws.com"}, False),
        ("iam:PutRolePermissionsBoundary", "iam::123456789012:role/seatrial/lab/r", {}, False),
        ("cloudformation:CreateStack", "cloudformation:us-east-1:123456789012:stack/SC-1-pp-1/x", {}, True),
        ("cloudformation:DeleteStack", "cloudformation:us-east-1:123456789012:stack/seatrial-lab-trials/x", {}, False),
        ("lambda:InvokeFunction", "lambda:us-east-1:123456789012:function:seatrial-lab-trials", {}, True),
        ("lambda:UpdateFunctionCode", "lambda:us-east-1:123456789012:function:seatrial-lab-trials", {}, False),
        ("s3:GetObject", "s3:::results/secret", {}, False),
    ],
)
def test_the_launch_role_does_what_products_need_and_no_more(
    offered: Template, action: str, resource: str, context: dict[str, str], *, allowed: bool
) -> None:
    policy = parse_policy_document(launch_policy(offered[0]))
    asked = EvalContext(
        principal_arn="arn:aws:iam::123456789012:role/launch",
        principal_type="AssumedRole",
        principal_account="123456789012",
        action=action,
        resource_arn=f"arn:aws:{resource}",
        region="us-east-1",
        service_context=context,
    )
    assert (evaluate(asked, [policy]).decision == "Allow") is allowed


def test_each_team_has_a_portfolio_whose_rule_is_that_team() -> None:
    changed = {**PRODUCT, "principals": [], "team_principals": {"search": [ROLE], "support": [f"{ROLE}-support"]}}
    stack = Stack(App(analytics_reporting=False), "Products")
    offer = Offer(product=ProductSpec.model_validate(changed), versions={})
    launch = "arn:aws:iam::123456789012:role/launch"
    ProductPortfolio(stack, "Portfolio", environment="lab", owner="us", offers=[offer], launch_role_arn=launch)
    made = AssertedTemplate.from_stack(stack).to_json()
    names = {
        name: each["Properties"]["DisplayName"]
        for name, each in made["Resources"].items()
        if each["Type"] == "AWS::ServiceCatalog::Portfolio"
    }
    teams = {f"Endpoints of {team} in lab": [team] for team in ("search", "support")}
    assert {*names.values()} == {"Endpoints in lab", *teams}
    rules = {
        names[each["Properties"]["PortfolioId"]["Ref"]]: json.loads(each["Properties"]["Rules"])
        for each in of_type(made, "AWS::ServiceCatalog::LaunchTemplateConstraint")
    }
    allowed = {name: rule["TeamIsKnown"]["Assertions"][0]["Assert"]["Fn::Contains"][0] for name, rule in rules.items()}
    assert allowed == {"Endpoints in lab": ["search", "support"], **teams}
    for kind in ("LaunchRoleConstraint", "ResourceUpdateConstraint"):
        places = [each["Properties"]["PortfolioId"]["Ref"] for each in of_type(made, f"AWS::ServiceCatalog::{kind}")]
        assert {names[each] for each in places} == {*names.values()}
    launchers = of_type(made, "AWS::ServiceCatalog::PortfolioPrincipalAssociation")
    whose = {names[each["Properties"]["PortfolioId"]["Ref"]]: each["Properties"]["PrincipalARN"] for each in launchers}
    assert whose == {"Endpoints of search in lab": ROLE, "Endpoints of support in lab": f"{ROLE}-support"}
    assert len(of_type(made, "AWS::ServiceCatalog::CloudFormationProduct")) == 1


def test_alarms_of_a_launch_notify_the_topic_of_its_team_which_has_tags_of_the_environment(template: Template) -> None:
    nothing = {"Ref": "AWS::NoValue"}
    own = {"Fn::Sub": "arn:${AWS::Partition}:sns:${AWS::Region}:${AWS::AccountId}:seatrial-lab-${Team}-alarms"}
    alarms = [each["Properties"] for each in of_type(template, "AWS::CloudWatch::Alarm")]
    notifying = [each for each in alarms if "OKActions" in each]
    assert len(notifying) == 6
    for alarm in notifying:
        assert alarm["AlarmActions"][1:] == [
            {"Fn::If": ["HasTeamTopic", own, nothing]},
            {"Fn::If": ["IsTeamSearch", PAGES, nothing]},
        ]
    assert template["Conditions"]["HasTeamTopic"] == {"Condition": "IsTeamSearch"}, "the product offers no sales"
    (topic,) = of_type(template, "AWS::SNS::Topic")
    assert {"Key": "stage", "Value": "lab"} in topic["Properties"]["Tags"]
    assert "seatrial doctor " in json.dumps(alarms[0]["AlarmDescription"])
