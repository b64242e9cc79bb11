"""Faults that a user switches on: what SageMaker sometimes does, and a test can't wait for."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from seatrial_laptop.aws.api import ApiError, service_model
from seatrial_laptop.aws.clock import FASTEST

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from seatrial_laptop.aws.clock import VirtualClock
    from seatrial_laptop.aws.json_document import Document


SERVICES: Final = ("sagemaker", "sagemaker-runtime", "application-autoscaling")
"""The services whose operations can be denied."""
THROTTLED_SERVICES: Final = (
    *SERVICES,
    "cloudformation",
    "cloudwatch",
    "events",
    "lambda",
    "logs",
    "ssm",
    "stepfunctions",
)
"""The services whose operations can be throttled."""
LONGEST_S: Final = 604_800.0
MOST_GB: Final = 1_000.0


class _RefusedOperation(BaseModel):
    """An operation that is refused `count` times, or for some virtual seconds.

    Attributes:
        operation: An operation of one of the services.
        count: How many requests are still refused.
        seconds: How long requests are still refused, in virtual seconds.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    operation: str
    count: int | None = Field(None, ge=1)
    seconds: float | None = Field(None, gt=0, le=LONGEST_S)

    @model_validator(mode="after")
    def _one_end(self) -> Self:
        if (self.count is None) == (self.seconds is None):
            raise ValueError("either count or seconds must be set")
        return self


class DeniedOperation(_RefusedOperation):
    """An operation of SageMaker, its runtime or Application Auto Scaling that is denied."""

    @field_validator("operation")
    @classmethod
    def _exists(cls, operation: str) -> str:
        return _known(operation, SERVICES)


class ThrottledOperation(_RefusedOperation):
    """An operation that is throttled."""

    @field_validator("operation")
    @classmethod
    def _exists(cls, operation: str) -> str:
        return _known(operation, THROTTLED_SERVICES)


def _known(operation: str, services: tuple[str, ...]) -> str:
    if not any(operation in service_model(service).operation_names for service in services):
        raise ValueError(f"{operation} is no operation of {', '.join(services)}")
    return operation


class ControlSettings(BaseModel):
    """The settings of the control interface; the defaults are no faults at the speed of real time.

    Attributes:
        wait_speed: Virtual seconds per real second while something waits and no function runs; None skips nothing.
        instance_start_s: How long an instance takes to start, in virtual seconds.
        image_pull_gb: How large the image is that a new instance pulls, in GB.
        pull_gb_per_s: How fast it is pulled, in GB per virtual second.
        download_s: How long a copy downloads its model, in virtual seconds.
        startup_s: How long a container takes until it answers the health check, in virtual seconds.
        capacity_limit: Instances that one endpoint can have at most; None for what its variants allow.
        no_capacity: Instance types of which no new instance can be had.
        no_capacity_reason: The FailureReason of a lack of capacity; None for the usual one.
        absent_is_denied: Whether SageMaker denies a request that names what is not there.
        iam_propagation_s: How long requests for a new resource are denied, in virtual seconds.
        tags_late_s: How long the tags of a new resource of SageMaker are not visible, in virtual seconds.
        silent_rollback: Whether the next update of a component's specification changes nothing and gives no reason.
        raised_alarms_end_updates: Whether a raised alarm also ends the update of a component that changes nothing.
        stuck: The inference component whose update doesn't end; None for none.
        optimization_job_s: How long an optimization job is in progress at least, in virtual seconds.
        optimization_job_failure: Why optimization jobs fail; None for jobs that don't.
        function_python_path: A folder whose modules Python functions find before the installed ones; None for none.
        object_age_days: By how much older objects are than they are, to the lifecycle rules of S3.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    clock_speed: float = Field(1.0, gt=0, le=FASTEST)
    wait_speed: float | None = Field(None, ge=1, le=FASTEST)
    instance_start_s: float = Field(0.0, ge=0, le=LONGEST_S)
    image_pull_gb: float = Field(0.0, ge=0, le=MOST_GB)
    pull_gb_per_s: float = Field(0.1, gt=0, le=MOST_GB)
    download_s: float = Field(0.0, ge=0, le=LONGEST_S)
    startup_s: float = Field(0.0, ge=0, le=LONGEST_S)
    capacity_limit: int | None = Field(None, ge=0)
    capacity_pending: bool = False
    no_capacity: list[str] = []
    no_capacity_reason: str | None = Field(None, min_length=1, max_length=1024)
    access_denied: list[DeniedOperation] = []
    absent_is_denied: bool = False
    iam_propagation_s: float = Field(0.0, ge=0, le=LONGEST_S)
    tags_late_s: float = Field(0.0, ge=0, le=LONGEST_S)
    throttled: list[ThrottledOperation] = []
    silent_rollback: bool = False
    raised_alarms_end_updates: bool = False
    same_config: Literal["ignored", "replaced", "refused"] = "ignored"
    stuck: str | None = Field(None, min_length=1)
    optimization_job_s: float = Field(30.0, ge=0, le=LONGEST_S)
    optimization_job_failure: str | None = Field(None, min_length=1, max_length=1024)
    function_python_path: str | None = Field(None, min_length=1)
    object_age_days: float = Field(0.0, ge=0)

    @property
    def start_s(self) -> float:
        """How long a new instance takes until it has its image, in virtual seconds."""
        return self.instance_start_s + self.image_pull_gb / self.pull_gb_per_s


@dataclass(frozen=True, slots=True)
class _RefusalLeft:
    operation: str
    left: int | None
    until_s: float | None


class _RefusalsLeft:
    """What is left of refusals that are counted or last for a while; hold the lock of the settings."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._left: tuple[_RefusalLeft, ...] = ()

    def set(self, requested: Sequence[_RefusedOperation]) -> None:
        now_s = self._now_s()
        self._left = tuple(
            _RefusalLeft(each.operation, each.count, None if each.seconds is None else now_s + each.seconds)
            for each in requested
        )

    def take(self, operation: str) -> bool:
        """Return whether a request is refused, and count it."""
        refusal = next((each for each in self._lasting() if each.operation == operation), None)
        if refusal is None:
            return False
        if refusal.left is not None:
            counted = [replace(refusal, left=refusal.left - 1)] if refusal.left > 1 else []
            self._left = (*counted, *(each for each in self._left if each is not refusal))
        return True

    def members(self) -> list[dict[str, Any]]:
        """Return the members of each, as a request sets them."""
        now_s = self._now_s()
        return [
            {
                "operation": refusal.operation,
                "count": refusal.left,
                "seconds": None if refusal.until_s is None else round(refusal.until_s - now_s, 3),
            }
            for refusal in self._lasting()
        ]

    def _lasting(self) -> tuple[_RefusalLeft, ...]:
        now_s = self._now_s()
        self._left = tuple(each for each in self._left if each.until_s is None or each.until_s > now_s)
        return self._left


class Faults:
    """The settings in force; threads may share it."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self._lock = threading.RLock()
        self._settings = ControlSettings()
        self._denied, self._throttled = _RefusalsLeft(clock.now_s), _RefusalsLeft(clock.now_s)
        self._listeners: list[Callable[[ControlSettings], object]] = []

    def settings(self) -> ControlSettings:
        """Return the settings, with what is left of denials and throttling."""
        with self._lock:
            denied = [DeniedOperation.model_construct(**left) for left in self._denied.members()]
            throttled = [ThrottledOperation.model_construct(**left) for left in self._throttled.members()]
            return self._settings.model_copy(update={"access_denied": denied, "throttled": throttled})

    def tell_changes(self, listener: Callable[[ControlSettings], object]) -> None:
        """Call a listener with the settings after every change of them."""
        with self._lock:
            self._listeners.append(listener)

    def change(self, document: Document) -> None:
        """Set the given settings; the others stay.

        Raises:
            ApiError: ValidationException, a key is unknown or a value is wrong; nothing was changed.
        """
        try:
            wanted = ControlSettings.model_validate(document)
        except ValidationError as error:
            problems = (f"{'.'.join(map(str, each['loc'])) or 'body'}: {each['msg']}" for each in error.errors())
            raise ApiError("ValidationException", "; ".join(problems)) from error
        with self._lock:
            given = {name: getattr(wanted, name) for name in wanted.model_fields_set}
            self._settings = self._settings.model_copy(update=given)
            if "access_denied" in given:
                self._denied.set(wanted.access_denied)
            if "throttled" in given:
                self._throttled.set(wanted.throttled)
            listeners, settings = list(self._listeners), self._settings
        self._clock.set_speed(settings.clock_speed)
        self._clock.set_wait_speed(settings.wait_speed)
        for listener in listeners:
            listener(settings)

    def reset(self) -> None:
        """Return to the defaults."""
        self.change(ControlSettings().model_dump())

    def denies(self, operation: str, born_s: Sequence[float]) -> bool:
        """Return whether a request is denied, and count it; `born_s` is when the resources that it names were made."""
        with self._lock:
            now_s = self._clock.now_s()
            if any(now_s < each + self._settings.iam_propagation_s for each in born_s):
                return True
            return self._denied.take(operation)

    def throttles(self, operation: str) -> bool:
        """Return whether a request is throttled, and count it."""
        with self._lock:
            return self._throttled.take(operation)

    def hides_tags(self, born_s: float) -> bool:
        """Return whether the tags of a resource that was made at a virtual moment are not visible yet."""
        with self._lock:
            return self._clock.now_s() < born_s + self._settings.tags_late_s

    def take_silent_rollback(self) -> bool:
        """Return whether this update is the one that changes nothing; the next one isn't."""
        with self._lock:
            taken = self._settings.silent_rollback
            self._settings = self._settings.model_copy(update={"silent_rollback": False})
        return taken

    def is_stuck(self, component: str) -> bool:
        """Return whether the update of a component doesn't end."""
        with self._lock:
            return self._settings.stuck == component
