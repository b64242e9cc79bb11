"""By which row of `engine_limits.json` an engine refused to load, and what would start in its place."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from seatrial_base.catalog.engine_limits import Start, loader_of, rows_in, start_refusals
from seatrial_base.catalog.instances import find_instance
from seatrial_lint.lint.checks.service import LOADERS, start_case, start_of, ways_to_start
from seatrial_lint.lint.rules import look_at
from seatrial_lint.lint.source import ConfigSource, SourceEntry
from seatrial_lint.lint.target import guess

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from seatrial_base.catalog.instances import Instance
    from seatrial_base.findings import Finding

_NAME: Final = r"""['"]?(?:\s*[=:]\s*|\s+)['"]?"""
_MODEL: Final = re.compile(rf"\bmodel(?:_path|_id|_tag)?{_NAME}([A-Za-z0-9][\w.-]*/[\w.-]+)")
_DEGREE: Final = re.compile(
    rf"\b(?:tensor[ _-]parallel[ _-]size|tp[_-]size|num[_-]shard){_NAME}(?:Some)?\(?(\d{{1,4}})"
)
_EXPERTS: Final = re.compile(rf"enable[_-]expert[_-]parallel{_NAME}true", re.IGNORECASE)
_GROUPS: Final = re.compile(rf"\bep[_-]size{_NAME}(\d{{1,4}})")
_DTYPE: Final = re.compile(r"\bdtype['\"]?\s*[=:]\s*['\"]?(?:torch\.)?(bfloat16|float16)")
_OF_DEGREE: Final = ("experts", "rows", "heads")


@dataclass(frozen=True, slots=True)
class RefusedStart:
    """A deployment that failed, as its engine saw it, and the instance that it was on; `None` where it is not known."""

    case: Start
    instance: Instance | None


def of_variables(
    image: str, environment: Mapping[str, str], instance_type: str, accelerators: float | None = None
) -> RefusedStart | None:
    """Return the start of a container by its variables; `None` where model, engine or instance type is not known.

    `accelerators`: of a component's copy; `None` for every one of the instance.
    """
    facts = {"image": image, "instance_type": instance_type}
    facts |= {} if accelerators is None else {"accelerators": f"{accelerators:.0f}"}
    entries = {name: SourceEntry(name, value, 1, "env") for name, value in facts.items()}
    variables = tuple(SourceEntry(name, value, 1, "env") for name, value in environment.items())
    source = ConfigSource("the container", "model definition", variables, entries, is_partial=True)
    case, instance = start_of(look_at(source, guess(source), entries)), find_instance(instance_type)
    if case is None or instance is None:
        return None
    return RefusedStart(case, replace(instance, accelerator_count=int(accelerators or instance.accelerator_count)))


def of_log(lines: Iterable[str], image: str, instance_type: str | None) -> RefusedStart | None:
    """Return the start that a log tells, whose engine writes its arguments; `None` where the engine is not known."""
    source = ConfigSource("the image", "model definition", (), {"image": SourceEntry("image", image, 1, "env")})
    target, text = guess(source), "\n".join(lines)
    loader = LOADERS.get(target.dialect) if target else None
    instance, model = find_instance(instance_type or ""), _MODEL.search(text)
    if target is None or loader is None:
        return None
    degree, groups, dtype = _DEGREE.search(text), _GROUPS.search(text), _DTYPE.search(text)
    number = int(degree[1]) if degree else 1
    case = start_case(
        model[1] if model else "",
        *loader_of(loader, None if target.assumed else target.version),
        instance,
        degree=number,
        expert_degree=int(groups[1]) if groups else number if _EXPERTS.search(text) else 1,
        dtype={"bfloat16": "bf16", "float16": "fp16"}[dtype[1]] if dtype else "",
    )
    return RefusedStart(case, instance)


def with_row(finding: Finding, line: str, refused: RefusedStart | None) -> Finding:
    """Return a diagnosis with the row by which the engine refused, and what would start; as it is without a row."""
    rows = rows_in(line, refused.case.engine if refused else None)
    if not rows:
        return finding
    refusals = start_refusals(refused.case) if refused else ()
    # The same row by the engine's own version; where it does not refuse, that of the text.
    same = {each.row: each.source for each in refusals if each.row in rows} or rows
    told = " or ".join(f"{row} ({source})" for row, source in same.items())
    parts = [finding.hint, f"In engine_limits.json: {told}."]
    parts += dict.fromkeys(each.because for each in refusals)
    if refused and refused.instance and refused.case.architecture and any(row.endswith(_OF_DEGREE) for row in rows):
        ways = ways_to_start(refused.case, refused.instance)
        fits = [ways.degrees, "expert parallelism (enable_expert_parallel)" if ways.whole_experts else ""]
        on = f"{refused.case.architecture.id} ({refused.case.quantization or '16 bits'}) on "
        on += refused.instance.instance_type
        if any(fits):
            parts.append(f"{on} starts with {' or with '.join(filter(None, fits))}.")
        elif any(each.row in rows for each in refusals):
            parts.append(f"No degree is known at which {on} starts.")
    return replace(finding, hint=" ".join(parts))
