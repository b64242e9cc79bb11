"""An endpoint of an account and its stack, as AWS describes them: one class for each kind of part."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from seatrial_base.errors import BenchError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

Existence = Literal["found", "absent", "not asked"]
ROLLBACK_ALARM: Final = "Rolls updates back"
"""Begins the description of an alarm that rolls updates back (`seatrial_cdk.observability.endpoint_alarms`)."""
ROLLBACK_ALARMS_OFF: Final = "rollback_alarms=off"
"""In the descriptions of these alarms in a deployment that none of them rolls back; also a context value of the CDK."""
IN_TRANSIT: Final = ("Creating", "Updating", "SystemUpdating", "RollingBack", "Deleting")
"""Statuses of endpoints and components that change by themselves."""


@dataclass(frozen=True, slots=True)
class LivePool:
    """Instances of one type of a variant with several."""

    instance_type: str
    current: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveVariant:
    """A production or shadow variant.

    Attributes:
        instance_type: Its instance type; empty with instance pools.
        desired: Instances that it is to have.
        least: Instances that managed scaling leaves it; `None` without managed scaling.
        most: Instances that it may have.
        ami: Its InferenceAmiVersion; empty where the service chooses.
        statuses: Of its change, by the service.
    """

    name: str
    instance_type: str = ""
    pools: tuple[LivePool, ...] = ()
    current: int = 0
    desired: int = 0
    least: int | None = None
    most: int = 0
    ami: str = ""
    model: str = ""
    statuses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveEndpoint:
    """The endpoint itself; name and ARN of its config are empty where they are unknown.

    Attributes:
        has_config: Whether its configuration exists, as far as could be read.
    """

    existence: Existence
    arn: str = ""
    status: str = ""
    reason: str = ""
    config: str = ""
    config_arn: str = ""
    has_config: bool = True
    changed: datetime | None = None
    variants: tuple[LiveVariant, ...] = ()
    shadow_variants: tuple[LiveVariant, ...] = ()
    tags: dict[str, str] = field(default_factory=dict)

    def variant(self, name: str) -> LiveVariant | None:
        """Return a production variant; `None` where there is none of this name."""
        return next((variant for variant in self.variants if variant.name == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveComponent:
    """An inference component.

    Attributes:
        desired: Copies that it is to have.
        model: The model that it holds; empty for an adapter.
        artifact: The S3 URI of its own files, which an adapter has.
        resolved_image: The image with its digest, as the service deployed it.
        accelerators: Accelerators of one copy; `None` where it asks for none.
        cpu_cores: CPU cores of one copy; likewise.
        memory_mb: Memory of one copy, in MiB; likewise.
        startup_timeout_s: Time for the container's start; `None` for the service's own.
        download_timeout_s: Time for the download; likewise.
        tags: Its tags; none where they were not read.
        is_candidate: Whether the trial service made it, by its tags.
    """

    name: str
    status: str
    arn: str = ""
    endpoint: str = ""
    variant: str = ""
    reason: str = ""
    copies: int = 0
    desired: int = 0
    model: str = ""
    artifact: str = ""
    resolved_image: str = ""
    accelerators: float | None = None
    cpu_cores: float | None = None
    memory_mb: float | None = None
    startup_timeout_s: float | None = None
    download_timeout_s: float | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    is_candidate: bool = False
    created: datetime | None = None
    changed: datetime | None = None

    @property
    def is_in_transit(self) -> bool:
        """Whether it changes by itself."""
        return self.status in IN_TRANSIT


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveModel:
    """A model: what its container reads, and by which right.

    Attributes:
        environment: The container's variables, which may hold credentials: they are never shown.
        uris: Where its files lie.
        tags: Its tags; none where they were not read.
        is_there: Whether it exists; of one that does not, only the name is known.
    """

    name: str
    image: str = ""
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    uris: tuple[str, ...] = ()
    role_arn: str = ""
    arn: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)
    is_there: bool = True


@dataclass(frozen=True, slots=True)
class RaisedAlarm:
    """An alarm in state ALARM; `rolls_back`, SageMaker rolls an update back while it is raised."""

    name: str
    reason: str
    rolls_back: bool = False


@dataclass(frozen=True, slots=True)
class LiveStack:
    """A deployed stack."""

    name: str
    status: str
    outputs: Mapping[str, str]

    def output(self, name: str) -> str:
        """Return one output.

        Raises:
            BenchError: SEA502 when the stack has no such output.
        """
        if name not in self.outputs:
            message = f"the stack ({self.status}) has no output {name}"
            hint = "deploy it with this version of Seatrial"
            raise BenchError.of("SEA502", message, where=self.name, hint=hint)
        return self.outputs[name]
