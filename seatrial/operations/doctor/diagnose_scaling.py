"""What scalable targets and copies tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.operations.doctor.diagnosis import by_symptom, diagnosis

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial.documents.live_endpoint import LiveComponent
    from seatrial.operations.doctor.facts import Examination, TargetFacts
    from seatrial_base.findings import Finding

_OUT = "DynamicScalingOutSuspended"


def scaling_diagnoses(found: Examination) -> Iterator[Finding]:
    """Yield what is wrong with the scaling of an endpoint's components."""
    for target in found.targets:
        yield from _target(target, found)
    for component in found.components:
        if not component.is_candidate and component.status == "InService" and component.copies == 0:
            yield from _at_zero(component, found)


def is_orphan(target: TargetFacts, found: Examination) -> bool:
    """Tell whether a target scales a component that is known to be gone."""
    listed = not any(line.startswith("inference component") for line in found.not_asked)
    return bool(target.component) and listed and target.component not in {each.name for each in found.components}


def is_left_suspended(target: TargetFacts, found: Examination) -> bool:
    """Tell whether scaling is suspended while nothing that would resume it is at work."""
    stack = found.stack
    settled = stack.existence == "found" and not stack.is_at_work
    return bool(target.suspended) and settled and not is_orphan(target, found)


def _target(target: TargetFacts, found: Examination) -> Iterator[Finding]:
    part = f"scalable target {target.resource_id}"
    if is_orphan(target, found):
        yield diagnosis(
            rule="SEA764",
            part=part,
            cause="The component that it scales does not exist.",
            mend="Deregister it: seatrial doctor --fix.",
            source="public issue trackers: stable-diffusion-aws-extension #161, PR #180",
        )
        return
    if is_left_suspended(target, found):
        yield diagnosis(
            rule="SEA763",
            part=part,
            cause="Scaling is suspended, and no update is at work that would resume it.",
            mend="Resume it: seatrial doctor --fix. Leave it where somebody suspended it on purpose.",
            seen=", ".join(target.suspended),
        )
    if target.failure:
        known = [*by_symptom(part, (target.failure,))]
        yield from known
        if not known:
            mend = "Mend the cause; the next activity follows by itself."
            yield diagnosis(rule="SEA768", part=part, cause="The last activity failed.", mend=mend, seen=target.failure)


def _at_zero(component: LiveComponent, found: Examination) -> Iterator[Finding]:
    """Yield why nothing adds a copy to none: target tracking never does, because there are no requests to count."""
    target = next((each for each in found.targets if each.component == component.name), None)
    if target is not None and (target.least > 0 or target.wakes) and _OUT not in target.suspended:
        return
    if target is None:
        cause, mend = "No copy is in service, and nothing scales the component.", "Deploy it with at least one copy."
    elif _OUT in target.suspended:
        cause, mend = "No copy is in service, and scale-out is suspended.", "Resume it: seatrial doctor --fix."
    else:
        cause = "No copy is in service, and no step scaling policy on NoCapacityInvocationFailures adds one."
        mend = "Add the policy, or raise min_copies to 1."
    yield diagnosis(
        rule="SEA765",
        part=f"inference component {component.name}",
        cause=cause,
        mend=mend,
        seen="0 copies",
        source="Amazon SageMaker developer guide, scale an endpoint to zero instances",
    )
