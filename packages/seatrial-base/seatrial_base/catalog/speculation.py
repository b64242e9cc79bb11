"""Speculative decoding by method and model: tokens drafted, how many are accepted, what drafting costs.

The acceptance rate is that of one drafted token, given that those before it were accepted: the chain of k drafted
tokens yields (1 - a^(k+1)) / (1 - a) tokens a step. Nobody knows it before the traffic runs; each number says whether
it was fitted on measurements, published, or assumed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Final, Literal

from seatrial_base.bounds import DEFAULT_DRAFT_COST
from seatrial_base.catalog.models import find_model, resolve_model
from seatrial_base.catalog.rows import CatalogTable, Sourced, read_mapping

if TYPE_CHECKING:
    from seatrial_base.catalog.architecture import Architecture

Method = Literal["draft_model", "ngram", "eagle", "eagle3", "medusa"]
Provenance = Literal["fitted", "published", "assumed"]

_EAGLE3_VOCAB = 32_000  # RedHatAI/Qwen3-32B-speculator.eagle3 and its siblings, config.json: draft_vocab_size
_EAGLE3_FEATURES = 3  # hidden states of so many layers enter the head (arXiv 2503.01840, section 3.1)
_EAGLE_FEATURES = 2  # the hidden state beside the token's embedding (arXiv 2401.15077)
_DENSE_LAYER = 12  # times hidden size squared: parameters of a layer of Llama, for the head of a mixture of experts
_BYTES = 2  # drafts are kept at 16 bits


@dataclass(frozen=True, slots=True)
class DraftFacts:
    """What is known of one method on one model.

    Attributes:
        acceptance_rate: Probability that a drafted token is accepted.
        draft_cost: Bytes that drafting one token reads, as a share of those that a step of the model reads.
        provenance: Where the acceptance rate comes from; `assumed` where only other models were measured.
    """

    draft_tokens: int
    acceptance_rate: float
    draft_cost: float
    provenance: Provenance
    source: str


@dataclass(frozen=True, slots=True)
class Draft:
    """A draft whose shape is known.

    Attributes:
        shape: The draft as a model of its own; a head has one layer.
        weights_bytes: What it adds to the memory, over all accelerators: an EAGLE head shares the model's output
            embedding.
        step_s: Work between two drafted tokens: launches, sampling, preparing the next one.
    """

    shape: Architecture
    weights_bytes: int
    step_s: float


@dataclass(frozen=True, slots=True)
class _Row(Sourced):
    method: Method
    model: str | None
    draft_tokens: int
    acceptance_rate: float
    provenance: Provenance


_ROWS: Final = CatalogTable(_Row, "speculation.json", key="method")


def assumed(method: Method, model: str, draft: str | None = None) -> DraftFacts:
    """Return what to take for a method on a model, until a trial measures it.

    `model`: the model's hub id, or any name that `resolve_model` reads; an unknown one has the method's defaults.
    """
    resolved = resolve_model(model)
    return facts_of(method, resolved[0] if resolved else None, draft)


def facts_of(method: Method, target: Architecture | None, draft: str | None = None) -> DraftFacts:
    """Return what `assumed` does, of a model by its shape; `None` is a model that the catalog lacks."""
    # The row of the model, or of its release of the same shape; else the method's own.
    rows = _ROWS.having(method)
    alike = (row for row in rows if row.model and target and _same_shape(row.model, target))
    row = next(alike, next(row for row in rows if row.model is None))
    return DraftFacts(row.draft_tokens, row.acceptance_rate, _cost(method, target, draft), row.provenance, row.source)


def draft_of(method: Method, target: Architecture, draft: str | None = None) -> Draft | None:
    """Return the draft as a model of its own; `None` where there is none, or where its shape is unknown.

    An EAGLE head is built from the model's shape, whatever checkpoint is named: one layer, the projection of the
    features that enter it, and an output embedding. A draft model is looked up in the catalog.
    """
    if method in ("eagle", "eagle3"):
        # An EAGLE head; the least of its layer is that of the model, or of a dense one of the same width.
        hidden = target.hidden_size
        embeddings = target.vocab * hidden * (1 if target.tied_embeddings else 2)
        dense = (target.params_total - embeddings) // target.layers
        heads = (target.attention_heads + 2 * target.kv_heads) * target.head_dim
        layer = _DENSE_LAYER * hidden * hidden if target.experts else dense
        features = _EAGLE3_FEATURES if method == "eagle3" else _EAGLE_FEATURES
        body = layer + features * hidden * hidden + (hidden * heads if method == "eagle3" else 0)
        vocab = min(_EAGLE3_VOCAB, target.vocab) if method == "eagle3" else target.vocab
        shape = replace(
            target,
            id=f"{method} head of {target.id}",
            layers=1,
            vocab=vocab,
            params_total=body + vocab * hidden,
            params_active=body + vocab * hidden,
            experts=None,
            experts_per_token=None,
            tied_embeddings=True,
            sliding_window=None,
            sliding_layers=None,
            linear_layers=0,
            mixed_layers=0,
            state_bytes=0,
            latent_dim=None,
            checkpoint_quantization=None,
        )
        own = shape.params_total if method == "eagle3" else body
        return Draft(shape, own * _BYTES, _step_s())
    resolved = resolve_model(draft) if method == "draft_model" and draft else None
    return Draft(resolved[0], resolved[0].params_total * _BYTES, _step_s()) if resolved else None


def _same_shape(model: str, target: Architecture) -> bool:
    known = find_model(model)
    parts = ("family", "layers", "hidden_size", "params_total")
    return known is not None and all(getattr(known, part) == getattr(target, part) for part in parts)


def _cost(method: Method, target: Architecture | None, draft: str | None) -> float:
    if method == "ngram":
        return 0.0
    if target is None:
        return DEFAULT_DRAFT_COST
    if method == "medusa":
        return target.hidden_size * (target.hidden_size + target.vocab) / target.params_active
    draft_model = draft_of(method, target, draft)
    return draft_model.shape.params_active / target.params_active if draft_model else DEFAULT_DRAFT_COST


@cache
def _step_s() -> float:
    return float(read_mapping("speculation.json", "times")["draft_step_s"])
