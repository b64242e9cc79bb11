"""What was decided, and why: one reason for each decision."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group

from seatrial.plan.document import Decision, Image
from seatrial.report.terminal.tables import add_row, heading, table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rich.console import RenderableType

    from seatrial.plan.document import Plan

NAMES: Mapping[str, str] = {
    "inference_ami_version": "inference AMI",
    "instance_count": "instances",
    "copy_count": "copies",
    "max_model_len": "max model length",
    "max_num_seqs": "max sequences",
    "max_num_batched_tokens": "max batched tokens",
    "memory_min_mb": "host memory (MiB)",
    "startup_timeout_s": "start-up timeout (s)",
    "download_timeout_s": "download timeout (s)",
    "target_concurrency_per_copy": "target concurrency",
    "gate_concurrency_per_copy": "gate concurrency",
    "concurrency_levels": "trial levels",
}
_WIDEST_VALUE = 22  # leaves the reasons most of a narrow terminal


def decisions_view(plan: Plan) -> RenderableType:
    """Return every decision of the plan."""
    made = table(words=("what", "value", "because"))
    made.columns[1].max_width = _WIDEST_VALUE
    for name, value, because in decision_rows(plan):
        add_row(made, name, value, because)
    return Group(heading("Decisions"), made)


def decision_rows(plan: Plan) -> Iterator[tuple[str, str, str]]:
    """Yield name, value and reason of each decision, in the document's order."""
    for field in type(plan).model_fields:
        decision: object = getattr(plan, field)
        if isinstance(decision, Decision):
            yield NAMES.get(field, field.replace("_", " ")), _written(decision.value), decision.because


def _written(value: object) -> str:
    if value is None:
        return "service default"
    if isinstance(value, Image):
        return f"{value.repository}:{value.tag}"
    if isinstance(value, tuple):
        return " ".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
