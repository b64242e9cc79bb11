"""Diagnoses of an examined endpoint: the causes first, then what only follows from them."""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING, Final

from seatrial.documents.live import ROLLBACK_ALARMS_OFF
from seatrial.operations.doctor.facts import LOST_MINUTES, waiting_for
from seatrial_base.catalog.symptoms import find_symptom
from seatrial_base.findings import Finding, Place
from seatrial_base.tags import ENVIRONMENT_TAG, STACK_TAG
from seatrial_lint.lint.checks.service import driver_gap
from seatrial_load.aws.container_metrics import causes_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from seatrial.documents.live import LiveComponent
    from seatrial.operations.doctor.facts import ContainerFacts, Examination, ResourceState, StackFacts, TargetFacts
    from seatrial_load.documents.container_metrics import CauseKind

SILENT_MINUTES = 30
"""A container that starts writes its first line long before; without a driver it never does."""
RUNBOOK = "docs/how-to/alarms.md"
STUCK_MINUTES = 150
"""Download and start are limited to an hour each, and the start of an instance to less than half an hour."""
LEFT_OVER_MINUTES = 120
"""No trial is longer: a custom resource ends after an hour, and the sweep deletes its candidate."""
_IN_SERVICE = "InService"
_STUCK_SOURCE = "public issue trackers: aws/amazon-sagemaker-examples #3432, aws/deep-learning-containers PR #6187"
_CREATING_SOURCE = "public issue trackers: aws/amazon-sagemaker-examples #3432, gruntwork-io/cloud-nuke #1142"
LONGEST_WAIT_MINUTES: Final = 60
"""CloudFormation waits for a custom resource for an hour at most."""
_MEND: Final = {
    "ROLLBACK_FAILED": "Delete the stack; `seatrial doctor --fix` removes what blocks it.",
    "CREATE_FAILED": "Delete the stack; `seatrial doctor --fix` removes what blocks it.",
    "DELETE_FAILED": "Remove what blocks the deletion and delete it again: `seatrial doctor --fix`.",
    "ROLLBACK_COMPLETE": "Fix the cause, delete the stack and deploy again.",
    "UPDATE_ROLLBACK_COMPLETE": "Fix the cause and deploy again; the former configuration serves.",
}
"""What to do about a stack, by its status."""
_OUT = "DynamicScalingOutSuspended"
RULES: Final[Mapping[CauseKind, str]] = {
    "preempted": "SEA772",
    "kv_cache_full": "SEA772",
    "queue_grows": "SEA773",
    "gpu_idle": "SEA774",
}
"""A full batch or busy accelerators alone are an endpoint at work, and no problem."""


def diagnosis(*, rule: str, part: str, cause: str, mend: str, seen: str = "", source: str = "") -> Finding:
    """Return one problem of a part.

    Args:
        cause: What is wrong, as a sentence.
        mend: The remedy, as an imperative.
        source: Of the cause; empty where the evidence shows it.
    """
    return Finding(rule, Place(resource=part), cause, mend, source=source, evidence=seen)


def by_symptom(part: str, lines: tuple[str, ...]) -> Iterator[Finding]:
    """Yield the cause of the symptom in lines, where the catalog has it."""
    if (match := find_symptom(lines)) is not None:
        known, place = match.symptom, Place(resource=part)
        yield Finding(known.rule, place, known.cause, known.mend, source=known.source, evidence=match.line)


def diagnose(examination: Examination) -> tuple[Finding, ...]:
    """Return the problems, causes first; empty when nothing is wrong."""
    every = chain(
        *(_component(component, examination) for component in examination.components if not component.is_candidate),
        _endpoint(examination),
        _account(examination),
        stack_diagnoses(examination),
        _missing(examination),
        _existence(examination),
        scaling_diagnoses(examination),
        *(_candidate(component, examination) for component in examination.components if component.is_candidate),
        _alarms(examination),
        container_diagnoses(examination),
    )
    return tuple(dict.fromkeys(every))


def _existence(examination: Examination) -> Iterator[Finding]:
    if examination.endpoint.existence != "absent" or examination.stack.is_at_work:
        return
    left = [f"inference component {component.name}" for component in examination.components]
    left += [f"scalable target {target.resource_id}" for target in examination.targets]
    mend = "Check the name and the region; deploy its stack"
    if examination.missing:
        mend = f"Delete its stack, which still has it, and deploy it again: cdk destroy {examination.stack.name}"
    elif left:
        mend = "Delete what is left over: seatrial doctor --fix"
    seen = f"left over: {', '.join(left)}" if left else ""
    yield diagnosis(
        rule="SEA750",
        part=f"endpoint {examination.name}",
        cause="The endpoint does not exist.",
        mend=f"{mend}.",
        seen=seen,
    )


def _missing(examination: Examination) -> Iterator[Finding]:
    """Yield what the stack has and the account has not; an endpoint that is gone is reported with what it leaves."""
    for resource in examination.missing:
        yield diagnosis(
            rule="SEA775",
            part=f"stack {examination.stack.name}, {resource.logical_id}",
            cause=f"The stack has it ({resource.resource_type}), and it does not exist: it was deleted by hand. A "
            "deployment that changes nothing of it does not make it again.",
            mend=f"Delete the stack and deploy it again: cdk destroy {examination.stack.name}.",
            seen=resource.physical_id,
        )


def _component(component: LiveComponent, examination: Examination) -> Iterator[Finding]:
    part = f"inference component {component.name}"
    minutes = examination.minutes_since(component.changed)
    has_failed = component.status == "Failed" or bool(component.reason)
    if has_failed or (component.is_in_transit and minutes > SILENT_MINUTES):
        reasons = tuple(component.reason.splitlines())
        yield from _causes(part, component.status, reasons, _log_of(examination, component.name), examination)
    if component.is_in_transit and minutes > STUCK_MINUTES:
        mend = "let the change end, which the service does at its time limits; then `seatrial doctor --fix`"
        yield _stuck(part, component.status, minutes, mend)


def _endpoint(examination: Examination) -> Iterator[Finding]:
    endpoint, part = examination.endpoint, f"endpoint {examination.name}"
    if endpoint.existence != "found":
        return
    minutes = examination.minutes_since(endpoint.changed)
    at_work = endpoint.status != _IN_SERVICE and endpoint.status not in {"Failed", "OutOfService"}
    statuses = tuple(line for variant in endpoint.variants for line in variant.statuses)
    if not at_work and (endpoint.status != _IN_SERVICE or endpoint.reason):
        yield from _causes(
            part, endpoint.status, (*endpoint.reason.splitlines(), *statuses), _log_of(examination, ""), examination
        )
    elif at_work and minutes > SILENT_MINUTES and any(variant.model for variant in endpoint.variants):
        yield from _causes(part, endpoint.status, statuses, _log_of(examination, ""), examination)
    if at_work and minutes > STUCK_MINUTES:
        yield _stuck(part, endpoint.status, minutes, "wait for its failure, then `seatrial doctor --fix`")


def _causes(
    part: str, status: str, reasons: tuple[str, ...], log: tuple[str, ...] | None, examination: Examination
) -> Iterator[Finding]:
    """Yield why a part failed: by its log and reason, else by the driver, else the reason itself.

    The log goes first: the reason is often no more than that a health check failed.
    """
    known = next(chain(by_symptom(part, log or ()), by_symptom(part, reasons)), None)
    seen = reasons[0] if reasons else status

    if known is not None and known.rule not in {"SEA757", "SEA761"}:
        yield known
    elif (gap := _gap(examination)) is not None:
        yield diagnosis(
            rule="SEA754",
            part=part,
            cause=f"{gap[0]}.",
            mend=f"Set InferenceAmiVersion to {gap[1]}: plan again with `seatrial plan`, which chooses it.",
            seen=f"{seen}; {'no log group' if log is None else 'the log names no other cause'}",
            source=_STUCK_SOURCE,
        )
    elif known is not None:
        yield known
    elif reasons:
        mend = "read the log of its containers; fix the cause and deploy again"
        yield diagnosis(rule="SEA751", part=part, cause=f"It is {status}: {seen}", mend=f"{mend}.", seen=seen)
    elif status == "Failed":
        cause = (
            "It failed without a reason, and no container wrote a line."
            if log is None
            else "It failed, and SageMaker gives no reason."
        )
        yield diagnosis(rule="SEA751", part=part, cause=cause, mend="Read its log; deploy again.", seen=status)
    elif log is None:
        yield diagnosis(
            rule="SEA754",
            part=part,
            cause=f"No container has written a line for {SILENT_MINUTES} minutes: it does not start at all.",
            mend="Check that InferenceAmiVersion has the driver of the image's CUDA, and that the image can be pulled.",
            seen=f"{status}, and there is no log group",
            source=_STUCK_SOURCE,
        )


def _gap(examination: Examination) -> tuple[str, str] | None:
    """Return why an instance has no driver for an image, and the AMI that has; `None` when all have one."""
    for variant in examination.endpoint.variants:
        for model in examination.models:
            # Images of AWS Neuron need no driver of CUDA.
            if model.image and "neuron" not in model.image and (gap := driver_gap(model.image, variant.ami or None)):
                return gap
    return None


def _log_of(examination: Examination, component: str) -> tuple[str, ...] | None:
    """Return the last lines of a component, of the endpoint with an empty name; None when there is no log group."""
    end = f"/InferenceComponents/{component}" if component else f"/Endpoints/{examination.name}"
    log = next((each for each in examination.logs if each.group.endswith(end)), None)
    return None if log is not None and log.existence == "absent" else log.lines if log is not None else ()


def _stuck(part: str, status: str, minutes: float, mend: str) -> Finding:
    return diagnosis(
        rule="SEA761",
        part=part,
        cause=f"It has been {status} for {minutes:.0f} minutes.",
        mend=f"{mend[0].upper()}{mend[1:]}. Open a case with AWS support when it goes on.",
        seen=status,
        source="public issue trackers: aws/amazon-sagemaker-examples #3432",
    )


def _account(examination: Examination) -> Iterator[Finding]:
    for check in examination.checks:
        if check.finding is not None and check.is_wrong:
            rule, hint = check.finding.rule, check.finding.hint
            mend = f"{hint[0].upper()}{hint[1:]}."
            yield diagnosis(rule=rule, part=check.subject, cause=f"{check.answer}.", mend=mend)


def _candidate(component: LiveComponent, examination: Examination) -> Iterator[Finding]:
    minutes = examination.minutes_since(component.created)
    if component.status == "Creating" and minutes > LONGEST_WAIT_MINUTES:
        deletion = (
            "the deletion of the stack ends then: delete it again"
            if examination.stack.status in {"DELETE_FAILED", "DELETE_IN_PROGRESS"}
            else "updates are tried in place until then"
        )
        yield diagnosis(
            rule="SEA753",
            part=f"inference component {component.name}",
            cause=f"It has been Creating for {minutes:.0f} minutes: no instance has room for it. Until it is created "
            "or has failed, SageMaker deletes neither it nor its endpoint.",
            mend=f"Wait: the trial service deletes it as soon as SageMaker lets it, and {deletion}. Open a case with "
            "AWS support when it goes on.",
            seen=component.status,
            source=_CREATING_SOURCE,
        )
    elif is_left_over(component, examination):
        yield diagnosis(
            rule="SEA766",
            part=f"inference component {component.name}",
            cause=f"A trial made it {minutes:.0f} minutes ago, and no trial is that long. It takes accelerators.",
            mend="Delete it: seatrial doctor --fix.",
            seen=component.status,
        )


def is_left_over(component: LiveComponent, examination: Examination) -> bool:
    """Return whether a candidate belongs to no trial that could still be at work, and can be deleted."""
    is_old = examination.minutes_since(component.created) > LEFT_OVER_MINUTES
    return component.is_candidate and component.status != "Creating" and is_old


def _alarms(examination: Examination) -> Iterator[Finding]:
    for alarm in examination.alarms:
        yield diagnosis(
            rule="SEA767",
            part=f"alarm {alarm.name}",
            cause="It is raised, and SageMaker rolls an update back meanwhile."
            if alarm.rolls_back
            else "It is raised.",
            mend=f"Wait for its end, or deploy the repair with `-c {ROLLBACK_ALARMS_OFF}`: {RUNBOOK}#deploy-a-repair."
            if alarm.rolls_back
            else f"Act as in {RUNBOOK}.",
            seen=alarm.reason,
        )


def stack_diagnoses(examination: Examination) -> Iterator[Finding]:
    """Yield what is wrong with the stack: the cause of its failure where an event has it, and what waits."""
    stack, part = examination.stack, f"stack {examination.stack.name}"
    if (
        stack.is_gone
        and examination.endpoint.existence == "found"
        and {ENVIRONMENT_TAG, STACK_TAG} & examination.endpoint.tags.keys()
    ):
        kept = "Deploy its stack again under another name of the endpoint, or delete it with the AWS CLI; it serves."
        left = "Delete what is left: seatrial doctor --fix."
        if ENVIRONMENT_TAG not in examination.endpoint.tags:
            left = f"Delete it with the AWS CLI: `--fix` deletes only what carries the tag {ENVIRONMENT_TAG}."
        cause = "Its stack does not exist any more, and the endpoint costs money."
        yield diagnosis(
            rule="SEA762",
            part=f"endpoint {examination.name}",
            cause=cause,
            mend=kept if examination.serves else left,
            seen=f"no {part}",
        )
    if (mend := _mend(stack)) is not None:
        causes = (by_symptom(f"{part}, {failure.logical_id}", (failure.reason,)) for failure in stack.failures)
        yield from islice(chain.from_iterable(causes), 1)
        cause = f"It is {stack.status}{f': {stack.reason}' if stack.reason else '.'}"
        if stack.failures:
            # The first failed event is the cause; those after it follow from it.
            first = stack.failures[0]
            cause = f"{first.logical_id} ({first.resource_type}) failed: {first.reason or first.status}"
        yield diagnosis(rule="SEA762", part=part, cause=cause, mend=mend, seen=stack.status)
    for resource, minutes in waiting_for(stack, examination.at):
        if minutes <= LONGEST_WAIT_MINUTES:
            yield from _lost(resource, minutes, examination)
            continue
        yield diagnosis(
            rule="SEA762",
            part=f"{part}, {resource.logical_id}",
            cause=f"CloudFormation has waited {minutes:.0f} minutes for the custom resource, which did not respond.",
            mend="Wait until CloudFormation gives up (an hour), or cancel the update: aws cloudformation "
            f"cancel-update-stack --stack-name {stack.name}.",
            seen=resource.status,
            source="public issue trackers: aws/aws-cdk #24974, #16764",
        )


def _mend(stack: StackFacts) -> str | None:
    """Return what to do about a stack; a rollback that failed continues without what could not be set back."""
    if stack.status != "UPDATE_ROLLBACK_FAILED":
        return _MEND.get(stack.status)
    skipped = f" --resources-to-skip {' '.join(stack.left_behind)}" if stack.left_behind else ""
    command = f"aws cloudformation continue-update-rollback --stack-name {stack.name}{skipped}"
    return f"Fix the cause, then continue the rollback with `seatrial doctor --fix`: {command}."


def _lost(resource: ResourceState, minutes: float, examination: Examination) -> Iterator[Finding]:
    """Yield that nothing works on a request: no workflow began since, and no function lives that long."""
    since = resource.changed
    if examination.workflows is None or since is None or minutes < LOST_MINUTES:
        return
    if any(began >= since for began in examination.workflows):
        return
    yield diagnosis(
        rule="SEA762",
        part=f"stack {examination.stack.name}, {resource.logical_id}",
        cause=f"CloudFormation has waited {minutes:.0f} minutes for the custom resource, and no workflow of the trial "
        "service works on it: its function died.",
        mend="Wait: the trial service takes the request again within 5 minutes. If it doesn't, read the log of its "
        "function, or cancel the update: aws cloudformation cancel-update-stack --stack-name "
        f"{examination.stack.name}.",
        seen=resource.status,
    )


def scaling_diagnoses(examination: Examination) -> Iterator[Finding]:
    """Yield what is wrong with the scaling of an endpoint's components."""
    for target in examination.targets:
        yield from _target(target, examination)
    for component in examination.components:
        if not component.is_candidate and component.status == "InService" and component.copies == 0:
            yield from _at_zero(component, examination)


def is_orphan(target: TargetFacts, examination: Examination) -> bool:
    """Return whether a target scales a component that is known to be gone."""
    listed = not any(line.startswith("inference component") for line in examination.not_asked)
    names = {component.name for component in examination.components}
    return bool(target.component) and listed and target.component not in names


def is_left_suspended(target: TargetFacts, examination: Examination) -> bool:
    """Return whether scaling is suspended while nothing that would resume it is at work."""
    stack = examination.stack
    settled = stack.existence == "found" and not stack.is_at_work
    return bool(target.suspended) and settled and not is_orphan(target, examination)


def _target(target: TargetFacts, examination: Examination) -> Iterator[Finding]:
    part = f"scalable target {target.resource_id}"
    if is_orphan(target, examination):
        yield diagnosis(
            rule="SEA764",
            part=part,
            cause="The component that it scales does not exist.",
            mend="Deregister it: seatrial doctor --fix.",
            source="public issue trackers: stable-diffusion-aws-extension #161, PR #180",
        )
        return
    if is_left_suspended(target, examination):
        yield diagnosis(
            rule="SEA763",
            part=part,
            cause="Scaling is suspended, and no update is at work that would resume it.",
            mend="Resume it: seatrial doctor --fix. Leave it where it was suspended on purpose.",
            seen=", ".join(target.suspended),
        )
    if target.failure:
        known = [*by_symptom(part, (target.failure,))]
        yield from known
        if not known:
            mend = "Fix the cause; the next activity follows by itself."
            yield diagnosis(rule="SEA768", part=part, cause="The last activity failed.", mend=mend, seen=target.failure)


def _at_zero(component: LiveComponent, examination: Examination) -> Iterator[Finding]:
    """Yield why nothing adds a copy to none: target tracking never does, because there are no requests to count."""
    target = next((each for each in examination.targets if each.component == component.name), None)
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


def container_diagnoses(examination: Examination) -> Iterator[Finding]:
    """Yield what holds containers back."""
    for containers in examination.containers:
        for cause in causes_of(containers.load):
            if (rule := RULES.get(cause.kind)) is not None:
                yield diagnosis(
                    rule=rule,
                    part=containers.part,
                    cause=f"In the last 15 minutes: {cause.because}.",
                    mend=cause.mend,
                    seen=container_status(containers),
                    source="CloudWatch, detailed observability",
                )


def container_status(containers: ContainerFacts) -> str:
    """Return the metrics of one part's containers, in words."""
    load = containers.load
    shares = (
        ("KV cache", load.kv_cache_share_max),
        ("accelerators", load.gpu_share_mean),
        ("accelerator memory", load.gpu_memory_share_max),
    )
    counts = (("running", load.running_max), ("waiting", load.waiting_max), ("preemptions", load.preemptions))
    parts = [f"{name} {value:.0f}" for name, value in counts if value is not None]
    parts += [f"{name} {value:.0%}" for name, value in shares if value is not None]
    simulated = f" (measured by {containers.simulated_by})" if containers.simulated_by else ""
    return ", ".join(parts) + simulated
