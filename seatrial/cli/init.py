"""`seatrial init`: a team's repository of endpoints."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from seatrial.repository.answers import Ci, TargetEnvironment


Pipeline = Literal["github", "gitlab", "codepipeline", "none"]


def init_command(  # noqa: PLR0917 (typer calls it by name)
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder to write; made if it isn't there.")],
    ci: Annotated[Pipeline | None, typer.Option("--ci", help="What runs checks and deployments.")] = None,
    name: Annotated[str | None, typer.Option(help="Name of the repository. Default: the folder's.")] = None,
    account: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ENV=ACCOUNT",
            help="An environment and its AWS account; repeat it in the order of promotion. Default: dev and prod.",
        ),
    ] = None,
    region: Annotated[str, typer.Option(help="AWS region of new environments.")] = "us-east-1",
    repository: Annotated[
        str | None, typer.Option(metavar="OWNER/NAME", help="The repository on GitHub, GitLab or another host.")
    ] = None,
    owner: Annotated[
        str | None, typer.Option(metavar="@OWNER/TEAM", help="Who owns all but specs (CODEOWNERS).")
    ] = None,
    connection_arn: Annotated[
        str | None, typer.Option(metavar="ARN", help="CodeConnections connection, for CodePipeline.")
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Preset that the endpoint is written from (seatrial presets list)."),
    ] = None,
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing; take the defaults.")] = False,
    update: Annotated[
        bool, typer.Option("--update", help="Add the files that are absent; every file that is there is kept.")
    ] = False,
) -> None:
    """Write a team's repository: an example endpoint with its lock, environments, Makefile and workflows.

    It asks for what is not given. Nothing is written unless everything can be.
    """
    from seatrial.repository.answers import EXAMPLE_HOST_OWNER, Answers
    from seatrial.repository.write import write_repository

    if update and preset is not None:
        raise typer.BadParameter("can't be combined with --update", param_hint="'--preset'")
    start = None
    if preset is not None:
        from seatrial.specs.presets import preset_named
        from seatrial_base.catalog.presets import PRESETS

        start = preset_named(preset, PRESETS.rows)
    answers = _Answers(yes=yes)
    chosen = _ci(ci, answers)
    called = name or answers.text("Name of the repository", folder.absolute().name)
    source = repository or answers.text("Repository on its host (OWNER/NAME)", f"{EXAMPLE_HOST_OWNER}/{called}")
    written = write_repository(
        folder,
        Answers(
            name=called,
            ci=chosen,
            targets=_targets(folder, account, region, answers),
            source=source,
            owner=owner or answers.text("Owner of environments and workflows", f"@{source.partition('/')[0]}/platform"),
            connection_arn=connection_arn
            or (answers.text("ARN of the connection", "") if chosen == "codepipeline" else None),
            preset=start,
        ),
        update=update,
    )
    for path in written.written:
        typer.echo(f"{(folder / path).as_posix()}: written")
    for path in written.kept:
        typer.echo(f"{(folder / path).as_posix()}: kept, though it differs")
    if not written.written:
        typer.echo(f"{folder.as_posix()}: nothing was absent")
        return
    typer.echo(f"next: cd {folder.as_posix()} && make test", err=True)


class _Answers:
    """Asks for what the command line doesn't give; with `--yes` it takes the defaults."""

    def __init__(self, *, yes: bool) -> None:
        self._yes = yes

    def text(self, question: str, default: str) -> str:
        """Return the answer to a question.

        Raises:
            SpecError: SEA482, there is no terminal.
            Abort: Ctrl-C.
        """
        if self._yes:
            return default
        try:
            return str(typer.prompt(question, default=default, err=True))
        except typer.Abort:
            if sys.stdin.isatty():
                raise
            from seatrial_base.errors import SpecError

            hint = "give the options (seatrial init --help), or take the defaults: --yes"
            raise SpecError.of("SEA482", "there is no terminal to ask at", where=question, hint=hint) from None


def _ci(given: Ci | None, answers: _Answers) -> Ci:
    from typing import get_args

    if given is not None:
        return given
    choices: tuple[Ci, ...] = get_args(Pipeline)
    answer = answers.text(f"What runs checks and deployments ({', '.join(choices)})", choices[0])
    chosen = next((choice for choice in choices if choice == answer.strip().lower()), None)
    if chosen is None:
        raise typer.BadParameter(f"{answer!r} is not one of {', '.join(choices)}", param_hint="'--ci'")
    return chosen


def _targets(folder: Path, given: list[str] | None, region: str, answers: _Answers) -> tuple[TargetEnvironment, ...]:
    """Return the environments of the folder, if it has any, else the new ones."""
    from seatrial.repository.answers import EXAMPLE_ACCOUNTS, new_targets, parse_accounts, targets_of
    from seatrial.specs.pipeline import promotion_order

    present = folder / "environments"
    if any(present.glob("*.yaml")):
        return targets_of(promotion_order(present), present)
    if given is None:
        default = " ".join(f"{name}={account}" for name, account in EXAMPLE_ACCOUNTS.items())
        given = answers.text("Environments and their AWS accounts, in the order of promotion", default).split()
    return new_targets(parse_accounts(given), region)
