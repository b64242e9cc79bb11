"""What a drift check found: per endpoint, and for the environment as a whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Severity = Literal["high", "medium", "low"]
SEVERITIES: Final[tuple[Severity, ...]] = ("high", "medium", "low")


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftFinding:
    """One thing that is not as it should be.

    Attributes:
        rule: The rule that it breaks.
        severity: `high`: users or the next deployment are affected; `medium`: the endpoint is not the locked one;
            `low`: nothing is wrong yet.
        what: What was compared, or what is wrong.
        expected: What the lock, or the deployment, says; empty where there is nothing to compare.
        live: What was found.
        hint: What to do.
    """

    rule: str
    severity: Severity
    what: str
    expected: str = ""
    live: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointDrift:
    """What was found of one endpoint.

    Attributes:
        endpoint: Its name in the spec.
        stack_name: Its stack.
        status: What CloudFormation says of the stack; empty where it could not be asked.
        plan_digest: The locked plan; empty where the lock can't be read.
        deployed_digest: The deployed plan; empty where it is unknown.
        trial: What the last trial found, and when; empty where it is unknown.
        trial_verdict: Its verdict alone; `error` where it could not be made, empty where it is unknown.
        trial_date: The day on which it ended, in UTC; empty where it is unknown.
        scheduled_trial: The same as `trial` of the last scheduled trial.
        findings: What is not as it should be.
        not_asked: What could not be asked, with the reason; no finding.
    """

    endpoint: str
    stack_name: str
    status: str = ""
    plan_digest: str = ""
    deployed_digest: str = ""
    trial: str = ""
    trial_verdict: str = ""
    trial_date: str = ""
    scheduled_trial: str = ""
    findings: tuple[DriftFinding, ...] = ()
    not_asked: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftReport:
    """What was found in one environment.

    Attributes:
        environment: Its name.
        endpoints: Every endpoint that has a lock there, by name.
        findings: Of the environment as a whole.
        not_asked: What could not be asked.
    """

    environment: str
    endpoints: tuple[EndpointDrift, ...]
    findings: tuple[DriftFinding, ...] = ()
    not_asked: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        """Findings of all endpoints and of the environment."""
        return len(self.findings) + sum(len(each.findings) for each in self.endpoints)
