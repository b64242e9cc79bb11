"""Writes the catalog's resource schemas from those that cfn-lint ships, so that nobody edits them by hand.

    python scripts/build_resource_schemas.py

cfn-lint ships the CloudFormation registry's schema of each resource type, with patches of its own that add limits of
the services' APIs. A schema is kept whole but for what only people read, what `cfn-lint` alone reads, and the handler
that lists resources, which no deployment calls. `tests/stacks/test_resource_types.py` tells which type is missing.
"""

from __future__ import annotations

import json
from importlib import metadata
from pathlib import Path
from typing import TypeAlias

Json: TypeAlias = bool | int | float | str | list["Json"] | dict[str, "Json"] | None

REGION = "us-east-1"
ROOT = Path(__file__).resolve().parents[1]
OUTPUT = ROOT / "packages" / "seatrial-base" / "seatrial_base" / "catalog" / "data" / "resource_schemas.json"
SCHEMAS = "cfnlint/data/schemas"
NOT_KEPT = frozenset(
    {
        "$comment",
        "$schema",
        "additionalIdentifiers",
        "arrayType",
        "description",
        "documentationUrl",
        "examples",
        "format",
        "insertionOrder",
        "list",
        "propertyTransform",
        "relationshipRef",
        "sourceUrl",
        "title",
        "typeName",
    }
)
NAMES = frozenset({"definitions", "patternProperties", "properties"})
"""The keywords whose keys are names, not keywords."""
TYPES = (
    "AWS::ApplicationAutoScaling::ScalableTarget",
    "AWS::ApplicationAutoScaling::ScalingPolicy",
    "AWS::Budgets::Budget",
    "AWS::Chatbot::MicrosoftTeamsChannelConfiguration",
    "AWS::Chatbot::SlackChannelConfiguration",
    "AWS::CloudFormation::CustomResource",
    "AWS::CloudFormation::GuardHook",
    "AWS::CloudWatch::Alarm",
    "AWS::CloudWatch::CompositeAlarm",
    "AWS::CloudWatch::Dashboard",
    "AWS::CodeBuild::Project",
    "AWS::CodePipeline::Pipeline",
    "AWS::EC2::RouteTable",
    "AWS::EC2::SecurityGroup",
    "AWS::EC2::Subnet",
    "AWS::EC2::SubnetRouteTableAssociation",
    "AWS::EC2::VPC",
    "AWS::EC2::VPCEndpoint",
    "AWS::Events::Rule",
    "AWS::IAM::ManagedPolicy",
    "AWS::IAM::OIDCProvider",
    "AWS::IAM::Policy",
    "AWS::IAM::Role",
    "AWS::KMS::Alias",
    "AWS::KMS::Key",
    "AWS::Lambda::Function",
    "AWS::Lambda::Permission",
    "AWS::Logs::LogGroup",
    "AWS::S3::Bucket",
    "AWS::S3::BucketPolicy",
    "AWS::SNS::Subscription",
    "AWS::SNS::Topic",
    "AWS::SNS::TopicPolicy",
    "AWS::SSM::Parameter",
    "AWS::SageMaker::Endpoint",
    "AWS::SageMaker::EndpointConfig",
    "AWS::SageMaker::InferenceComponent",
    "AWS::SageMaker::Model",
    "AWS::Scheduler::Schedule",
    "AWS::Scheduler::ScheduleGroup",
    "AWS::ServiceCatalog::CloudFormationProduct",
    "AWS::ServiceCatalog::LaunchRoleConstraint",
    "AWS::ServiceCatalog::LaunchTemplateConstraint",
    "AWS::ServiceCatalog::Portfolio",
    "AWS::ServiceCatalog::PortfolioPrincipalAssociation",
    "AWS::ServiceCatalog::PortfolioProductAssociation",
    "AWS::ServiceCatalog::ResourceUpdateConstraint",
    "AWS::StepFunctions::StateMachine",
)


def main() -> None:
    """Write the data file, print what was written."""
    OUTPUT.write_text(document(), encoding="utf-8")
    print(f"{OUTPUT.name}: {len(TYPES)} types, {OUTPUT.stat().st_size:,} bytes")


def document() -> str:
    """Return the data file, of the schemas that the installed cfn-lint has."""
    linter = metadata.distribution("cfn-lint")
    folder = Path(str(linter.locate_file(SCHEMAS)))
    date = str(_read(folder / "version.json")["schema_date"])[:10]
    source = f"cfn-lint {linter.version}, CloudFormation registry schema of {REGION}"
    digests = _read(folder / "providers" / f"{REGION}.json")
    origin = {"source": source, "date": date}
    rows = [_row(name, _read(folder / "resources" / f"{digests[name]}.json"), origin) for name in TYPES]
    return '{\n"rows": [\n' + ",\n".join(rows) + "\n]\n}\n"


def _read(file: Path) -> dict[str, Json]:
    document: dict[str, Json] = json.loads(file.read_text(encoding="utf-8"))
    return document


def _row(name: str, schema: dict[str, Json], origin: dict[str, str]) -> str:
    return json.dumps({"resource_type": name, **origin, "schema": _kept(schema)}, separators=(",", ":"))


def _kept(node: Json, *, of_names: bool = False) -> Json:
    """Return a schema without the keywords that are not kept; the keys of `of_names` are names of properties."""
    if isinstance(node, list):
        return [_kept(each) for each in node]
    if not isinstance(node, dict):
        return node
    return {
        key: _kept(value, of_names=key in NAMES and not of_names)
        for key, value in sorted(node.items())
        if of_names or key not in NOT_KEPT
    }


if __name__ == "__main__":
    main()
