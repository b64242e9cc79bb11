"""Faults that a user switches on: what SageMaker sometimes does, and a test can't wait for."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from seatrial_laptop.aws.api import ApiError, service_model
from seatrial_laptop.aws.clock import FASTEST

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial_laptop.aws.clock import VirtualClock
    from seatrial_laptop.aws.json_document import Document


SERVICES: Final = ("sagemaker", "sagemaker-runtime", "application-autoscaling")
"""The services whose operations can be denied."""
LONGEST_S: Final = 86_400.0


class DeniedOperation(BaseModel):
    """An operation that is denied so many times, or for so many virtual seconds.

    Attributes:
        operation: An operation of SageMaker, its runtime or Application Auto Scaling.
        count: How many requests are still denied.
        seconds: How long requests are still denied, in virtual seconds.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    operation: str
    count: int | None = Field(None, ge=1)
    seconds: float | None = Field(None, gt=0, le=LONGEST_S)

    @field_validator("operation")
    @classmethod
    def _exists(cls, operation: str) -> str:
        if not any(operation in service_model(service).operation_names for service in SERVICES):
            raise ValueError(f"{operation} is no operation of {', '.join(SERVICES)}")
        return operation

    @model_validator(mode="after")
    def _one_end(self) -> Self:
        if (self.count is None) == (self.seconds is None):
            raise ValueError("either count or seconds must be set")
        return self


class ControlSettings(BaseModel):
    """What the control interface sets; the defaults are no faults at the speed of real time.

    Attributes:
        clock_speed: Virtual seconds per real second.
        instance_start_s: How long an instance takes to start, in virtual seconds.
        capacity_limit: Instances that one endpoint can have at most; None for what its variants allow.
        no_capacity: Instance types of which no new instance can be had.
        access_denied: Operations that are denied.
        iam_propagation_s: How long requests for a new resource are denied, in virtual seconds.
        silent_rollback: Whether the next update of a component's specification changes nothing and tells no reason.
        stuck: The inference component whose update doesn't end; None for none.
        optimization_job_s: How long an optimization job is in progress at least, in virtual seconds.
        optimization_job_failure: Why optimization jobs fail; None for jobs that don't.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    clock_speed: float = Field(1.0, gt=0, le=FASTEST)
    instance_start_s: float = Field(0.0, ge=0, le=LONGEST_S)
    capacity_limit: int | None = Field(None, ge=0)
    no_capacity: list[str] = []
    access_denied: list[DeniedOperation] = []
    iam_propagation_s: float = Field(0.0, ge=0, le=LONGEST_S)
    silent_rollback: bool = False
    stuck: str | None = Field(None, min_length=1)
    optimization_job_s: float = Field(30.0, ge=0, le=LONGEST_S)
    optimization_job_failure: str | None = Field(None, min_length=1, max_length=1024)


@dataclass(frozen=True, slots=True)
class _Denial:
    operation: str
    left: int | None
    until_s: float | None


class Faults:
    """The settings in force; threads may share it.

    Args:
        clock: Its speed is one of the settings.
    """

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._settings = ControlSettings()
        self._denials: tuple[_Denial, ...] = ()

    def settings(self) -> ControlSettings:
        """Return the settings, with what is left of the denials."""
        with self._lock:
            now_s = self._clock.now_s()
            self._denials = tuple(each for each in self._denials if each.until_s is None or each.until_s > now_s)
            left = [
                DeniedOperation.model_construct(
                    operation=each.operation,
                    count=each.left,
                    seconds=None if each.until_s is None else round(each.until_s - now_s, 3),
                )
                for each in self._denials
            ]
            return self._settings.model_copy(update={"access_denied": left})

    def change(self, document: Document) -> None:
        """Set the given settings; the others stay.

        Raises:
            ApiError: ValidationException, a key is unknown or a value is wrong; nothing was changed.
        """
        try:
            wanted = ControlSettings.model_validate(document)
        except ValidationError as error:
            raise ApiError("ValidationException", _told(error)) from error
        with self._lock:
            given = {name: getattr(wanted, name) for name in wanted.model_fields_set}
            self._settings = self._settings.model_copy(update=given)
            if "access_denied" in given:
                self._denials = tuple(self._denial(each) for each in wanted.access_denied)
        if "clock_speed" in given:
            self._clock.set_speed(wanted.clock_speed)

    def reset(self) -> None:
        """Return to the defaults."""
        self.change(ControlSettings().model_dump())

    def denies(self, operation: str, born_s: Sequence[float]) -> bool:
        """Return whether a request is denied, and count it; `born_s` is when the resources that it names were made."""
        with self._lock:
            now_s = self._clock.now_s()
            if any(now_s < each + self._settings.iam_propagation_s for each in born_s):
                return True
            found = next((each for each in self._denials if each.operation == operation and _holds(each, now_s)), None)
            if found is None:
                return False
            if found.left is not None:
                counted = [replace(found, left=found.left - 1)] if found.left > 1 else []
                self._denials = (*counted, *(each for each in self._denials if each is not found))
            return True

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

    def _denial(self, asked: DeniedOperation) -> _Denial:
        until_s = None if asked.seconds is None else self._clock.now_s() + asked.seconds
        return _Denial(asked.operation, asked.count, until_s)


def _holds(denial: _Denial, now_s: float) -> bool:
    return denial.until_s is None or now_s < denial.until_s


def _told(error: ValidationError) -> str:
    return "; ".join(
        f"{'.'.join(str(part) for part in each['loc']) or 'body'}: {each['msg']}" for each in error.errors()
    )
