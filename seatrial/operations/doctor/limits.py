"""By which row of `engine_limits.json` an engine refused to load, and what would start in its place."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from seatrial_base.catalog.engine_limits import loader_of, rows_in, start_refusals
from seatrial_base.catalog.instances import find_instance
from seatrial_lint.lint.checks.service import LOADERS, start_of, ways_to_start
from seatrial_lint.lint.rules import look_at
from seatrial_lint.lint.source import ConfigSource, SourceEntry
from seatrial_lint.lint.target import guess

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from seatrial_base.catalog.engine_limits import Start
    from seatrial_base.catalog.instances import Instance
    from seatrial_base.findings import Finding

_IS: Final = r"""['"]?(?:\s*[=:]\s*|\s+)['"]?"""
_WRITTEN: Final = (
    (rf"\bmodel(?:_path|_id|_tag)?{_IS}([A-Za-z0-9][\w.-]*/[\w.-]+)", "SM_VLLM_MODEL SM_SGLANG_MODEL_PATH HF_MODEL_ID"),
    (
        rf"\b(?:tensor[ _-]parallel[ _-]size|tp[_-]size|num[_-]shard){_IS}(?:Some)?\(?(\d{{1,4}})",
        "SM_VLLM_TENSOR_PARALLEL_SIZE SM_SGLANG_TP_SIZE SM_NUM_GPUS",
    ),
    (rf"(?i)enable[_-]expert[_-]parallel{_IS}(true)", "SM_VLLM_ENABLE_EXPERT_PARALLEL OPTION_ENABLE_EXPERT_PARALLEL"),
    (rf"\bep[_-]size{_IS}(\d{{1,4}})", "SM_SGLANG_EP_SIZE"),
    (r"\bdtype['\"]?\s*[=:]\s*['\"]?(?:torch\.)?(bfloat16|float16)", "SM_VLLM_DTYPE SM_SGLANG_DTYPE"),
)
"""How engines write their arguments into their logs, and the variables of which a container makes these."""
_OF_DEGREE: Final = ("experts", "rows", "heads")


@dataclass(frozen=True, slots=True)
class RefusedStart:
    """A container that failed; `None` for what is not known of engine, start and instance."""

    engine: str | None = None
    case: Start | None = None
    instance: Instance | None = None

    def way_out(self, *, is_refused: bool) -> str:
        """Return in words what would start in its place; empty where the degree is not what matters, or unknown."""
        if self.case is None or self.instance is None or self.case.architecture is None:
            return ""
        degrees, whole = ways_to_start(self.case, self.instance)
        fits = [*filter(None, (degrees, "expert parallelism (enable_expert_parallel)" if whole else ""))]
        weights = f"{self.case.architecture.id} ({self.case.quantization or '16 bits'})"
        on = f"{weights} on {self.instance.instance_type}"
        if fits:
            return f"{on} starts with {' or with '.join(fits)}."
        return f"No degree is known at which {on} starts." if is_refused else ""


def of_variables(
    image: str, environment: Mapping[str, str], instance_type: str, accelerators: float | None = None
) -> RefusedStart:
    """Return what a container was that failed; `accelerators`: of a copy of a component, `None` for the instance's."""
    known = {"image": image, "instance_type": instance_type, "accelerators": f"{accelerators or 0:.0f}"}
    facts = {name: SourceEntry(name, value, 1, "env") for name, value in known.items()}
    if accelerators is None:
        del facts["accelerators"]
    variables = tuple(SourceEntry(name, value, 1, "env") for name, value in environment.items())
    source = ConfigSource("the container", "model definition", variables, facts, is_partial=True)
    # The image alone: variables say nothing of an engine that it does not have.
    target, instance = guess(replace(source, entries=())), find_instance(instance_type)
    loader = LOADERS.get(target.dialect) if target else None
    if instance and accelerators:
        instance = replace(instance, accelerator_count=int(accelerators))
    case = start_of(look_at(source, guess(source), facts)) if loader else None
    return RefusedStart(loader_of(loader, None)[0] if loader else None, case, instance)


def of_log(lines: Iterable[str], image: str, instance_type: str | None) -> RefusedStart:
    """Return what a log tells of a container that failed: its engine wrote its arguments."""
    text = "\n".join(lines)
    matches = ((re.search(pattern, text), names) for pattern, names in _WRITTEN)
    variables = {name: match[1] for match, names in matches if match for name in names.split()}
    return of_variables(image, variables, instance_type or "")


def with_row(finding: Finding, line: str, refused: RefusedStart) -> Finding:
    """Return a diagnosis with the row by which the engine refused, and what would start; as it is without a row."""
    rows = rows_in(line, refused.engine)
    if not rows:
        return finding
    refusals = start_refusals(refused.case) if refused.case else ()
    # The same row by the engine's own version; where it does not refuse, that of the text.
    same = {each.row: each.source for each in refusals if each.row in rows} or rows
    named = " or ".join(f"{row} ({source})" for row, source in same.items())
    parts = [finding.hint, f"In engine_limits.json: {named}.", *dict.fromkeys(each.because for each in refusals)]
    if any(row.endswith(_OF_DEGREE) for row in rows):
        parts.append(refused.way_out(is_refused=any(each.row in rows for each in refusals)))
    return replace(finding, hint=" ".join(filter(None, parts)))
