"""The SageMaker optimization job that makes a model's artifacts, from its spec and plan.

Its digest is that of all that changes the artifacts: the source, the configurations with their images, the instance
type. Equal digests mean equal artifacts, so a job of that digest runs once.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from seatrial.engines.render import model_source, render_plan
from seatrial.specs.guardrails.fleets import job_instance
from seatrial_base.catalog import models
from seatrial_base.errors import SpecError
from seatrial_base.frozen_model import digest
from seatrial_base.units import S_PER_HOUR

if TYPE_CHECKING:
    from seatrial.documents.plan import Plan
    from seatrial.specs.guardrails.fleets import JobInstance
    from seatrial.specs.load import LoadedSpec
    from seatrial.specs.optimization import OptimizationSpec
    from seatrial.specs.yaml_source import FieldPath
    from seatrial_base.findings import Finding

Config = dict[str, dict[str, object]]
"""One entry of `OptimizationConfigs`, in the words of the API."""
BUILD_OPTIONS: Final = (
    "OPTION_DTYPE",
    "OPTION_KV_CACHE_DTYPE",
    "OPTION_MAX_INPUT_LEN",
    "OPTION_MAX_MODEL_LEN",
    "OPTION_MAX_NUM_TOKENS",
    "OPTION_MAX_OUTPUT_LEN",
    "OPTION_MAX_ROLLING_BATCH_PREFILL_TOKENS",
    "OPTION_MAX_ROLLING_BATCH_SIZE",
    "OPTION_N_POSITIONS",
    "OPTION_PIPELINE_PARALLEL_DEGREE",
    "OPTION_ROLLING_BATCH",
    "OPTION_TENSOR_PARALLEL_DEGREE",
)
"""What a compiler builds into its artifacts: shapes, types and degrees."""


def jobs_name(environment: str) -> str:
    """Return the name of the stack, of the function and of the workflow of an environment's jobs."""
    return f"seatrial-{environment}-optimizations"


def jobs_parameter_path(environment: str) -> str:
    """Return the path of the SSM parameters of an environment's jobs, each by its digest."""
    return f"/seatrial/{environment}/optimizations"


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizationJobRequest:
    """What a job makes; where it writes and who it is belong to the stack.

    Attributes:
        instance_type: What the artifacts are made for.
        configs: The configurations, in the words of the API.
        image: The image that serves the artifacts.
        source_s3_uri: S3 prefix or archive of the model; `None` for a model of SageMaker.
        source_model_name: Name of a SageMaker model; `None` for a model in S3.
        accept_eula: The user accepted the licence; passed to the job for licensed models only.
        max_hours: Hours after which the job is stopped.
    """

    environment: str
    instance_type: str
    configs: tuple[Config, ...]
    image: str
    source_s3_uri: str | None = None
    source_model_name: str | None = None
    accept_eula: bool = False
    max_hours: float = 12.0

    @property
    def digest(self) -> str:
        """Digest of all that changes the artifacts, and of nothing else."""
        parts = [self.source_s3_uri, self.source_model_name, self.instance_type, sorted(map(_text, self.configs))]
        return digest(_text(parts))

    @property
    def name(self) -> str:
        """Name of the first attempt; a later one has its number behind it."""
        return f"{self.environment}-{self.digest}"

    @property
    def needs_image(self) -> bool:
        """Whether the artifacts are compiled, so that only the image of their compiler can load them."""
        return any("ModelCompilationConfig" in config for config in self.configs)

    @property
    def training_data_s3_uri(self) -> str | None:
        """Data that the job trains with; `None` without any."""
        for config in self.configs:
            source = config.get("ModelSpeculativeDecodingConfig", {}).get("TrainingDataSource")
            if isinstance(source, dict):
                return str(source["S3Uri"])
        return None

    def to_json(self) -> str:
        """Return the request of `CreateOptimizationJob` without name, role, output, network and tags."""
        source: dict[str, object] = {"SageMakerModel": {"ModelName": self.source_model_name}}
        if self.source_s3_uri is not None:
            access = {"ModelAccessConfig": {"AcceptEula": True}} if self.accept_eula else {}
            source = {"S3": {"S3Uri": self.source_s3_uri, **access}}
        return _text(
            {
                "ModelSource": source,
                "DeploymentInstanceType": self.instance_type,
                "OptimizationConfigs": [*self.configs],
                "StoppingCondition": {"MaxRuntimeInSeconds": max(1, round(self.max_hours * S_PER_HOUR))},
            }
        )


def job_of(loaded: LoadedSpec, plan: Plan) -> OptimizationJobRequest | None:
    """Return the job that a recipe needs; `None` when it needs none.

    Raises:
        SpecError: SEA456 for a model that a job can't read, SEA457 for an instance type that it can't make artifacts
            for.
    """
    entries = [(index, entry) for index, entry in enumerate(loaded.endpoint.optimization) if entry.job is not None]
    instance = job_instance(loaded.endpoint, plan.instance_type.value)
    if instance is None:
        return None
    problems = [*_source_problems(loaded, entries[0]), *_instance_problems(loaded, instance, entries[0])]
    if problems:
        raise SpecError(problems)
    variables = render_plan(loaded, plan).container_env
    configs = tuple(_config(entry, plan, variables) for _, entry in entries)
    model = loaded.endpoint.model
    # A job of a model without a licence that must be accepted gets no acceptance.
    licensed = model.jumpstart_id is not None or bool(model.licence or models.licence_of(model.architecture or ""))
    return OptimizationJobRequest(
        environment=loaded.environment.name,
        instance_type=instance.types[0],
        configs=configs,
        image=plan.image.value.uri,
        source_s3_uri=model_source(loaded).weights_s3_uri,
        accept_eula=model.accept_eula and licensed,
        max_hours=instance.hours,
    )


def _config(entry: OptimizationSpec, plan: Plan, variables: dict[str, str]) -> Config:
    image = plan.image.value.uri
    if entry.compile is not None:
        built = {name: variables[name] for name in BUILD_OPTIONS if name in variables}
        return {"ModelCompilationConfig": {"Image": image, "OverrideEnvironment": built}}
    if entry.eagle3 is not None:
        job, technique = entry.job, {"Technique": "EAGLE"}
        if job is None or job.training_data_s3_uri is None:
            return {"ModelSpeculativeDecodingConfig": {**technique}}
        data = {"S3Uri": job.training_data_s3_uri, "S3DataType": "S3Prefix"}
        return {"ModelSpeculativeDecodingConfig": {**technique, "TrainingDataSource": data}}
    return {"ModelQuantizationConfig": {"Image": image, "OverrideEnvironment": {"OPTION_QUANTIZE": entry.name}}}


def _path(index: int, entry: OptimizationSpec, *more: str) -> FieldPath:
    return ("optimization", index, entry.name, *more)


def _source_problems(loaded: LoadedSpec, first: tuple[int, OptimizationSpec]) -> list[Finding]:
    model = loaded.endpoint.model
    if model.s3_uri is not None or model.jumpstart_id is not None:
        return []
    what = f"the hub model {model.hub_id}" if model.hub_id else "a model package"
    message = f"an optimization job reads weights in S3, not {what}"
    hint = "copy the weights to S3 with `seatrial stage`, and give model.s3_uri"
    return [loaded.problem(_path(*first, "job"), "SEA456", message, hint)]


def _instance_problems(loaded: LoadedSpec, instance: JobInstance, first: tuple[int, OptimizationSpec]) -> list[Finding]:
    path, (name, *others) = _path(*first, "job", "instance_type"), instance.types
    if others:
        message = f"one job makes the artifacts for one instance type, not for {' and '.join(sorted(instance.types))}"
        return [loaded.problem(path, "SEA457", message, "name one of them")]
    if name in instance_types():
        return []
    message = f"an optimization job makes no artifacts for {name}"
    near = ", ".join(sorted(each for each in instance_types() if each.split(".")[1] == name.split(".")[1]))
    return [loaded.problem(path, "SEA457", message, f"it takes {near or ', '.join(sorted(instance_types()))}")]


@cache
def instance_types() -> frozenset[str]:
    """Return the values of `DeploymentInstanceType`, as the service model of boto3 has them."""
    import botocore.session  # noqa: PLC0415 (slow, and only for jobs)
    from botocore.model import StringShape  # noqa: PLC0415 (slow, and only for jobs)

    model = botocore.session.get_session().get_service_model("sagemaker")
    shape = model.shape_for("OptimizationJobDeploymentInstanceType")
    return frozenset(shape.enum) if isinstance(shape, StringShape) else frozenset()


def _text(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
