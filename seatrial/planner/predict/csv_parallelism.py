"""Reads the columns of `seatrial predict` that say how experts and attention are spread over a copy's accelerators.

Engines count differently. SGLang, TensorRT-LLM and InferenceX count all accelerators as the tensor parallel degree, and
`attention_dp` divides it (docs.sglang.io, DP and DP attention; docs.nvidia.com/dynamo, DP rank routing). vLLM counts
those of one group, and has `tensor_parallel_size` times `data_parallel_size` (docs.vllm.ai, data parallel deployment).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from seatrial_base.catalog.architecture import Architecture

Column = Literal["moe_ep", "attention_dp"]

SPELLINGS: dict[Column, tuple[str, ...]] = {
    "moe_ep": ("moe_ep", "expert_parallel_degree", "ep"),
    "attention_dp": ("attention_dp", "attention_data_parallel_degree", "dp_attention"),
}
EVERY = 0
"""What `true` says: over every accelerator of the copy."""
_FALSE, _TRUE = ("", "false", "no", "off", "0"), ("true", "yes", "on")


@dataclass(frozen=True, slots=True)
class Parallelism:
    """How one copy is spread over its accelerators.

    Attributes:
        degree: Accelerators of the copy.
        copies: Copies that a row of one copy means: a dense model that runs data parallel is several copies.
        expert_parallel_degree: As `Copy` has it.
        attention_data_parallel_degree: As `Copy` has it.
        notes: What was taken for another thing than what the row names.
    """

    degree: int
    copies: int = 1
    expert_parallel_degree: int = 1
    attention_data_parallel_degree: int = 1
    notes: tuple[str, ...] = ()


def read_groups(text: str) -> int | None:
    """Read a cell: a whole number of groups, 1 for `false`, `EVERY` for `true`; `None` where it is none of them."""
    written = text.strip().lower()
    if written in _FALSE:
        return 1
    if written in _TRUE:
        return EVERY
    try:
        number = float(written)
    except ValueError:
        return None
    return int(number) if number.is_integer() and number >= 1 else None


def arrange(
    architecture: Architecture, degree: int, *, moe_ep: int, attention_dp: int, accelerators: int, most: int
) -> Parallelism:
    """Return the form that a row means, or the nearest that there is, with a note.

    Args:
        architecture: The model.
        degree: The row's tensor parallel degree.
        moe_ep: Groups that share the experts out; `EVERY` for all accelerators.
        attention_dp: Groups that attend to sequences of their own; `EVERY` for all accelerators.
        accelerators: Those that the row counts; 0 where it doesn't.
        most: Accelerators that a copy may have.
    """
    notes = []
    spanned = degree * attention_dp
    if attention_dp > 1 and (spanned == accelerators or (attention_dp > degree and spanned <= most)):
        notes.append(f"tp_degree {degree} and attention_dp {attention_dp} are taken as {spanned} accelerators")
        degree = spanned
    groups = _nearest("attention_dp", attention_dp, degree, notes)
    if architecture.experts is None:
        return _dense(architecture, degree, groups, moe_ep, notes)
    experts = _nearest("moe_ep", moe_ep, degree, notes)
    return Parallelism(degree, 1, experts, groups, tuple(notes))


def _dense(architecture: Architecture, degree: int, groups: int, moe_ep: int, notes: list[str]) -> Parallelism:
    if moe_ep != 1:
        notes.append(f"moe_ep is left out: {architecture.id} has no experts")
    if groups > 1:
        notes.append(f"attention_dp {groups} of a model without experts is taken as {groups} copies")
    return Parallelism(degree // groups, groups, notes=tuple(notes))


def _nearest(column: Column, asked: int, degree: int, notes: list[str]) -> int:
    """Return the largest number of equal groups that is not above what was asked."""
    if asked == EVERY:
        return degree
    found = max(groups for groups in range(1, min(asked, degree) + 1) if degree % groups == 0)
    if found != asked:
        notes.append(f"{column} {asked} does not divide {degree} accelerators: it is taken as {found}")
    return found
