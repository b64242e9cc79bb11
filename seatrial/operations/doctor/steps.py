"""The steps that unstick an endpoint, in order: what is changed, and what must have been done before."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Literal

from seatrial.operations.doctor.diagnose import is_left_over, is_left_suspended, is_orphan
from seatrial.operations.doctor.gather import NAMESPACE, SERVICE
from seatrial_base.tags import ENVIRONMENT_TAG, OWNER_TAG

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from seatrial.documents.live_endpoint import LiveComponent
    from seatrial.operations.doctor.facts import Examination, TargetFacts

NOTHING_SUSPENDED = {
    "DynamicScalingInSuspended": False,
    "DynamicScalingOutSuspended": False,
    "ScheduledScalingSuspended": False,
}
_BLOCKED = frozenset({"DELETE_FAILED", "ROLLBACK_FAILED", "CREATE_FAILED"})


@dataclass(frozen=True, slots=True, kw_only=True)
class FixStep:
    """One change.

    Attributes:
        key: Names the step for those that come after it.
        why: Why, as a sentence.
        service: The service, by boto3's name.
        operation: The operation, by boto3's name.
        arguments: What it is called with.
        after: Keys of the steps that must have succeeded.
        until: When it is done: `answered`, when what was deleted is `gone`, or when the stack has `settled`.
        look: The operation that tells so, with `look_at`; empty with `answered`.
        look_at: What that operation is called with.
        arn: Of what is deleted on SageMaker; empty for any other change.
        tags: The tags that prove whose it is: read again right before, and without them nothing is deleted.
    """

    key: str
    why: str
    service: str
    operation: str
    arguments: Mapping[str, object]
    after: tuple[str, ...] = ()
    until: Literal["answered", "gone", "settled"] = "answered"
    look: str = ""
    look_at: Mapping[str, object] = field(default_factory=dict)
    arn: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)

    @property
    def command(self) -> str:
        """The same change as a command of the AWS CLI."""
        options = (f"--{_dashed(name)} {_shell(value)}" for name, value in self.arguments.items())
        return f"aws {self.service} {self.operation.replace('_', '-')} {' '.join(options)}"


def _dashed(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name).lower()


def _shell(value: object) -> str:
    if isinstance(value, list):
        return " ".join(f"{each}" for each in value)
    return f"'{json.dumps(value)}'" if isinstance(value, dict) else f"{value}"


def fix_steps(found: Examination) -> tuple[FixStep, ...]:
    """Return what unsticks an endpoint; empty when there is nothing that can be done safely.

    Nothing that serves is deleted, nothing while the stack is at work, and nothing that the stack manages while it is
    in order: a deployment mends that. What could not be asked is left alone, and so is what does not carry the tag of
    the environment: a name decides nothing.
    """
    if found.stack.is_at_work or found.stack.existence == "not asked" or found.endpoint.existence == "not asked":
        return ()
    return tuple(
        chain(
            _continued(found),
            _targets(found),
            _components(found),
            _resumed(found),
            _stack(found) if found.stack.status in _BLOCKED else _endpoint(found),
        )
    )


def is_abandoned(found: Examination) -> bool:
    """Tell whether no stack manages what is left, and it does not serve."""
    return found.stack.is_gone and not found.serves


def _proof(tags: Mapping[str, str], found: Examination) -> Mapping[str, str]:
    """Return the tags that prove that a part is of the endpoint's environment; none where they don't."""
    environment = tags.get(ENVIRONMENT_TAG, "")
    if not environment or found.endpoint.tags.get(ENVIRONMENT_TAG, environment) != environment:
        return {}
    return {key: value for key, value in tags.items() if key in (ENVIRONMENT_TAG, OWNER_TAG)}


def _continued(found: Examination) -> Iterator[FixStep]:
    """Continue a rollback that failed; resources that failed again are skipped, as CloudFormation demands."""
    stack = found.stack
    if stack.status != "UPDATE_ROLLBACK_FAILED" or not stack.is_ours:
        return
    failed = [*stack.left_behind]
    skipped = f"; it skips {', '.join(failed)}, which the next deployment sets right" if failed else ""
    yield FixStep(
        key="stack",
        why=f"The rollback of {stack.name} failed; CloudFormation continues it{skipped}.",
        service="cloudformation",
        operation="continue_update_rollback",
        arguments={"StackName": stack.name, **({"ResourcesToSkip": failed} if failed else {})},
        until="settled",
        look="describe_stacks",
        look_at={"StackName": stack.name},
    )


def _targets(found: Examination) -> Iterator[FixStep]:
    for target in found.targets:
        if is_orphan(target, found):
            yield _deregistered(target, "The component that it scales does not exist.")
        elif _is_doomed(target.component, found):
            yield _deregistered(target, "Its component is about to be deleted.")


def _deregistered(target: TargetFacts, why: str) -> FixStep:
    return FixStep(
        key=f"target {target.resource_id}",
        why=why,
        service=SERVICE,
        operation="deregister_scalable_target",
        arguments=_identity(target),
    )


def _identity(target: TargetFacts) -> dict[str, object]:
    names = ("ServiceNamespace", "ResourceId", "ScalableDimension")
    return dict(zip(names, (NAMESPACE, target.resource_id, target.dimension), strict=True))


def _is_doomed(component: str, found: Examination) -> bool:
    return any(each.name == component for each in _doomed(found))


def _doomed(found: Examination) -> tuple[LiveComponent, ...]:
    """Return the components to delete: left-over candidates, and all that no stack in order manages."""
    blocked = found.stack.status in _BLOCKED and found.stack.is_ours and not found.serves
    unmanaged = is_abandoned(found) or blocked
    return tuple(
        each for each in found.components if _proof(each.tags, found) and (unmanaged or is_left_over(each, found))
    )


def _components(found: Examination) -> Iterator[FixStep]:
    for component in _doomed(found):
        left = (
            "It was left over by a trial." if component.is_candidate else "No stack manages it, and it does not serve."
        )
        keys = [f"target {each.resource_id}" for each in found.targets if each.component == component.name]
        named = {"InferenceComponentName": component.name}
        yield FixStep(
            key=f"component {component.name}",
            why=left,
            service="sagemaker",
            operation="delete_inference_component",
            arguments=named,
            after=tuple(keys),
            until="gone",
            look="describe_inference_component",
            look_at=named,
            arn=component.arn,
            tags=_proof(component.tags, found),
        )


def _resumed(found: Examination) -> Iterator[FixStep]:
    for target in found.targets:
        if is_left_suspended(target, found) and not _is_doomed(target.component, found):
            yield FixStep(
                key=f"resume {target.resource_id}",
                why=f"Suspended: {', '.join(target.suspended)}; no update is at work that would resume it.",
                service=SERVICE,
                operation="register_scalable_target",
                arguments={**_identity(target), "SuspendedState": NOTHING_SUSPENDED},
            )


def _stack(found: Examination) -> Iterator[FixStep]:
    """Delete a stack that could not be deleted or created, once nothing blocks it."""
    if found.serves or not found.stack.is_ours:
        return
    named = {"StackName": found.stack.name}
    yield FixStep(
        key="stack",
        why=f"It is {found.stack.status}: CloudFormation deletes it with what it still has.",
        service="cloudformation",
        operation="delete_stack",
        arguments=named,
        after=tuple(f"component {each.name}" for each in _doomed(found)),
        until="gone",
        look="describe_stacks",
        look_at=named,
    )


def _endpoint(found: Examination) -> Iterator[FixStep]:
    """Delete endpoint, configuration and models, in this order, where no stack does it any more."""
    endpoint = found.endpoint
    proof = _proof(endpoint.tags, found)
    holds_others = len(_doomed(found)) < len(found.components)  # with a component on it no endpoint can go
    if endpoint.existence != "found" or not is_abandoned(found) or not proof or holds_others:
        return
    named: dict[str, object] = {"EndpointName": found.name}
    yield FixStep(
        key=f"endpoint {found.name}",
        why="Its stack does not exist any more.",
        service="sagemaker",
        operation="delete_endpoint",
        arguments=named,
        after=tuple(f"component {each.name}" for each in _doomed(found)),
        until="gone",
        look="describe_endpoint",
        look_at=named,
        arn=endpoint.arn,
        tags=proof,
    )
    parts = [("model", "ModelName", each.name, each.arn) for each in found.models if _proof(each.tags, found)]
    if endpoint.config:
        parts = [("endpoint_config", "EndpointConfigName", endpoint.config, endpoint.config_arn), *parts]
    for kind, member, name, arn in parts:
        yield FixStep(
            key=f"{kind} {name}",
            why="Its endpoint is deleted.",
            service="sagemaker",
            operation=f"delete_{kind}",
            arguments={member: name},
            after=(f"endpoint {found.name}",),
            arn=arn,
            tags=proof,
        )
