from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any, TypedDict

import pytest
from botocore.exceptions import ClientError

from seatrial_laptop.engine.weights import Shape, weights_file

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Laptop = Any  # the fixture's class lives in conftest.py, which nobody can import
ROLE = "arn:aws:iam::000000000000:role/an-execution-role"
IMAGE = "763104351884.dkr.ecr.us-east-1.amazonaws.com/djl-inference:0.36.0-lmi27.0.0-cu130"
TINY = Shape(hidden=32, layers=1, heads=2, kv_heads=1, intermediate=32, vocabulary=300)
LONGEST_WAIT_S = 20.0


class Settings(TypedDict, total=False):
    Image: str
    OverrideEnvironment: dict[str, str]


def quantization(method: str, **more: str) -> dict[str, object]:
    settings = Settings(Image=IMAGE, OverrideEnvironment={"OPTION_QUANTIZE": method, **more})
    return {"ModelQuantizationConfig": settings}


def create(
    laptop: Laptop,
    source: str,
    *configs: dict[str, object],
    seconds: int = 3600,
    instance_type: str = "ml.g5.2xlarge",
    name: str = "",
) -> str:
    name = name or laptop.name("job")
    asked: dict[str, object] = {
        "OptimizationJobName": name,
        "RoleArn": ROLE,
        "ModelSource": {"S3": {"S3Uri": f"s3://jobs/{source}/"}},
        "DeploymentInstanceType": instance_type,
        "OptimizationConfigs": list(configs),
        "OutputConfig": {"S3OutputLocation": f"s3://jobs/out/{name}/"},
        "StoppingCondition": {"MaxRuntimeInSeconds": seconds},
    }
    laptop.sagemaker.create_optimization_job(**asked)
    return name


def ended(laptop: Laptop, name: str) -> dict[str, Any]:
    deadline = time.monotonic() + LONGEST_WAIT_S
    while time.monotonic() < deadline:
        found: dict[str, Any] = laptop.sagemaker.describe_optimization_job(OptimizationJobName=name)
        if found["OptimizationJobStatus"] in ("COMPLETED", "FAILED", "STOPPED"):
            return found
        time.sleep(0.02)
    raise TimeoutError(name)


def note(laptop: Laptop, name: str) -> dict[str, Any]:
    body = laptop.s3.get_object(Bucket="jobs", Key=f"out/{name}/optimization-job.json")["Body"].read()
    found: dict[str, Any] = json.loads(body)
    return found


@pytest.fixture(scope="module", autouse=True)
def bucket(laptop: Laptop, tmp_path_factory: pytest.TempPathFactory) -> Path:
    laptop.s3.create_bucket(Bucket="jobs")
    weights = weights_file(tmp_path_factory.mktemp("weights"), shape=TINY)
    laptop.s3.upload_file(str(weights), "jobs", "gguf/model.gguf")
    laptop.s3.put_object(Bucket="jobs", Key="hub/model.safetensors", Body=b"0")
    return weights


@pytest.fixture(autouse=True)
def fast(control: Callable[..., object]) -> None:
    control(clock_speed=600)


def test_a_gguf_file_is_quantized_for_real(laptop: Laptop, bucket: Path) -> None:
    found = ended(laptop, create(laptop, "gguf", quantization("awq")))
    name = found["OptimizationJobName"]
    assert found["OptimizationJobStatus"] == "COMPLETED"
    assert found["OptimizationOutput"] == {"RecommendedInferenceImage": IMAGE}
    assert found["OptimizationStartTime"] <= found["OptimizationEndTime"]
    made = laptop.s3.get_object(Bucket="jobs", Key=f"out/{name}/model-q4_0.gguf")["Body"].read()
    assert (made[:4], note(laptop, name)["executed"], note(laptop, name)["bytes"]) == (b"GGUF", True, len(made))
    assert len(made) < bucket.stat().st_size


@pytest.mark.parametrize(
    ("source", "configs"),
    [
        ("hub", [quantization("smoothquant")]),
        ("gguf", [quantization("exl2")]),
        ("gguf", [quantization("fp8"), {"ModelShardingConfig": {"Image": IMAGE}}]),
        ("gguf", [{"ModelSpeculativeDecodingConfig": {"Technique": "EAGLE"}}]),
    ],
)
def test_another_job_is_recorded_and_says_so(laptop: Laptop, source: str, configs: list[dict[str, object]]) -> None:
    found = ended(laptop, create(laptop, source, *configs))
    name, arn = found["OptimizationJobName"], found["OptimizationJobArn"]
    assert (found["OptimizationJobStatus"], note(laptop, name)["executed"]) == ("COMPLETED", False)
    told = "recorded, not executed (simulated)"
    assert laptop.sagemaker.list_tags(ResourceArn=arn)["Tags"] == [{"Key": "seatrial:embedded-aws", "Value": told}]
    assert told in (laptop.state_dir / "logs" / f"optimization-job-{name}.log").read_text()


def test_jobs_are_listed_stopped_and_deleted(laptop: Laptop, control: Callable[..., object]) -> None:
    control(clock_speed=1)
    name = create(laptop, "gguf", quantization("fp8"))
    with pytest.raises(ClientError, match="ResourceInUse"):
        create(laptop, "gguf", quantization("fp8"), name=name)
    with pytest.raises(ClientError, match="stop it first"):
        laptop.sagemaker.delete_optimization_job(OptimizationJobName=name)
    (listed,) = laptop.sagemaker.list_optimization_jobs(NameContains=name)["OptimizationJobSummaries"]
    assert (listed["OptimizationJobStatus"], listed["OptimizationTypes"]) == ("STARTING", ["Quantization"])
    laptop.sagemaker.stop_optimization_job(OptimizationJobName=name)
    assert ended(laptop, name)["OptimizationJobStatus"] == "STOPPED"
    with pytest.raises(ClientError, match="can not be stopped"):
        laptop.sagemaker.stop_optimization_job(OptimizationJobName=name)
    laptop.sagemaker.delete_optimization_job(OptimizationJobName=name)
    with pytest.raises(ClientError, match="ResourceNotFound"):
        laptop.sagemaker.describe_optimization_job(OptimizationJobName=name)


def test_failures_end_a_job_with_a_reason(laptop: Laptop, control: Callable[..., object]) -> None:
    empty = ended(laptop, create(laptop, "nothing", quantization("fp8")))
    assert (empty["OptimizationJobStatus"], "s3://jobs/nothing/" in empty["FailureReason"]) == ("FAILED", True)
    control(optimization_job_s=7200, clock_speed=600)
    late = create(laptop, "gguf", quantization("fp8"), seconds=60)
    assert ended(laptop, late)["FailureReason"].startswith("MaxRuntimeExceeded")
    control(optimization_job_s=0, optimization_job_failure="AlgorithmError: out of memory")
    assert (
        ended(laptop, create(laptop, "gguf", quantization("fp8")))["FailureReason"] == "AlgorithmError: out of memory"
    )


@pytest.mark.parametrize(
    ("configs", "instance_type", "told"),
    [
        ([quantization("fp8"), quantization("awq")], "ml.g5.2xlarge", "Several configurations of one kind"),
        (
            [{"ModelCompilationConfig": {}}, {"ModelSpeculativeDecodingConfig": {"Technique": "EAGLE"}}],
            "ml.g5.2xlarge",
            "can not be combined",
        ),
        ([quantization("fp8")], "ml.inf2.xlarge", "take compilation only"),
        ([quantization("fp8")], "ml.m5.xlarge", "enum value set"),
        ([quantization("fp8", **{f"V{n}": "1" for n in range(25)})], "ml.g5.2xlarge", "at most 25 entries; it has 26"),
        ([quantization("x" * 257)], "ml.g5.2xlarge", "length less than or equal to 256"),
        ([], "ml.g5.2xlarge", "OptimizationConfigs must have 1 to 10 entries"),
    ],
)
def test_what_the_api_does_not_take_is_refused(
    laptop: Laptop, configs: list[dict[str, object]], instance_type: str, told: str
) -> None:
    with pytest.raises(ClientError, match="ValidationException") as refused:
        create(laptop, "gguf", *configs, instance_type=instance_type)
    assert told in str(refused.value)
