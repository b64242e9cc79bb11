"""The evaluation set and the bounds of a trial, from `slo.quality` of the spec."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from seatrial.deployment.evaluation_file import read_evaluation_set
from seatrial_base.errors import SpecError
from seatrial_base.findings import Finding, Place
from seatrial_load.documents.request import QualityFloor, QualityObjective

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial.engines.rendered import RenderedConfig
    from seatrial.specs.endpoint import QualitySpec
    from seatrial.specs.load import LoadedSpec
    from seatrial_load.quality.evaluation_set import EvaluationSet


MOST_GATE_PROMPTS: Final = 200
MOST_GATE_BYTES: Final = 48 * 1024
"""CloudFormation sends the request to the function twice on an update, old and new: together at most 256 KiB."""
MOST_GATE_TOKENS: Final = 256
RULE: Final = "SEA533"


def quality_floor(loaded: LoadedSpec, serving: RenderedConfig) -> QualityFloor | None:
    """Return what a trial asks after its levels; None where the spec bounds no quality.

    Args:
        loaded: What was asked for.
        serving: What the container was told, for the schema it speaks.

    Raises:
        SpecError: SEA527 for an evaluation set with bad lines, SEA533 for one that is too large for a trial or has no
            references for `exact_match`.
    """
    quality = loaded.endpoint.slo.quality
    objectives = () if quality is None else tuple(_objectives(quality))
    if quality is None or not objectives:
        return None
    path = loaded.path.parent / quality.evaluation_set
    asked = read_evaluation_set(path, chat=serving.payload_schema == "openai_chat")
    where = path.as_posix()
    if problems := [
        Finding(RULE, Place.at(where, field), message, hint) for field, message, hint in _impossible(quality, asked)
    ]:
        raise SpecError(problems)
    return QualityFloor(
        evaluation_set=asked.digest,
        prompts=asked.prompts,
        objectives=objectives,
        most_tokens=min(MOST_GATE_TOKENS, loaded.endpoint.workload.output_tokens),
    )


def _objectives(quality: QualitySpec) -> Iterator[QualityObjective]:
    if quality.exact_match is not None:
        yield QualityObjective(metric="exact_match", bound=quality.exact_match, sense="at_least")
    if quality.mean_logprob is not None:
        yield QualityObjective(metric="mean_logprob", bound=quality.mean_logprob, sense="at_least")
    if quality.perplexity is not None:
        yield QualityObjective(metric="perplexity", bound=quality.perplexity, sense="at_most")


def _impossible(quality: QualitySpec, asked: EvaluationSet) -> Iterator[tuple[str, str, str]]:
    hint = "give a smaller set; seatrial compare --evaluation-set takes the larger one"
    if len(asked.prompts) > MOST_GATE_PROMPTS:
        yield "slo.quality", f"{len(asked.prompts):,} prompts; a trial asks at most {MOST_GATE_PROMPTS}", hint
    size = len(json.dumps([asdict(prompt) for prompt in asked.prompts]))
    if size > MOST_GATE_BYTES:
        yield "slo.quality", f"{size:,} bytes as JSON; a trial's request holds at most {MOST_GATE_BYTES:,}", hint
    if quality.exact_match is not None and not asked.has_references:
        message = "no prompt has a reference"
        yield "slo.quality.exact_match", message, 'add "reference" to the lines, or remove exact_match'
