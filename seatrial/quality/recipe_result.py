"""Measured result of one recipe: the file that `seatrial compare` keeps, and reads again."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from seatrial_base.errors import BenchError, SpecError
from seatrial_base.files import kind_of, read_text, write_whole
from seatrial_base.units import MIB
from seatrial_load.documents.request import EvaluationPrompt  # noqa: TC001 (likewise)
from seatrial_load.documents.result import (
    EvaluationAnswer,  # noqa: TC001 (likewise)
    TrialResult,  # noqa: TC001 (the strict reader resolves the fields' types)
)
from seatrial_load.documents.strict_json import DocumentT, read_document, write_document

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


RULE: Final = "SEA529"
SCHEMA_VERSION: Literal["1"] = "1"
MOST_RESULT_BYTES: Final = 256 * MIB
"""10,000 answers of 256 tokens with their log-probabilities take some 100 MiB."""
_LONGEST_NAME: Final = 60
_DIGEST_DIGITS: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeDeployment:
    """What a recipe was deployed as: one copy.

    Attributes:
        weight_bytes: Size of the weights by the plan; None where it has none.
        usd_per_hour_per_copy: The copy's share of its instance, the discount taken off; None when unknown.
        discount: Share off the list price.
    """

    instance_type: str
    tensor_parallel_degree: int
    engine: str
    engine_version: str
    weight_bytes: int | None
    usd_per_hour_per_copy: float | None
    discount: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeResult:
    """One recipe, measured.

    Attributes:
        endpoint: The endpoint's name in its spec.
        digest: Of everything that was deployed and sent; the same digest needs no other measurement.
        most_tokens: Tokens that an answer to the evaluation set could have.
        evaluation_set: Digest of the evaluation set; empty without one.
        prompts: The evaluation set.
        answers: One for each prompt.
        local_weight_bytes: Size of the file that a local engine served; None on AWS.
    """

    schema_version: Literal["1"] = SCHEMA_VERSION
    endpoint: str
    recipe: str
    digest: str
    deployment: RecipeDeployment
    trial: TrialResult
    most_tokens: int
    evaluation_set: str = ""
    prompts: tuple[EvaluationPrompt, ...] = ()
    answers: tuple[EvaluationAnswer, ...] = ()
    local_weight_bytes: int | None = None

    @property
    def failed(self) -> int:
        """Prompts that were not answered."""
        return sum(not answer.answered for answer in self.answers)

    def to_json(self) -> str:
        """Write the result as one line of JSON."""
        return write_document(self)


def result_digest(*parts: str) -> str:
    """Return the SHA-256 of what was deployed and sent, in hexadecimal digits."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def result_name(recipe: str, digest: str) -> str:
    """Return the file's name of a recipe's result: readable, and one for each digest."""
    readable = re.sub(r"[^A-Za-z0-9_.+-]+", "-", recipe)[:_LONGEST_NAME].strip("-.")
    return f"{readable or 'recipe'}-{digest[:_DIGEST_DIGITS]}.recipe.json"


def read_recipe_result(path: Path) -> RecipeResult:
    """Read a stored result.

    Raises:
        SpecError: SEA529 when it can't be read or is no such document.
    """
    hint = "give a file that `seatrial compare` wrote; --again replaces a stored one"
    result = read_stored(RecipeResult, path, "the result of a recipe", hint)
    if len(result.answers) not in (0, len(result.prompts)):
        message = f"it has {len(result.prompts)} prompts and {len(result.answers)} answers"
        raise SpecError.of(RULE, message, where=path.as_posix())
    return result


def read_stored(kind: type[DocumentT], path: Path, what: str, hint: str) -> DocumentT:
    """Read a stored result of a kind.

    Args:
        what: What it should be, for messages.

    Raises:
        SpecError: SEA529 when it can't be read or is no such document.
    """
    where = path.as_posix()
    try:
        text = read_text(path, most_bytes=MOST_RESULT_BYTES)
    except OSError as unread:
        raise SpecError.of(RULE, f"can't be read: {unread.strerror}", where=where) from unread
    except UnicodeDecodeError as malformed:
        raise SpecError.of(RULE, f"not UTF-8: {malformed.reason}", where=where) from malformed
    try:
        return read_document(kind, text, where=where)
    except BenchError as wrong:
        problems = "; ".join(f"{problem.field or 'the document'}: {problem.message}" for problem in wrong.problems[:3])
        raise SpecError.of(RULE, f"not {what}: {problems}", where=where, hint=hint) from wrong


def stored_result(folder: Path, recipe: str, digest: str) -> RecipeResult | None:
    """Return the result of a recipe that was measured before with the same digest; None when there is none.

    Raises:
        SpecError: SEA529 when there is a file that can't be read.
    """
    path = folder / result_name(recipe, digest)
    return read_recipe_result(path) if kind_of(path) else None


def keep_recipe_result(folder: Path, result: RecipeResult) -> Path:
    """Write a result to its file in a folder, whole or not at all.

    Raises:
        BenchError: SEA530 when it can't be written.
    """
    path = folder / result_name(result.recipe, result.digest)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(path, result.to_json())
    except OSError as unwritten:
        raise BenchError.of("SEA530", f"can't be written: {unwritten.strerror}", where=path.as_posix()) from unwritten
    return path


def check_comparable(results: Sequence[RecipeResult]) -> None:
    """Refuse results of another load, another evaluation set, or of a local engine and a real one.

    Raises:
        SpecError: SEA531, with everything that differs.
    """
    first, second = results
    one, other = first.trial.request, second.trial.request
    differences = {
        "workload": (one.workload, other.workload),
        "concurrency levels": (one.load.concurrency_levels, other.load.concurrency_levels),
        "concurrency of the gate": (one.gate_concurrency, other.gate_concurrency),
        "objectives": (one.objectives, other.objectives),
        "evaluation set": (first.evaluation_set, second.evaluation_set),
        "limit on the tokens of an answer": (first.most_tokens, second.most_tokens),
        "engine, local or not": (bool(first.trial.engine_note), bool(second.trial.engine_note)),
    }
    different = [name for name, (here, there) in differences.items() if here != there]
    if different:
        hint = "measure both with the same spec and evaluation set"
        message = f"not comparable: they differ in {', '.join(different)}"
        raise SpecError.of("SEA531", message, where=f"{first.recipe} and {second.recipe}", hint=hint)
