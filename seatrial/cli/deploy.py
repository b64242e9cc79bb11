"""`seatrial deploy`: the CDK's deployment of one endpoint and its trial, in one view."""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Annotated

import typer

from seatrial.cli.support.options import EnvironmentName, EnvironmentsFolder, environments_folder
from seatrial.cli.support.specs import endpoint_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from mypy_boto3_s3 import S3Client
    from rich.status import Status

    from seatrial.account.trials import LiveTrial
    from seatrial.deployment.document import Deployment
    from seatrial.operations.deployment_outcome import Snapshot
    from seatrial.specs.environment import EnvironmentSpec


def deploy_command(
    endpoint: Annotated[
        str,
        typer.Argument(
            metavar="ENDPOINT", help="YAML file or name of the endpoint, or a folder of them.", show_default=False
        ),
    ],
    environment: EnvironmentName,
    cdk_options: Annotated[
        list[str] | None,
        typer.Argument(metavar="-- CDK_OPTION…", help="More options of `cdk deploy`, after `--`.", show_default=False),
    ] = None,
    environments: EnvironmentsFolder = None,
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Deploy without asking.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Show the CDK CLI's diagnosis of a failure; a file has it anyway.")
    ] = False,
    without: Annotated[
        str, typer.Option("--without", metavar="NAMES", help="Of a folder: leave these endpoints out, as `chat talk`.")
    ] = "",
    failures: Annotated[
        Path | None,
        typer.Option("--failures", metavar="FILE", help="Of a folder: write which endpoints failed, one a line."),
    ] = None,
) -> None:
    """Run `cdk deploy` of one endpoint, and show its trial level by level meanwhile; exit 0 when it serves.

    Of a folder, every endpoint that is locked for the environment is deployed by itself: first what they share, then
    eight at a time. One that fails, or is wrong, stops none of the others; then the exit code is 50.

    The last line tells what happened, the verdict, what serves and where the report is; each outcome but success has
    an exit code of its own. The lock is checked first. In a terminal a line at the bottom shows the state meanwhile;
    elsewhere each line is complete. Ctrl-C ends the CDK CLI, and CloudFormation continues. With `--yes`, or with
    `-- --require-approval never`, it deploys without confirmation.
    """
    from seatrial.cli.support.probing import confirm
    from seatrial.deployment.load import load_deployment
    from seatrial.operations.app import APPROVAL, deploy_command_of, run_cdk, trial_looked_at
    from seatrial.operations.deployment_outcome import DeployResult, OutcomeKind, outcome_before, outcomes_of
    from seatrial_base.terminal import end_when_interrupted
    from seatrial_base.units import hourly_words

    end_when_interrupted()
    more = cdk_options or []
    if Path(endpoint).is_dir():
        places = environments_folder(environments, Path(endpoint) / "spec.yaml")
        _deploy_folder(Path(endpoint), environment, places, more, without=without.split(), failures=failures, yes=yes)
        return
    if without or failures:
        raise typer.BadParameter("needs a folder of endpoints", param_hint="'--without' and '--failures'")
    file = endpoint_file(endpoint)
    folder = environments_folder(environments, file)
    deployment = load_deployment(file, folder, environment)
    _refuse_ended_waivers(file, folder, deployment.environment)
    root, command = deploy_command_of(file, folder, deployment, more)
    # What is read must be of the account that the CDK CLI deploys to.
    if profile := dict(pairwise(" ".join(more).replace("=", " ").split())).get("--profile"):
        os.environ["AWS_PROFILE"] = profile
    look, snapshot = _account(deployment)
    approved = [APPROVAL, "never"] in [more[at : at + 2] for at in range(len(more))]
    place, stack = deployment.environment, deployment.stack_name
    account = place.account or "the account of your credentials"

    def end(outcome: DeployResult, log: Sequence[str] = ()) -> int:
        code = outcome.kind.value.code
        if code and log:
            typer.echo(f"details: {_write_log(root / '.seatrial' / 'deploy' / f'{stack}.log', log)}")
        typer.echo(outcome.line(file, environment))
        return code

    before = snapshot()
    if (refused := outcome_before(before)) is not None:
        raise typer.Exit(end(refused))
    cost = hourly_words(deployment.plan.cost.usd_per_hour, deployment.endpoint.budget.discount)
    lines = (
        f"deploys {stack} in {account}, {place.region}: {cost}{deployment.plan.cost.elsewhere}",
        f"before: {before.state}",
        f"`seatrial diff {file.as_posix()} -e {place.name}` shows what it changes",
    )
    confirm(lines, yes=yes or approved or place.is_embedded)
    with _view(stack, is_whole=verbose) as view:
        try:
            with trial_looked_at(look, view.trial):
                exit_code = run_cdk(command, root, view.line)
        except KeyboardInterrupt:
            # Nothing is read: the process may be ended within seconds.
            because = f"what has begun of stack {stack}, its trial too, goes on in CloudFormation"
            end(DeployResult(OutcomeKind.INTERRUPTED, because, "deploy again once it is at rest"), view.kept)
            raise
    after = snapshot()
    typer.echo(f"after: {after.state}")
    error = view.error or f"the CDK CLI ended with {exit_code}, and did not change stack {stack}"
    outcomes = outcomes_of(before, after, deployment, error if exit_code or not view.says_unchanged else "")
    if code := end(next(outcomes), view.kept):
        raise typer.Exit(code)


def _refuse_ended_waivers(file: Path, environments: Path, place: EnvironmentSpec) -> None:
    """Refuse an endpoint with a waiver that has ended: synthesis, which has no clock, takes it as it is written."""
    if not place.guard_rails.waivers:
        return
    from seatrial.locks.guard_rails import waiver_findings
    from seatrial.specs.load import load_spec
    from seatrial_base.errors import SpecError

    loaded = load_spec(file, place.name, environments=environments)
    findings = waiver_findings(loaded, datetime.now(UTC).date())
    if ended := [each for each in findings if each.severity == "error"]:
        raise SpecError(ended)


def _deploy_folder(
    folder: Path,
    environment: str,
    places: Path,
    cdk_options: Sequence[str],
    *,
    without: Sequence[str],
    failures: Path | None,
    yes: bool,
) -> None:
    from seatrial.cli.support.probing import confirm
    from seatrial.deployment.load import load_deployments
    from seatrial.operations.app import app_folder
    from seatrial.operations.folder_deployment import SOME_FAILED, deploy_folder, endpoints_to_deploy
    from seatrial_base.errors import SpecError
    from seatrial_base.files import follow_links
    from seatrial_base.terminal import scratch_folder
    from seatrial_base.units import counted

    if failures is not None and not failures.parent.is_dir():
        raise SpecError.of("SEA101", "there is no such folder", where=failures.parent.as_posix())
    locked = load_deployments(folder, places, environment)
    for line in locked.left_out:
        typer.echo(f"note: {line}")
    count = counted(len(endpoints_to_deploy(locked, without)), "endpoint")
    is_embedded = all(each.environment.is_embedded for each in locked.deployments)
    confirm((f"deploys {count} of {environment}",), yes=yes or is_embedded)
    context = {
        "environment": environment,
        "endpoints": f"{follow_links(folder)}",
        "environments": f"{follow_links(places)}",
    }
    with scratch_folder("seatrial-deploy-") as scratch:
        ends = deploy_folder(
            locked,
            app_folder(folder / "spec.yaml"),
            context,
            scratch / "app",
            typer.echo,
            without=without,
            cdk_options=cdk_options,
        )
    failed = [each for each in ends if each.exit_code]
    typer.echo("")
    for each in ends:
        typer.echo(f"{each.name} ({each.exit_code}): {each.line}")
    good = f"{len(ends) - len(failed)} of {counted(len(ends), 'endpoint')} of {environment} deployed"
    typer.echo(f"{good}; failed: {', '.join(each.name for each in failed)}" if failed else good)
    if failures is not None:
        try:
            failures.write_text("".join(f"{each.name}\n" for each in failed), encoding="utf-8")
        except OSError as error:
            message = f"the failures can't be written: {error.strerror}"
            raise SpecError.of("SEA101", message, where=failures.as_posix()) from error
    if failed:
        raise typer.Exit(SOME_FAILED)


def _write_log(path: Path, log: Sequence[str]) -> Path | str:
    """Write what the CDK CLI wrote, credentials masked, for its owner alone; return path or problem."""
    from seatrial_base.secrets import redacted

    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        # A new file: one that is there may have another mode, or be a link.
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            # As one text: a credential may span lines.
            file.write(redacted("\n".join(log)))
    except OSError as error:
        return f"{path} can't be written: {error.strerror}"
    return path


def _account(deployment: Deployment) -> tuple[Callable[[], LiveTrial | None], Callable[[], Snapshot]]:
    """Return functions that read the endpoint's last trial (before the first deployment none), and its state."""
    import boto3

    from seatrial.account.clients import check_account
    from seatrial.account.reader import AwsReader, Boto3Calls, aws_failures
    from seatrial.account.trials import Bucket, describe_stack, look
    from seatrial.deployment.document import service_stack
    from seatrial.operations.deployment_outcome import take_snapshot
    from seatrial_base.errors import BenchError

    place = deployment.environment
    with aws_failures(place.name):
        sts, cloudformation = (
            boto3.client("sts", region_name=place.region),
            boto3.client("cloudformation", region_name=place.region),
        )
        s3: S3Client = boto3.client("s3", region_name=place.region)
    check_account(place, sts)

    def look_at() -> LiveTrial | None:
        try:
            bucket = describe_stack(service_stack(place.name), cloudformation).output("ResultsBucket")
            return look(Bucket(s3, bucket), deployment.endpoint_name, now_s=time.time())
        # The deployment goes on whether its trial can be watched or not: a later look may see it.
        except BenchError:
            return None

    return look_at, lambda: take_snapshot(deployment, AwsReader(Boto3Calls(place.region)), s3)


class _View:
    """Writes lines of the CDK CLI and of the trial; `status` is the last line of a terminal, where there is one."""

    def __init__(self, title: str, status: Status | None, *, is_whole: bool = False) -> None:
        from seatrial.cli.trial import TrialLines

        self.says_unchanged, self.error = False, ""
        self._is_whole, self._diagnoses, self._reads = is_whole, False, False
        self.kept: list[str] = []
        # Lines come from the CLI and from the looks at the trial, in two threads: without the lock they would mix.
        self._title, self._status, self._lock = title, status, Lock()
        self._began_s, self._detail = time.monotonic(), "synthesizes"
        self._lines = TrialLines(self.line_of_trial)
        self._seen: LiveTrial | None = None

    def line(self, text: str) -> None:
        """Write a line of the CDK CLI; those of its diagnosis are only kept, unless all are wanted."""
        from seatrial_base.secrets import redacted

        self.kept.append(text)
        words = text.strip()
        if self._seen is None and "_IN_PROGRESS" in text:
            self._detail = "CloudFormation deploys"
        self.says_unchanged |= words.endswith(f"{self._title} (no changes)")
        # From here on the CDK CLI diagnoses a failure: logs of the trial's function, links.
        self._diagnoses |= words.startswith("❌")
        # The reason is its first paragraph; of an app that fails, the first line with a rule.
        self._reads = bool(words) and (self._reads or words.startswith("❌"))
        if self._reads or (": SEA" in words and not self.error):
            self.error = f"{self.error} {words}".lstrip("❌ ")
        if self._is_whole or not self._diagnoses:
            self._write(redacted(text))

    def line_of_trial(self, text: str) -> None:
        """Write a line of the trial."""
        self._write(f"trial: {text}")

    def trial(self, seen: LiveTrial) -> None:
        """Write what is new of the trial; a request that needs none, as that of a rollback, is no news of it."""
        from seatrial_base.units import minutes

        if not seen.is_due:
            return
        self._seen = seen
        self._detail = "CloudFormation deploys"
        if not seen.has_ended:
            loading = "proves the endpoint" if seen.loading is None else f"loads {seen.loading} in flight per copy"
            self._detail = f"trial: {loading}, {minutes(seen.left_s)} left"
        self._lines.write(seen, self._title)
        self._update()

    def _write(self, text: str) -> None:
        with self._lock:
            typer.echo(text)
        self._update()

    def _update(self) -> None:
        from rich.markup import escape

        from seatrial.operations.app import elapsed_words

        if self._status is not None:
            self._status.update(escape(f"{self._title} {elapsed_words(self._began_s)}  {self._detail}"))


@contextmanager
def _view(title: str, *, is_whole: bool) -> Iterator[_View]:
    from seatrial_base.terminal import console

    terminal = console(markup=True)
    if not terminal.is_terminal:
        yield _View(title, None, is_whole=is_whole)
        return
    with terminal.status(title) as status:
        yield _View(title, status, is_whole=is_whole)
