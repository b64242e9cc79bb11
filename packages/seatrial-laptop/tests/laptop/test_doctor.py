"""`seatrial doctor` against the embedded AWS: an endpoint that serves, and one that failed and is cleared."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import boto3
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.command_line import CommandLine

ROOT = Path(__file__).parents[4]
Laptop = Any  # the fixture's class lives in conftest.py, which nobody can import
DIMENSION: Literal["sagemaker:inference-component:DesiredCopyCount"] = "sagemaker:inference-component:DesiredCopyCount"


@pytest.fixture
def doctor(laptop: Laptop, command_line: CommandLine, tmp_path: Path) -> Callable[..., Any]:
    def run(*arguments: str) -> Any:  # noqa: ANN401 (a document)
        done = command_line.run("doctor", *arguments, "--format", "json", folder=tmp_path)
        assert done.returncode in {0, 1, 2}, done.stderr
        return done.returncode, json.loads(done.stdout) if done.stdout else {}, done.stderr

    return run


def rules(document: Any) -> list[str]:  # noqa: ANN401 (likewise)
    return [each["rule"] for each in document["findings"]]


def test_an_endpoint_that_serves_has_only_the_role_that_nobody_made(
    laptop: Laptop, host: str, chat: str, doctor: Callable[..., Any]
) -> None:
    code, document, _ = doctor(host)
    assert (code, rules(document)) == (1, ["SEA758"])
    assert f"inference component {chat}" in {row["part"] for row in document["parts"] if row["health"] == "ok"}
    assert document["logs"][f"/aws/sagemaker/InferenceComponents/{chat}"] is not None


def test_a_component_that_failed_is_explained_and_cleared(laptop: Laptop, doctor: Callable[..., Any]) -> None:
    endpoint = laptop.endpoint()
    model = laptop.model(OPTION_MAX_MODEL_LEN="long")
    component = laptop.component(endpoint, model)
    described = laptop.sagemaker.describe_endpoint(EndpointName=endpoint)
    config = described["EndpointConfigName"]
    for arn in (
        described["EndpointArn"],
        laptop.sagemaker.describe_endpoint_config(EndpointConfigName=config)["EndpointConfigArn"],
        laptop.sagemaker.describe_inference_component(InferenceComponentName=component)["InferenceComponentArn"],
        laptop.sagemaker.describe_model(ModelName=model)["ModelArn"],
    ):
        laptop.sagemaker.add_tags(ResourceArn=arn, Tags=[{"Key": "seatrial:environment", "Value": "dev"}])
    boto3.client("application-autoscaling").register_scalable_target(
        ServiceNamespace="sagemaker",
        ResourceId=f"inference-component/{component}",
        ScalableDimension=DIMENSION,
        MinCapacity=1,
        MaxCapacity=2,
    )
    code, document, told = doctor(endpoint, "--fix", "--dry-run")
    assert code == 1
    assert document["findings"][0]["resource"] == f"inference component {component}"
    steps = [step["command"].split()[2] for step in document["fix"]]
    assert steps == [
        "deregister-scalable-target",
        "delete-inference-component",
        "delete-endpoint",
        "delete-endpoint-config",
        "delete-model",
    ]
    assert all(step["command"] in told for step in document["fix"])
    assert laptop.component_settled(component)[0] == "Failed"
    assert doctor(endpoint, "--fix")[0] == 2
    assert laptop.component_settled(component)[0] == "Failed"
    code, _, told = doctor(endpoint, "--fix", "--yes")
    assert (code, told.splitlines()[-1]) == (0, f"{endpoint}: nothing is left of it")
    assert rules(doctor(endpoint)[1]) == ["SEA750"]


def test_an_endpoint_is_found_by_its_spec_and_environment(
    laptop: Laptop, command_line: CommandLine, tmp_path: Path
) -> None:
    for folder in ("endpoints", "environments"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    for asked in ("llama-2-7b-chat", "endpoints/llama-2-7b-chat.yaml"):
        done = command_line.run("doctor", asked, "-e", "local", folder=tmp_path)
        assert (done.returncode, done.stderr) == (1, "")
        assert done.stdout.startswith("local-llama-2-7b-chat: SEA750: endpoint local-llama-2-7b-chat: ")
    assert command_line.run("doctor", "llama-2-7b-chat", "-e", "nowhere", folder=tmp_path).returncode == 2


def test_wrong_options_and_names_are_the_users(doctor: Callable[..., Any]) -> None:
    for arguments, rule in (
        (["chat.yaml"], "SEA107"),
        (["chat", "--dry-run"], "SEA108"),
        (["chat", "--region", "us-east-1", "-e", "dev"], "SEA108"),
    ):
        code, _, told = doctor(*arguments)
        assert (code, rule in told) == (2, True)
