"""Settings of a team's new repository, and what follows from them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from seatrial.specs import shapes
from seatrial.specs.environment import partition_of
from seatrial.specs.pipeline import account_problems
from seatrial_base.errors import SpecError
from seatrial_base.findings import Finding, Place

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from seatrial.specs.environment import EnvironmentSpec
    from seatrial_base.catalog.presets import Preset

Ci = Literal["github", "gitlab", "codepipeline", "none"]
Approval = Literal["manual", "none"]

EXAMPLE_ACCOUNTS: Final = {"dev": "111111111111", "prod": "222222222222"}
"""The environments of a team that names none; AWS's documentation uses such accounts."""
EXAMPLE_HOST_OWNER: Final = "example"
_OWNER: Final = re.compile(r"@[A-Za-z0-9._/-]+|[^@\s]+@[^@\s]+")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True, slots=True)
class TargetEnvironment:
    """An environment that the workflows deploy to.

    Attributes:
        source: The environment before it; None for the first.
        approval: Whether a person approves each deployment to it.
    """

    name: str
    account: str
    region: str
    source: str | None
    approval: Approval

    @property
    def deploy_role_arn(self) -> str:
        """The role that deploys, made by `bootstrap/roles.yaml`."""
        return f"arn:{self._partition}:iam::{self.account}:role/seatrial-{self.name}-deploy"

    @property
    def read_role_arn(self) -> str:
        """The role that reads what is live, made by `bootstrap/roles.yaml`."""
        return f"arn:{self._partition}:iam::{self.account}:role/seatrial-{self.name}-read"

    @property
    def check_job(self) -> str:
        """The job that compares it with its locks."""
        return f"check-{self.name}"

    @property
    def _partition(self) -> str:
        return partition_of(self.region)


@dataclass(frozen=True, slots=True)
class Answers:
    """What a team answers.

    Attributes:
        targets: The environments, each after its source.
        source: The repository on its host, as `OWNER/NAME`.
        owner: Who owns the environments and workflows, as in CODEOWNERS.
        connection_arn: The connection of CodePipeline to the host; None for another `ci`.
        preset: The preset that the example endpoint is written from; None for the example of the templates.
    """

    name: str
    ci: Ci
    targets: tuple[TargetEnvironment, ...]
    source: str
    owner: str
    connection_arn: str | None = None
    preset: Preset | None = None

    def check(self) -> None:
        """Refuse what no repository can be written with.

        Raises:
            SpecError: SEA482, with every wrong answer.
        """
        problems = list(self._problems())
        if problems:
            raise SpecError(problems)

    def _problems(self) -> Iterator[Finding]:
        if not _NAME.fullmatch(self.name):
            yield _wrong("--name", f"{self.name!r} is no repository name", "letters, digits, dots and hyphens")
        if not re.fullmatch(shapes.REPOSITORY, self.source):
            yield _wrong("--repository", f"{self.source!r} is no repository", "write it as OWNER/NAME")
        if not _OWNER.fullmatch(self.owner):
            yield _wrong("--owner", f"{self.owner!r} is no code owner", "write it as @OWNER/TEAM, @USER or an address")
        for target in self.targets:
            if not re.fullmatch(shapes.ENVIRONMENT_NAME, target.name):
                yield _wrong("--account", f"{target.name!r} is no name of an environment", "as in dev=111111111111")
            if not re.fullmatch(shapes.ACCOUNT, target.account):
                message = f"{target.name}: {target.account!r} is no AWS account"
                yield _wrong("--account", message, "twelve digits, as in dev=111111111111")
        if self.ci == "codepipeline" and not re.fullmatch(shapes.CONNECTION_ARN, self.connection_arn or ""):
            hint = "make one in the console (Developer Tools, Settings, Connections) and give its ARN"
            yield _wrong("--connection-arn", "CodePipeline needs a connection to the repository's host", hint)


def parse_accounts(given: list[str]) -> dict[str, str]:
    """Return the accounts by environment, in the order of promotion.

    Raises:
        SpecError: SEA482, with every text of another form and every environment that is named twice.
    """
    pairs = [text.partition("=") for text in given]
    names = [name for name, _, _ in pairs]
    problems = [
        *(
            _wrong("--account", f"{name}{equals}{account}", "write it as ENV=ACCOUNT, as in dev=111111111111")
            for name, equals, account in pairs
            if not (name and equals and account)
        ),
        *(
            _wrong("--account", f"{name} is named twice", "name each environment once")
            for name in dict.fromkeys(names)
            if names.count(name) > 1
        ),
    ]
    if problems:
        raise SpecError(problems)
    return {name: account for name, _, account in pairs} or dict(EXAMPLE_ACCOUNTS)


def new_targets(accounts: dict[str, str], region: str) -> tuple[TargetEnvironment, ...]:
    """Return new environments: each is promoted from the one before it, and a person approves the last."""
    names = list(accounts)
    return tuple(
        TargetEnvironment(
            name=name,
            account=accounts[name],
            region=region,
            source=names[at - 1] if at else None,
            approval="manual" if at and at == len(names) - 1 else "none",
        )
        for at, name in enumerate(names)
    )


def targets_of(order: tuple[EnvironmentSpec, ...], environments: Path) -> tuple[TargetEnvironment, ...]:
    """Return the environments of a repository, but the embedded AWS.

    Raises:
        SpecError: SEA483, an environment without an account: the workflows can't name its roles.
    """
    kept = tuple(environment for environment in order if not environment.is_embedded)
    if problems := list(account_problems(kept, environments)):
        raise SpecError(problems)
    return tuple(
        TargetEnvironment(one.name, one.account or "", one.region, one.promotion.source, one.promotion.approval)
        for one in kept
    )


def _wrong(option: str, message: str, hint: str) -> Finding:
    return Finding("SEA482", Place.at(option), message, hint)
