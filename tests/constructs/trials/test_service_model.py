"""The function's own model of SageMaker's API makes up for an old boto3, and what not even that knows is told."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import boto3
import botocore
import botocore.session
import pytest

from scripts.build_service_model import MODELS, OPERATIONS, SERVICE, VERSION, service_model, written
from seatrial_cdk.trials.runtime.components import AwsComponents
from seatrial_cdk.trials.runtime.service_model import DATA_PATH, use_own_models

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_sagemaker import SageMakerClient

OLD_BOTO3 = "1.40.0"
ROOT = Path(__file__).parents[3]
SHIPPED = MODELS / SERVICE / VERSION / "service-2.json"
NEW = ("AvailabilityZoneBalance", "DataCacheConfig", "InstanceType", "SchedulingConfig")
SPECIFICATION: dict[str, object] = {
    "ModelName": "model-2",
    "DataCacheConfig": {"EnableCaching": True},
    "SchedulingConfig": {
        "PlacementStrategy": "SPREAD",
        "AvailabilityZoneBalance": {"EnforcementMode": "PERMISSIVE"},
    },
    "ComputeResourceRequirements": {"MinMemoryRequiredInMb": 1024, "NumberOfAcceleratorDevicesRequired": 1},
}


def client(*folders: Path) -> SageMakerClient:
    """Return a client that finds its models in these folders first."""
    session = botocore.session.Session()
    session.set_config_variable("data_path", os.pathsep.join(map(str, folders)) or None)
    found: SageMakerClient = boto3.Session(botocore_session=session).client(
        "sagemaker", region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="y"
    )
    return found


def stacks() -> CloudFormationClient:
    return boto3.client("cloudformation", region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="y")


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """Return the models of a boto3 that does not know the new members."""
    model = json.loads(SHIPPED.read_text())
    for shape in model["shapes"].values():
        for name in NEW:
            shape.get("members", {}).pop(name, None)
    folder = tmp_path / SERVICE / VERSION
    folder.mkdir(parents=True)
    (folder / "service-2.json").write_text(json.dumps(model))
    return tmp_path


def test_what_an_old_boto3_does_not_know_is_told_by_its_places(old: Path) -> None:
    assert AwsComponents(client(old), stacks()).unknown_members(SPECIFICATION) == [
        "CreateInferenceComponent.Specification.DataCacheConfig",
        "CreateInferenceComponent.Specification.SchedulingConfig",
    ]


def test_an_old_boto3_knows_all_by_the_shipped_model(old: Path) -> None:
    found = client(MODELS, old)
    assert AwsComponents(found, stacks()).unknown_members(SPECIFICATION) == []
    assert {*found.meta.service_model.operation_names} == {*OPERATIONS}


def test_the_shipped_model_has_every_operation_that_the_function_calls() -> None:
    """What is not in it would fail in the function alone."""
    sources = [
        *(ROOT / "constructs/seatrial_cdk/trials/runtime").glob("*.py"),
        *(ROOT / "packages/seatrial-load/seatrial_load").rglob("*.py"),
    ]
    text = "\n".join(source.read_text() for source in sources)
    every = {re.sub("(?<!^)(?=[A-Z])", "_", name).lower(): name for name in client().meta.service_model.operation_names}
    names = re.findall(r"(?:client|sagemaker)[.](\w+)\(", text) + re.findall(r"_paginator\(\"(\w+)", text)
    assert {every[name] for name in names if name in every} == {*OPERATIONS}


def test_the_shipped_model_is_that_of_the_botocore_that_it_names() -> None:
    if botocore.__version__ != (MODELS / "botocore.txt").read_text().strip():
        pytest.skip("another botocore is installed than that of uv.lock")
    assert SHIPPED.read_text() == written(service_model())


def test_the_shipped_model_comes_first_once_and_leaves_what_was_there() -> None:
    environment = {DATA_PATH: "/opt/models"}
    for _ in range(2):
        use_own_models(environment)
    assert environment[DATA_PATH].split(os.pathsep) == [f"{MODELS}", "/opt/models"]


@pytest.mark.skipif("SEATRIAL_OLD_BOTO3" not in os.environ, reason="SEATRIAL_OLD_BOTO3=1 installs one from PyPI")
def test_the_function_runs_on_a_real_old_boto3(tmp_path: Path) -> None:
    packages = tmp_path / "packages"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--target", f"{packages}", f"boto3=={OLD_BOTO3}"]
    subprocess.run(install, check=True)
    code = f"""
import os, json, boto3
from seatrial_cdk.trials.runtime.service_model import use_own_models
from seatrial_cdk.trials.runtime.components import AwsComponents

def unknown(data_path):
    session = __import__("botocore.session").session.Session()
    session.set_config_variable("data_path", data_path)
    made = boto3.Session(botocore_session=session).client("sagemaker", region_name="us-east-1")
    return AwsComponents(made, None).unknown_members({SPECIFICATION!r} | {{"InstanceType": "ml.g5.2xlarge"}})

without = unknown(None)
use_own_models(os.environ)
print(json.dumps([boto3.__version__, without, unknown(os.environ["AWS_DATA_PATH"])]))
"""
    paths = [packages, ROOT / "constructs", ROOT / "packages/seatrial-base", ROOT / "packages/seatrial-load"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))}
    told = subprocess.run(
        [sys.executable, "-S", "-c", code], env=environment, check=True, capture_output=True, text=True
    )
    version, without, shipped = json.loads(told.stdout)
    assert version == OLD_BOTO3
    assert "CreateInferenceComponent.Specification.InstanceType" in without
    assert shipped == []
