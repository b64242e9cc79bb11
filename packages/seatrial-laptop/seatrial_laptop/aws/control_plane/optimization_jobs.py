"""Optimization jobs: checked, run on the virtual clock, and executed where a quantization has a GGUF type."""

from __future__ import annotations

import threading
import time
import traceback
from dataclasses import dataclass, replace
from enum import StrEnum
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from seatrial_laptop.aws.api import ApiError, invalid, output_members, summary_members
from seatrial_laptop.aws.control_plane.optimization_run import CONFIGS, RunFailed, run_optimization
from seatrial_laptop.aws.json_document import Document, child, children, text, whole
from seatrial_laptop.environment import REGION, own_account

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from seatrial_laptop.aws.control_plane.cloud import Cloud

SERVICE: Final = "sagemaker"
MOST_CONFIGS: Final = 10
MOST_VARIABLES: Final = 25
"""Most entries of `OptimizationConfigs` and of each map of variables (API reference, CreateOptimizationJob)."""
STARTING_S: Final = 5.0
"""Virtual seconds in `STARTING`."""
POLL_S: Final = 1.0
"""Virtual seconds between two looks whether a job was stopped."""


class JobStatus(StrEnum):
    """Where an optimization job stands."""

    STARTING = "STARTING"
    INPROGRESS = "INPROGRESS"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    STOPPING = "STOPPING"
    STOPPED = "STOPPED"

    @property
    def has_ended(self) -> bool:
        """Whether it changes no more."""
        return self in (JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.STOPPED)


@dataclass(frozen=True, slots=True)
class OptimizationJobRecord:
    """One optimization job.

    Attributes:
        request: The request that made it, without tags.
        status: Where it stands.
        created_s: Seconds since the epoch.
        modified_s: Seconds since the epoch.
        started_s: Seconds since the epoch; `None` before.
        ended_s: Seconds since the epoch; `None` before.
        failure_reason: Why it failed or was stopped; empty otherwise.
        image: The recommended image; empty before it is completed.
    """

    request: Document
    status: JobStatus
    created_s: float
    modified_s: float
    started_s: float | None = None
    ended_s: float | None = None
    failure_reason: str = ""
    image: str = ""

    @property
    def name(self) -> str:
        """The job's name."""
        return text(self.request, "OptimizationJobName")

    @property
    def arn(self) -> str:
        """The job's ARN."""
        return job_arn(self.name)


def job_arn(name: str) -> str:
    """Return the ARN of a job."""
    return f"arn:aws:sagemaker:{REGION}:{own_account()}:optimization-job/{name.lower()}"


class OptimizationJobs:
    """Every optimization job, by name; threads may share it.

    Args:
        folder: Where each job has its log.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lock = threading.RLock()
        self._records: dict[str, OptimizationJobRecord] = {}

    def all(self) -> list[OptimizationJobRecord]:
        """Return every job, oldest first."""
        with self.lock:
            return list(self._records.values())

    def need(self, name: str) -> OptimizationJobRecord:
        """Return a job.

        Raises:
            ApiError: ResourceNotFound, there is none.
        """
        with self.lock:
            found = self._records.get(name)
        if found is None:
            message = f'Could not find optimization job "{job_arn(name)}".'
            raise ApiError("ResourceNotFound", message, HTTPStatus.BAD_REQUEST)
        return found

    def add(self, record: OptimizationJobRecord) -> None:
        """Keep a new job.

        Raises:
            ApiError: ResourceInUse, the name is taken.
        """
        with self.lock:
            if record.name in self._records:
                message = f'Optimization job "{record.arn}" already exists.'
                raise ApiError("ResourceInUse", message, HTTPStatus.BAD_REQUEST)
            self._records[record.name] = record

    def move(
        self, name: str, status: JobStatus, *, failure_reason: str = "", image: str = ""
    ) -> OptimizationJobRecord | None:
        """Note where a job stands; `None` for one that was deleted or has ended, which stays as it is."""
        now_s = time.time()
        with self.lock:
            known = self._records.get(name)
            if known is None or known.status.has_ended:
                return None
            moved = replace(
                known, status=status, modified_s=now_s, failure_reason=failure_reason, image=image or known.image
            )
            if status is JobStatus.INPROGRESS:
                moved = replace(moved, started_s=now_s)
            if status.has_ended:
                moved = replace(moved, ended_s=now_s)
            self._records[name] = moved
        return moved

    def remove(self, name: str) -> None:
        """Forget a job."""
        with self.lock:
            self._records.pop(name, None)


def create_optimization_job(cloud: Cloud, request: Document) -> Document:
    """Check and start a job.

    Raises:
        ApiError: ValidationException for what can't be combined; ResourceInUse for a name that is taken.
    """
    _check(request)
    asked = {key: value for key, value in request.items() if key != "Tags"}
    now_s = time.time()
    record = OptimizationJobRecord(asked, JobStatus.STARTING, created_s=now_s, modified_s=now_s)
    cloud.jobs.add(record)
    cloud.store.tag(record.arn, children(request, "Tags"))
    threading.Thread(target=_run, args=(cloud, record), name=f"optimization-{record.name}", daemon=True).start()
    return {"OptimizationJobArn": record.arn}


def describe_optimization_job(cloud: Cloud, request: Document) -> Document:
    """Tell everything of a job.

    Raises:
        ApiError: ResourceNotFound.
    """
    view = _view(cloud.jobs.need(text(request, "OptimizationJobName")))
    members = output_members(SERVICE, "DescribeOptimizationJob")
    return {key: value for key, value in view.items() if key in members}


def list_optimization_jobs(cloud: Cloud, request: Document) -> Document:
    """Tell the jobs that a request asks for, the newest first by default."""
    found = [_view(record) for record in cloud.jobs.all() if _is_asked(record, request)]
    keys = {"Name": "OptimizationJobName", "Status": "OptimizationJobStatus"}
    key = keys.get(text(request, "SortBy"), "CreationTime")
    found.sort(key=lambda view: str(view[key]), reverse=text(request, "SortOrder", "Descending") == "Descending")
    first, most = int(text(request, "NextToken", "0")), whole(request, "MaxResults", 100)
    members = summary_members(SERVICE, "ListOptimizationJobs", "OptimizationJobSummaries")
    page = [{name: value for name, value in view.items() if name in members} for view in found[first : first + most]]
    more = {"NextToken": str(first + most)} if first + most < len(found) else {}
    return {"OptimizationJobSummaries": page, **more}


def stop_optimization_job(cloud: Cloud, request: Document) -> Document:
    """Stop a job that runs.

    Raises:
        ApiError: ResourceNotFound, or ValidationException for one that has ended.
    """
    record = cloud.jobs.need(text(request, "OptimizationJobName"))
    if cloud.jobs.move(record.name, JobStatus.STOPPING) is None:
        raise invalid(f"The optimization job is {record.status} and can not be stopped.")
    return {}


def delete_optimization_job(cloud: Cloud, request: Document) -> Document:
    """Forget a job that has ended; its artifacts stay.

    Raises:
        ApiError: ResourceNotFound, or ValidationException for one that runs.
    """
    record = cloud.jobs.need(text(request, "OptimizationJobName"))
    if not record.status.has_ended:
        raise invalid(f"The optimization job is {record.status}: stop it first.")
    cloud.jobs.remove(record.name)
    cloud.store.untag(record.arn, [text(tag, "Key") for tag in cloud.store.tags(record.arn)])
    return {}


OPERATIONS: Final[dict[str, Callable[[Cloud, Document], Document]]] = {
    "CreateOptimizationJob": create_optimization_job,
    "DescribeOptimizationJob": describe_optimization_job,
    "ListOptimizationJobs": list_optimization_jobs,
    "StopOptimizationJob": stop_optimization_job,
    "DeleteOptimizationJob": delete_optimization_job,
}


def _check(request: Document) -> None:
    configs = children(request, "OptimizationConfigs")
    if not 0 < len(configs) <= MOST_CONFIGS:
        raise invalid(f"OptimizationConfigs must have 1 to {MOST_CONFIGS} entries; it has {len(configs)}.")
    kinds = [kind for config in configs for kind in config]
    if twice := sorted({kind for kind in kinds if kinds.count(kind) > 1}):
        raise invalid(f"Several configurations of one kind: {', '.join(twice)}.")
    if {"ModelCompilationConfig", "ModelSpeculativeDecodingConfig"} <= {*kinds}:
        raise invalid("Compilation and speculative decoding can not be combined.")
    on_neuron = text(request, "DeploymentInstanceType").startswith(("ml.inf", "ml.trn"))
    if on_neuron and (others := sorted({*kinds} - {"ModelCompilationConfig"})):
        raise invalid(f"AWS Neuron instances take compilation only, not {', '.join(others)}.")
    _check_variables("OptimizationEnvironment", child(request, "OptimizationEnvironment"))
    for config in configs:
        for kind, settings in config.items():
            if kind in CONFIGS and isinstance(settings, dict):
                _check_variables(f"{kind}.OverrideEnvironment", child(settings, "OverrideEnvironment"))


def _check_variables(name: str, variables: Document) -> None:
    if len(variables) > MOST_VARIABLES:
        raise invalid(f"{name} must have at most {MOST_VARIABLES} entries; it has {len(variables)}.")


def _run(cloud: Cloud, record: OptimizationJobRecord) -> None:
    """Take a job through its states; a defect fails it, because whoever waits for it would wait for ever."""
    try:
        _run_to_the_end(cloud, record)
    except RunFailed as failed:
        cloud.jobs.move(record.name, JobStatus.FAILED, failure_reason=str(failed))
    except Exception as error:  # noqa: BLE001 (the border of a thread)
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
    image, note = run_optimization(cloud, record.request, cloud.jobs.folder)
    cloud.store.tag(record.arn, [{"Key": "seatrial:embedded-aws", "Value": note}])
    cloud.jobs.move(record.name, JobStatus.COMPLETED, image=image)


def _passes(cloud: Cloud, name: str, seconds: float) -> bool:
    """Wait; return whether the job still runs then. A job that is to stop stops."""
    end_s = cloud.clock.now_s() + seconds
    while True:
        known = next((each for each in cloud.jobs.all() if each.name == name), None)
        if known is None or known.status is JobStatus.STOPPING:
            cloud.jobs.move(name, JobStatus.STOPPED)
            return False
        if (left_s := end_s - cloud.clock.now_s()) <= 0:
            return True
        cloud.clock.wait(min(POLL_S, left_s))


def _is_asked(record: OptimizationJobRecord, request: Document) -> bool:
    kinds = ",".join(kind for config in children(record.request, "OptimizationConfigs") for kind in config)
    wanted = text(request, "StatusEquals")
    return (
        text(request, "NameContains") in record.name
        and text(request, "OptimizationContains").lower() in kinds.lower()
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
