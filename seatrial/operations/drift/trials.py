"""The last trial of an endpoint, and the last one on schedule: verdict and age."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from seatrial.account.trials import fetch_result_text
from seatrial.deployment.evidence import ended_at
from seatrial.operations.drift.report import drift_finding
from seatrial_base.errors import BenchError
from seatrial_load.documents.result import TrialResult

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from mypy_boto3_s3 import S3Client

    from seatrial.deployment.document import Deployment
    from seatrial.documents.live import LiveStack
    from seatrial_base.findings import Finding, Severity

_RULE = "SEA435"


@dataclass(frozen=True, slots=True)
class LastTrial:
    """A trial that has ended.

    Attributes:
        result: Its result; `None` where it ended with an error, or there is none.
        error: Why there is no result; empty where there was no trial.
        text: The result as its service wrote it.
    """

    result: TrialResult | None = None
    error: str = ""
    text: str = ""

    @property
    def verdict(self) -> str:
        """Its verdict; `error` where it could not be made, empty where there was none."""
        if self.result is None:
            return "error" if self.error else ""
        return self.result.verdict.status

    @property
    def date(self) -> str:
        """The day on which it ended, in UTC; empty where it is unknown."""
        return "" if self.result is None else ended_at(self.result).date().isoformat()

    def words(self, now: datetime) -> str:
        """Return its verdict and age; empty where there was none."""
        if self.result is None:
            return f"error: {self.error}" if self.error else ""
        days = (now - ended_at(self.result)) / timedelta(days=1)
        return f"{self.verdict}, {self.date} ({days:.0f} days ago)"


def scheduled_key(endpoint_name: str) -> str:
    """Return the key of the last scheduled trial's document (`trials.runtime.store` writes it)."""
    return f"trials/{endpoint_name}/scheduled/latest.json"


def read_trial(uri: str, s3: S3Client) -> LastTrial:
    """Read a trial's document.

    Raises:
        BenchError: SEA501 when it can't be read; as `aws_failures`.
    """
    try:
        text = fetch_result_text(uri, s3)
        return LastTrial(TrialResult.from_json(text), text=text)
    except BenchError as error:
        # The document is there, of a trial that ended with an error: that is a result, unlike a document that can't
        # be read.
        if error.problems[0].rule == "SEA507":
            return LastTrial(error=error.problems[0].message)
        raise


def deployed_trial(stack: LiveStack, s3: S3Client) -> LastTrial:
    """Read the trial of what is deployed; none where the stack has no result.

    Raises:
        BenchError: As `read_trial`.
    """
    uri = stack.outputs.get("TrialResultUri", "unknown")
    return LastTrial() if uri == "unknown" else read_trial(uri, s3)


def scheduled_trial(deployment: Deployment, stack: LiveStack, s3: S3Client) -> LastTrial:
    """Read the last scheduled trial of an endpoint; none where none was made yet.

    Raises:
        BenchError: As `read_trial`.
    """
    bucket, key = stack.outputs.get("ResultsBucket"), scheduled_key(deployment.endpoint_name)
    if bucket is None:
        return LastTrial()
    try:
        return read_trial(f"s3://{bucket}/{key}", s3)
    except BenchError as error:
        # Before the first scheduled trial there is no document yet.
        if "NoSuchKey" in error.problems[0].message:
            return LastTrial()
        raise


def trial_findings(
    deployment: Deployment, last: LastTrial, scheduled: LastTrial, *, now: datetime, most_days: float
) -> Iterator[Finding]:
    """Yield trials that were not passed, are missing, or, of the scheduled ones, older than `most_days`."""
    yield from _outcome("trial of the deployment", last, "change the spec or the plan, and deploy again")
    hint = "compare both reports; the next scheduled trial, or `seatrial trial start`, shows whether it stays"
    yield from _outcome("scheduled trial", scheduled, hint)
    if deployment.environment.trial_schedule is None or deployment.endpoint.trial.mode == "off":
        return
    age = None if scheduled.result is None else (now - ended_at(scheduled.result)) / timedelta(days=1)
    if age is None and not scheduled.error:
        wait = "wait for the schedule, or run `seatrial trial start`"
        yield _finding("note", "scheduled trial", "", "none yet", wait)
    elif age is not None and age > most_days:
        why = "see the log of the environment's trial service for why it was not made"
        yield _finding("warning", "age of the scheduled trial", f"at most {most_days:g} days", f"{age:.0f} days", why)


def _outcome(what: str, trial: LastTrial, hint: str) -> Iterator[Finding]:
    if trial.error:
        yield _finding("warning", what, "pass", f"error: {trial.error}", hint)
    if trial.result is None:
        return
    verdict, comparison = trial.result.verdict, trial.result.comparison
    if verdict.status != "pass":
        severity: Severity = "error" if verdict.status == "fail" else "warning"
        yield _finding(severity, what, "pass", f"{verdict.status}: {verdict.because}", hint)
    if comparison is not None and comparison.status == "worse":
        yield _finding("warning", f"{what} against the one before", "no regression", comparison.because, hint)


def _finding(severity: Severity, what: str, expected: str, live: str, hint: str) -> Finding:
    return drift_finding(rule=_RULE, severity=severity, what=what, expected=expected, live=live, hint=hint)
