"""`seatrial quality`: score a live endpoint on suites, and compare it with a bound or with an earlier result."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from seatrial.cli.bench import Environment, Environments, Spec
from seatrial_base.errors import BenchError, SpecError
from seatrial_base.findings import Finding, Place

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from seatrial.quality.comparison import QualityComparison
    from seatrial.quality.suites import SuitesResult
    from seatrial_load.documents.request import TrialRequest

RULE = "SEA555"
WHERE = "command line"
FAILED = 1
MOST_TOKENS = 131_072
MOST_STREAMS = 1_024


def quality_command(
    spec: Spec = None,
    environment: Environment = None,
    environments: Environments = None,
    *,
    suite: Annotated[
        str,
        typer.Option(
            metavar="NAME,…",
            help="What to ask: tasks of lm-eval (gsm8k, mmlu_pro, ifeval), a task of yours (.yaml), or an evaluation "
            "set with references (.jsonl).",
            show_default=False,
        ),
    ],
    url: Annotated[str | None, typer.Option(help="Base URL of an OpenAI-compatible server, instead of SPEC.")] = None,
    model: Annotated[str | None, typer.Option(help="With --url: model name in requests.")] = None,
    api_key_variable: Annotated[
        str | None, typer.Option(metavar="NAME", help="With --url: environment variable with the API key.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Samples drawn of each task, by --seed. Default: all.")
    ] = None,
    seed: Annotated[int, typer.Option(min=1, help="Of the draw of samples and of examples in prompts.")] = 1,
    max_tokens: Annotated[
        int | None,
        typer.Option(min=1, max=MOST_TOKENS, help="Most tokens of an answer. Default: the task's, else 256."),
    ] = None,
    concurrency: Annotated[int, typer.Option(min=1, max=MOST_STREAMS, help="Requests in flight.")] = 4,
    at_least: Annotated[
        list[str] | None,
        typer.Option(metavar="SUITE=SCORE", help="A score to prove, as gsm8k=0.7; repeat for more."),
    ] = None,
    baseline: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Earlier result to compare with, sample by sample.")
    ] = None,
    tolerance: Annotated[
        float | None, typer.Option(min=0, help="With --baseline: how much worse is surely not exceeded.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the result with every score.")
    ] = None,
) -> None:
    """Score an endpoint on suites that people know, or on your own, with 95 % intervals.

    It exits with 0 when every bound is proven and nothing is proven worse than the baseline, 2 when the command line
    is wrong, 130 when it was interrupted, else with 1: also when a bound is neither proven met nor missed, or a suite
    could not be measured. The first interruption keeps the suites and answers so far, the second ends it at once.
    """
    from seatrial.cli.support.files import check_outputs, spec_inputs
    from seatrial.quality.suites import SuiteRequest, measure_suites, read_suites
    from seatrial_base.terminal import end_when_interrupted

    end_when_interrupted()
    names = [name.strip() for name in suite.split(",") if name.strip()]
    bounds, problems = _bounds(at_least or (), names)
    contradictions = {
        ("--tolerance", "needs --baseline"): tolerance is not None and baseline is None,
        ("--url", "can't be combined with SPEC or --environment"): bool(url and (spec or environment)),
    }
    problems += [
        Finding(RULE, Place.at(WHERE, option), text) for (option, text), holds in contradictions.items() if holds
    ]
    if problems:
        raise SpecError(problems)
    check_outputs(
        {"--output": output},
        {
            "--baseline": baseline,
            **spec_inputs(spec, environments, environment),
            **{name: Path(name) for name in names},
        },
    )
    _check_output(output)
    before = None if baseline is None else read_suites(baseline)
    given = {"--url": url, "--model": model, "--api-key-variable": api_key_variable}
    trial = _trial(spec, environment, environments, {flag: value for flag, value in given.items() if value is not None})
    request = SuiteRequest(
        trial=trial,
        limit=limit,
        seed=seed,
        most_tokens=max_tokens,
        streams=concurrency,
        tell=lambda count: typer.echo(f"{count:,} answers so far", err=True) if count else None,
    )
    result, unmeasured, is_interrupted = measure_suites(names, request)
    if is_interrupted and not result.suites:
        raise KeyboardInterrupt
    # The scores are shown before anything is refused: they were paid for.
    _show(result)
    _write(result, output)
    if is_interrupted:
        _end_incomplete(result, unmeasured, names)
    is_proven = _judge(result, bounds, before, tolerance)
    if unmeasured:
        raise BenchError(unmeasured)
    if not is_proven:
        raise typer.Exit(FAILED)


def _end_incomplete(result: SuitesResult, unmeasured: Sequence[Finding], names: Sequence[str]) -> NoReturn:
    """Say what an interrupted run measured, and end: it decides nothing."""
    from seatrial.quality.suites import suite_name
    from seatrial_base.terminal import INTERRUPTED

    typer.echo("".join(f"{each}\n" for each in unmeasured), nl=False, err=True)
    parts = {each.name: each.undecided if each.interrupted else "; measured" for each in result.suites}
    outcomes = (f"{each} {parts.get(each, '; not measured')[2:]}" for each in map(suite_name, names))
    typer.echo(f"the run is incomplete and decides nothing: {', '.join(outcomes)}")
    raise typer.Exit(INTERRUPTED)


def _judge(
    result: SuitesResult, bounds: Mapping[str, float], before: SuitesResult | None, tolerance: float | None
) -> bool:
    """Show bounds and comparison; return whether each bound is proven and nothing is proven worse."""
    from seatrial.quality.suites import check_least, check_tolerance, compare_suites

    checks, is_worse = [*check_least(result, bounds)], False
    if before is not None and result.suites:
        compared = compare_suites(before, result)
        show_comparison(compared, "baseline", result.endpoint)
        # With a tolerance its proof decides, whatever else the difference is.
        is_worse = tolerance is None and bool(compared.worse)
        checks += check_tolerance(result, compared, tolerance) if tolerance is not None else ()
    for _, sentence in checks:
        typer.echo(sentence)
    return not is_worse and all(met for met, _ in checks)


def _trial(
    spec: Path | None, environment: str | None, environments: Path | None, written: Mapping[str, str]
) -> TrialRequest:
    """Return a trial of the server, or of the endpoint that is proven to be the stack's."""
    from seatrial.cli.bench import deployed_request
    from seatrial_load.aws.deployment_check import prove_live
    from seatrial_load.cli.requests import Mistakes, server_request

    mistakes = Mistakes(given=frozenset(written))
    if "--url" in written:
        return server_request(written, mistakes)
    trial, _ = deployed_request(spec, environment, environments, written, mistakes)
    if trial.expected is not None:
        prove_live(trial.target, trial.expected)
    return trial


def _show(result: SuitesResult) -> None:
    from seatrial.report.terminal.tables import table_view
    from seatrial_base.table import Column, table_of
    from seatrial_base.terminal import show
    from seatrial_base.units import digits

    columns = (Column("metric", kind="text"), Column("mean (95 % interval)"), Column("samples"), Column("cut"),
               Column("by", kind="text"))  # fmt: skip
    rows = []
    for name, (suite, metric) in result.metrics().items():
        mean, ends = metric.mean()
        words = "" if ends.low is None or ends.high is None else f" ({digits(ends.low)} to {digits(ends.high)})"
        answered = f"{len(suite.samples):,} of {suite.sent:,}"
        rows.append((name, f"{digits(mean)}{words}", answered, f"{suite.cut:,}", suite.source))
    show(table_view(table_of(columns, rows)))
    for engine in sorted({each.engine for each in result.suites} - {""}):
        typer.echo(f"measured on: {engine} (not the model named)")


def show_comparison(compared: QualityComparison, a: str, b: str) -> None:
    """Print the differences of two results, paired by sample."""
    from seatrial.report.document.recipes import differences_table
    from seatrial.report.terminal.tables import table_view
    from seatrial_base.terminal import show

    show(table_view(differences_table(compared, a, b)))
    for note in compared.notes:
        typer.echo(f"- {note}")


def _check_output(output: Path | None) -> None:
    """Refuse a file that can't be written, before what takes hours is measured for it."""
    from seatrial_load.cli.files import check_folder

    if output is not None:
        check_folder(output.parent)
        if output.is_dir():
            raise SpecError.of("SEA530", "can't be written: a folder", where=f"{output}", field="--output")


def _write(result: SuitesResult, output: Path | None) -> None:
    from seatrial_base.files import write_whole
    from seatrial_load.documents.strict_json import write_document

    if output is None:
        return
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        write_whole(output, write_document(result))
    except OSError as unwritten:
        raise BenchError.of("SEA530", f"can't be written: {unwritten.strerror}", where=f"{output}") from unwritten


def _bounds(texts: Sequence[str], names: Sequence[str]) -> tuple[dict[str, float], list[Finding]]:
    from seatrial.quality.suites import suite_name

    bounds: dict[str, float] = {}
    suites = [suite_name(name) for name in names]

    def problems() -> Iterator[tuple[str, str]]:
        if len(set(suites)) < max(len(suites), 1):
            yield "--suite", f"{', '.join(names) or 'nothing'}: name suites, each once"
        for text in texts:
            name, _, bound = text.rpartition("=")
            if name in bounds:
                yield "--at-least", f"{name} has two bounds, {bounds[name]:g} and {bound}"
            try:
                bounds[name] = float(bound)
            except ValueError:
                bounds[name] = math.nan
            if not math.isfinite(bounds[name]):
                yield "--at-least", f"{text!r} is not a score such as gsm8k=0.7"
            if name.partition(":")[0] not in suites:
                yield "--at-least", f"{text!r} names none of the suites {', '.join(suites)}"

    return bounds, [Finding(RULE, Place.at(WHERE, option), message) for option, message in problems()]
