"""cdk-nag finds nothing in a queue with a topic and a caller of the app, nor in the VPC endpoints, unacknowledged."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from aws_cdk import App, Stack, Validations
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from cdk_nag import AwsSolutionsChecks

from seatrial_cdk.endpoint.container_network import HostingVpcEndpoints
from seatrial_cdk.endpoint.output_location import AsynchronousInference, OutputLocation
from seatrial_cdk.endpoint.serving_container import ServingContainer
from seatrial_cdk.endpoint.single_model_endpoint import SingleModelEndpoint
from seatrial_cdk.endpoint.variant_instances import ModelVariant, VariantInstances
from seatrial_cdk.policy import acknowledge

if TYPE_CHECKING:
    from pathlib import Path

IMAGE = "763104351884.dkr.ecr.us-east-1.amazonaws.com/djl-inference:0.36.0-lmi27.0.0-cu129"


def test_rights_of_models_and_callers_and_the_vpc_endpoints_are_acknowledged(tmp_path: Path) -> None:
    app = App(outdir=str(tmp_path), analytics_reporting=False)
    stack = Stack(app, "Stack")
    vpc = ec2.Vpc(stack, "Vpc", max_azs=2, nat_gateways=0)
    acknowledge(vpc, {"VPC7": "The flow logs are no part of this test."})
    isolated = ec2.SubnetSelection(subnet_type=ec2.SubnetType.PRIVATE_ISOLATED)
    HostingVpcEndpoints(stack, "Services", vpc=vpc, vpc_subnets=isolated)
    key = kms.Key(stack, "Key", enable_key_rotation=True)
    topic = sns.Topic(stack, "Topic", master_key=key, enforce_ssl=True)
    endpoint = SingleModelEndpoint(
        stack,
        "Endpoint",
        variants=[
            ModelVariant(
                container=ServingContainer(image=IMAGE), instances=VariantInstances(instance_type="ml.g5.2xlarge")
            )
        ],
        asynchronous=AsynchronousInference(
            answers=OutputLocation.of_uri("s3://bucket/answers/", key=key), success_topic=topic
        ),
    )
    endpoint.grant_invoke(iam.Role(stack, "Caller", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com")))
    Validations.of(app).add_plugins(AwsSolutionsChecks())
    app.synth()
    (pack,) = json.loads((tmp_path / "validation-report.json").read_text())["pluginReports"]
    assert pack["violations"] == []
    assert {each["ruleName"].partition("[")[0] for each in pack["suppressedViolations"]} >= {
        "AwsSolutions-EC23",
        "AwsSolutions-IAM5",
    }
