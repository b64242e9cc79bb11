"""Records of the control planes, and the variants of an endpoint as UpdateEndpointWeightsAndCapacities changed them."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field, replace
from enum import StrEnum
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from seatrial_base.catalog.hosting_kinds import kinds_of, kinds_of_config
from seatrial_laptop.aws.api import ApiError, invalid
from seatrial_laptop.aws.json_document import Document, child, children, number, text_member, whole
from seatrial_laptop.environment import own_account
from seatrial_laptop.state import REGION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from seatrial_base.catalog.hosting_kinds import HostingKind
    from seatrial_laptop.aws.json_document import Document


class Kind(StrEnum):
    """A kind of SageMaker resource; the value is the service's word in operation names."""

    MODEL = "Model"
    ENDPOINT_CONFIG = "EndpointConfig"
    ENDPOINT = "Endpoint"
    INFERENCE_COMPONENT = "InferenceComponent"

    @property
    def in_arn(self) -> str:
        """The kind's word in ARNs."""
        words = {Kind.ENDPOINT_CONFIG: "endpoint-config", Kind.INFERENCE_COMPONENT: "inference-component"}
        return words.get(self, self.value.lower())

    @property
    def in_words(self) -> str:
        """The kind's words in messages."""
        return {Kind.ENDPOINT_CONFIG: "endpoint configuration"}.get(self, self.in_arn.replace("-", " "))


class Status(StrEnum):
    """The status of an endpoint or an inference component."""

    CREATING = "Creating"
    UPDATING = "Updating"
    IN_SERVICE = "InService"
    FAILED = "Failed"
    DELETING = "Deleting"

    @property
    def in_transit(self) -> bool:
        """Whether it changes by itself, so that no change can be requested."""
        return self in (Status.CREATING, Status.UPDATING, Status.DELETING)


def arn_of(kind: Kind, name: str) -> str:
    """Return the ARN of a resource; SageMaker writes names in lower case there."""
    return f"arn:aws:sagemaker:{REGION}:{own_account()}:{kind.in_arn}/{name.lower()}"


@dataclass(frozen=True, slots=True)
class Record:
    """One resource: what was requested, and its status.

    Attributes:
        request: The request that made it, with the changes of later updates, without tags.
        status: None for a resource that has no life of its own.
        failure_reason: Why the last change failed; empty when it didn't.
        born_s: When it was created, in virtual seconds; the store sets it.
        role_is_known: Whether a model's execution role existed when the model was created.
    """

    kind: Kind
    name: str
    request: Document
    status: Status | None = None
    failure_reason: str = ""
    created_s: float = field(default_factory=time.time)
    modified_s: float = field(default_factory=time.time)
    born_s: float = 0.0
    role_is_known: bool = False

    @property
    def arn(self) -> str:
        """The resource's ARN."""
        return arn_of(self.kind, self.name)


class Store:
    """Every record and every tag; hold `lock` over a check and the change that depends on it."""

    def __init__(self, now_s: Callable[[], float], date_s: Callable[[], float] = time.time) -> None:
        self._now_s, self._date_s = now_s, date_s
        self.lock = threading.RLock()
        self._records: dict[Kind, dict[str, Record]] = {kind: {} for kind in Kind}
        self._tags: dict[str, dict[str, str]] = {}

    def find(self, kind: Kind, name: str) -> Record | None:
        """Return a record, or None."""
        with self.lock:
            return self._records[kind].get(name)

    def need(self, kind: Kind, name: str) -> Record:
        """Return a record.

        Raises:
            ApiError: ValidationException, there is none.
        """
        record = self.find(kind, name)
        if record is None:
            raise invalid(f'Could not find {kind.in_words} "{arn_of(kind, name)}".')
        return record

    def all(self, kind: Kind) -> list[Record]:
        """Return the records of a kind, oldest first."""
        with self.lock:
            return list(self._records[kind].values())

    def add(self, record: Record, tags: Iterable[Document] = ()) -> Record:
        """Keep a new record with its tags.

        Raises:
            ApiError: ValidationException, the name is taken.
        """
        with self.lock:
            if record.name in self._records[record.kind]:
                raise invalid(f'Cannot create already existing {record.kind.in_words} "{record.arn}".')
            date_s = self._date_s()
            record = replace(record, born_s=self._now_s(), created_s=date_s, modified_s=date_s)
            self._records[record.kind][record.name] = record
            self.tag(record.arn, tags)
        return record

    def change(
        self, record: Record, *, status: Status, request: Document | None = None, failure_reason: str = ""
    ) -> None:
        """Note a change of a record's state; one that was deleted meanwhile stays deleted."""
        with self.lock:
            current = self.find(record.kind, record.name)
            if current is None or current.created_s != record.created_s:
                return
            requested = current.request if request is None else request
            changed = replace(current, status=status, request=requested, failure_reason=failure_reason)
            self._records[record.kind][record.name] = replace(changed, modified_s=self._date_s())

    def remove(self, record: Record) -> None:
        """Forget a record and its tags."""
        with self.lock:
            self._records[record.kind].pop(record.name, None)
            self._tags.pop(record.arn, None)

    def tag(self, arn: str, tags: Iterable[Document]) -> None:
        """Add tags, or change the values of those that are there."""
        with self.lock:
            self._tags.setdefault(arn, {}).update({text_member(tag, "Key"): text_member(tag, "Value") for tag in tags})

    def untag(self, arn: str, keys: Iterable[str]) -> None:
        """Remove tags."""
        with self.lock:
            for key in keys:
                self._tags.get(arn, {}).pop(key, None)

    def tags(self, arn: str) -> list[Document]:
        """Return the tags of a resource."""
        with self.lock:
            return [{"Key": key, "Value": value} for key, value in self._tags.get(arn, {}).items()]

    def tagged(self) -> list[tuple[str, list[Document]]]:
        """Return the ARN and the tags of every resource that has tags."""
        with self.lock:
            return [(arn, self.tags(arn)) for arn, tags in self._tags.items() if tags]

    def of_arn(self, arn: str) -> Record | None:
        """Return the resource of an ARN, or None."""
        return next((record for kind in Kind for record in self.all(kind) if record.arn == arn), None)

    def has_arn(self, arn: str) -> bool:
        """Return whether a resource of this ARN exists."""
        return self.of_arn(arn) is not None


def production_variants(endpoint_config: Record) -> list[Document]:
    """Return the production variants of an endpoint configuration."""
    return children(endpoint_config.request, "ProductionVariants")


class JobStatus(StrEnum):
    """The status of an optimization job."""

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
        return text_member(self.request, "OptimizationJobName")

    @property
    def arn(self) -> str:
        """The job's ARN."""
        return job_arn(self.name)


def job_arn(name: str) -> str:
    """Return the ARN of a job."""
    return f"arn:aws:sagemaker:{REGION}:{own_account()}:optimization-job/{name.lower()}"


class OptimizationJobs:
    """Every optimization job, by name; threads may share it."""

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
            record = self._records.get(name)
        if record is None:
            message = f'Could not find optimization job "{job_arn(name)}".'
            raise ApiError("ResourceNotFound", message, HTTPStatus.BAD_REQUEST)
        return record

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
        """Note the status of a job; `None` for one that was deleted or has ended, which stays as it is."""
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


DESIRED: Final = "DesiredWeightsAndCapacities"
"""The member of an endpoint's request that keeps the changes since its configuration was deployed."""
SHADOWS: Final = "ShadowProductionVariants"
COUNT: Final = "DesiredInstanceCount"
WEIGHT: Final = "DesiredWeight"


@dataclass(frozen=True, slots=True)
class EmulatedVariant:
    """One variant of an endpoint.

    Attributes:
        document: Its part of the endpoint configuration.
        weight: Its share of the traffic, relative to the other variants.
        instances: How many instances it should have.
        is_shadow: Whether it gets copies of requests only.
    """

    name: str
    document: Document
    weight: float
    instances: int
    is_shadow: bool = False

    @property
    def has_model(self) -> bool:
        """Whether its instances run a model, not inference components."""
        return has_model(self.document)


def has_model(variant: Document) -> bool:
    """Return whether the instances of a variant run a model, not inference components."""
    pools = children(variant, "InstancePools")
    return "ModelName" in variant or any("ModelNameOverride" in pool for pool in pools)


def live_variants(store: Store, endpoint: Record) -> list[EmulatedVariant]:
    """Return the variants of an endpoint, its shadow variants last; none when its configuration was deleted."""
    config = store.find(Kind.ENDPOINT_CONFIG, text_member(endpoint.request, "EndpointConfigName"))
    return configured_variants(config, children(endpoint.request, DESIRED)) if config else []


def configured_variants(config: Record, desired: Sequence[Document] = ()) -> list[EmulatedVariant]:
    """Return the variants of an endpoint configuration, with weights and counts that were changed since."""
    changes = {text_member(change, "VariantName"): change for change in desired}
    production = production_variants(config)
    variants = []
    for index, variant in enumerate([*production, *children(config.request, SHADOWS)]):
        name = text_member(variant, "VariantName")
        change = changes.get(name, {})
        initial = number(variant, "InitialVariantWeight") if "InitialVariantWeight" in variant else 1.0
        variants.append(
            EmulatedVariant(
                name=name,
                document=variant,
                weight=number(change, WEIGHT) if WEIGHT in change else initial,
                instances=whole(change, COUNT, whole(variant, "InitialInstanceCount", 1)),
                is_shadow=index >= len(production),
            )
        )
    return variants


def hosting_kinds(variant: EmulatedVariant, config: Record) -> tuple[HostingKind, ...]:
    """Return the kinds of endpoint that a variant makes; a pool's variant is of the kind of its first type."""
    pools = [text_member(pool, "InstanceType") for pool in children(variant.document, "InstancePools")]
    instance_type = text_member(variant.document, "InstanceType") or next(iter(pools), None)
    own = kinds_of(instance_type, is_serverless="ServerlessConfig" in variant.document)
    return (*own, *kinds_of_config(config.request))


def merged_changes(old: Sequence[Document], new: Sequence[Document]) -> list[Document]:
    """Return what is desired after one more request; a later value replaces an earlier one."""
    merged: dict[str, Document] = {}
    for change in (*old, *new):
        name = text_member(change, "VariantName")
        merged[name] = {**merged.get(name, {}), **change}
    return list(merged.values())


def async_config(store: Store, endpoint: Record) -> Document:
    """Return the AsyncInferenceConfig of an endpoint; empty for a real-time one."""
    return _member(store, endpoint, "AsyncInferenceConfig")


def is_asynchronous(store: Store, endpoint: Record) -> bool:
    """Return whether an endpoint takes asynchronous requests only."""
    return bool(async_config(store, endpoint))


def data_capture_config(store: Store, endpoint: Record) -> Document:
    """Return the DataCaptureConfig of an endpoint; empty for none."""
    return _member(store, endpoint, "DataCaptureConfig")


def metrics_config(store: Store, endpoint: Record) -> Document:
    """Return the MetricsConfig of an endpoint; empty for none."""
    return _member(store, endpoint, "MetricsConfig")


def _member(store: Store, endpoint: Record, key: str) -> Document:
    config = store.find(Kind.ENDPOINT_CONFIG, text_member(endpoint.request, "EndpointConfigName"))
    return child(config.request, key) if config else {}
