"""`seatrial bench`: put a deployed endpoint, or any OpenAI-compatible server, through a sea trial now."""

from __future__ import annotations

import inspect
import math
import os
from contextlib import contextmanager
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seatrial.cli.support.files import check_outputs, local_file, read_result, report_outputs, spec_inputs
from seatrial.cli.support.options import environments_folder
from seatrial.cli.support.probing import watched
from seatrial_base.errors import BenchError
from seatrial_base.terminal import end_when_interrupted, scratch_folder, show, show_lines
from seatrial_load.cli.files import (
    BaselineResult,
    Unwritten,
    check_folder,
    exit_code,
    keeping,
    measured_trial,
    prompted,
)
from seatrial_load.cli.requests import Mistakes, Written, as_mistakes, server_request, trial_files, with_options
from seatrial_load.documents.options import OPTIONS, OUTPUT, PROMPTS, TARGET

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from seatrial.documents.plan import Plan
    from seatrial_load.documents.options import CommandOption, TrialFiles
    from seatrial_load.documents.request import TrialRequest

Spec = Annotated[Path | None, typer.Argument(metavar="[SPEC]", help="The endpoint's YAML file.")]
Environment = Annotated[
    str | None,
    typer.Option(
        "--environment", "-e", metavar="ENV", help="With SPEC: name of the environment.", rich_help_panel=TARGET
    ),
]
Environments = Annotated[
    Path | None,
    typer.Option(
        "--environments",
        metavar="DIR",
        help="Folder of environments; `environments` next to the specs'.",
        rich_help_panel=TARGET,
    ),
]
Tokenizer = Annotated[
    Path | None,
    typer.Option("--tokenizer", help="tokenizer.json, for synthetic prompts of exact length.", rich_help_panel=PROMPTS),
]
Against = Annotated[
    str | None,
    typer.Option(
        "--against", metavar="RESULT", help="Earlier result to compare with: file or s3:// URI.", rich_help_panel=OUTPUT
    ),
]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="DIR", help="Write the report to this folder.", rich_help_panel=OUTPUT),
]
UNFINISHED = "unfinished.json"  # in the folder of the report until it is there: the result so far
MOST_EXACT_PROMPTS = 5_000  # past them the first comes again: a tokenizer counts each several times


def takes_trial_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command with a parameter `written` the options of a trial, which it gets there by their flags."""
    names = {flag.strip("-").replace("-", "_"): flag for flag in OPTIONS}

    @wraps(command)
    def run(**given: object) -> None:
        options = {flag: given.pop(name) for name, flag in names.items()}
        command(**given, written={flag: value for flag, value in options.items() if value not in (None, [], ())})

    signature = inspect.signature(command, eval_str=True)
    own = list(signature.parameters.values())
    place = next(number for number, each in enumerate(own) if each.name == "written")
    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=_annotation(OPTIONS[flag]))
        for name, flag in names.items()
    ]
    parameters = [*own[:place], *added, *own[place + 1 :]]
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]  # typer reads it
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _annotation(row: CommandOption) -> object:
    option = typer.Option(row.flag, metavar=row.option.metavar or None, help=row.words(), rich_help_panel=row.group)
    return Annotated[(list[str] if row.option.repeats else row.kind) | None, option]


def deployed_request(
    spec: Path | None, environment: str | None, environments: Path | None, written: Written, mistakes: Mistakes
) -> tuple[TrialRequest, Plan]:
    """Return the trial of a deployed endpoint under the load of its spec and of the options.

    Raises:
        SpecError: With every mistake of the command line, the spec and its lock.
    """
    mistakes.combinations()
    mistakes.speed(trial_files(written).speed)
    from seatrial.deployment.load import load_deployment

    if spec is None:
        mistakes.add("SPEC", "give the spec of a deployed endpoint, or --url")
    elif environment is None:
        mistakes.add("--environment", "SPEC needs an environment: add `-e ENV`")
    mistakes.stop_if_any()
    assert spec is not None  # noqa: S101 (for the type checker)
    assert environment is not None  # noqa: S101 (likewise)
    deployment = load_deployment(spec, environments_folder(environments, spec), environment)
    import boto3

    from seatrial.account.reader import aws_failures
    from seatrial.account.trials import describe_stack
    from seatrial.deployment.trial import complete_request

    with aws_failures(deployment.stack_name):
        cloudformation = boto3.client("cloudformation", region_name=deployment.environment.region)
    plain = complete_request(deployment, describe_stack(deployment.stack_name, cloudformation))
    request = with_options(plain, written, mistakes)
    mistakes.values(request)
    mistakes.stop_if_any()
    return request, deployment.plan


def given_options(context: typer.Context) -> frozenset[str]:
    """Return the long names of the options that the user wrote."""
    return frozenset(
        max(parameter.opts, key=len)
        for parameter in context.command.params
        if parameter.name and (source := context.get_parameter_source(parameter.name)) and source.name == "COMMANDLINE"
    )


@contextmanager
def exact_prompts(request: TrialRequest, tokenizer: Path | None, files: TrialFiles) -> Iterator[TrialFiles]:
    """Give a file of made-up prompts that have exactly the workload's length by a `tokenizer.json`.

    Raises:
        BenchError: SEA603 when the tokenizers package is missing.
    """
    if tokenizer is None:
        yield files
        return
    with scratch_folder("seatrial-prompts-") as folder:
        path = folder / "prompts.jsonl"
        from seatrial.workload import token_count, write_prompts
        from seatrial_load.documents.arrivals import ARRIVALS
        from seatrial_load.measure.lengths import lengths_of
        from seatrial_load.metrics.level import level_size

        load = request.load
        sizes = (level_size(request, concurrency).requests for concurrency in load.concurrency_levels)
        is_open = ARRIVALS[load.arrival].is_open
        requests = round(math.fsum(load.rates_per_s) * load.level_s) if is_open else sum(sizes)
        prompts = min(MOST_EXACT_PROMPTS, requests + load.warmup_requests + 1)
        lengths = lengths_of(request.workload)
        prompt_lengths = (lengths.of(row) for row in range(prompts))
        write_prompts(path, token_count(tokenizer), prompt_lengths, seed=f"{request.plan_digest}:exact")
        yield replace(files, prompts=path)


@takes_trial_options
def bench_command(
    context: typer.Context,
    spec: Spec = None,
    environment: Environment = None,
    environments: Environments = None,
    *,
    written: Written,
    tokenizer: Tokenizer = None,
    against: Against = None,
    output: Output = None,
) -> None:
    """Load an endpoint, find its knee and judge it.

    With SPEC it refuses to measure unless what is live is what the stack deployed. With --url it loads any server that
    speaks OpenAI's API. It exits with 0 when the trial passes, 2 when the command line is wrong, 130 when it was
    interrupted, else with 1: also when more than 1 % of the requests of a level of --url failed. The first interruption
    ends the trial with what was measured, the second at once.
    """
    end_when_interrupted()
    files = trial_files(written)
    check_outputs(
        {"--records": files.records, **report_outputs(output)},
        {
            "--prompts": files.prompts,
            "--trace": files.trace,
            "--tokenizer": tokenizer,
            "--against": local_file(against),
            "AWS_CA_BUNDLE": local_file(os.environ.get("AWS_CA_BUNDLE") or None),
            **spec_inputs(spec, environments, environment),
        },
    )
    mistakes = Mistakes(given=given_options(context))
    unwritten = Unwritten()
    with as_mistakes(mistakes):
        plan = None
        if "--url" in written:
            if spec is not None or environment is not None:
                mistakes.add("--url", "can't be combined with SPEC or --environment")
            request = server_request(written, mistakes)
        else:
            request, plan = deployed_request(spec, environment, environments, written, mistakes)
        check_folder(output)
        unfinished = None if output is None else output / UNFINISHED
        baseline = None if against is None else BaselineResult(result=read_result(against), uri=against)
        with (
            exact_prompts(request, tokenizer, files) as prompt_files,
            prompted(request, prompt_files) as (sourced, file),
            keeping(files.records, unwritten) as keep,
        ):
            result = measured_trial(
                sourced, keep, file, speed=files.speed, baseline=baseline, show=watched, unfinished=unfinished
            )
    from seatrial.report.document.jumpstart import is_jumpstart
    from seatrial.report.planned import is_comparable
    from seatrial.report.terminal.trial import conclusion_view, jumpstart_view
    from seatrial.report.write import write_trial_report

    if spec is not None and plan is not None and is_comparable(result, plan):
        from seatrial.planner.calibration import with_random_arrivals
        from seatrial.specs.load import load_spec

        loaded = load_spec(spec, environment or "", environments=environments_folder(environments, spec))
        result = with_random_arrivals(result, plan, loaded)

    if is_jumpstart(result):
        show(jumpstart_view(result, plan))
    show_lines(conclusion_view(result))
    # The verdict is shown before a file that can't be written is refused: the measurement was paid for.
    if output is not None and unfinished is not None:
        try:
            typer.echo(write_trial_report(result, plan, output).html.as_posix())
            unfinished.unlink(missing_ok=True)
        except BenchError as error:
            unwritten.problems.extend(error.problems)
    unwritten.raise_if_any()
    if code := exit_code(result):
        raise typer.Exit(code)
