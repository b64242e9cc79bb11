"""Settings of a team's new repository, and what follows from them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal
from urllib.parse import urlsplit

from seatrial.specs import shapes
from seatrial.specs.environment import partition_of
from seatrial.specs.pipeline import account_problems
from seatrial_base.errors import SpecError
from seatrial_base.findings import Finding, Place
from seatrial_base.secrets import holds_credential

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
# What a value of an address may be that no file holds: `${TOKEN}`, which pip reads from the environment.
VARIABLE: Final = re.compile(r"\$\{([A-Z][A-Z0-9_]*)\}")
_PAGE: Final = r"https?://[^\s?#'\";]+"
_GIT: Final = re.compile(r"((?:https|ssh|file)://(?:[^@/\s]+@)?[^@\s#]+)(?:@([^@\s#:]+))?")
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
        return f"arn:{self.partition}:iam::{self.account}:role/seatrial-{self.name}-deploy"

    @property
    def read_role_arn(self) -> str:
        """The role that reads what is live, made by `bootstrap/roles.yaml`."""
        return f"arn:{self.partition}:iam::{self.account}:role/seatrial-{self.name}-read"

    @property
    def check_job(self) -> str:
        """The job that compares it with its locks."""
        return f"check-{self.name}"

    @property
    def partition(self) -> str:
        """The partition of AWS that its Region belongs to."""
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
        index_url: The index that has every package, Seatrial's and those of PyPI; None for PyPI.
        find_links: A page with Seatrial's wheels, or their folder, relative to the repository.
        git: A repository of Seatrial's source, as `URL@REF`; without a reference, the tag of this release.
    """

    name: str
    ci: Ci
    targets: tuple[TargetEnvironment, ...]
    source: str
    owner: str
    connection_arn: str | None = None
    preset: Preset | None = None
    index_url: str | None = None
    find_links: str | None = None
    git: str | None = None

    @property
    def variables(self) -> tuple[str, ...]:
        """The environment variables that an installation reads, such as an index's token."""
        every = VARIABLE.findall(f"{self.index_url} {self.find_links} {self.git}")
        return tuple(dict.fromkeys(every))

    @property
    def revision(self) -> tuple[str, str | None] | None:
        """Address and reference of the source; None where no git address is given."""
        match = _GIT.fullmatch(self.git or "")
        return (match[1], match[2]) if match else None

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
            if not re.fullmatch(shapes.REGION, target.region):
                hint = "as in --region us-east-1, or dev=111111111111@us-east-1"
                yield _wrong("--region", f"{target.name}: {target.region!r} is no AWS Region", hint)
        yield from self._address_problems()
        if self.ci == "codepipeline" and len({target.partition for target in self.targets}) > 1:
            hint = "give each partition a repository of its own"
            yield _wrong("--account", "one pipeline can't deploy to several partitions of AWS", hint)
        if self.ci == "codepipeline" and not re.fullmatch(shapes.CONNECTION_ARN, self.connection_arn or ""):
            hint = "make one in the console (Developer Tools, Settings, Connections) and give its ARN"
            yield _wrong("--connection-arn", "CodePipeline needs a connection to the repository's host", hint)

    def _address_problems(self) -> Iterator[Finding]:
        """Yield what is wrong with where Seatrial is installed from; none is repeated, as it may hold a secret."""
        given = {"--index-url": self.index_url, "--find-links": self.find_links, "--git": self.git}
        chosen = [option for option, address in given.items() if address is not None]
        if len(chosen) > 1:
            yield _wrong(chosen[-1], f"{' and '.join(chosen)} exclude each other", "give one of them")
        for option, address in given.items():
            if address is None:
                continue
            if _has_secret(address):
                hint = "name a variable that pip reads, https://USER:${TOKEN}@…, or use ~/.netrc"
                yield _wrong(option, "the address holds credentials", hint)
            elif option == "--git" and self.revision is None:
                yield _wrong(option, "it is no address of a repository", "as in https://github.com/OWNER/NAME.git@TAG")
            elif option == "--index-url" and not re.fullmatch(_PAGE, address):
                hint = "as in https://pypi.example.org/simple, with nothing behind ? or #, which may hold a secret"
                yield _wrong(option, "it is no address of an index", hint)
            elif option == "--find-links" and not re.fullmatch(_PAGE if "://" in address else r"[^\s'\"$;]+", address):
                hint = "a folder without spaces, or a page as https://wheels.example.org/seatrial/"
                yield _wrong(option, "it is neither a folder nor the address of a page", hint)


def _has_secret(address: str) -> bool:
    user, at, _ = urlsplit(address).netloc.rpartition("@") if "://" in address else ("", "", "")
    _, colon, password = user.partition(":")
    # The user of ssh is a name; that of https alone may be a token.
    may_be_token = password if colon else "" if address.startswith("ssh:") else user
    is_variable = VARIABLE.fullmatch(may_be_token) is not None
    return bool(at and may_be_token and not is_variable) or holds_credential(VARIABLE.sub("", address))


def parse_accounts(given: list[str]) -> dict[str, str]:
    """Return the accounts by environment, in the order of promotion; `ACCOUNT@REGION` has its own Region.

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
    places = {name: text.partition("@") for name, text in accounts.items()}
    return tuple(
        TargetEnvironment(
            name=name,
            account=places[name][0],
            region=places[name][2] or region,
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
    names = {one.name for one in kept}  # what is promoted from the embedded AWS has no job before it
    sources = {one.name: one.promotion.source for one in kept if one.promotion.source in names}
    return tuple(
        TargetEnvironment(one.name, one.account or "", one.region, sources.get(one.name), one.promotion.approval)
        for one in kept
    )


def _wrong(option: str, message: str, hint: str) -> Finding:
    return Finding("SEA482", Place.at(option), message, hint)
