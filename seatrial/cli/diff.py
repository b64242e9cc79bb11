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

    from seatrial.deployment.document import Deployment
    from seatrial.documents.live_endpoint import RaisedAlarm
    from seatrial.operations.consequences import Consequences
    from seatrial.operations.synthesis import StackSource
    from seatrial_base.findings import Finding, Format
    from seatrial_base.printer import Judgement
    from seatrial_lint.cloudformation.template import Template

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
    """Tell what an update does: per resource, what users notice, and what it needs and costs while it lasts.

    It compares what the app synthesizes now with the deployed stack of one spec in one environment. With --base and a
    folder, or without -e, it compares every endpoint in every environment with a git revision, as the comment of a pull
    request. A change that would fail, or that is dangerous under the endpoint's name, is refused with exit code 1.
    """
    from seatrial.operations.review.review import folder_of
    from seatrial_base.terminal import end_when_interrupted

    if against is not None and base is not None:
        raise typer.BadParameter("can't be combined with --base", param_hint="'--against'")
    given, names = specs or [Path("endpoints")], environment or []
    one_spec = given[0] if len(given) == 1 and folder_of(given[0]) != given[0] else None
    end_when_interrupted()
    if one_spec is not None and len(names) == 1:
        _diff_one(one_spec, names[0], environments, _Options(against, base, output_format, check, fix_forward))
    elif fix_forward:
        raise typer.BadParameter("needs one SPEC and one -e ENV", param_hint="'--fix-forward'")
    elif base is None:
        hint = "give one SPEC and one -e ENV, or --base REF to compare many"
        raise typer.BadParameter(hint, param_hint="'SPEC'")
    else:
        from seatrial.operations.review.review import review_of
        from seatrial_base.terminal import scratch_folder

        options = _Options(None, base, output_format, check)
        where = environments_folder(environments, folder_of(given[0]) / "spec.yaml")
        with scratch_folder("seatrial-diff-") as scratch:
            review = review_of(given, where, base, scratch, only_environments=names)
        from seatrial.operations.review.document import review_document
        from seatrial.operations.review.markdown import review_markdown
        from seatrial.operations.review.text import review_text

        sizes = [size for product in review.products for size in product.sizes]
        findings = [one for each in (*review.endpoints, *sizes) for one in each.findings]
        findings += [one for each in review.products for one in each.findings]
        writers: dict[Format, Callable[[], str]] = {
            "text": lambda: review_text(review, base=base),
            "markdown": lambda: review_markdown(review, base=base),
            "json": lambda: _json(review_document(review, base=base)),
        }
        show_judgement(_judgement([*findings, *review.refused]), options.output_format, writers)
        _refuse(review.refused)
        if options.check and not review.is_empty:
            raise typer.Exit(CHANGES)


@dataclass(frozen=True, slots=True)
class _Options:
    """What is compared with, and how it is told."""

    against: Path | None
    base: str | None
    output_format: Format
    check: bool
    fix_forward: bool = False


def _diff_one(spec: Path, environment: str, environments: Path | None, options: _Options) -> None:
    from seatrial.deployment.load import load_deployment
    from seatrial.operations.consequences import consequences
    from seatrial.operations.effect import PlannedSize
    from seatrial.operations.synthesis import StackSource, synthesize
    from seatrial.operations.template_diff import diff_templates
    from seatrial_base.terminal import scratch_folder

    folder = environments_folder(environments, spec)
    deployment = load_deployment(spec, folder, environment)
    source = StackSource.of(spec, folder, deployment.environment, deployment.stack_name)
    with scratch_folder("seatrial-diff-") as scratch:
        old = _old(source, options.against, options.base, scratch)
        new = synthesize(source, scratch / "new", fix_forward_context() if options.fix_forward else None)
    # A template or a revision is compared as text: no alarm of an account concerns it, and no credentials are
    # needed.
    raised = _raised(deployment) if options.against is None and options.base is None else ()
    update = consequences(diff_templates(old, new), PlannedSize.of(deployment.plan), raised)
    _show(update, source.stack_name, _name(options.against, options.base), options.output_format)
    _refuse(update.refused)
    if options.check and not update.diff.is_empty:
        raise typer.Exit(CHANGES)


def fix_forward_context() -> dict[str, str]:
    """Return the context of a deployment that no alarm rolls back."""
    from seatrial.documents.live_endpoint import ROLLBACK_ALARMS_OFF

    name, _, value = ROLLBACK_ALARMS_OFF.partition("=")
    return {name: value}


def _raised(deployment: Deployment) -> tuple[RaisedAlarm, ...]:
    """Return the raised alarms of an endpoint; none where nobody may ask."""
    from seatrial.account.live_endpoint import component_names, raised_alarms
    from seatrial.account.reader import AwsReader, Boto3Calls

    reader, name = AwsReader(Boto3Calls(deployment.environment.region)), deployment.endpoint_name
    return raised_alarms(name, component_names(name, reader), reader)


def _old(source: StackSource, against: Path | None, base: str | None, scratch: Path) -> Template:
    from seatrial.operations.synthesis import given_template, synthesize_revision

    if against is not None:
        return given_template(source, against)
    if base is not None:
        return synthesize_revision(source, base, scratch / "base")
    import boto3

    from seatrial.account.clients import check_account
    from seatrial.account.reader import aws_failures
    from seatrial.operations.synthesis import deployed_template

    region = source.environment.region
    with aws_failures(source.stack_name):
        cloudformation = boto3.client("cloudformation", region_name=region)
        identity = boto3.client("sts", region_name=region)
    check_account(source.environment, identity)
    return deployed_template(source, cloudformation)


def _name(against: Path | None, base: str | None) -> str:
    if against is not None:
        return against.as_posix()
    return f"revision {base}" if base is not None else "the deployed stack"


def _show(update: Consequences, stack: str, old: str, output_format: Format) -> None:
    from seatrial.operations.review.document import consequences_document
    from seatrial.operations.review.markdown import consequences_markdown
    from seatrial.operations.review.text import consequences_text

    title = f"{stack}: {old} → this checkout"
    writers: dict[Format, Callable[[], str]] = {
        "text": lambda: consequences_text(update, title=title),
        "markdown": lambda: consequences_markdown(update, title=title),
        "json": lambda: _json(consequences_document(update, stack=stack, old=old, new="this checkout")),
    }
    show_judgement(_judgement([*update.warned, *update.refused]), output_format, writers)


def _judgement(findings: Sequence[Finding]) -> Judgement:
    from seatrial_base.printer import Judgement as Printed

    return Printed(command="diff", findings=findings)


def _json(document: dict[str, object]) -> str:
    import json

    return json.dumps(document, indent=2, ensure_ascii=False)


def _refuse(refused: Sequence[Finding]) -> None:
    from seatrial_base.errors import SeatrialError

    if refused:
        raise SeatrialError(refused)
