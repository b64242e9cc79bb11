"""Measures recipes of one endpoint: each as one copy in a stack of its own, tried, evaluated and deleted."""

from __future__ import annotations

import math
import re
import shutil
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from botocore.exceptions import ClientError

from seatrial.account.trials import describe_stack
from seatrial.deployment.trial import complete_request
from seatrial.probe.pinned import (
    PinnedSpec,
    ProbedDeployment,
    ProbedHardware,
    copied,
    on_hardware,
    one_copy,
    pin_document,
    pinned_name,
    relocate,
)
from seatrial.probe.run import own_folder
from seatrial.quality.recipe_result import RecipeDeployment, RecipeResult, result_digest
from seatrial.specs.load import with_recipe
from seatrial.specs.recipe import recipe_name
from seatrial_base.errors import BenchError, SeatrialError, SpecError
from seatrial_base.frozen_model import digest
from seatrial_laptop.demo.progress import shown_beside
from seatrial_load.quality.answers import MOST_AT_ONCE, TIMEOUT_S, collect_answers

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from mypy_boto3_logs import CloudWatchLogsClient

    from seatrial.documents.plan import Plan
    from seatrial.probe.run import ProbeTools
    from seatrial.specs.load import LoadedSpec
    from seatrial.specs.optimization import Recipe
    from seatrial.specs.yaml_source import Yaml
    from seatrial_base.findings import Finding
    from seatrial_laptop.demo.progress import Steps
    from seatrial_load.documents.request import TrialTarget
    from seatrial_load.documents.result import EvaluationAnswer, TrialResult
    from seatrial_load.quality.scores import EvaluationSet


_FOLDER: Final = ".seatrial/compare"
_RESULTS: Final = ".seatrial/recipes"
_DIGITS: Final = 8  # of a recipe's digest in the name of its stack
LONGEST_ASKING_S: Final = 3600.0


@dataclass(frozen=True, slots=True)
class PinnedRecipe:
    """A recipe, planned, locked and rendered for one copy.

    Attributes:
        endpoint: The endpoint's name in its own spec.
    """

    endpoint: str
    name: str
    pinned: PinnedSpec

    @property
    def takes_messages(self) -> bool:
        """Whether the endpoint's schema takes messages."""
        return self.pinned.deployment.serving.payload_schema == "openai_chat"

    def digest(self, evaluation_set: EvaluationSet | None, most_tokens: int) -> str:
        """Return the digest of all that is deployed and sent."""
        deployment, environment = self.pinned.deployment, self.pinned.loaded.environment
        place = f"{environment.name} {environment.region} {environment.account or ''}"
        questions = evaluation_set.digest if evaluation_set else ""
        parts = (self.name, place, self.pinned.plan.digest, deployment.trial_request, questions, f"{most_tokens}")
        return result_digest(*parts)


def compare_folder(loaded: LoadedSpec) -> Path:
    """Return the folder of an endpoint's comparison; each comparison replaces it."""
    return own_folder(loaded, _FOLDER)


def results_folder(loaded: LoadedSpec) -> Path:
    """Return where the results of an endpoint's recipes are kept, where no other folder is named."""
    return own_folder(loaded, _RESULTS)


def recipe_document(
    loaded: LoadedSpec, recipe: Recipe, plan: Plan, hardware: ProbedHardware | None, folder: Path
) -> dict[str, Yaml]:
    """Return the spec of one copy with a recipe, under the gate and the levels of the endpoint's plan.

    Args:
        hardware: What the copy runs on; None leaves it to the planner.

    Raises:
        SpecError: With everything that contradicts the recipe.
    """
    document = copied(with_recipe(loaded, recipe).document.data)
    document["name"] = pinned_name(loaded.endpoint.name, digest(recipe_name(recipe))[:_DIGITS], "recipe")
    gate = plan.gate_concurrency_per_copy.value
    one_copy(document, loaded, gate=gate, levels=sorted({*plan.concurrency_levels.value, gate}))
    if hardware is not None:
        on_hardware(document, hardware)
    relocate(document, loaded.path.parent, folder)
    return document


def pin_recipes(
    loaded: LoadedSpec,
    recipes: Sequence[Recipe],
    plan: Plan,
    environments: Path,
    *,
    hardware: ProbedHardware | None = None,
) -> tuple[PinnedRecipe, ...]:
    """Write, plan, lock and render the spec of each recipe, each in a folder of its own.

    Args:
        hardware: What every copy runs on; None leaves it to the planner.

    Raises:
        SpecError: With every problem of every recipe; what was written is removed.
    """
    folder = compare_folder(loaded)
    shutil.rmtree(folder, ignore_errors=True)
    pinned: list[PinnedRecipe] = []
    problems: list[Finding] = []
    for name, recipe in zip("ab", recipes, strict=True):
        try:
            document = recipe_document(loaded, recipe, plan, hardware, folder / name)
            own, deployment, place = pin_document(loaded, document, folder / name, environments)
            probed = ProbedDeployment(
                role="candidate",
                hardware=ProbedHardware.of(deployment.plan),
                copy_count=1,
                concurrency_per_copy=deployment.plan.gate_concurrency_per_copy.value,
            )
            spec = PinnedSpec(probed, own, deployment, place)
            pinned.append(PinnedRecipe(loaded.endpoint.name, recipe_name(recipe), spec))
        except SeatrialError as error:
            problems += error.problems
    if problems:
        shutil.rmtree(folder, ignore_errors=True)
        raise SpecError(dict.fromkeys(problems))
    return tuple(pinned)


def asking_limit_s(evaluation_set: EvaluationSet | None) -> float:
    """Return how long an evaluation set may take, in seconds: every request its time limit, at most an hour."""
    if evaluation_set is None:
        return 0.0
    return min(LONGEST_ASKING_S, (1 + math.ceil(len(evaluation_set.prompts) / MOST_AT_ONCE)) * TIMEOUT_S)


def measure_recipe(
    each: PinnedRecipe, tools: ProbeTools, steps: Steps, evaluation_set: EvaluationSet | None, most_tokens: int
) -> RecipeResult:
    """Deploy a recipe, try it, ask it the evaluation set, and delete its stack, whatever happened before.

    Raises:
        BenchError: As `ProbeRun.measure` and `collect_answers`.
    """
    answers: list[EvaluationAnswer] = []
    sizes: list[int | None] = [None]

    def ask() -> None:
        stack = describe_stack(each.pinned.deployment.stack_name, tools.stacks.cloudformation)
        request = complete_request(each.pinned.deployment, stack)
        if evaluation_set is not None:
            answers.extend(
                collect_answers(
                    request.target,
                    request.workload.schema,
                    evaluation_set.prompts,
                    most_tokens=most_tokens,
                    within_s=asking_limit_s(evaluation_set),
                )
            )
            if not any(answer.answered for answer in answers):
                message = f"none of {len(answers)} prompts was answered: {answers[0].failure}"
                raise BenchError.of("SEA534", message, where=each.name)
        if each.pinned.loaded.environment.is_embedded:
            sizes.append(local_weight_bytes(region_logs(request.target.region), request.target))

    run = tools.run_of(each.pinned, verbose=steps.verbose, afterwards=ask)
    with steps.step(f"{each.name}: deploy, try and delete {run.stack_name}") as step:
        with shown_beside(tools.watcher(each.pinned), step):
            trial, _ = run.measure()
        answered = sum(answer.answered for answer in answers)
        words = f", {answered} of {len(answers)} prompts answered" if answers else ""
        step.did(f"verdict: {trial.verdict.status}{words}")
    result = recipe_result(each, trial, evaluation_set, answers, most_tokens)
    return replace(result, local_weight_bytes=sizes[-1])


def recipe_result(
    each: PinnedRecipe,
    trial: TrialResult,
    evaluation_set: EvaluationSet | None,
    answers: Sequence[EvaluationAnswer],
    most_tokens: int,
) -> RecipeResult:
    """Return what is kept of a recipe."""
    plan = each.pinned.plan
    degree = plan.tensor_parallel_degree.value
    return RecipeResult(
        endpoint=each.endpoint,
        recipe=each.name,
        digest=each.digest(evaluation_set, most_tokens),
        deployment=RecipeDeployment(
            instance_type=plan.instance_type.value,
            tensor_parallel_degree=degree,
            engine=plan.engine.value,
            engine_version=plan.engine_version.value,
            weight_bytes=plan.memory.weights_bytes * degree,
            usd_per_hour_per_copy=plan.cost.usd_per_hour_per_copy,
            discount=plan.cost.discount,
        ),
        trial=trial,
        most_tokens=most_tokens,
        evaluation_set=evaluation_set.digest if evaluation_set else "",
        prompts=evaluation_set.prompts if evaluation_set else (),
        answers=tuple(answers),
    )


_WEIGHTS: Final = re.compile(r"^weights: .*; (\d+) bytes")


def region_logs(region: str) -> CloudWatchLogsClient:
    """Return CloudWatch Logs of a region."""
    import boto3  # noqa: PLC0415 (costs a second; only needed where a local engine serves)

    return boto3.client("logs", region_name=region)


def local_weight_bytes(logs: CloudWatchLogsClient, target: TrialTarget) -> int | None:
    """Return the size of the file that a local engine serves; None where its log doesn't have it (yet)."""
    kind, name = ("Endpoints", target.endpoint_name)
    if target.inference_component is not None:
        kind, name = ("InferenceComponents", target.inference_component)
    try:
        lines = logs.filter_log_events(logGroupName=f"/aws/sagemaker/{kind}/{name}").get("events", ())
    except ClientError:
        return None
    matches = (_WEIGHTS.search(line.get("message", "")) for line in lines)
    return next((int(match[1]) for match in matches if match is not None), None)
