"""What the numbers of `model.shape` must be to one another, looked up in the raw document."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import ValidationError

from seatrial.spec.model_shape import MOST_HEAD_DIM, ModelShape

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial.errors import Problem
    from seatrial.spec.merge import Document
    from seatrial.spec.source import Yaml

_SHAPE = ("model", "shape")
_BILLION = 10**9
# Parameters of one MLP or expert in units of hidden_size². Dense: 8 (Llama, GPT-NeoX) to 24 (Gemma); experts: from 0.9
# (DeepSeek-V3) to 10.5 (Mixtral). The bounds lie within, and _SLACK around them.
_DENSE_MLP, _WIDEST_MLP, _NARROWEST_EXPERT = 8, 12, 1
_SLACK = 3


def shape_problems(document: Document) -> Iterator[Problem]:
    """Yield what can't be true of any model: the numbers contradict one another, or the parameters the shape."""
    shape = document.value(*_SHAPE)
    if not isinstance(shape, dict):
        return
    wrong = _wrong_alone(shape)
    counts = {
        name: value
        for name, value in shape.items()
        if isinstance(value, int) and not isinstance(value, bool) and name not in wrong
    }
    for rule in (_heads, _expert_counts, _active, _sliding, _size):
        yield from rule(document, counts)


def _wrong_alone(shape: dict[str, Yaml]) -> set[int | str]:
    """Return the fields that are told by their own type or bound, and are not compared."""
    try:
        ModelShape.model_validate(shape, strict=True)
    except ValidationError as error:
        return {found["loc"][0] for found in error.errors(include_url=False)}
    return set()


def _at(document: Document, name: str, message: str, hint: str, rule: str = "SEA114") -> Problem:
    return document.problem((*_SHAPE, name), rule, message, hint)


def _heads(document: Document, counts: dict[str, int]) -> Iterator[Problem]:
    heads, kv_heads, hidden = (counts.get(name) for name in ("attention_heads", "kv_heads", "hidden_size"))
    if heads and kv_heads and heads % kv_heads:
        message = f"kv_heads {kv_heads:,} do not divide attention_heads {heads:,}"
        yield _at(document, "kv_heads", message, "take both from the model's config.json")
    if heads and hidden and document.value(*_SHAPE, "head_dim") is None:
        head_dim, rest = divmod(hidden, heads)
        if rest or head_dim % 2 or head_dim > MOST_HEAD_DIM:
            message = (
                f"hidden_size {hidden:,} / attention_heads {heads:,} is no head_dim: even, at most {MOST_HEAD_DIM:,}"
            )
            yield _at(document, "attention_heads", message, "give head_dim, as the model's config.json does")


def _expert_counts(document: Document, counts: dict[str, int]) -> Iterator[Problem]:
    pair = ("experts", "experts_per_token")
    given = [name for name in pair if document.value(*_SHAPE, name) is not None]
    if len(given) == 1:
        (missing,) = set(pair) - set(given)
        message = f"{given[0]} is given, and {missing} is not"
        yield _at(document, given[0], message, "give both, or none for a dense model")
    experts, used = counts.get("experts"), counts.get("experts_per_token")
    if experts and used and used > experts:
        message = f"experts_per_token {used:,} exceeds experts {experts:,}"
        yield _at(document, "experts_per_token", message, f"at most {experts:,}")


def _active(document: Document, counts: dict[str, int]) -> Iterator[Problem]:
    total, active = counts.get("params_total"), counts.get("params_active")
    if not total or not active:
        return
    if active > total:
        message = f"params_active {active:,} exceeds params_total {total:,}"
        yield _at(document, "params_active", message, f"at most {total:,}")
    elif active < total and document.value(*_SHAPE, "experts") is None:
        message = f"params_active {active:,} is below params_total {total:,}, and there are no experts"
        yield _at(document, "params_active", message, "give experts and experts_per_token, or leave params_active out")


def _sliding(document: Document, counts: dict[str, int]) -> Iterator[Problem]:
    sliding, layers = counts.get("sliding_layers"), counts.get("layers")
    if sliding and document.value(*_SHAPE, "sliding_window") is None:
        message = "sliding_layers is given, and sliding_window is not"
        yield _at(document, "sliding_layers", message, "give the window in tokens, or leave sliding_layers out")
    if sliding and layers and sliding > layers:
        message = f"sliding_layers {sliding:,} exceeds layers {layers:,}"
        yield _at(document, "sliding_layers", message, f"at most {layers:,}")


def _size(document: Document, counts: dict[str, int]) -> Iterator[Problem]:
    total, bounds = counts.get("params_total"), parameter_bounds(counts)
    if total is None or bounds is None or bounds[0] <= total <= bounds[1]:
        return
    low, high = (f"{bound / _BILLION:,.2g}" if bound < _BILLION else f"{bound / _BILLION:,.0f}" for bound in bounds)
    layers, hidden = counts["layers"], counts["hidden_size"]
    message = f"params_total {total:,} is far from {layers:,} layers of width {hidden:,}: {low} to {high} billion"
    hint = "compare params_total, layers and hidden_size with the model's card"
    yield _at(document, "params_total", message, hint, rule="SEA115")


def parameter_bounds(counts: dict[str, int]) -> tuple[int, int] | None:
    """Return the fewest and most parameters that a shape can have, wide enough for every model of the catalog.

    Embeddings, attention and an MLP of 8 to 12 × hidden_size² (an expert from 1 ×), a third of it to three times of it.
    `None` when a number is missing.
    """
    names = ("layers", "hidden_size", "attention_heads", "vocab")
    if not all(name in counts for name in names):
        return None
    layers, hidden, heads, vocab = (counts[name] for name in names)
    head_dim = counts.get("head_dim", hidden // heads)
    attention = 2 * hidden * head_dim * (heads + counts.get("kv_heads", heads))
    experts = counts.get("experts")
    narrow = _NARROWEST_EXPERT * experts if experts else _DENSE_MLP
    wide = _WIDEST_MLP * (experts or 1)
    fewest = vocab * hidden + layers * (attention + narrow * hidden * hidden)
    most = 2 * vocab * hidden + layers * (attention + wide * hidden * hidden)
    return fewest // _SLACK, most * _SLACK
