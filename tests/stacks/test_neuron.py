"""A spec on AWS Neuron, planned, rendered and synthesized: what of the template differs from one on GPUs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import yaml
from aws_cdk import App
from aws_cdk.assertions import Template

from seatrial.deployment.document import Deployment
from seatrial.engines.render import render_plan
from seatrial.planner.planner import make_plan
from seatrial.specs.load import load_spec
from seatrial_stacks.app_stacks import add_stacks

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

AMI = "al2-ami-sagemaker-inference-neuron-2"
CASES: dict[str, tuple[str, int, str | None, int | None]] = {
    "inf2": ("ml.inf2.xlarge", 2, None, 60),
    "inf2-large": ("ml.inf2.48xlarge", 8, None, 120),
    "trn1": ("ml.trn1.32xlarge", 16, None, None),
    "lmi": ("ml.inf2.xlarge", 2, "lmi", 60),
}


def deployment(folder: Path, name: str, instance_type: str, degree: int, engine: str | None) -> Deployment:
    serving: dict[str, object] = {
        "instance_types": [instance_type],
        "overrides": {"tensor_parallel_degree": degree},
        **({} if engine is None else {"engine": engine}),
    }
    spec = {
        "name": name,
        "model": {"hub_id": "meta-llama/Llama-3.1-8B"},
        "workload": {"input_tokens": 256, "output_tokens": 256, "concurrency": 8},
        "serving": serving,
        "trial": {"mode": "off"},
        "scaling": {"min_copies": 1, "max_copies": 1},
    }
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(spec), encoding="utf-8")
    loaded = load_spec(path, "lab", environments=folder / "environments")
    plan = make_plan(loaded)
    return Deployment(
        endpoint=loaded.endpoint,
        environment=loaded.environment,
        plan=plan,
        serving=render_plan(loaded, plan),
        trial_request="{}",
        has_local_nvme=instance_type.startswith("ml.trn1."),
    )


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Template]:
    folder = tmp_path_factory.mktemp("neuron")
    (folder / "environments").mkdir()
    (folder / "environments" / "lab.yaml").write_text("name: lab\nregion: us-east-1\n", encoding="utf-8")
    app = App(outdir=str(folder / "cdk.out"), analytics_reporting=False)
    add_stacks(app, [deployment(folder, name, *case[:3]) for name, case in CASES.items()])
    app.synth()
    out = folder / "cdk.out"
    return {name: Template.from_string((out / f"seatrial-lab-{name}.template.json").read_text()) for name in CASES}


@pytest.mark.parametrize("name", CASES)
def test_a_component_asks_for_chips(name: str, templates: Mapping[str, Template]) -> None:
    (component,) = templates[name].find_resources("AWS::SageMaker::InferenceComponent").values()
    asked = component["Properties"]["Specification"]["ComputeResourceRequirements"]

    assert asked["NumberOfAcceleratorDevicesRequired"] == CASES[name][1] // 2


@pytest.mark.parametrize("name", CASES)
def test_the_endpoint_has_no_ami_of_gpus_and_a_volume_where_there_is_no_disk(
    name: str, templates: Mapping[str, Template]
) -> None:
    instance_type, _, engine, volume_gb = CASES[name]
    (config,) = templates[name].find_resources("AWS::SageMaker::EndpointConfig").values()
    (variant,) = config["Properties"]["ProductionVariants"]

    assert variant["InstanceType"] == instance_type
    assert variant.get("InferenceAmiVersion") == (AMI if engine is None else None)
    assert variant.get("VolumeSizeInGB") == volume_gb


def test_the_container_may_compile_while_it_starts(templates: Mapping[str, Template]) -> None:
    (component,) = templates["inf2"].find_resources("AWS::SageMaker::InferenceComponent").values()
    startup = component["Properties"]["Specification"]["StartupParameters"]

    assert startup["ContainerStartupHealthCheckTimeoutInSeconds"] == 3600


def test_the_container_reads_the_variables_of_its_image(templates: Mapping[str, Template]) -> None:
    document = json.dumps(templates["inf2"].to_json())

    assert "huggingface-vllm-inference-neuronx:0.11.0-optimum0.4.5" in document
    assert '"SM_ON_TENSOR_PARALLEL_SIZE": "2"' in document
    assert '"SM_ON_ALLOW_NON_CACHED_MODEL": ""' in document
    assert "djl-inference:0.29.0-neuronx-sdk2.19.1" in json.dumps(templates["lmi"].to_json())
