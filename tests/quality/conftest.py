from __future__ import annotations

import json
from dataclasses import replace

from seatrial.quality.recipe_result import RecipeDeployment, RecipeResult, result_digest
from seatrial_load.documents.result import EvaluationAnswer
from seatrial_load.quality.scores import EvaluationSet, evaluation_set
from tests.constructs.conftest import level, passing_result

DEPLOYMENT = RecipeDeployment(
    instance_type="ml.g5.2xlarge",
    tensor_parallel_degree=1,
    engine="lmi",
    engine_version="0.36.0",
    weight_bytes=2**34,
    usd_per_hour_per_copy=3.6,
    discount=0.25,
)


def questions(count: int) -> EvaluationSet:
    lines = (json.dumps({"prompt": f"question {n}", "reference": f"Answer  {n}", "id": n}) for n in range(count))
    return evaluation_set("\n".join(lines).encode(), "eval.jsonl", chat=False)


def answer(name: str, text: str, *logs: float) -> EvaluationAnswer:
    tokens = tuple(text.split(" "))
    return EvaluationAnswer(id=name, text=text, tokens=tokens, log_probabilities=logs or tuple(-0.5 for _ in tokens))


def measured(recipe: str, right: int, *, count: int = 40, tok_s: float = 100.0, **changes: object) -> RecipeResult:
    """Return a recipe whose first `right` answers are right."""
    asked = questions(count)
    trial = passing_result()
    trial = replace(trial, levels=(level(trial.request.gate_concurrency, tok_s),))
    answers = tuple(answer(f"{n}", f"answer {n}" if n < right else "no idea") for n in range(count))
    result = RecipeResult(
        endpoint="chat",
        recipe=recipe,
        digest=result_digest(recipe),
        deployment=DEPLOYMENT,
        trial=trial,
        most_tokens=16,
        evaluation_set=asked.digest,
        prompts=asked.prompts,
        answers=answers,
    )
    return replace(result, **changes)  # type: ignore[arg-type]  # a maker for tests: keywords of any type
