"""One endpoint in one environment, ready for synthesis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seatrial.deployment.optimization_job import OptimizationJobRequest
    from seatrial.deployment.packing import Packing
    from seatrial.documents.plan import Plan
    from seatrial.engines.rendered import RenderedConfig
    from seatrial.specs.endpoint import EndpointSpec
    from seatrial.specs.environment import EnvironmentSpec


COMPONENT_SUFFIX = "-model"
"""Behind the endpoint's name, it makes its component's."""


LONGEST_NAME = 63
"""Most characters of the name of an endpoint or component (API reference, CreateInferenceComponent)."""


def guest_component(host: str, name: str, generation: int = 1) -> str:
    """Return the name of the component of a model on another spec's endpoint.

    Args:
        generation: Which generation of the model's plan it is, counted from 1.
    """
    return f"{host}-{name}" if generation == 1 else f"{host}-{name}-{generation}"


def endpoint_name(environment: str, name: str, generation: int = 1) -> str:
    """Return an endpoint's name on SageMaker: environment first, so that environments can share an account.

    Args:
        generation: Which endpoint of the spec it is, counted from 1.
    """
    return f"{environment}-{name}" if generation == 1 else f"{environment}-{name}-{generation}"


def stack_name(environment: str, name: str) -> str:
    """Return the name of an endpoint's stack, which stays in each generation."""
    return f"seatrial-{endpoint_name(environment, name)}"


def products_stack(environment: str) -> str:
    """Return the name of the stack that offers an environment's products to teams."""
    return f"seatrial-{environment}-products"


@dataclass(frozen=True, slots=True)
class Deployment:
    """Everything that a stack needs; nothing in it is a CDK token.

    Attributes:
        endpoint: The spec with the environment's overrides merged.
        trial_request: The trial's request document as JSON, without `target` and `expected`, which only the stack
            knows; `seatrial_load.documents.request.TrialRequest` reads it once they are filled in.
        has_local_nvme: The instance type has local NVMe, so the service refuses a volume size and a volume key for it.
        guests: Further models that share the instances; each has a component on this endpoint and no stack of its own.
        packing: Where the copies of all models run; `None` without further models.
        variants: The deployments of other specs that production and shadow variants of this endpoint run.
        optimization_job: The job that makes the weights; `None` when they are served as they are.
    """

    endpoint: EndpointSpec
    environment: EnvironmentSpec
    plan: Plan
    serving: RenderedConfig
    trial_request: str
    has_local_nvme: bool
    guests: tuple[Deployment, ...] = ()
    packing: Packing | None = None
    variants: tuple[Deployment, ...] = ()
    optimization_job: OptimizationJobRequest | None = None

    @property
    def needs_trial_service(self) -> bool:
        """Whether it is tried, what serves is recorded, or its alarms notify topics beside the trial service."""
        place = self.environment
        return self.endpoint.trial.mode != "off" or place.audit is not None or bool(place.alarms.notify)

    @property
    def endpoint_name(self) -> str:
        """The endpoint's name on SageMaker; its generation follows it from the second on."""
        return endpoint_name(self.environment.name, self.endpoint.name, self.plan.generation)

    def variant_of(self, spec: str) -> Deployment:
        """Return the deployment of another spec that a variant runs."""
        return next(each for each in self.variants if each.endpoint.name == spec)

    @property
    def base_name(self) -> str:
        """The name of the first generation, which the stack has in each."""
        return endpoint_name(self.environment.name, self.endpoint.name)

    @property
    def former_components(self) -> tuple[str, ...]:
        """The components of the former generations, the newest first."""
        names = (
            endpoint_name(self.environment.name, self.endpoint.name, generation)
            for generation in range(self.plan.generation - 1, 0, -1)
        )
        return tuple(f"{name}{COMPONENT_SUFFIX}" for name in names)

    @property
    def instance_count(self) -> int:
        """Instances at the start, of all models."""
        return self.packing.instance_count if self.packing else self.plan.instance_count.value

    @property
    def most_instances(self) -> int:
        """Instances at most, of all models, those of an update included."""
        if self.packing:
            return self.packing.max_instances
        return self.plan.max_instances + self.plan.surge_instances.value

    def component_of(self, guest: Deployment) -> str:
        """Return the name of a further model's component on this endpoint."""
        return guest_component(self.endpoint_name, guest.endpoint.name, guest.plan.generation)

    @property
    def stack_name(self) -> str:
        """The stack's name."""
        return stack_name(self.environment.name, self.endpoint.name)


def service_stack(environment: str) -> str:
    """Return the name of the stack that holds an environment's trial service."""
    return f"seatrial-{environment}-trials"
