"""Diagnoses of an examined endpoint: the causes first, then what only follows from them."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, islice
from typing import TYPE_CHECKING, Final

from seatrial.documents.live import IN_TRANSIT, ROLLBACK_ALARMS_OFF
from seatrial.operations.doctor.facts import (
    LOGS,
    LONGEST_LINE,
    LOST_MINUTES,
    LogFacts,
    is_left_over,
    is_left_suspended,
    is_orphan,
    waiting_for,
)
from seatrial.operations.doctor.limits import of_log, of_variables, with_row
from seatrial.operations.doctor.steps import mend_by_fix
from seatrial_base.catalog.symptoms import find_symptom, last_error
from seatrial_base.findings import Finding, Place, is_wrong
from seatrial_base.tags import ENVIRONMENT_TAG, STACK_TAG
from seatrial_lint.lint.checks.service import driver_gap
from seatrial_lint.lint.lint import Given, lint_sources
from seatrial_lint.lint.source import ConfigSource, SourceEntry
from seatrial_load.aws.container_metrics import causes_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from seatrial.documents.live import LiveComponent
    from seatrial.operations.doctor.facts import ContainerFacts, Examination, ResourceState, TargetFacts
    from seatrial.operations.doctor.limits import RefusedStart
    from seatrial_load.documents.container_metrics import CauseKind

SILENT_MINUTES = 30
"""A container that starts writes its first line long before; without a driver it never does."""
RUNBOOK = "docs/how-to/alarms.md"
STUCK_MINUTES = 150
"""Download and start are limited to an hour each, and the start of an instance to less than half an hour."""
_IN_SERVICE = "InService"
_AGAIN = " A deployment without changes does not start it again: deploy a changed plan, or delete the stack first."
_STUCK_SOURCE = "public issue trackers: aws/amazon-sagemaker-examples #3432, aws/deep-learning-containers PR #6187"
_CREATING_SOURCE = "public issue trackers: aws/amazon-sagemaker-examples #3432, gruntwork-io/cloud-nuke #1142"
LONGEST_WAIT_MINUTES: Final = 60
"""CloudFormation waits for a custom resource for an hour at most."""
_MEND: Final = {
    "ROLLBACK_FAILED": "Delete the stack and what blocks it",
    "CREATE_FAILED": "Delete the stack and what blocks it",
    "DELETE_FAILED": "Remove what blocks the deletion, and delete the stack again",
    "ROLLBACK_COMPLETE": "Fix the cause, delete the stack and deploy again.",
    "UPDATE_ROLLBACK_COMPLETE": "Fix the cause and deploy again; the former configuration serves.",
}
"""What to do about a stack, by its status; without a full stop, `--fix` does it."""
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


def by_symptom(part: str, lines: Iterable[str], **known: str) -> Iterator[Finding]:
    """Yield the cause of the symptom in lines, where the catalog has it; `known` is what its sentences may name too."""
    if (match := find_symptom(lines)) is not None:
        symptom = match.symptom
        cause, mend = match.filled(symptom.cause, **known), match.filled(symptom.mend, **known)
        seen = match.line[:LONGEST_LINE]
        yield Finding(symptom.rule, Place(resource=part), cause, mend, source=symptom.source, evidence=seen)


def text_diagnoses(
    reason: str, log: tuple[str, ...] | None, *, image: str = "", instance_type: str | None = None
) -> tuple[Finding, ...]:
    """Return what texts tell that somebody has of a failed endpoint; nothing of an account is read.

    Args:
        reason: The failure reason, or the reason of an event; empty where it is not known.
        log: The lines of the container's log; `None` where they are not known.
        image: The image's address; what `lint` finds in it follows the cause.
        instance_type: With the image: whether it runs on this type.
    """
    gap = driver_gap(image, None) if image and "neuron" not in image else None
    facts = None if log is None else LogFacts("", "found", log)
    source = ConfigSource(
        "the image", "model definition", (), {"image": SourceEntry("image", image, 1, "env")}, is_partial=True
    )
    linted = lint_sources([source] if image else [], Given(instance_type=instance_type)).findings
    refused = of_log((*(log or ()), *reason.splitlines()), image, instance_type) if image else None
    causes = [*_causes("the text", "", reason.splitlines(), facts, gap, refused)]
    return (*causes, *(replace(each, place=Place(resource="the image")) for each in linted if is_wrong(each)))


def diagnose(examination: Examination) -> tuple[Finding, ...]:
    """Return the problems, causes first; empty when nothing is wrong."""
    every = chain(
        *(_component(component, examination) for component in examination.components if not component.is_candidate),
        _endpoint(examination),
        _account(examination),
        stack_diagnoses(examination),
        _missing(examination),
        _absent(examination),
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
        mend = mend_by_fix("Delete what is left over", examination).removesuffix(".")
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


def _absent(examination: Examination) -> Iterator[Finding]:
    """Yield the configuration and models that an endpoint at rest lacks, but for those that its stack lacks."""
    if examination.endpoint.status in IN_TRANSIT or examination.stack.is_at_work:
        return
    known = {resource.physical_id.rpartition("/")[2] for resource in examination.missing}
    for part in examination.absent:
        if part.rpartition(" ")[2] not in known:
            yield diagnosis(
                rule="SEA637",
                part=part,
                cause=f"It does not exist any more, and endpoint {examination.name} has it. What runs goes on; an "
                "update, a scaling to more instances and the replacement of one fail.",
                mend="Deploy it anew under another name and update the endpoint to it; delete the endpoint where it "
                "is not needed: it costs money.",
                source="Amazon SageMaker API reference, DeleteEndpointConfig and DeleteModel",
            )


def _component(component: LiveComponent, examination: Examination) -> Iterator[Finding]:
    part = f"inference component {component.name}"
    minutes = examination.minutes_since(component.changed)
    has_failed = component.status == "Failed" or bool(component.reason)
    if has_failed or (component.is_in_transit and minutes > SILENT_MINUTES):
        log = _log_of(examination, component.name)
        refused = _refused(examination, component.model, component.variant, component.accelerators or 0)
        causes = _causes(part, component.status, component.reason.splitlines(), log, _gap(examination), refused)
        at_rest = examination.stack.existence == "found" and not examination.stack.is_at_work
        again = _AGAIN if component.status == "Failed" and at_rest else ""
        kept = _kept(part, component.status, component.reason, causes)
        yield from (replace(each, hint=f"{each.hint}{again}") for each in kept)
    if component.is_in_transit and minutes > STUCK_MINUTES:
        yield _stuck(part, component.status, minutes, "let the change end, which the service does at its time limits")


def _endpoint(examination: Examination) -> Iterator[Finding]:
    endpoint, part = examination.endpoint, f"endpoint {examination.name}"
    if endpoint.existence != "found":
        return
    minutes = examination.minutes_since(endpoint.changed)
    at_work = endpoint.status in IN_TRANSIT
    statuses = [line for variant in endpoint.variants for line in variant.statuses]
    log, gap = _log_of(examination, ""), _gap(examination)
    with_model = next((variant for variant in endpoint.variants if variant.model), None)
    refused = _refused(examination, with_model.model, with_model.name) if with_model else None
    if not at_work and (endpoint.status != _IN_SERVICE or endpoint.reason):
        causes = _causes(part, endpoint.status, [*endpoint.reason.splitlines(), *statuses], log, gap, refused)
        yield from _kept(part, endpoint.status, endpoint.reason, causes, f" {endpoint.config}".rstrip())
    elif at_work and minutes > SILENT_MINUTES and any(variant.model for variant in endpoint.variants):
        # A variant at work always has a status; only one that tells a cause is a reason.
        reasons = [each for each in statuses if find_symptom([each])]
        yield from _causes(part, endpoint.status, reasons, log, gap, refused)
    if at_work and minutes > STUCK_MINUTES:
        yield _stuck(part, endpoint.status, minutes, "wait for its failure")


def _kept(part: str, status: str, reason: str, causes: Iterator[Finding], configuration: str = "") -> Iterator[Finding]:
    """Yield the causes of a failure; before them, that what serves is what it was before an update."""
    known = [*causes]
    # A failed update leaves its reason on what goes on serving: SageMaker rolls back, and the status is InService.
    # The other status is of a rolling update that could not be set back.
    serves = {
        _IN_SERVICE: f"the configuration{configuration} from before it still serves",
        "UpdateRollbackFailed": "so did the way back: a mix of both configurations serves",
    }
    if status in serves and known:
        yield diagnosis(
            rule="SEA636",
            part=part,
            cause=f"Its last update failed, and {serves[status]}. SageMaker's reason: {reason or 'none'}",
            mend=f"{known[0].hint} Then update it again.",
            seen=reason,
            source="public issue trackers: hashicorp/terraform-provider-aws #39099",
        )
        # Without a known cause, there is nothing to say beside it.
        known = [each for each in known if each.rule != "SEA751"]
    yield from known


def _refused(
    examination: Examination, model_name: str, variant_name: str, accelerators: float | None = None
) -> RefusedStart | None:
    """Return what an engine saw at load; `None` where its model or instance type is not known."""
    model = next((each for each in examination.models if each.name == model_name), None)
    variants = examination.endpoint.variants
    # A component that names no variant is on the only one.
    variant = variants[0] if len(variants) == 1 else examination.endpoint.variant(variant_name)
    if model is None or variant is None:
        return None
    return of_variables(model.image, model.environment, variant.instance_type, accelerators)


def _causes(  # noqa: PLR0917 (what is known of one failure, from the nearest on)
    part: str,
    status: str,
    reasons: list[str],
    log: LogFacts | None,
    gap: tuple[str, str] | None,
    refused: RefusedStart | None,
) -> Iterator[Finding]:
    """Yield why a part failed: by its reason or log, by the log's last error, by the driver, else the reason itself.

    A reason that says more than that a health check failed is about this failure; the log may be of another one.
    """
    lines = log.lines if log is not None else ()
    of_reason, of_log = find_symptom(reasons), find_symptom(lines)
    known = next((each for each in (of_reason, of_log) if each is not None and not each.symptom.is_general), None)
    seen = reasons[0] if reasons else status

    if known is not None:
        yield from (with_row(each, known.line, refused) for each in by_symptom(part, [known.line]))
    elif error := last_error(lines):
        yield diagnosis(
            rule="SEA751",
            part=part,
            cause=f'The last error in the log of its container is: "{error[:LONGEST_LINE]}"',
            mend="Fix what it names, and deploy again; no known cause has this text.",
            seen=error[:LONGEST_LINE],
        )
    elif gap is not None:
        yield diagnosis(
            rule="SEA754",
            part=part,
            cause=f"{gap[0]}.",
            mend=f"Set InferenceAmiVersion to {gap[1]}: plan again with `seatrial plan`, which chooses it.",
            seen=f"{seen}; {'the log names no other cause' if lines else 'no line of a log'}",
            source=_STUCK_SOURCE,
        )
    elif (general := of_reason or of_log) is not None:
        for finding in by_symptom(part, [general.line]):
            yield replace(finding, hint=f"{finding.hint} {_next_look(log)}")
    elif reasons or status in ("Failed", ""):
        cause = f"It is {status}: {seen}" if reasons else "It failed, and no reason is given."
        if not status:
            # Of a text nothing tells that something failed at all.
            cause = f"No known cause has this text: {seen}" if reasons else "No known cause has this text."
        yield diagnosis(rule="SEA751", part=part, cause=cause, mend=_next_look(log), seen=seen)
    elif log is not None and log.existence == "absent":
        yield diagnosis(
            rule="SEA754",
            part=part,
            cause=f"No container has written a line for {SILENT_MINUTES} minutes: it does not start at all.",
            mend="Check that InferenceAmiVersion has the driver of the image's CUDA, and that the image can be pulled.",
            seen=f"{status}, and there is no log group",
            source=_STUCK_SOURCE,
        )


def _next_look(log: LogFacts | None) -> str:
    """Return where to look for a cause that no text tells: at a log only where there is one."""
    if log is None:
        return "The log of its container tells more: give it with --log."
    if log.existence == "not asked":
        return f"Read the log group {log.group}, which was not read here."
    if log.lines and not log.group:
        return "The log that was given states no error: give more of it."
    if log.lines:
        return f"Its log states no error among the last lines; all of it: aws logs tail {log.group}."
    return (
        "No container wrote a line: check that the image can be pulled and is for the instance's architecture, that "
        "it takes `serve`, and that InferenceAmiVersion has the driver of its CUDA."
    )


def _gap(examination: Examination) -> tuple[str, str] | None:
    """Return why an instance has no driver for an image, and the AMI that has; `None` when all have one."""
    for variant in examination.endpoint.variants:
        for model in examination.models:
            # Images of AWS Neuron need no driver of CUDA.
            if model.image and "neuron" not in model.image and (gap := driver_gap(model.image, variant.ami or None)):
                return gap
    return None


def _log_of(examination: Examination, component: str) -> LogFacts:
    """Return the log of a component, of the endpoint with an empty name; one that was not looked for has no lines."""
    group = f"{LOGS}/InferenceComponents/{component}" if component else f"{LOGS}/Endpoints/{examination.name}"
    return next((each for each in examination.logs if each.group == group), LogFacts(group, "not asked"))


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
            mend=mend_by_fix("Delete it", examination, f"component {component.name}"),
            seen=component.status,
        )


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
        left = mend_by_fix("Delete what is left", examination, f"endpoint {examination.name}")
        cause = "Its stack does not exist any more, and the endpoint costs money."
        yield diagnosis(
            rule="SEA762",
            part=f"endpoint {examination.name}",
            cause=cause,
            mend=kept if examination.serves else left,
            seen=f"no {part}",
        )
    if (mend := _mend(examination)) is not None:
        names = ", ".join(component.name for component in examination.components)
        attached = f": {names}" if names else ""
        causes = (
            by_symptom(f"{part}, {failure.logical_id}", (failure.reason,), components=attached)
            for failure in stack.failures
        )
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


def _mend(examination: Examination) -> str | None:
    """Return what to do about a stack; a rollback that failed continues without what could not be set back."""
    stack = examination.stack
    if stack.status == "UPDATE_ROLLBACK_FAILED":
        skipped = f" --resources-to-skip {' '.join(stack.left_behind)}" if stack.left_behind else ""
        command = f"aws cloudformation continue-update-rollback --stack-name {stack.name}{skipped}"
        by_fix = " with `seatrial doctor --fix`" if stack.is_ours else ""
        return f"Fix the cause, then continue the rollback{by_fix}: {command}."
    mend = _MEND.get(stack.status)
    return mend if mend is None or mend.endswith(".") else mend_by_fix(mend, examination)


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


def _target(target: TargetFacts, examination: Examination) -> Iterator[Finding]:
    part = f"scalable target {target.resource_id}"
    if is_orphan(target, examination):
        yield diagnosis(
            rule="SEA764",
            part=part,
            cause="The component that it scales does not exist.",
            mend=mend_by_fix("Deregister it", examination, f"target {target.resource_id}"),
            source="public issue trackers: stable-diffusion-aws-extension #161, PR #180",
        )
        return
    if is_left_suspended(target, examination):
        yield diagnosis(
            rule="SEA763",
            part=part,
            cause="Scaling is suspended, and no update is at work that would resume it.",
            mend=f"{_resumption(target, examination)} Leave it where it was suspended on purpose.",
            seen=", ".join(target.suspended),
        )
    if target.failure:
        known = [*by_symptom(part, (target.failure,))]
        yield from known
        if not known:
            mend = "Fix the cause; the next activity follows by itself."
            yield diagnosis(rule="SEA768", part=part, cause="The last activity failed.", mend=mend, seen=target.failure)


def _resumption(target: TargetFacts, examination: Examination) -> str:
    return mend_by_fix("Resume it", examination, f"resume {target.resource_id}")


def _at_zero(component: LiveComponent, examination: Examination) -> Iterator[Finding]:
    """Yield why nothing adds a copy to none: target tracking never does, because there are no requests to count."""
    target = next((each for each in examination.targets if each.component == component.name), None)
    if target is not None and (target.least > 0 or target.wakes) and _OUT not in target.suspended:
        return
    if target is None:
        cause, mend = "No copy is in service, and nothing scales the component.", "Deploy it with at least one copy."
    elif _OUT in target.suspended:
        cause, mend = "No copy is in service, and scale-out is suspended.", _resumption(target, examination)
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
