"""`seatrial compare`: two recipes of one endpoint, deployed in turn or read from files: speed, cost, quality."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from seatrial.cli.support.options import EnvironmentsFolder, environments_folder
from seatrial_base.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial.documents.plan import Plan
    from seatrial.probe.pinned import ProbedHardware
    from seatrial.probe.recipes import PinnedRecipe
    from seatrial.quality.recipe_comparison import RecipeComparison
    from seatrial.quality.recipe_result import RecipeResult
    from seatrial.specs.load import LoadedSpec
    from seatrial.specs.optimization import Recipe
    from seatrial_load.quality.scores import EvaluationSet

WHERE = "command line"
RULE = "SEA532"
REFUSED = 1
MOST_TOKENS = 1024
_DEFAULT_TOKENS = 256  # at most; SageMaker gives a model 60 s for a whole response
_USAGE = "write SPEC RECIPE_A RECIPE_B -e ENV, as in endpoints/chat.yaml none awq+kv_fp8 -e dev; or two result files"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Compared:
    """What the command line requests.

    Attributes:
        hardware: Of every copy; `None` leaves it to the planner.
        most_tokens: Tokens that a response may have.
        results: The folder of the recipes' results.
        again: Whether recipes are measured again that were measured before.
        err: Whether progress is shown on standard error.
    """

    loaded: LoadedSpec
    plan: Plan
    recipes: tuple[Recipe, Recipe]
    environments: Path
    hardware: ProbedHardware | None
    evaluation_file: Path | None
    most_tokens: int
    results: Path
    again: bool
    err: bool


def compare_command(
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="[SPEC] A B",
            help="The endpoint's YAML file and two recipes, as in `chat.yaml none awq+kv_fp8`; or two result files, "
            "also of `seatrial quality`.",
            show_default=False,
        ),
    ],
    environment: Annotated[
        str | None, typer.Option("--environment", "-e", metavar="ENV", help="Name of the environment.")
    ] = None,
    environments: EnvironmentsFolder = None,
    *,
    on: Annotated[
        str | None,
        typer.Option(
            metavar="TYPE:DEGREE",
            help="Deploy both on this hardware, as in ml.g6e.12xlarge:4. Default: the plan of each recipe.",
        ),
    ] = None,
    evaluation_set: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help='Prompts to compare the quality by, one JSON object a line: {"prompt": "…", "reference": "…"}. '
            "Default: slo.quality.evaluation_set of the spec.",
        ),
    ] = None,
    max_tokens: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=MOST_TOKENS,
            help=f"Most tokens of an answer. Default: workload.output_tokens, at most {_DEFAULT_TOKENS}.",
        ),
    ] = None,
    results: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder of the recipes' results. Default: .seatrial/recipes of the CDK app."),
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Measure also a recipe whose result is there.")] = False,
    output_format: Annotated[
        Literal["text", "json", "markdown"], typer.Option("--format", help="Output format.")
    ] = "text",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="DIR", help="Folder for the report and the blind sheet.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Deploy without asking for confirmation.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show the output of the CDK CLI.")] = False,
) -> None:
    """Compare two recipes of an endpoint: speed and cost under the same load, and quality on an evaluation set.

    It deploys one copy with each recipe in a stack of its own, tries it at the levels of the locked plan, asks it the
    evaluation set, and deletes the stack, also after a failure or Ctrl-C. A recipe that was measured before is not
    measured again. It exits with 0 when B's trial did not fail and no quality metric is proven worse, 2 when the
    command line is wrong, else with 1.
    """
    from seatrial.locks.locked_plan import read_locked_plan
    from seatrial.probe.pinned import read_candidate
    from seatrial.probe.recipes import results_folder
    from seatrial.quality.recipe_comparison import compare_recipes
    from seatrial.quality.recipe_result import read_recipe_result
    from seatrial.quality.suites import holds_suites
    from seatrial.specs.load import load_spec
    from seatrial.specs.recipe import parse_recipe, recipe_name

    _check_usage(what, environment, {"--on": on, "--evaluation-set": evaluation_set, "--max-tokens": max_tokens,
                                     "--results": results, "--again": again or None})  # fmt: skip
    inputs = {"the evaluation set": evaluation_set}
    if len(what) == len("AB"):
        inputs |= {"A": Path(what[0]), "B": Path(what[1])}
        if all(map(holds_suites, map(Path, what))):
            _compare_suites(*map(Path, what), is_written=output is not None or output_format != "text")
            return
        _check_output(output, inputs)
        a, b = (read_recipe_result(Path(path)) for path in what)
    else:
        _check_output(output, {**inputs, "SPEC": Path(what[0])})
        # Everything that must be known is read before AWS gets the first request.
        spec, (first, second) = Path(what[0]), (parse_recipe(text) for text in what[1:])
        # By the names in one order: `a+b` is `b+a`.
        if recipe_name(first) == recipe_name(second):
            raise SpecError.of(RULE, f"both recipes are {recipe_name(first)}", where=WHERE, field="A B", hint=_USAGE)
        folder = environments_folder(environments, spec)
        hardware = None if on is None else read_candidate(on, "--on")
        loaded = load_spec(spec, f"{environment}", environments=folder)
        if evaluation_set is None and (quality := loaded.endpoint.slo.quality) is not None:
            evaluation_set = spec.parent / quality.evaluation_set
        comparison = _Compared(
            loaded=loaded,
            plan=read_locked_plan(loaded),
            recipes=(first, second),
            environments=folder,
            hardware=hardware,
            evaluation_file=evaluation_set,
            most_tokens=max_tokens or min(_DEFAULT_TOKENS, loaded.endpoint.workload.output_tokens),
            results=results or results_folder(loaded),
            again=again,
            err=output_format != "text",
        )
        a, b = _measured(comparison, yes=yes, verbose=verbose)
    compared = compare_recipes(a, b)
    _show(compared, output_format, output)
    if not compared.is_accepted:
        raise typer.Exit(REFUSED)


def _check_usage(what: Sequence[str], environment: str | None, measuring: dict[str, object | None]) -> None:
    """Refuse a command line that names neither two recipes of a spec nor two results."""
    from seatrial_base.findings import Finding, Place

    problems: list[Finding] = []
    stored = len(what) == len("AB")
    if not stored and len(what) != len("SAB"):
        problems.append(Finding(RULE, Place.at(WHERE, "[SPEC] A B"), f"{len(what)} arguments, expected 2 or 3", _USAGE))
    elif stored:
        named = {"--environment": environment, **measuring}
        problems += [
            Finding(RULE, Place.at(WHERE, option), "needs a spec: two stored results are only read", _USAGE)
            for option, value in named.items()
            if value is not None
        ]
    elif environment is None:
        problems.append(Finding(RULE, Place.at(WHERE, "--environment"), "SPEC needs an environment", "add `-e ENV`"))
    if problems:
        raise SpecError(problems)


def _compare_suites(a: Path, b: Path, *, is_written: bool) -> None:
    from seatrial.cli.quality import show_comparison
    from seatrial.quality.suites import compare_suites, read_suites

    if is_written:
        message = "results of suites are shown as text alone"
        raise SpecError.of(RULE, message, where=WHERE, field="--output", hint="leave out --output and --format")
    compared = compare_suites(read_suites(a), read_suites(b))
    show_comparison(compared, a.name, b.name)
    if compared.worse:
        raise typer.Exit(REFUSED)


def _check_output(output: Path | None, inputs: dict[str, Path | None]) -> None:
    from seatrial.cli.support.files import check_outputs
    from seatrial.report.write import FILES

    written = {} if output is None else {f"--output ({name})": output / name for name in FILES}
    check_outputs(written, inputs)


def _measured(comparison: _Compared, *, yes: bool, verbose: bool) -> tuple[RecipeResult, RecipeResult]:
    from seatrial.deployment.trial import read_evaluation_set
    from seatrial.probe.recipes import compare_folder, pin_recipes
    from seatrial.probe.run import only_probe
    from seatrial.quality.recipe_result import stored_result

    with only_probe(compare_folder(comparison.loaded)):
        pinned = pin_recipes(
            comparison.loaded,
            comparison.recipes,
            comparison.plan,
            comparison.environments,
            hardware=comparison.hardware,
        )
        prompts = None
        if comparison.evaluation_file is not None:
            chat = all(recipe.takes_messages for recipe in pinned)
            prompts = read_evaluation_set(comparison.evaluation_file, chat=chat)
        stored = {
            recipe.name: None if comparison.again else stored_result(
                comparison.results, recipe.name, recipe.digest(prompts, comparison.most_tokens)
            )
            for recipe in pinned
        }  # fmt: skip
        missing = [recipe for recipe in pinned if stored[recipe.name] is None]
        for recipe in pinned:
            if recipe not in missing:
                typer.echo(f"{recipe.name}: measured before, in {comparison.results.as_posix()}", err=comparison.err)
        stored |= _deployed(comparison, missing, prompts, yes=yes, verbose=verbose)
    a, b = (stored[recipe.name] for recipe in pinned)
    if a is None or b is None:
        raise TypeError("a recipe was neither stored nor measured")
    return a, b


def _deployed(
    comparison: _Compared, missing: Sequence[PinnedRecipe], prompts: EvaluationSet | None, *, yes: bool, verbose: bool
) -> dict[str, RecipeResult]:
    """Measure what was not measured before; each result is kept as soon as it is there."""
    from seatrial.cli.support.probing import aws_tools, confirm
    from seatrial.probe.recipes import asking_limit_s, compare_folder, measure_recipe
    from seatrial.probe.run import check_tools
    from seatrial.probe.view import estimate_lines
    from seatrial.quality.recipe_result import keep_recipe_result
    from seatrial_base.terminal import console
    from seatrial_laptop.demo.progress import Steps
    from seatrial_laptop.demo.runner import end_on_signals

    if not missing:
        return {}
    loaded = comparison.loaded
    tools = aws_tools(loaded, check_tools(loaded.path), compare_folder(loaded))
    lines = estimate_lines(
        [recipe.pinned for recipe in missing], what="comparison", asking_s=asking_limit_s(prompts)
    )  # fmt: skip
    confirm(lines, yes=yes or loaded.environment.is_embedded, err=comparison.err)
    end_on_signals()
    steps = Steps(console(markup=True, stderr=comparison.err), verbose=verbose)
    measured: dict[str, RecipeResult] = {}
    for recipe in missing:
        result = measure_recipe(recipe, tools, steps, prompts, comparison.most_tokens)
        # Kept before the next is deployed: a failure of the second recipe must not cost the first, which is paid for.
        path = keep_recipe_result(comparison.results, result)
        typer.echo(f"{recipe.name}: {path.as_posix()}", err=comparison.err)
        measured[recipe.name] = result
    return measured


def _show(compared: RecipeComparison, output_format: str, output: Path | None) -> None:
    from seatrial.report.document.recipes import recipes_markdown
    from seatrial.report.terminal.trial import recipe_comparison_view
    from seatrial.report.write import comparison_document, write_comparison
    from seatrial_base.terminal import show, show_json, show_text

    if output_format == "json":
        show_json(comparison_document(compared))
    elif output_format == "markdown":
        show_text(recipes_markdown(compared))
    else:
        show(recipe_comparison_view(compared))
    if output is not None:
        for path in write_comparison(compared, output):
            typer.echo(path.as_posix(), err=output_format != "text")
