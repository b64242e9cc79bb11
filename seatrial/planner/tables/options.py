"""Reads the columns of `seatrial predict` that say how experts and attention are spread over a copy's accelerators.

Engines count differently. SGLang, TensorRT-LLM and InferenceX count all accelerators as the tensor parallel degree, and
`attention_dp` divides it (docs.sglang.io, DP and DP attention; docs.nvidia.com/dynamo, DP rank routing). vLLM counts
those of one group, and has `tensor_parallel_size` times `data_parallel_size` (docs.vllm.ai, data parallel deployment).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from seatrial.planner.predict.copy_model import Speculation
from seatrial_base.catalog.speculation import draft_of, facts_of
from seatrial_base.field_facts import made_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seatrial_base.catalog.architecture import Architecture
    from seatrial_base.catalog.speculation import Method

Column = Literal["moe_ep", "attention_dp"]
SPELLINGS: dict[Column, tuple[str, ...]] = {
    "moe_ep": ("moe_ep", "expert_parallel_degree", "ep"),
    "attention_dp": ("attention_dp", "attention_data_parallel_degree", "dp_attention"),
}
EVERY = 0
"""What `true` says: over every accelerator of the copy."""
_FALSE, _TRUE = ("", "false", "no", "off", "0"), ("true", "yes", "on")
COLUMNS = ("optimization", "optimisation")
# An assumption for rows that name a prefix cache and no hit rate: load tests send few prompts in turn. In AWS's suite
# they are three in 30 requests a level (benchmarks/planner_accuracy/measured_rows).
USUAL_HIT_RATE = 0.9
_NONE = frozenset({"", "vanilla", "none", "baseline", "plain", "no", "off"})
_METHODS: dict[str, Method] = {
    "eagle3": "eagle3",
    "eagle": "eagle",
    "ngram": "ngram",
    "promptlookup": "ngram",
    "medusa": "medusa",
    "speculative": "draft_model",
    "speculativedecoding": "draft_model",
    "draftmodel": "draft_model",
}
_PREFIX_CACHE = frozenset({"prefixcache", "prefixcaching", "apc"})
_KV_FP8 = frozenset({"kvfp8", "fp8kv"})
_WEIGHTS = {"awq": "awq", "fp8": "fp8", "mxfp4": "mxfp4", "smoothquant": "int8"}


@dataclass(frozen=True, slots=True)
class Parallelism:
    """How one copy is spread over its accelerators.

    Attributes:
        copies: Copies that a row of one copy means: a dense model that runs data parallel is several copies.
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
        if moe_ep != 1:
            notes.append(f"moe_ep is left out: {architecture.id} has no experts")
        if groups > 1:
            notes.append(f"attention_dp {groups} of a model without experts is taken as {groups} copies")
        return Parallelism(degree // groups, groups, notes=tuple(notes))
    experts = _nearest("moe_ep", moe_ep, degree, notes)
    return Parallelism(degree, 1, experts, groups, tuple(notes))


def _nearest(column: Column, written: int, degree: int, notes: list[str]) -> int:
    """Return the largest number of equal groups that is not above what is written."""
    if written == EVERY:
        return degree
    nearest = max(groups for groups in range(1, min(written, degree) + 1) if degree % groups == 0)
    if nearest != written:
        notes.append(f"{column} {written} does not divide {degree} accelerators: it is taken as {nearest}")
    return nearest


@dataclass(frozen=True, slots=True)
class ReadOptimization:
    """What a cell asks for.

    Attributes:
        method: How tokens are drafted; `None` without speculative decoding.
        weights: Quantization of the weights; `None` where the row's precision says it.
        draft: The draft model's hub id; `None` for the catalog's assumption.
        unread: Parts that are not known, and a second way to draft or to quantize; the row is predicted without.
    """

    method: Method | None = None
    prefix_cache: bool = False
    kv_fp8: bool = False
    weights: str | None = None
    draft: str | None = None
    unread: tuple[str, ...] = ()


def cell_of(cells: Mapping[str, str]) -> str | None:
    """Return the text of the column in either spelling; `None` for a table without it."""
    written = [cells[name].strip() for name in COLUMNS if name in cells]
    return "+".join(text for text in written if text) if written else None


def read_optimization(text: str, *, precision: str = "", compiled_shapes: bool = False) -> ReadOptimization:
    """Read a cell: names with a plus between them; upper and lower case, spaces, hyphens and underscores don't matter.

    Behind a name may stand what a recipe writes there, as in `speculative=org/draft`.

    Args:
        text: The cell, as `eagle3+prefix-cache`; `vanilla` or nothing for none.
        precision: The row's own precision of the weights, which wins; empty for none.
        compiled_shapes: The engine is AWS Neuron's, whose optimizations are not modelled.
    """
    methods: list[Method] = []
    names, unread, weights, draft = set[str](), list[str](), list[str](), None
    for part in text.split("+"):
        head, _, more = part.partition(",")
        written, _, made_from = head.partition("=")
        name = re.sub(r"[\s_-]", "", written.lower())
        unread += filter(None, [more.strip()])
        method = _METHODS.get(name)
        if name in _NONE:
            continue
        is_weights = name in _WEIGHTS and not precision and not weights
        if compiled_shapes or not (is_weights or method or name in _PREFIX_CACHE | _KV_FP8) or (method and methods):
            unread.append(head.strip())
        elif method:
            methods.append(method)
            draft = made_from.strip() or None
        elif is_weights:
            weights.append(_WEIGHTS[name])
        else:
            names.add(name)
    return ReadOptimization(
        method=next(iter(methods), None),
        prefix_cache=bool(names & _PREFIX_CACHE),
        kv_fp8=bool(names & _KV_FP8),
        weights=next(iter(weights), None),
        draft=draft,
        unread=tuple(dict.fromkeys(unread)),
    )


def usual_speculation(method: Method, architecture: Architecture, draft: str | None = None) -> Speculation:
    """Return speculative decoding with the catalog's numbers for a method on a model, and a draft if it is known."""
    facts = facts_of(method, architecture, draft)
    return made_of(Speculation, facts, draft=draft_of(method, architecture, draft))


def describe_assumptions(
    read: ReadOptimization, speculation: Speculation | None, hit_rate: float, *, assumed_hits: bool
) -> str:
    """Return what a row was predicted with, for the column `predicted_optimization`; empty for a plain row."""
    parts = []
    if read.method and speculation:
        drafted = f"{speculation.draft_tokens} drafted tokens, acceptance rate {speculation.acceptance_rate:g}"
        parts.append(f"{read.method}: {drafted}: {speculation.provenance}")
    if read.prefix_cache:
        parts.append(f"prefix cache: hit rate {hit_rate:g}{': assumed' if assumed_hits else ''}")
    if read.weights:
        parts.append(f"{read.weights} weights")
    if read.kv_fp8:
        parts.append("KV cache at 8 bits")
    parts += [f"without {part[:40]!r}: not read" for part in read.unread]
    return "; ".join(parts)
