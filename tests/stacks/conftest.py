"""Three deployments written out by hand, synthesized together once: the plainest, the fullest, and weights from S3."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pytest
from aws_cdk import App
from aws_cdk.assertions import Template

from seatrial.deployment.document import Deployment
from seatrial.plan.document import Cost, Decision, Image, MemoryFit, Plan
from seatrial.serving.document import ServingConfig
from seatrial.spec.endpoint import EndpointSpec
from seatrial.spec.environment import EnvironmentSpec
from stacks.endpoint_stack import EndpointStack

if TYPE_CHECKING:
    from collections.abc import Mapping

Value = TypeVar("Value")

ROOT = Path(__file__).parents[2]
IMAGE = "763104351884.dkr.ecr.us-east-1.amazonaws.com/djl-inference:0.36.0-lmi27.0.0-cu130"
KEY_ARN = "arn:aws:kms:eu-west-1:123456789012:key/11111111-2222-3333-4444-555555555555"
MEMORY = MemoryFit(
    accelerator_memory_bytes=24_000_000_000,
    weights_bytes=13_476_839_424,
    reserve_bytes=2_400_000_000,
    kv_room_bytes=8_000_000_000,
    kv_bytes_per_token=524_288,
    kv_limited_batch=29,
)
COST = Cost(
    usd_per_hour=1.515,
    usd_per_hour_per_copy=1.515,
    usd_per_million_output_tokens=1.2,
    blended_usd_per_million_tokens=0.3,
    price_source="by hand",
    price_date="2026-11-21",
)
PROPERTIES = "engine=Python\noption.model_id=meta-llama/Llama-2-7b-chat-hf\n"


def decided(value: Value) -> Decision[Value]:
    return Decision(value=value, because="written by hand")


def plan(environment: str, *, instance_type: str = "ml.g5.2xlarge") -> Plan:
    return Plan(
        endpoint="chat",
        environment=environment,
        spec_digest="0123456789abcdef",
        model_name="Llama-2-7b-chat-hf",
        architecture="Llama-2-7b-hf",
        engine=decided("lmi"),
        engine_version=decided("27"),
        image=decided(Image(uri=IMAGE, repository="djl-inference", tag="0.36.0-lmi27.0.0-cu130")),
        inference_ami_version=decided("al2023-ami-sagemaker-inference-gpu-4-1" if environment == "prod" else None),
        instance_type=decided(instance_type),
        accelerators_per_instance=1,
        instance_count=decided(1),
        tensor_parallel_degree=decided(1),
        copies_per_instance=decided(1),
        copy_count=decided(1),
        max_copies=2,
        max_instances=2,
        copies_replaced_at_once=None,
        surge_instances=decided(1),
        max_model_len=decided(4096),
        max_num_seqs=decided(24),
        max_num_batched_tokens=decided(4096),
        max_queued_requests=decided(48),
        dtype=decided("fp16"),
        quantization=None,
        cpu_cores_per_copy=6.5,
        memory_min_mb=decided(16384),
        startup_timeout_s=decided(900),
        download_timeout_s=decided(600),
        target_concurrency_per_copy=decided(12.8),
        gate_concurrency_per_copy=decided(16),
        concurrency_levels=decided((1, 4, 16)),
        memory=MEMORY,
        curve=(),
        uncertainty=0.3,
        cost=COST,
        rejected=(),
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


def serving(**fields: object) -> ServingConfig:
    return ServingConfig.model_validate(
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
    serving: ServingConfig,
    instance_type: str = "ml.g5.2xlarge",
    has_local_nvme: bool = True,
) -> Deployment:
    read = EnvironmentSpec.model_validate(environment)
    return Deployment(
        endpoint=endpoint,
        environment=read,
        plan=plan(read.name, instance_type=instance_type),
        serving=serving,
        trial_request='{"endpoint":"chat"}',
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
        endpoint=spec(trial={"mode": "report", "budget_minutes": 14}),
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


def synthesize(folder: Path) -> Path:
    context = json.loads((ROOT / "cdk.json").read_text())["context"]
    app = App(outdir=str(folder), analytics_reporting=False, context=context)
    for each in (dev(), prod(), weights()):
        EndpointStack(app, each.stack_name, deployment=each)
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


@pytest.fixture
def dev_deployment() -> Deployment:
    return dev()
