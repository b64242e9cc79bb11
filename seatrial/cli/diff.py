"""`seatrial diff`: what an update does to an endpoint that serves."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seatrial.cli.support.options import EnvironmentsFolder, environments_folder
from seatrial_lint.cli.run import FindingsFormat, show_judgement

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from seatrial.documents.live import RaisedAlarm
    from seatrial_base.findings import Finding, Format

CHANGES = 1


def diff_command(
    specs: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[SPEC…]",
            help="YAML files of endpoints of one folder, or that folder. Default: endpoints.",
            show_default=False,
        ),
    ] = None,
    environment: Annotated[
        list[str] | None,
        typer.Option(
            "--environment", "-e", metavar="ENV", help="Only these environments. Default: all.", show_default=False
        ),
    ] = None,
    environments: EnvironmentsFolder = None,
    against: Annotated[
        Path | None,
        typer.Option("--against", metavar="PATH", help="Compare with this template, or a folder such as cdk.out."),
    ] = None,
    base: Annotated[
        str | None,
        typer.Option(
            "--base", metavar="REF", help="Compare with this git revision, synthesized; REF... for the merge base."
        ),
    ] = None,
    *,
    fix_forward: Annotated[
        bool,
        typer.Option("--fix-forward", help="As `cdk deploy -c rollback_alarms=off`: no alarm rolls the update back."),
    ] = False,
    output_format: FindingsFormat = "text",
    check: Annotated[bool, typer.Option("--check", help="Exit 1 when anything changes.")] = False,
) -> None:
    """Show what an update does: per resource, what users notice, and what it needs and costs while it lasts.

    It compares what the app synthesizes now with the deployed stack of one spec in one environment. With --base and a
    folder, or without -e, it compares every endpoint in every environment with a git revision, as the comment of a pull
    request. A change that would fail, or that is dangerous under the endpoint's name, is refused with exit code 1.
    """
    from seatrial.operations.review.review import folder_of
    from seatrial_base.errors import SeatrialError
    from seatrial_base.printer import Judgement
    from seatrial_base.terminal import end_when_interrupted

    if against is not None and base is not None:
        raise typer.BadParameter("can't be combined with --base", param_hint="'--against'")
    given, names = specs or [Path("endpoints")], environment or []
    is_one = len(given) == 1 and folder_of(given[0]) != given[0] and len(names) == 1
    end_when_interrupted()
    if is_one:
        comparison = _update(given[0], names[0], environments, against, base, fix_forward=fix_forward)
    elif fix_forward:
        raise typer.BadParameter("needs one SPEC and one -e ENV", param_hint="'--fix-forward'")
    elif base is None:
        hint = "give one SPEC and one -e ENV, or --base REF to compare many"
        raise typer.BadParameter(hint, param_hint="'SPEC'")
    else:
        comparison = _review(given, names, environments, base)
    show_judgement(Judgement(command="diff", findings=comparison.findings), output_format, comparison.writers)
    if comparison.refused:
        raise SeatrialError(comparison.refused)
    if check and not comparison.is_empty:
        raise typer.Exit(CHANGES)


@dataclass(frozen=True, slots=True)
class _Comparison:
    """The findings of a comparison, those among them that refuse it, and its writers by format."""

    findings: Sequence[Finding]
    refused: Sequence[Finding]
    writers: dict[Format, Callable[[], str]]
    is_empty: bool


def _review(specs: list[Path], names: list[str], environments: Path | None, base: str) -> _Comparison:
    from seatrial.operations.review.review import folder_of, review_of
    from seatrial.operations.review.writers import review_document, review_markdown, review_text
    from seatrial_base.terminal import scratch_folder

    where = environments_folder(environments, folder_of(specs[0]) / "spec.yaml")
    with scratch_folder("seatrial-diff-") as scratch:
        review = review_of(specs, where, base, scratch, only_environments=names)
    findings = [finding for endpoint in review.endpoints for finding in endpoint.findings]
    findings += [finding for product in review.products for size in product.sizes for finding in size.findings]
    findings += [finding for product in review.products for finding in product.findings]
    writers: dict[Format, Callable[[], str]] = {
        "text": lambda: review_text(review, base=base),
        "markdown": lambda: review_markdown(review, base=base),
        "json": lambda: _json(review_document(review, base=base)),
    }
    return _Comparison([*findings, *review.refused], review.refused, writers, review.is_empty)


def _update(
    spec: Path,
    environment: str,
    environments: Path | None,
    against: Path | None,
    base: str | None,
    *,
    fix_forward: bool,
) -> _Comparison:
    from concurrent.futures import ThreadPoolExecutor

    from seatrial.account.live_endpoint import component_names, raised_alarms
    from seatrial.account.reader import AwsReader, Boto3Calls
    from seatrial.deployment.load import load_deployment
    from seatrial.operations.consequences import consequences
    from seatrial.operations.effect import PlannedSize
    from seatrial.operations.review.writers import consequences_document, consequences_markdown, consequences_text
    from seatrial.operations.synthesis import StackSource, given_template, synthesize, synthesize_revision
    from seatrial.operations.template_diff import diff_templates
    from seatrial_base.terminal import scratch_folder

    folder = environments_folder(environments, spec)
    deployment = load_deployment(spec, folder, environment)
    source = StackSource.of(spec, folder, deployment.environment, deployment.stack_name)
    # A template or a revision is compared as text: no alarm of an account concerns it, and no credentials are needed.
    raised: tuple[RaisedAlarm, ...] = ()
    with scratch_folder("seatrial-diff-") as scratch, ThreadPoolExecutor(1) as beside:
        # Each synthesis is a process of its own, and both take as long.
        synthesis = beside.submit(synthesize, source, scratch / "new", fix_forward_context() if fix_forward else None)
        if against is not None:
            name, old = against.as_posix(), given_template(source, against)
        elif base is not None:
            name, old = f"revision {base}", synthesize_revision(source, base, scratch / "base")
        else:
            import boto3

            from seatrial.account.clients import check_account
            from seatrial.account.reader import aws_failures
            from seatrial.operations.synthesis import deployed_template

            region = source.environment.region
            with aws_failures(source.stack_name):
                cloudformation = boto3.client("cloudformation", region_name=region)
                identity = boto3.client("sts", region_name=region)
            check_account(source.environment, identity)
            name, old = "the deployed stack", deployed_template(source, cloudformation)
            reader, live = AwsReader(Boto3Calls(deployment.environment.region)), deployment.endpoint_name
            raised = raised_alarms(live, component_names(live, reader), reader)
        new = synthesis.result()
    update = consequences(diff_templates(old, new), PlannedSize.of(deployment.plan), raised)
    stack, checkout = source.stack_name, "this checkout"
    title = f"{stack}: {name} → {checkout}"
    writers: dict[Format, Callable[[], str]] = {
        "text": lambda: consequences_text(update, title=title),
        "markdown": lambda: consequences_markdown(update, title=title),
        "json": lambda: _json(consequences_document(update, stack=stack, old=name, new=checkout)),
    }
    return _Comparison([*update.warned, *update.refused], update.refused, writers, update.diff.is_empty)


def fix_forward_context() -> dict[str, str]:
    """Return the context of a deployment that no alarm rolls back."""
    from seatrial.documents.live import ROLLBACK_ALARMS_OFF

    name, _, value = ROLLBACK_ALARMS_OFF.partition("=")
    return {name: value}


def _json(document: dict[str, object]) -> str:
    import json

    return json.dumps(document, indent=2, ensure_ascii=False)
