"""All checks of some deployments in one environment, and how they read."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from seatrial.account.clients import check_account
from seatrial.account.reader import aws_failures
from seatrial.operations.preflight.functions import function_checks
from seatrial.operations.preflight.instances import instance_checks, needs_of
from seatrial.operations.preflight.parts import part_checks
from seatrial_base.printer import Judgement

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial.account.clients import AccountClients
    from seatrial.deployment.document import Deployment
    from seatrial.operations.preflight.check import AccountCheck
    from seatrial.specs.environment import EnvironmentSpec
    from seatrial_base.printer import Json

_UNREAD = "could not be asked"


def check_environment(
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
        *function_checks(deployments, environment, clients.functions),
    )


def preflight_lines(checks: tuple[AccountCheck, ...]) -> Iterator[str]:
    """Yield the checks as a table: what was asked, what came of it, and how a problem is mended."""
    width = max(len(_status(check)) for check in checks)
    for check in checks:
        finding = check.finding if check.is_wrong else None
        rule = f"{finding.rule}: " if finding is not None else ""
        yield f"{_status(check):<{width}}  {check.subject}: {rule}{check.answer}"
        if finding is not None and finding.hint:
            yield f"{'':<{width}}    hint: {finding.hint}"
    numbers = Counter(map(_status, checks))
    yield ""
    yield f"{numbers['ok']} ok, {numbers['problem']} with a problem, {numbers[_UNREAD]} could not be asked"


def _status(check: AccountCheck) -> str:
    return "ok" if check.is_ok else "problem" if check.is_wrong else _UNREAD


def preflight_judgement(checks: tuple[AccountCheck, ...], environment: EnvironmentSpec) -> Judgement:
    """Return the checks as what the one printer writes; its facts are all questions with their answers."""
    answers = [{"subject": check.subject, "status": _status(check), "answer": check.answer} for check in checks]
    facts: dict[str, Json] = {"environment": environment.name, "region": environment.region, "checks": answers}
    findings = [check.finding for check in checks if check.finding is not None]
    placed = [replace(each, place=replace(each.place, file=environment.name)) for each in findings]
    return Judgement(command="preflight", findings=placed, facts=facts)
