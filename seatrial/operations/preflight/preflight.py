"""All checks of some deployments in one environment, and how they read."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from seatrial.deployment.aws_failures import aws_failures
from seatrial.operations.deployed import check_account
from seatrial.operations.preflight.instances import instance_checks, needs_of
from seatrial.operations.preflight.parts import part_checks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial.deployment.document import Deployment
    from seatrial.operations.preflight.check import AccountCheck, Status
    from seatrial.operations.preflight.clients import AccountClients
    from seatrial.specs.environment import EnvironmentSpec

STATUSES: tuple[Status, ...] = ("ok", "problem", "unknown")
SCHEMA = "1"


def preflight(
    deployments: tuple[Deployment, ...], environment: EnvironmentSpec, clients: AccountClients
) -> tuple[AccountCheck, ...]:
    """Ask the account everything that the deployments need.

    Args:
        deployments: What is to be deployed, all of one environment.
        environment: The environment.
        clients: Clients of its account in its region.

    Raises:
        BenchError: As `aws_failures`, when not even the caller's identity is answered: without it nothing can be asked.
        SpecError: SEA455 when the credentials belong to another account.
    """
    with aws_failures(environment.name):
        clients.identity.get_caller_identity()
    check_account(environment, clients.identity)
    return (
        *instance_checks(needs_of(deployments), environment, clients),
        *part_checks(deployments, environment, clients),
    )


def as_lines(checks: tuple[AccountCheck, ...]) -> Iterator[str]:
    """Yield the checks as a table: what was asked, what came of it, and how a problem is mended."""
    words = {"ok": "ok", "problem": "problem", "unknown": "could not be asked"}
    widths = max(len(words[check.status]) for check in checks)
    for check in checks:
        rule = f"{check.rule}: " if check.rule else ""
        yield f"{words[check.status]:<{widths}}  {check.subject}: {rule}{check.found}"
        if check.hint:
            yield f"{'':<{widths}}    hint: {check.hint}"
    numbers = Counter(check.status for check in checks)
    yield ""
    yield f"{numbers['ok']} ok, {numbers['problem']} with a problem, {numbers['unknown']} could not be asked"


def as_document(checks: tuple[AccountCheck, ...], environment: EnvironmentSpec) -> dict[str, object]:
    """Return the checks as a document for programs."""
    numbers = Counter(check.status for check in checks)
    return {
        "schema_version": SCHEMA,
        "environment": environment.name,
        "region": environment.region,
        "checks": [
            {
                "subject": check.subject,
                "status": check.status,
                "found": check.found,
                "rule": check.rule,
                "hint": check.hint,
            }
            for check in checks
        ],
        "counts": {status: numbers[status] for status in STATUSES},
    }
