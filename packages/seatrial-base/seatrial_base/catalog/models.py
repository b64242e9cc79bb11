"""Model architectures by hub id, and by the names that people and published tables give them."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

from seatrial_base.catalog.architecture import Architecture
from seatrial_base.catalog.model_names import ModelName, read_name, split_precision, unsupported_format
from seatrial_base.catalog.rows import catalog_rows

if TYPE_CHECKING:
    from collections.abc import Mapping

_TUNED = re.compile(r"-(instruct|chat|it|pt|python|thinking|base)(?=-|$)")
_REPUBLISHERS = frozenset(
    {"amd", "neuralmagic", "nousresearch", "nvidia", "redhatai", "unsloth"}
)  # same shape and name
_FEWEST_ALIKE = 0.5  # share of letters in common below which a suggestion is no help


@dataclass(frozen=True, slots=True)
class _Alias:
    alias: str
    id: str
    max_context: int | None


@cache
def all_models() -> tuple[Architecture, ...]:
    """Return every architecture of the catalog, sorted by id."""
    return catalog_rows("models.json", Architecture)


def find_model(model_id: str) -> Architecture | None:
    """Return the architecture of a hub id, or `None` when the catalog lacks it.

    A tuned model shares the architecture of its base: `-Instruct`, `-Chat`, `-it`, `-Python`,
    `-Thinking` and `-Base` are left out when the
    id itself is unknown (`tiiuae/falcon-40b-instruct`). The aliases of the catalog name the repositories for which
    that is not all, because they were renamed or ship another context length. Upper and lower case don't matter.
    """
    asked = model_id.lower()
    return _look_up(asked) or _look_up(_TUNED.sub("", asked, count=1))


def find_model_by_name(name: str) -> Architecture | None:
    """Return the architecture that a hub id or a displayed name means, or `None`.

    `Llama 2 7B Chat`, `Mistral 7B Instruct` and `Code Llama 7B Python` are read by pattern, not from a table of names:
    family, generation and size must be those of a catalog id, in this order; case, separators and the words of tuning
    don't matter. A version, a context or a number of active parameters that is written must be the id's own. Where
    several ids are left, it is the oldest plain release: the lowest version, then the one tuned as asked, then the
    shortest context (`Mistral 7B Instruct` is v0.1). An owner before a slash must be the id's.
    """
    exact = find_model(name)
    if exact is not None:
        return exact
    asked = read_name(name)
    named = [each for each in _by_core().get(asked.core, ()) if _means(asked, each[0])] if asked.core else []
    found = [(known, architecture) for known, model_id in named if (architecture := _look_up(model_id))]
    if not found:
        return None
    return min(found, key=lambda pair: _age(asked, *pair))[1]


def resolve_model(name: str) -> tuple[Architecture, str | None] | None:
    """Return what a hub id, a quantized repository or a displayed name means: shape and quantization of the weights.

    `Qwen/Qwen3-235B-A22B-FP8` is `Qwen/Qwen3-235B-A22B` in fp8; another owner may have quantized it, so there the owner
    doesn't count. A name without a precision has that of the published checkpoint, `mxfp4` for `openai/gpt-oss-20b`.
    The architecture's `checkpoint_quantization` is the quantization that is returned beside it: a name of
    `catalog.precision`, `None` for 16 bits. `None` where the catalog lacks the model, or where the name tells
    a format that can't be planned (`model_names.unsupported_format`).
    """
    if unsupported_format(name) is not None:
        return None
    exact = find_model_by_name(name)
    if exact is not None:
        return exact, exact.checkpoint_quantization
    base, method, told = split_precision(name)
    owner, _, plain = base.rpartition("/")
    found = find_model_by_name(base)
    if found is None and (told or owner.lower() in _REPUBLISHERS):
        found = find_model_by_name(plain)
    if found is None:
        return None
    quantization = method if told else found.checkpoint_quantization
    return replace(found, checkpoint_quantization=quantization), quantization


def sister_model(name: str) -> tuple[Architecture, str | None] | None:
    """Return the model of the catalog that has this name under another organisation, as `resolve_model` does.

    `None` where no id has it, or several do, unless the name alone says which one (`find_model_by_name`).
    """
    base, method, told = split_precision(name)
    plain = base.rpartition("/")[2].lower()
    if "/" not in base:
        return None
    same = [model for model in all_models() if model.id.rpartition("/")[2].lower() == plain]
    found = same[0] if len(same) == 1 else find_model_by_name(plain)
    if found is None:
        return None
    quantization = method if told else found.checkpoint_quantization
    return replace(found, checkpoint_quantization=quantization), quantization


def nearest_models(name: str) -> tuple[str, ...]:
    """Return up to three catalog ids that are written most like this name, best first.

    Compared are family, generation and size, and the owner where there is one; of releases that differ in neither, the
    oldest plain one is named.
    """
    asked = read_name(name)
    ids = _written_ids(with_owner=bool(asked.owner))
    written = _written(asked, with_owner=bool(asked.owner))
    return tuple(ids[found] for found in difflib.get_close_matches(written, ids, n=3, cutoff=_FEWEST_ALIKE))


@cache
def _written_ids(*, with_owner: bool) -> Mapping[str, str]:
    """Return the ids of the catalog by what `nearest_models` compares, the plainest of those that read alike."""
    ids: dict[str, str] = {}
    for model in sorted(all_models(), key=lambda model: _plainness(read_name(model.id))):
        ids.setdefault(_written(read_name(model.id), with_owner=with_owner), model.id)
    return ids


def _plainness(name: ModelName) -> tuple[tuple[int, ...], int]:
    return name.version, len(name.tuned)


def _written(name: ModelName, *, with_owner: bool) -> str:
    return " ".join((name.owner, *name.core) if with_owner else name.core)


def _means(asked: ModelName, known: ModelName) -> bool:
    """Tell whether a name of the same core means another: what it says more must be the other's own."""
    return asked.details <= known.details and asked.owner in ("", known.owner)


def _age(asked: ModelName, known: ModelName, architecture: Architecture) -> tuple[tuple[int, ...], int, int, str]:
    """Order releases of one model: the oldest plain one first."""
    return known.version, len(asked.tuned ^ known.tuned), architecture.max_context, architecture.id


def _look_up(name: str) -> Architecture | None:
    alias = _aliases().get(name)
    found = _by_id().get(alias.id.lower() if alias else name)
    return replace(found, max_context=alias.max_context) if found and alias and alias.max_context else found


@cache
def _by_id() -> dict[str, Architecture]:
    return {architecture.id.lower(): architecture for architecture in all_models()}


@cache
def _by_core() -> Mapping[tuple[str, ...], list[tuple[ModelName, str]]]:
    found: dict[tuple[str, ...], list[tuple[ModelName, str]]] = {}
    for model_id in (*_by_id(), *_aliases()):
        known = read_name(model_id)
        found.setdefault(known.core, []).append((known, model_id))
    return found


@cache
def _aliases() -> dict[str, _Alias]:
    return {alias.alias.lower(): alias for alias in catalog_rows("models.json", _Alias, part="aliases")}
