"""Optimization jobs: checked, run on the virtual clock, and executed where a quantization has a GGUF type."""

from __future__ import annotations

import json
import tempfile
import threading
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Final

from seatrial_base.catalog import images
from seatrial_base.units import MIB
from seatrial_laptop.aws.api import invalid, output_members, summary_members
from seatrial_laptop.aws.control_plane.containers import model_container
from seatrial_laptop.aws.control_plane.records import JobStatus, OptimizationJobRecord
from seatrial_laptop.aws.json_document import Document, child, children, page_of, text_map, text_member, whole
from seatrial_laptop.aws.rights import assumption_denial, download_denial, role_exists, upload_denial
from seatrial_laptop.aws.runtime.artifacts import ArtifactError, object_urls, own_s3, read_s3_object
from seatrial_laptop.engine.weights import GgufType, quantize_file, stands_for
from seatrial_laptop.state import REGION

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial_laptop.aws.control_plane.cloud import Cloud
    from seatrial_laptop.aws.control_plane.records import Store


CONFIGS: Final = {
    "ModelQuantizationConfig": "Quantization",
    "ModelCompilationConfig": "Compilation",
    "ModelShardingConfig": "Sharding",
    "ModelSpeculativeDecodingConfig": "SpeculativeDecoding",
}
"""Kinds of configurations, and how ListOptimizationJobs calls them."""
QUANTIZE: Final = ("OPTION_QUANTIZE", "HF_MODEL_QUANTIZE")
NOTE_FILE: Final = "optimization-job.json"
RECORDED: Final = "recorded, not executed (simulated)"
EXECUTED: Final = "executed on this machine"

SERVICE: Final = "sagemaker"
MOST_CONFIGS: Final = 10
MOST_VARIABLES: Final = 25
"""Most entries of `OptimizationConfigs` and of each map of variables (API reference, CreateOptimizationJob)."""
STARTING_S: Final = 5.0
"""Virtual seconds in `STARTING`."""
POLL_S: Final = 1.0
"""Virtual seconds between two looks whether a job was stopped."""


def create_optimization_job(cloud: Cloud, request: Document) -> Document:
    """Check and start a job.

    Raises:
        ApiError: ValidationException for what can't be combined; ResourceInUse for a name that is taken.
    """
    configs = children(request, "OptimizationConfigs")
    if not 0 < len(configs) <= MOST_CONFIGS:
        raise invalid(f"OptimizationConfigs must have 1 to {MOST_CONFIGS} entries; it has {len(configs)}.")
    kinds = [kind for config in configs for kind in config]
    if twice := sorted({kind for kind in kinds if kinds.count(kind) > 1}):
        raise invalid(f"Several configurations of one kind: {', '.join(twice)}.")
    if {"ModelCompilationConfig", "ModelSpeculativeDecodingConfig"} <= {*kinds}:
        raise invalid("Compilation and speculative decoding can not be combined.")
    on_neuron = text_member(request, "DeploymentInstanceType").startswith(("ml.inf", "ml.trn"))
    if on_neuron and (others := sorted({*kinds} - {"ModelCompilationConfig"})):
        raise invalid(f"AWS Neuron instances take compilation only, not {', '.join(others)}.")
    _check_variables("OptimizationEnvironment", child(request, "OptimizationEnvironment"))
    for config in configs:
        for kind, settings in config.items():
            if kind in CONFIGS and isinstance(settings, dict):
                _check_variables(f"{kind}.OverrideEnvironment", child(settings, "OverrideEnvironment"))
    given = {key: value for key, value in request.items() if key != "Tags"}
    now_s = time.time()
    record = OptimizationJobRecord(given, JobStatus.STARTING, created_s=now_s, modified_s=now_s)
    cloud.jobs.add(record)
    cloud.store.tag(record.arn, children(request, "Tags"))
    threading.Thread(target=_run, args=(cloud, record), name=f"optimization-{record.name}", daemon=True).start()
    return {"OptimizationJobArn": record.arn}


def describe_optimization_job(cloud: Cloud, request: Document) -> Document:
    """Return everything of a job."""
    view = _view(cloud.jobs.need(text_member(request, "OptimizationJobName")))
    members = output_members(SERVICE, "DescribeOptimizationJob")
    return {key: value for key, value in view.items() if key in members}


def list_optimization_jobs(cloud: Cloud, request: Document) -> Document:
    """Return the jobs that match a request, the newest first by default."""
    views = [_view(record) for record in cloud.jobs.all() if _matches(record, request)]
    keys = {"Name": "OptimizationJobName", "Status": "OptimizationJobStatus"}
    key = keys.get(text_member(request, "SortBy"), "CreationTime")
    views.sort(key=lambda view: str(view[key]), reverse=text_member(request, "SortOrder", "Descending") == "Descending")
    members = summary_members(SERVICE, "ListOptimizationJobs", "OptimizationJobSummaries")
    summaries = [{name: value for name, value in view.items() if name in members} for view in views]
    return page_of("OptimizationJobSummaries", summaries, request, 100)


def stop_optimization_job(cloud: Cloud, request: Document) -> Document:
    """Stop a job that runs.

    Raises:
        ApiError: ResourceNotFound, or ValidationException for one that has ended.
    """
    record = cloud.jobs.need(text_member(request, "OptimizationJobName"))
    if cloud.jobs.move(record.name, JobStatus.STOPPING) is None:
        raise invalid(f"The optimization job is {record.status} and can not be stopped.")
    return {}


def delete_optimization_job(cloud: Cloud, request: Document) -> Document:
    """Forget a job that has ended; its artifacts stay.

    Raises:
        ApiError: ResourceNotFound, or ValidationException for one that runs.
    """
    record = cloud.jobs.need(text_member(request, "OptimizationJobName"))
    if not record.status.has_ended:
        raise invalid(f"The optimization job is {record.status}: stop it first.")
    cloud.jobs.remove(record.name)
    cloud.store.untag(record.arn, [text_member(tag, "Key") for tag in cloud.store.tags(record.arn)])
    return {}


OPERATIONS: Final[dict[str, Callable[[Cloud, Document], Document]]] = {
    "CreateOptimizationJob": create_optimization_job,
    "DescribeOptimizationJob": describe_optimization_job,
    "ListOptimizationJobs": list_optimization_jobs,
    "StopOptimizationJob": stop_optimization_job,
    "DeleteOptimizationJob": delete_optimization_job,
}


def _check_variables(name: str, variables: Document) -> None:
    if len(variables) > MOST_VARIABLES:
        raise invalid(f"{name} must have at most {MOST_VARIABLES} entries; it has {len(variables)}.")


def _run(cloud: Cloud, record: OptimizationJobRecord) -> None:
    try:
        _run_to_the_end(cloud, record)
    except RunFailed as failed:
        cloud.jobs.move(record.name, JobStatus.FAILED, failure_reason=str(failed))
    except Exception as error:  # noqa: BLE001 (the border of a thread)
        # A defect fails the job: whoever waits for its end would wait for ever.
        traceback.print_exc()
        reason = f"InternalFailure: {type(error).__name__}: {error}"
        cloud.jobs.move(record.name, JobStatus.FAILED, failure_reason=reason)


def _run_to_the_end(cloud: Cloud, record: OptimizationJobRecord) -> None:
    longest_s = float(whole(child(record.request, "StoppingCondition"), "MaxRuntimeInSeconds", 0)) or float("inf")
    if not _passes(cloud, record.name, STARTING_S):
        return
    cloud.jobs.move(record.name, JobStatus.INPROGRESS)
    takes_s = cloud.faults.settings().optimization_job_s
    if not _passes(cloud, record.name, min(takes_s, longest_s)):
        return
    if takes_s > longest_s:
        reason = f"MaxRuntimeExceeded: the job ran longer than {longest_s:g} seconds."
        cloud.jobs.move(record.name, JobStatus.STOPPED, failure_reason=reason)
        return
    if (failure := cloud.faults.settings().optimization_job_failure) is not None:
        raise RunFailed(failure)
    image, note = run_optimization(cloud.store, record.request, cloud.jobs.folder)
    cloud.store.tag(record.arn, [{"Key": "seatrial:embedded-aws", "Value": note}])
    cloud.jobs.move(record.name, JobStatus.COMPLETED, image=image)


def _passes(cloud: Cloud, name: str, seconds: float) -> bool:
    """Wait; return whether the job still runs then. A job that is to stop stops."""
    end_s = cloud.clock.now_s() + seconds
    while True:
        known = next((job for job in cloud.jobs.all() if job.name == name), None)
        if known is None or known.status is JobStatus.STOPPING:
            cloud.jobs.move(name, JobStatus.STOPPED)
            return False
        if (left_s := end_s - cloud.clock.now_s()) <= 0:
            return True
        cloud.clock.wait(min(POLL_S, left_s))


def _matches(record: OptimizationJobRecord, request: Document) -> bool:
    kinds = ",".join(kind for config in children(record.request, "OptimizationConfigs") for kind in config)
    wanted = text_member(request, "StatusEquals")
    return (
        text_member(request, "NameContains") in record.name
        and text_member(request, "OptimizationContains").lower() in kinds.lower()
        and wanted in ("", record.status)
    )


def _view(record: OptimizationJobRecord) -> Document:
    times = {"OptimizationStartTime": record.started_s, "OptimizationEndTime": record.ended_s}
    kinds = [CONFIGS[kind] for config in children(record.request, "OptimizationConfigs") for kind in config]
    return {
        **record.request,
        "OptimizationJobArn": record.arn,
        "OptimizationJobStatus": record.status.value,
        "OptimizationTypes": kinds,
        "CreationTime": record.created_s,
        "LastModifiedTime": record.modified_s,
        "OptimizationOutput": {"RecommendedInferenceImage": record.image} if record.image else {},
        **{name: value for name, value in times.items() if value is not None},
        **({"FailureReason": record.failure_reason} if record.failure_reason else {}),
    }


class RunFailed(Exception):  # noqa: N818 (named after the status)
    """The job failed; the message is its FailureReason."""


def run_optimization(store: Store, request: Document, logs: Path) -> tuple[str, str]:
    """Do or record a job, write its output to S3 and its log; return the recommended image and what was done.

    Raises:
        RunFailed: The source or the output can't be had.
    """
    try:
        source, files = _source(store, request)
        work = _executable(request, files)
        lines = _record(request, source) if work is None else _quantize(request, *work)
    except (ArtifactError, ValueError) as error:
        raise RunFailed(f"ClientError: {error}") from error
    name = text_member(request, "OptimizationJobName")
    (logs / f"optimization-job-{name}.log").write_text("".join(f"{line}\n" for line in lines))
    named = [
        text_member(child(config, kind), "Image")
        for config in children(request, "OptimizationConfigs")
        for kind in config
    ]
    image = next((image for image in reversed(named) if image), images.uri(images.builds_of("lmi")[-1], REGION))
    return image, RECORDED if work is None else EXECUTED


def _source(store: Store, request: Document) -> tuple[str, list[str]]:
    """Return where the model is, and the files there."""
    source = child(request, "ModelSource")
    uri = text_member(child(source, "S3"), "S3Uri")
    if model := text_member(child(source, "SageMakerModel"), "ModelName"):
        container = model_container(store, model, {})
        uri = container.artifact_url or container.properties_prefix
    files = object_urls(uri)
    if not files:
        raise RunFailed(f"ClientError: there is no object under {uri or 'the model'}.")
    role = text_member(request, "RoleArn")
    if role_exists(role) and (reason := assumption_denial(role) or download_denial(role, files[0])):
        raise RunFailed(reason)
    return uri, files


def _executable(request: Document, files: list[str]) -> tuple[str, GgufType] | None:
    """Return the GGUF file that a job quantizes and the type that it makes; `None` for a job that is recorded."""
    configs = children(request, "OptimizationConfigs")
    weights = [url for url in files if url.endswith((".gguf", ".safetensors", ".bin", ".pt"))]
    if len(configs) != 1 or len(weights) != 1 or not weights[0].endswith(".gguf"):
        return None
    quantization = _quantization(request)
    kind = stands_for(quantization) if quantization else None
    return None if kind is None else (weights[0], kind)


def _quantization(request: Document) -> str:
    for config in children(request, "OptimizationConfigs"):
        variables = text_map(child(config, "ModelQuantizationConfig"), "OverrideEnvironment")
        for name in QUANTIZE:
            if name in variables:
                return variables[name]
    return ""


def _quantize(request: Document, source: str, kind: GgufType) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        given, made = Path(folder) / "source.gguf", Path(folder) / "made.gguf"
        given.write_bytes(read_s3_object(source) or b"")
        quantize_file(given, made, kind)
        sizes = given.stat().st_size, made.stat().st_size
        stem = source.rpartition("/")[2].removesuffix(".gguf")
        _put(request, f"{stem}-{kind.lower()}.gguf", made.read_bytes())
    line = f"GGUF {kind} of {source}, in place of {_quantization(request)}"
    _put_note(request, {"executed": True, "note": f"{EXECUTED}: {line}", "bytes": sizes[1], "source_bytes": sizes[0]})
    return [f"{EXECUTED}: {line}", f"{sizes[0] / MIB:.1f} MiB became {sizes[1] / MIB:.1f} MiB"]


def _record(request: Document, source: str) -> list[str]:
    configs = [CONFIGS[kind] for config in children(request, "OptimizationConfigs") for kind in config]
    note = {"executed": False, "note": RECORDED, "source": source, "configurations": configs}
    _put_note(request, note)
    if quantization := _quantization(request):
        config = {"quantization_config": {"quant_method": quantization}, "note": RECORDED}
        _put(request, "config.json", json.dumps(config).encode())
    return [f"{RECORDED}: {', '.join(configs)} of {source}"]


def _put_note(request: Document, note: dict[str, object]) -> None:
    _put(request, NOTE_FILE, json.dumps(note, indent=2).encode())


def _put(request: Document, name: str, body: bytes) -> None:
    uri = text_member(child(request, "OutputConfig"), "S3OutputLocation").rstrip("/")
    bucket, _, prefix = uri.removeprefix("s3://").partition("/")
    client = own_s3()
    if reason := upload_denial(text_member(request, "RoleArn"), f"{uri}/{name}"):
        raise RunFailed(f"ClientError: {reason}")
    try:
        client.put_object(Bucket=bucket, Key=f"{prefix}/{name}".lstrip("/"), Body=body)
    except (client.exceptions.ClientError, client.exceptions.NoSuchBucket) as error:
        raise RunFailed(f"ClientError: could not write to {uri}: {error}.") from error
