"""`seatrial init`: a team's repository of endpoints."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from seatrial_base.files import follow_links

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seatrial.repository.answers import Ci, TargetEnvironment
    from seatrial_base.catalog.presets import Preset


REGION = "us-east-1"
Pipeline = Literal["github", "gitlab", "codepipeline", "none"]


def init_command(  # noqa: PLR0917 (typer calls it by name)
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder to write; made if it isn't there.")],
    ci: Annotated[Pipeline | None, typer.Option("--ci", help="What runs checks and deployments.")] = None,
    name: Annotated[str | None, typer.Option(help="Name of the repository. Default: the folder's.")] = None,
    account: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ENV=ACCOUNT[@REGION]",
            help="An environment and its AWS account; repeat it in the order of promotion. Default: dev and prod.",
        ),
    ] = None,
    region: Annotated[str, typer.Option(help="AWS region of new environments without one of their own.")] = REGION,
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
    index_url: Annotated[
        str | None, typer.Option(metavar="URL", help="Index with Seatrial and all that it needs, in place of PyPI.")
    ] = None,
    find_links: Annotated[
        str | None,
        typer.Option(metavar="DIR|URL", help="Folder or page with Seatrial's wheels; no index has them then."),
    ] = None,
    git: Annotated[
        str | None,
        typer.Option(metavar="URL[@REF]", help="Install Seatrial from source. Default of REF: this release."),
    ] = None,
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing; take the defaults.")] = False,
    update: Annotated[
        bool, typer.Option("--update", help="Add the files that are absent; every file that is there is kept.")
    ] = False,
    upgrade: Annotated[
        bool, typer.Option("--upgrade", help="Merge what this release writes for the environments that are there.")
    ] = False,
    write: Annotated[bool, typer.Option("--write", help="Of --upgrade: write it, conflicts marked as by git.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Of --upgrade --write: also over what is not committed.")
    ] = False,
) -> None:
    """Write a team's repository: an example endpoint with its lock, environments, Makefile and workflows.

    It asks for what is not given. Nothing is written unless everything can be.

    With --upgrade, each file is merged of three texts: what the repository has, what the release that wrote it wrote,
    and what this one writes; options that are given replace recorded answers. Without --write it shows the difference.
    Exit 1: something would change, or a conflict was written. Endpoints and environments are never touched.
    """
    if find_links is not None and Path(find_links).is_dir():
        find_links = os.path.relpath(follow_links(Path(find_links)), follow_links(folder))
    if upgrade:
        new = {"--account": account, "--region": region != REGION, "--preset": preset, "--update": update}
        if wrong := ", ".join(option for option, value in new.items() if value):
            raise typer.BadParameter("can't be combined with --upgrade", param_hint=wrong)
        given = {"name": name, "ci": ci, "source": repository, "owner": owner, "connection_arn": connection_arn}
        addresses = {"index_url": index_url, "find_links": find_links, "git": git}
        _upgrade(folder, given, addresses, write=write, force=force)
        return
    if write or force:
        raise typer.BadParameter("need --upgrade", param_hint="'--write' and '--force'")
    from seatrial.repository.answers import EXAMPLE_HOST_OWNER, Answers
    from seatrial.repository.write import write_repository

    if update and preset is not None:
        raise typer.BadParameter("can't be combined with --update", param_hint="'--preset'")
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
            preset=None if preset is None else _preset(preset),
            index_url=index_url,
            find_links=find_links,
            git=git,
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
    if find_links is not None and find_links.startswith(".."):
        typer.echo(f"{find_links} is outside of the repository: a job of CI must put the wheels there", err=True)
    typer.echo(f"next: cd {folder.as_posix()} && make test", err=True)


def _preset(name: str) -> Preset:
    from seatrial.specs.presets import preset_named
    from seatrial_base.catalog.presets import PRESETS

    return preset_named(name, PRESETS.rows)


def _upgrade(
    folder: Path, given: Mapping[str, str | None], addresses: Mapping[str, str | None], *, write: bool, force: bool
) -> None:
    """Show or write an upgrade; exit 1 where something would change, or a conflict was written."""
    import seatrial
    from seatrial.repository.upgrade import check_version, planned_changes, read_record, write_changes
    from seatrial.repository.write import RECORD

    record = read_record(folder)
    if not force:
        check_version(record, folder)
    # The one address that is given replaces another that is recorded.
    others = addresses if any(addresses.values()) else {}
    changes = planned_changes(folder, record, {**{key: value for key, value in given.items() if value}, **others})
    conflicts = sum(change.outcome == "conflict" for change in changes)
    if write:
        write_changes(folder, changes, force=force)
    else:
        typer.echo("".join(change.difference for change in changes if change.path != RECORD), nl=False)
    for change in changes:
        reason = f": {change.reason}" if change.reason else ""
        typer.echo(f"{(folder / change.path).as_posix()}: {change.outcome}{reason}")
    ended = "upgraded" if write else "would be upgraded"
    if all(change.after == change.before for change in changes):
        ended = "nothing to upgrade"
    count = f", {conflicts} with conflicts" if conflicts else ""
    typer.echo(f"{folder.as_posix()}: {ended} ({record.version} to {seatrial.__version__}){count}", err=True)
    if conflicts or (not write and ended == "would be upgraded"):
        raise typer.Exit(1)


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
