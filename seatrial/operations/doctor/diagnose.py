"""Diagnoses of an examined endpoint: the causes first, then what only follows from them.

Of a refusal to load: by which row of `engine_limits.json`, and what would start in its place.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
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
from seatrial.operations.doctor.steps import mend_by_fix
from seatrial_base.catalog.engine_limits import loader_of, rows_in, start_refusals
from seatrial_base.catalog.instances import find_instance
from seatrial_base.catalog.symptoms import find_symptom, last_error
from seatrial_base.findings import Finding, Place, is_wrong
from seatrial_base.tags import ENVIRONMENT_TAG, STACK_TAG
from seatrial_lint.lint.checks.service import LOADERS, driver_gap, start_of, ways_to_start
from seatrial_lint.lint.lint import Given, lint_sources
from seatrial_lint.lint.rules import look_at
from seatrial_lint.lint.source import ConfigSource, SourceEntry
from seatrial_lint.lint.target import guess
from seatrial_load.aws.container_metrics import causes_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from seatrial.documents.live import LiveComponent
    from seatrial.operations.doctor.facts import ContainerFacts, Examination, ResourceState, TargetFacts
    from seatrial_base.catalog.engine_limits import Start
    from seatrial_base.catalog.instances import Instance
    from seatrial_load.documents.container_metrics import CauseKind


_IS: Final = r"""['"]?(?:\s*[=:]\s*|\s+)['"]?"""
_WRITTEN: Final = (
    (rf"\bmodel(?:_path|_id|_tag)?{_IS}([A-Za-z0-9][\w.-]*/[\w.-]+)", "SM_VLLM_MODEL SM_SGLANG_MODEL_PATH HF_MODEL_ID"),
    (
        rf"\b(?:tensor[ _-]parallel[ _-]size|tp[_-]size|num[_-]shard){_IS}(?:Some)?\(?(\d{{1,4}})",
        "SM_VLLM_TENSOR_PARALLEL_SIZE SM_SGLANG_TP_SIZE SM_NUM_GPUS",
    ),
    (rf"(?i)enable[_-]expert[_-]parallel{_IS}(true)", "SM_VLLM_ENABLE_EXPERT_PARALLEL OPTION_ENABLE_EXPERT_PARALLEL"),
    (rf"\bep[_-]size{_IS}(\d{{1,4}})", "SM_SGLANG_EP_SIZE"),
    (r"\bdtype['\"]?\s*[=:]\s*['\"]?(?:torch\.)?(bfloat16|float16)", "SM_VLLM_DTYPE SM_SGLANG_DTYPE"),
)
"""How engines write their arguments into their logs, and the variables of which a container makes these."""
_OF_DEGREE: Final = ("experts", "rows", "heads")


@dataclass(frozen=True, slots=True)
class RefusedStart:
    """A container that failed; `None` for what is not known of engine, start and instance."""

    engine: str | None = None
    case: Start | None = None
    instance: Instance | None = None

    def way_out(self, *, is_refused: bool) -> str:
        """Return in words what would start in its place; empty where the degree is not what matters, or unknown."""
        if self.case is None or self.instance is None or self.case.architecture is None:
            return ""
        degrees, whole = ways_to_start(self.case, self.instance)
        fits = [*filter(None, (degrees, "expert parallelism (enable_expert_parallel)" if whole else ""))]
        weights = f"{self.case.architecture.id} ({self.case.quantization or '16 bits'})"
        on = f"{weights} on {self.instance.instance_type}"
        if fits:
            return f"{on} starts with {' or with '.join(fits)}."
        return f"No degree is known at which {on} starts." if is_refused else ""


def of_variables(
    image: str, environment: Mapping[str, str], instance_type: str, accelerators: float | None = None
) -> RefusedStart:
    """Return what a container was that failed; `accelerators`: of a copy of a component, `None` for the instance's."""
    known = {"image": image, "instance_type": instance_type, "accelerators": f"{accelerators or 0:.0f}"}
    facts = {name: SourceEntry(name, value, 1, "env") for name, value in known.items()}
    if accelerators is None:
        del facts["accelerators"]
    variables = tuple(SourceEntry(name, value, 1, "env") for name, value in environment.items())
    source = ConfigSource("the container", "model definition", variables, facts, is_partial=True)
    # The image alone: variables say nothing of an engine that it does not have.
    target, instance = guess(replace(source, entries=())), find_instance(instance_type)
    loader = LOADERS.get(target.dialect) if target else None
    if instance and accelerators:
        instance = replace(instance, accelerator_count=int(accelerators))
    case = start_of(look_at(source, guess(source), facts)) if loader else None
    return RefusedStart(loader_of(loader, None)[0] if loader else None, case, instance)


def of_log(lines: Iterable[str], image: str, instance_type: str | None) -> RefusedStart:
    """Return what a log tells of a container that failed: its engine wrote its arguments."""
    text = "\n".join(lines)
    matches = ((re.search(pattern, text), names) for pattern, names in _WRITTEN)
    variables = {name: match[1] for match, names in matches if match for name in names.split()}
    return of_variables(image, variables, instance_type or "")


def with_row(finding: Finding, line: str, refused: RefusedStart) -> Finding:
    """Return a diagnosis with the row by which the engine refused, and what would start; as it is without a row."""
    rows = rows_in(line, refused.engine)
    if not rows:
        return finding
    refusals = start_refusals(refused.case) if refused.case else ()
    # The same row by the engine's own version; where it does not refuse, that of the text.
    same = {each.row: each.source for each in refusals if each.row in rows} or rows
    named = " or ".join(f"{row} ({source})" for row, source in same.items())
    parts = [finding.hint, f"In engine_limits.json: {named}.", *dict.fromkeys(each.because for each in refusals)]
    if any(row.endswith(_OF_DEGREE) for row in rows):
        parts.append(refused.way_out(is_refused=any(each.row in rows for each in refusals)))
    return replace(finding, hint=" ".join(filter(None, parts)))


SILENT_MINUTES = 30
"""A container that starts writes its first line long before; without a driver it never does."""
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


@dataclass(frozen=True, slots=True)
class FailedPart:
    """What is known of a part that failed, or is stuck.

    Attributes:
        status: Empty for a text, which does not tell that something failed at all.
        reasons: SageMaker's, line by line.
        log: Of its container; a text's log has no group.
        gap: Why its instance has no driver for the image, and the AMI that has.
    """

    part: str
    status: str
    reasons: list[str]
    log: LogFacts
    gap: tuple[str, str] | None
    refused: RefusedStart

    @property
    def seen(self) -> str:
        """The first line of the reason; the status without one."""
        return self.reasons[0] if self.reasons else self.status


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
    facts = LogFacts("", "not asked") if log is None else LogFacts("", "found", log)
    source = ConfigSource(
        "the image", "model definition", (), {"image": SourceEntry("image", image, 1, "env")}, is_partial=True
    )
    linted = lint_sources([source] if image else [], Given(instance_type=instance_type)).findings
    refused = of_log((*facts.lines, *reason.splitlines()), image, instance_type) if image else RefusedStart()
    causes = [*_causes(FailedPart("the text", "", reason.splitlines(), facts, gap, refused))]
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
        reasons = component.reason.splitlines()
        failure = FailedPart(part, component.status, reasons, log, _gap(examination), refused)
        at_rest = examination.stack.existence == "found" and not examination.stack.is_at_work
        again = _AGAIN if component.status == "Failed" and at_rest else ""
        yield from (replace(each, hint=f"{each.hint}{again}") for each in _kept(failure, component.reason))
    if component.is_in_transit and minutes > STUCK_MINUTES:
        yield _stuck(part, component.status, minutes, "let the change end, which the service does at its time limits")


def _endpoint(examination: Examination) -> Iterator[Finding]:
    endpoint, part = examination.endpoint, f"endpoint {examination.name}"
    if endpoint.existence != "found":
        return
    minutes = examination.minutes_since(endpoint.changed)
    at_work = endpoint.status in IN_TRANSIT
    statuses = [line for variant in endpoint.variants for line in variant.statuses]
    with_model = [(variant.model, variant.name) for variant in endpoint.variants if variant.model]
    refused = _refused(examination, *with_model[0]) if with_model else RefusedStart()
    reasons = [*endpoint.reason.splitlines(), *statuses]
    failure = FailedPart(part, endpoint.status, reasons, _log_of(examination, ""), _gap(examination), refused)
    if not at_work and (endpoint.status != _IN_SERVICE or endpoint.reason):
        yield from _kept(failure, endpoint.reason, f" {endpoint.config}".rstrip())
    elif at_work and minutes > SILENT_MINUTES and with_model:
        # A variant at work always has a status; only one that tells a cause is a reason.
        yield from _causes(replace(failure, reasons=[each for each in statuses if find_symptom([each])]))
    if at_work and minutes > STUCK_MINUTES:
        yield _stuck(part, endpoint.status, minutes, "wait for its failure")


def _kept(failure: FailedPart, reason: str, configuration: str = "") -> Iterator[Finding]:
    """Yield the causes of a failure; before them, that what serves is what it was before an update."""
    known = [*_causes(failure)]
    # A failed update leaves its reason on what goes on serving: SageMaker rolls back, and the status is InService.
    # The other status is of a rolling update that could not be set back.
    serves = {
        _IN_SERVICE: f"the configuration{configuration} from before it still serves",
        "UpdateRollbackFailed": "so did the way back: a mix of both configurations serves",
    }
    if failure.status in serves and known:
        yield diagnosis(
            rule="SEA636",
            part=failure.part,
            cause=f"Its last update failed, and {serves[failure.status]}. SageMaker's reason: {reason or 'none'}",
            mend=f"{known[0].hint} Then update it again.",
            seen=reason,
            source="public issue trackers: hashicorp/terraform-provider-aws #39099",
        )
        # Without a known cause, there is nothing to say beside it.
        known = [each for each in known if each.rule != "SEA751"]
    yield from known


def _refused(
    examination: Examination, model_name: str, variant_name: str, accelerators: float | None = None
) -> RefusedStart:
    """Return what an engine saw at load; nothing of it where its model or instance type is not known."""
    model = next((each for each in examination.models if each.name == model_name), None)
    variants = examination.endpoint.variants
    # A component that names no variant is on the only one.
    variant = variants[0] if len(variants) == 1 else examination.endpoint.variant(variant_name)
    if model is None or variant is None:
        return RefusedStart()
    return of_variables(model.image, model.environment, variant.instance_type, accelerators)


_UNKNOWN: Final = {
    (True, True): "It is {status}: {reason}",
    (True, False): "It failed, and no reason is given.",
    (False, True): "No known cause has this text: {reason}",
    (False, False): "No known cause has this text.",
}
"""What is said of a failure without a known cause, by whether it has a status, and a reason."""


def _causes(failure: FailedPart) -> Iterator[Finding]:
    """Yield why a part failed: by its reason or log, by the log's last error, by the driver, else the reason itself.

    A reason that says more than that a health check failed is about this failure; the log may be of another one, and
    hold several starts: an error after the cause that it names may be that of the last one.
    """
    part, status, lines = failure.part, failure.status, failure.log.lines
    of_reason, of_log = find_symptom(failure.reasons), find_symptom(lines)
    matches = [match for match in (of_reason, of_log) if match is not None]
    known = next((match for match in matches if not match.symptom.is_general), None)
    error = last_error(lines, after=known) if known in (None, of_log) else ""

    if known is not None:
        yield from (with_row(each, known.line, failure.refused) for each in by_symptom(part, [known.line]))
    if error:
        yield diagnosis(
            rule="SEA751",
            part=part,
            cause=f'The last error in the log of its container is: "{error[:LONGEST_LINE]}"',
            mend="Fix what it names, and deploy again; no known cause has this text.",
            seen=error[:LONGEST_LINE],
        )
    elif known is not None:
        return
    elif failure.gap is not None:
        why, ami = failure.gap
        yield diagnosis(
            rule="SEA754",
            part=part,
            cause=f"{why}.",
            mend=f"Set InferenceAmiVersion to {ami}: plan again with `seatrial plan`, which chooses it.",
            seen=f"{failure.seen}; {'the log names no other cause' if lines else 'no line of a log'}",
            source=_STUCK_SOURCE,
        )
    elif matches:
        for finding in by_symptom(part, [matches[0].line]):
            yield replace(finding, hint=f"{finding.hint} {_next_look(failure.log)}")
    elif failure.reasons or status in ("Failed", ""):
        cause = _UNKNOWN[bool(status), bool(failure.reasons)].format(status=status, reason=failure.seen)
        yield diagnosis(rule="SEA751", part=part, cause=cause, mend=_next_look(failure.log), seen=failure.seen)
    elif failure.log.existence == "absent":
        yield diagnosis(
            rule="SEA754",
            part=part,
            cause=f"No container has written a line for {SILENT_MINUTES} minutes: it does not start at all.",
            mend="Check that InferenceAmiVersion has the driver of the image's CUDA, and that the image can be pulled.",
            seen=f"{status}, and there is no log group",
            source=_STUCK_SOURCE,
        )


def _next_look(log: LogFacts) -> str:
    """Return where to look for a cause that no text tells: at a log only where there is one."""
    if log.existence == "not asked":
        given = "The log of its container tells more: give it with --log."
        return f"Read the log group {log.group}, which was not read here." if log.group else given
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
            mend=f"Wait for its end, or deploy the repair with `-c {ROLLBACK_ALARMS_OFF}`."
            if alarm.rolls_back
            else "Read its description: it names the condition, and the runbook that the environment has.",
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
    if examination.has_locked_plan:
        return None
    if stack.status == "UPDATE_ROLLBACK_FAILED":
        skipped = f" --resources-to-skip {' '.join(stack.left_behind)}" if stack.left_behind else ""
        command = f"aws cloudformation continue-update-rollback --stack-name {stack.name}{skipped}"
        by_fix = ", as this command with `--fix` does" if stack.is_ours else ""
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
