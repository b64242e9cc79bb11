"""The outcome of `seatrial deploy`: the account before and after it, and one line that tells the truth of both."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from seatrial.account.live_endpoint import read_endpoint
from seatrial.documents.live import LiveStack
from seatrial.operations.doctor.gather import live_components, read_stack
from seatrial.operations.doctor.view import status_words
from seatrial.operations.drift.trials import LastTrial, deployed_trial
from seatrial_base.errors import BenchError
from seatrial_base.secrets import redacted
from seatrial_base.text import printable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mypy_boto3_s3 import S3Client

    from seatrial.account.reader import AwsReader
    from seatrial.deployment.document import Deployment
    from seatrial.documents.live import LiveComponent, LiveEndpoint
    from seatrial.operations.doctor.facts import StackFacts


class OutcomeRow(NamedTuple):
    """Exit code, first words of the line, meaning for the docs, and the next command (`seatrial …`) where one helps."""

    code: int
    head: str
    meaning: str
    next: str = ""


class OutcomeKind(Enum):
    """Every outcome: 0 only where the new configuration serves. `docs/how-to/deploy.md` has the same table."""

    PASSED = OutcomeRow(0, "DEPLOYED", "the new configuration serves, and its trial passed")
    UNCHANGED = OutcomeRow(0, "NO CHANGES", "it served before; the verdict is that of its earlier trial, with its time")
    VERIFIED = OutcomeRow(0, "DEPLOYED", "it serves; single requests verified it (`trial.update: verify_only`)")
    UNTRIED = OutcomeRow(0, "DEPLOYED", "it serves, deployed without a trial (`trial.mode: off`)")
    TRIAL_FAILED = OutcomeRow(10, "FAILED", "its trial failed, and it was rolled back", "plan --explain")
    TRIAL_INCONCLUSIVE = OutcomeRow(11, "FAILED", "its trial was inconclusive, and it was rolled back", "deploy")
    TRIAL_ERROR = OutcomeRow(12, "FAILED", "its trial could not run, and it was rolled back", "doctor")
    ALARM = OutcomeRow(13, "FAILED", "an alarm rolled it back", "doctor")
    ROLLED_BACK = OutcomeRow(14, "FAILED", "an error of CloudFormation rolled it back", "doctor")
    ROLLBACK_FAILED = OutcomeRow(15, "ROLLBACK FAILED", "the rollback failed", "doctor --fix")
    STACK_FAILED = OutcomeRow(16, "FAILED", "the stack failed, and was not rolled back", "doctor")
    KEPT_FAILED = OutcomeRow(20, "TRIAL FAILED", "it serves though its trial failed (`trial.mode: report`)", "plan")
    KEPT_INCONCLUSIVE = OutcomeRow(21, "TRIAL INCONCLUSIVE", "it serves, and its trial proved nothing", "trial start")
    NOT_TRIED = OutcomeRow(22, "NOT TRIED", "it serves, and no result of a trial of it is there", "trial start")
    COMPONENT = OutcomeRow(30, "NOT SERVING", "a component is `Failed`, without a copy, or not there", "doctor")
    ENDPOINT = OutcomeRow(31, "NOT SERVING", "the endpoint is `Failed`, `OutOfService` or not there", "doctor")
    BUSY = OutcomeRow(40, "NOT STARTED", "the stack was in progress before; deploy again once it is at rest", "doctor")
    UNFINISHED = OutcomeRow(41, "NOT FINISHED", "the CDK CLI ended, and the stack is still in progress", "doctor")
    NOT_DEPLOYED = OutcomeRow(42, "NOT DEPLOYED", "the stack did not change, or has another plan", "diff")
    UNKNOWN = OutcomeRow(43, "UNKNOWN", "the account could not be read", "doctor")
    INTERRUPTED = OutcomeRow(130, "INTERRUPTED", "Ctrl-C; what CloudFormation has begun goes on", "doctor")


_UP: Final = ("InService", "Updating", "SystemUpdating")
_WORDS: Final = {
    "failed to run": OutcomeKind.TRIAL_ERROR,
    "failed": OutcomeKind.TRIAL_FAILED,
    "was inconclusive": OutcomeKind.TRIAL_INCONCLUSIVE,
}
_REASON: Final = re.compile(
    rf"The sea trial of \S+ ({'|'.join(_WORDS)}): (.*?)(?:; what serves was not changed)? \(result: (\S+)\)"
)
"""What the trial service answers CloudFormation (`seatrial_cdk.trials.runtime.answer`), which a test compares."""
_ALARM: Final = re.compile(r"(?<![\w:./-])alarms?(?![\w:./-]*\w)", re.IGNORECASE)
_RAISED: Final = re.compile(r"\b(?:in|into|to)\s+(?:the\s+)?ALARM\b|\b(?i:breach|trip|trigger|fired|raised|went off)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """What the account has of a deployment at one moment: all components but candidates; the trial of the outputs."""

    name: str
    stack: StackFacts
    endpoint: LiveEndpoint
    trial: LastTrial
    components: tuple[LiveComponent, ...] = ()
    unread: tuple[str, ...] = ()

    @property
    def down(self) -> tuple[str, ...]:
        """The components that should serve and don't, in words; one that is scaled to zero should not."""
        own = self.stack.outputs.get("InferenceComponentName", "")
        absent = () if own in {"", *(each.name for each in self.components)} else (f"{own} does not exist",)
        some = [each for each in self.components if each.status == "Failed" or (each.desired and not each.copies)]
        return (*absent, *map(_component, some))

    @property
    def state(self) -> str:
        """Stack, endpoint and components with their statuses, in words."""
        stack = f"stack {status_words(self.stack.existence, self.stack.status)}"
        endpoint = f"endpoint {self.name} {status_words(self.endpoint.existence, self.endpoint.status)}"
        return "; ".join([stack, endpoint, *map(_component, self.components)])

    @property
    def serving(self) -> str:
        """What serves, in words."""
        if self.endpoint.existence == "absent":
            return "nothing serves"
        if self.endpoint.status not in _UP:
            return f"endpoint {self.name}: {status_words(self.endpoint.existence, self.endpoint.status)}"
        if self.down:
            return f"on {self.name} {', '.join(self.down)}"
        return f"{self.name} serves plan {self.stack.outputs.get('PlanDigest', 'unknown')} ({self.endpoint.config})"


def _component(component: LiveComponent) -> str:
    return f"component {component.name} {component.status} ({component.copies} of {component.desired} copies)"


def take_snapshot(deployment: Deployment, reader: AwsReader, s3: S3Client) -> Snapshot:
    """Read stack, endpoint, every inference component and the trial of a deployment; what can't be read is kept."""
    stack = read_stack(deployment.stack_name, reader)
    name = stack.outputs.get("EndpointName", deployment.endpoint_name)
    try:
        trial = deployed_trial(LiveStack(stack.name, stack.status, stack.outputs), s3)
    except BenchError as error:
        trial = LastTrial(error=error.problems[0].message)
    return Snapshot(
        name=name,
        stack=stack,
        endpoint=read_endpoint(name, reader, with_tags=False),
        components=tuple(each for each in live_components(name, reader) if not each.is_candidate),
        trial=trial,
        unread=tuple(reader.unreadable),
    )


@dataclass(frozen=True, slots=True)
class DeployResult:
    """What became of a deployment: what happened with the verdict, what serves, and the address of the report."""

    kind: OutcomeKind
    because: str
    serving: str = ""
    report: str = ""

    def line(self, spec: Path, environment: str) -> str:
        """Return the one line; its next command has the path of the spec, which every command takes."""
        row = self.kind.value
        report, command = self.report and f"report: {self.report}", row.next and f"next: seatrial {row.next}"
        following = command and f"{command} {spec.as_posix()} -e {environment}"
        words = "; ".join(filter(None, (f"{row.head}: {self.because}", self.serving, report, following)))
        return " ".join(printable(redacted(words)).split())


def outcomes_of(before: Snapshot, after: Snapshot, deployment: Deployment, error: str = "") -> Iterator[DeployResult]:
    """Yield what holds, from the stack to the verdict: the first is the outcome; an `error` of cdk tells the least."""
    stack, serving = after.stack, after.serving
    status = f"stack {stack.name} is {stack.status}"
    # The first failure is the cause: the others follow from it.
    failures = (f"{each.logical_id} ({each.resource_type}): {each.reason or each.status}" for each in stack.failures)
    cause = next(failures, stack.reason or "CloudFormation gives no reason")
    # Another last event shows that an operation was at work: an old failure explains nothing of this deployment.
    has_moved = stack.last_event != before.stack.last_event
    # What was not read before can't be compared, and would turn an old failure into that of this deployment.
    if unread := (*before.unread, *after.unread):
        yield DeployResult(OutcomeKind.UNKNOWN, f"could not be read: {'; '.join(dict.fromkeys(unread))}")
    if stack.is_at_work and "CLEANUP" not in stack.status and stack.status != "REVIEW_IN_PROGRESS":
        yield DeployResult(OutcomeKind.UNFINISHED, status, serving)
    if stack.status.endswith("ROLLBACK_FAILED"):
        yield DeployResult(OutcomeKind.ROLLBACK_FAILED, f"{status}: {cause}", serving)
    if has_moved and "ROLLBACK_COMPLETE" in stack.status:
        yield rollback_of(cause, serving)
    if has_moved and stack.status.endswith("_FAILED"):
        yield DeployResult(OutcomeKind.STACK_FAILED, f"{status}: {cause}", serving)
    if not has_moved and error:
        yield DeployResult(OutcomeKind.NOT_DEPLOYED, error, serving)
    if (plan := stack.outputs.get("PlanDigest")) != deployment.plan.digest:
        because = f"stack {stack.name} has plan {plan or '(none)'}, and {deployment.plan.digest} is locked"
        yield DeployResult(OutcomeKind.NOT_DEPLOYED, because, serving)
    if after.endpoint.status not in _UP:
        yield DeployResult(OutcomeKind.ENDPOINT, after.endpoint.reason or status, serving)
    if after.down:
        because = status if has_moved else "no changes, and a deployment without any does not start it again"
        yield DeployResult(OutcomeKind.COMPONENT, because, serving)
    yield _verdict(after, deployment.plan.digest, has_moved=has_moved)


def outcome_before(before: Snapshot) -> DeployResult | None:
    """Return why a deployment must not start; `None` where it may, as with a change set that nobody executed."""
    stack = before.stack
    if not stack.is_at_work or stack.status == "REVIEW_IN_PROGRESS":
        return None
    return DeployResult(OutcomeKind.BUSY, f"stack {stack.name} is {stack.status} by another operation", before.serving)


def rollback_of(reason: str, serving: str) -> DeployResult:
    """Return why CloudFormation went back, by the first failure."""
    if match := _REASON.search(" ".join(reason.split())):
        kind = _WORDS[match[1]]
        # A trial that could not run has a document with its error, and no report.
        report = "" if kind is OutcomeKind.TRIAL_ERROR else f"{match[3].removesuffix('.json')}.md"
        return DeployResult(kind, f"{match[2]}; rolled back", serving, report)
    # An alarm that could not be made or read is none that was raised; nor is one in the name of a thing.
    words = reason.partition(": ")[2]
    is_other = "(AWS::CloudWatch::" in reason or "not authorized" in words.lower()
    is_raised = not is_other and _ALARM.search(words) and _RAISED.search(words)
    return DeployResult(OutcomeKind.ALARM if is_raised else OutcomeKind.ROLLED_BACK, f"{reason}; rolled back", serving)


def _verdict(after: Snapshot, plan: str, *, has_moved: bool) -> DeployResult:
    """Return the outcome of a configuration that serves, by the trial of it and of no other, with its time."""
    outputs, serving, result = after.stack.outputs, after.serving, after.trial.result
    if "Verdict" not in outputs:
        kind = OutcomeKind.UNTRIED if has_moved else OutcomeKind.UNCHANGED
        return DeployResult(kind, "deployed without a trial", serving)
    if result is None:
        return DeployResult(OutcomeKind.NOT_TRIED, after.trial.error or "no trial of it is known", serving)
    deployed, proven = (outputs.get("EndpointConfigName"), outputs.get("ModelName")), result.request.expected
    names = deployed if proven is None else (proven.endpoint_config_name, proven.model_name)
    if (result.request.plan_digest, names) != (plan, deployed):
        because = f"the stack names the trial of another configuration, of plan {result.request.plan_digest}"
        return DeployResult(OutcomeKind.NOT_TRIED, because, serving)
    passed = OutcomeKind.VERIFIED if result.request.manner == "verify" else OutcomeKind.PASSED
    kinds = {"fail": OutcomeKind.KEPT_FAILED, "inconclusive": OutcomeKind.KEPT_INCONCLUSIVE}
    kind = kinds.get(result.verdict.status, passed if has_moved else OutcomeKind.UNCHANGED)
    # A verification answers with what was measured before, so that even an update may have the verdict of an old trial.
    because = f"{result.verdict.status} in its trial of {result.started_at[:16]} UTC: {result.verdict.because}"
    return DeployResult(kind, because, serving, outputs.get("TrialReportUri", ""))
