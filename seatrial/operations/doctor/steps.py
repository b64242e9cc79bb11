"""The steps that unstick an endpoint, in order: what is changed, and what must have been done before."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Literal

from seatrial.operations.doctor.facts import is_left_over, is_left_suspended, is_orphan
from seatrial.operations.doctor.gather import NAMESPACE, SERVICE
from seatrial_base.tags import ENVIRONMENT_TAG, OWNER_TAG

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from seatrial.documents.live import LiveComponent
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
        service: The service, by boto3's name.
        operation: The operation, by boto3's name.
        after: Keys of the steps that must have succeeded.
        until: When it is done: `answered`, when what was deleted is `gone`, or when the stack has `settled`.
        look: The operation that shows it, with the arguments `look_at`; empty with `answered`.
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
        options = (
            f"--{re.sub(r'(?<=[a-z0-9])(?=[A-Z])', '-', name).lower()} {_shell(value)}"
            for name, value in self.arguments.items()
        )
        return f"aws {self.service} {self.operation.replace('_', '-')} {' '.join(options)}"


def _shell(value: object) -> str:
    if isinstance(value, list):
        return " ".join(f"{each}" for each in value)
    return f"'{json.dumps(value)}'" if isinstance(value, dict) else f"{value}"


def fix_steps(examination: Examination) -> tuple[FixStep, ...]:
    """Return what unsticks an endpoint; empty when there is nothing that can be done safely.

    Nothing that serves is deleted, nothing while the stack is at work, and nothing that the stack manages while it is
    in order: a deployment repairs that. What could not be read is left alone, and so is what does not carry the tag of
    the environment: a name decides nothing.
    """
    if _obstacle(examination):
        return ()
    return tuple(
        chain(
            _continued(examination),
            _targets(examination),
            _components(examination),
            _resumed(examination),
            _stack(examination) if examination.stack.status in _BLOCKED else _endpoint(examination),
        )
    )


def _obstacle(examination: Examination) -> str:
    """Return why no step may be done now; empty where one may."""
    # CloudFormation would undo or trip over a change during its own operation; what could not be read may be in order.
    if examination.stack.is_at_work:
        return "the stack is at work"
    if "not asked" in (examination.stack.existence, examination.endpoint.existence):
        return "its stack or the endpoint could not be read"
    return ""


def mend_by_fix(done: str, examination: Examination, *keys: str) -> str:
    """Return a remedy by `--fix`, where a step of it does this; else that it does not, and why.

    Args:
        done: The remedy as an imperative, without a full stop.
        keys: Of the steps, any of which is enough; any step without.
    """
    if any(step.key in keys or not keys for step in fix_steps(examination)):
        return f"{done}: this command with `--fix` does it."
    why = _obstacle(examination) or f"it leaves what serves, and what does not carry the tag {ENVIRONMENT_TAG}"
    return f"{done} with the AWS CLI; `--fix` does not: {why}."


def is_abandoned(examination: Examination) -> bool:
    """Return whether no stack manages what is left, and it does not serve."""
    return examination.stack.is_gone and not examination.serves


def _proof(tags: Mapping[str, str], examination: Examination) -> Mapping[str, str]:
    """Return the tags that prove that a part is of the endpoint's environment; none where they don't."""
    environment = tags.get(ENVIRONMENT_TAG, "")
    # A name proves nothing: another team's endpoint may begin with the same letters. Only the tag does, and it
    # must not contradict that of the endpoint.
    if not environment or examination.endpoint.tags.get(ENVIRONMENT_TAG, environment) != environment:
        return {}
    return {key: value for key, value in tags.items() if key in (ENVIRONMENT_TAG, OWNER_TAG)}


def _continued(examination: Examination) -> Iterator[FixStep]:
    """Continue a rollback that failed; resources that failed again are skipped, as CloudFormation demands."""
    stack = examination.stack
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


def _targets(examination: Examination) -> Iterator[FixStep]:
    for target in examination.targets:
        if is_orphan(target, examination):
            yield _deregistered(target, "The component that it scales does not exist.")
        elif _is_doomed(target.component, examination):
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


def _is_doomed(component: str, examination: Examination) -> bool:
    return any(each.name == component for each in _doomed(examination))


def _doomed(examination: Examination) -> tuple[LiveComponent, ...]:
    """Return the components to delete: left-over candidates, and all that no stack in order manages."""
    # A stack in order manages its components, and a deployment repairs them: to delete one would be a change behind
    # its back.
    blocked = examination.stack.status in _BLOCKED and examination.stack.is_ours and not examination.serves
    unmanaged = is_abandoned(examination) or blocked
    return tuple(
        component
        for component in examination.components
        if _proof(component.tags, examination) and (unmanaged or is_left_over(component, examination))
    )


def _components(examination: Examination) -> Iterator[FixStep]:
    for component in _doomed(examination):
        left = (
            "It was left over by a trial." if component.is_candidate else "No stack manages it, and it does not serve."
        )
        keys = [f"target {target.resource_id}" for target in examination.targets if target.component == component.name]
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
            tags=_proof(component.tags, examination),
        )


def _resumed(examination: Examination) -> Iterator[FixStep]:
    for target in examination.targets:
        if is_left_suspended(target, examination) and not _is_doomed(target.component, examination):
            yield FixStep(
                key=f"resume {target.resource_id}",
                why=f"Suspended: {', '.join(target.suspended)}; no update is at work that would resume it.",
                service=SERVICE,
                operation="register_scalable_target",
                arguments={**_identity(target), "SuspendedState": NOTHING_SUSPENDED},
            )


def _stack(examination: Examination) -> Iterator[FixStep]:
    """Delete a stack that could not be deleted or created, once nothing blocks it."""
    if examination.serves or not examination.stack.is_ours:
        return
    named = {"StackName": examination.stack.name}
    yield FixStep(
        key="stack",
        why=f"It is {examination.stack.status}: CloudFormation deletes it with what it still has.",
        service="cloudformation",
        operation="delete_stack",
        arguments=named,
        after=tuple(f"component {component.name}" for component in _doomed(examination)),
        until="gone",
        look="describe_stacks",
        look_at=named,
    )


def _endpoint(examination: Examination) -> Iterator[FixStep]:
    """Delete endpoint, configuration and models, in this order, where no stack does it any more."""
    endpoint = examination.endpoint
    proof = _proof(endpoint.tags, examination)
    holds_others = len(_doomed(examination)) < len(examination.components)  # with a component on it no endpoint can go
    if endpoint.existence != "found" or not is_abandoned(examination) or not proof or holds_others:
        return
    named: dict[str, object] = {"EndpointName": examination.name}
    yield FixStep(
        key=f"endpoint {examination.name}",
        why="Its stack does not exist any more.",
        service="sagemaker",
        operation="delete_endpoint",
        arguments=named,
        after=tuple(f"component {component.name}" for component in _doomed(examination)),
        until="gone",
        look="describe_endpoint",
        look_at=named,
        arn=endpoint.arn,
        tags=proof,
    )
    parts = [
        ("model", "ModelName", model.name, model.arn) for model in examination.models if _proof(model.tags, examination)
    ]
    if endpoint.config:
        parts = [("endpoint_config", "EndpointConfigName", endpoint.config, endpoint.config_arn), *parts]
    for kind, member, name, arn in parts:
        yield FixStep(
            key=f"{kind} {name}",
            why="Its endpoint is deleted.",
            service="sagemaker",
            operation=f"delete_{kind}",
            arguments={member: name},
            after=(f"endpoint {examination.name}",),
            arn=arn,
            tags=proof,
        )
