"""Three deployments written out by hand, synthesized together once: the plainest, the fullest, and weights from S3.

The first two have a trial, and so their environments a stack of trials.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from aws_cdk import App
from aws_cdk.assertions import Template

from seatrial.deployment.document import Deployment
from seatrial.deployment.optimization_job import OptimizationJobRequest
from seatrial.engines.rendered import RenderedConfig
from seatrial.specs.endpoint import EndpointSpec
from seatrial.specs.environment import EnvironmentSpec
from seatrial_stacks.app_stacks import add_stacks
from tests.constructs.conftest import request_of_dev
from tests.sample_plan import LMI_IMAGE as IMAGE
from tests.sample_plan import decided, sample_plan

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seatrial.documents.plan import Plan

ROOT = Path(__file__).parents[2]
KEY_ARN = "arn:aws:kms:eu-west-1:123456789012:key/11111111-2222-3333-4444-555555555555"
PROPERTIES = "engine=Python\noption.model_id=meta-llama/Llama-2-7b-chat-hf\n"


def request_text() -> str:
    """Return a trial's request without target and expected."""
    fields = json.loads(request_of_dev().to_json())
    return json.dumps({key: value for key, value in fields.items() if key not in {"target", "expected"}})


TRIAL_REQUEST = request_text()


def plan(environment: str, *, instance_type: str = "ml.g5.2xlarge") -> Plan:
    ami = "al2023-ami-sagemaker-inference-gpu-4-1" if environment == "prod" else None
    return sample_plan(
        environment=environment,
        instance_type=decided(instance_type),
        inference_ami_version=decided(ami),
    )


def spec(**fields: object) -> EndpointSpec:
    return EndpointSpec.model_validate(
        {
            "name": "chat",
            "model": {"hub_id": "meta-llama/Llama-2-7b-chat-hf"},
            "workload": {"input_tokens": 256, "output_tokens": 256, "concurrency": 16},
            "slo": {"ttft_ms": {"p95": 2000}, "tpot_ms": {"p95": 100}},
            "scaling": {"min_copies": 1, "max_copies": 2},
            **fields,
        }
    )


def serving(**fields: object) -> RenderedConfig:
    return RenderedConfig.model_validate(
        {
            "engine": "lmi",
            "engine_version": "27",
            "image": IMAGE,
            "payload_schema": "lmi",
            "files": {},
            "container_env": {"SERVING_JOB_QUEUE_SIZE": "48"},
            "secret_env": {},
            "weights_s3_uri": None,
            "isolated": False,
            **fields,
        }
    )


def deployment(
    environment: Mapping[str, object],
    *,
    endpoint: EndpointSpec,
    serving: RenderedConfig,
    instance_type: str = "ml.g5.2xlarge",
    has_local_nvme: bool = True,
    trial_request: str = TRIAL_REQUEST,
) -> Deployment:
    read = EnvironmentSpec.model_validate(environment)
    return Deployment(
        endpoint=endpoint,
        environment=read,
        plan=plan(read.name, instance_type=instance_type),
        serving=serving,
        trial_request=trial_request,
        has_local_nvme=has_local_nvme,
    )


def dev() -> Deployment:
    return deployment(
        {"name": "dev", "region": "us-east-1", "removal": "destroy", "tags": {"stage": "dev"}},
        endpoint=spec(model={"hub_id": "meta-llama/Llama-2-7b-chat-hf", "hub_token_secret": "seatrial/hub-token"}),
        serving=serving(secret_env={"HF_TOKEN": "seatrial/hub-token"}),
    )


def prod() -> Deployment:
    return deployment(
        {
            "name": "prod",
            "account": "123456789012",
            "region": "eu-west-1",
            "network": {"subnet_ids": ["subnet-0a1b2c3d"], "security_group_ids": ["sg-0a1b2c3d"]},
            "kms_key_arn": KEY_ARN,
            "tags": {"stage": "prod", "team": "support"},
        },
        endpoint=spec(trial={"mode": "report", "budget_minutes": 14}, tags={"team": "search", "cost-center": "42"}),
        serving=serving(files={"serving.properties": PROPERTIES}),
        instance_type="ml.inf2.xlarge",
        has_local_nvme=False,
    )


def weights() -> Deployment:
    s3_uri = "s3://model-weights/llama-2-7b/"
    return deployment(
        {"name": "lab", "region": "us-east-1", "network": {"isolated": True}, "kms_key_arn": KEY_ARN},
        endpoint=spec(
            model={"s3_uri": s3_uri, "accept_eula": True},
            slo={},
            scaling={"min_copies": 1, "max_copies": 1},
            trial={"mode": "off"},
        ),
        serving=serving(weights_s3_uri=s3_uri, isolated=True),
    )


def optimization_request(environment: str) -> OptimizationJobRequest:
    config: dict[str, dict[str, object]] = {
        "ModelQuantizationConfig": {"Image": IMAGE, "OverrideEnvironment": {"OPTION_QUANTIZE": "awq"}}
    }
    return OptimizationJobRequest(
        environment=environment,
        instance_type="ml.g5.2xlarge",
        configs=(config,),
        image=IMAGE,
        source_s3_uri="s3://model-weights/llama-2-7b/",
    )


def synthesize(folder: Path) -> Path:
    context = json.loads((ROOT / "cdk.json").read_text())["context"]
    app = App(outdir=str(folder), analytics_reporting=False, context=context)
    add_stacks(app, (dev(), prod(), weights()))
    app.synth()
    return folder


@pytest.fixture(scope="session")
def assembly(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return synthesize(tmp_path_factory.mktemp("assembly"))


@pytest.fixture(scope="session")
def second_assembly(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return synthesize(tmp_path_factory.mktemp("again"))


@pytest.fixture(scope="session")
def dev_template(assembly: Path) -> Template:
    return Template.from_string((assembly / "seatrial-dev-chat.template.json").read_text())


@pytest.fixture(scope="session")
def prod_template(assembly: Path) -> Template:
    return Template.from_string((assembly / "seatrial-prod-chat.template.json").read_text())


@pytest.fixture(scope="session")
def weights_template(assembly: Path) -> Template:
    return Template.from_string((assembly / "seatrial-lab-chat.template.json").read_text())


@pytest.fixture(scope="session")
def dev_trials(assembly: Path) -> Template:
    return Template.from_string((assembly / "seatrial-dev-trials.template.json").read_text())


@pytest.fixture(scope="session")
def prod_trials(assembly: Path) -> Template:
    return Template.from_string((assembly / "seatrial-prod-trials.template.json").read_text())


@pytest.fixture
def dev_deployment() -> Deployment:
    return dev()


def alarms_that_roles_may_describe(template: Template) -> dict[str, set[str]]:
    """Return the logical IDs of the alarms that each execution role may describe, and that nothing else is named."""
    found: dict[str, set[str]] = {}
    for name, role in template.find_resources("AWS::IAM::Role").items():
        if role["Properties"]["AssumeRolePolicyDocument"]["Statement"][0]["Principal"] != {
            "Service": "sagemaker.amazonaws.com"
        }:
            continue
        found[name] = set()
        for policy in role["Properties"]["Policies"]:
            for each in policy["PolicyDocument"]["Statement"]:
                if "cloudwatch:DescribeAlarms" in each["Action"]:
                    assert each["Action"] == "cloudwatch:DescribeAlarms"
                    arns = each["Resource"] if isinstance(each["Resource"], list) else [each["Resource"]]
                    for arn in arns:
                        *before, alarm = arn["Fn::Join"][1]
                        assert before[-1].endswith(":alarm:")
                        found[name].add(alarm["Ref"])
    return found
