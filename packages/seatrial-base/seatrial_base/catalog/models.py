"""Model architectures by hub id, and by the names that people and published tables give them; licences of models.

A name (`Llama 2 7B Chat`, `Mistral 7B v0.3`) is a family, a generation and a size, which say what the shape is, and
details, which mostly do not: how it was tuned, which version of the weights, which context, how many parameters are
active. Its end may be the precision of the weights: `Qwen3-32B-FP8`, `Llama-3.1-8B-Instruct-quantized.w4a16`.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Final

from seatrial_base.catalog.architecture import Architecture
from seatrial_base.catalog.engine_limits import is_named, stored
from seatrial_base.catalog.rows import CatalogTable, Sourced

if TYPE_CHECKING:
    from collections.abc import Mapping


_TOKEN = re.compile(r"v\d+(?:\.\d+)*|\d+x\d+(?:\.\d+)?[bm]|\d+(?:\.\d+)*[bmk]?(?![a-z])|[a-z]+|\d+(?:\.\d+)*", re.ASCII)
_SIZE = re.compile(r"(?:\d+x)?\d+(?:\.\d+)*[bm]")
_ACTIVE = re.compile(r"(?<=[-_ ])a(?=\d+(?:\.\d+)?b)")
_VERSION = re.compile(r"v\d+(?:\.\d+)*")
_CONTEXT = re.compile(r"\d+k")
_DATE = re.compile(r"\d{4}")  # year and month, or month and day, of a release: 2507, 0528
_TUNED_NAME = frozenset({"chat", "instruct", "it", "pt", "python", "thinking"})
_NOISE = frozenset({"base", "hf", "meta"})
_SEPARATOR = "[-_. (]+"
_PRECISIONS: tuple[tuple[str, str | None], ...] = (
    (r"fp8(?:[-_](?:dynamic|static|block|kv|per[-_]?tensor|per[-_]?token))*", "fp8"),
    (r"awq(?:[-_](?:w?4a16|(?:int)?4(?:[-_]?bits?)?|g?\d+))*", "awq"),
    (r"gptq[-_](?:int)?8(?:[-_]?bits?)?(?:[-_]g?\d+)*", "w8a16"),
    (r"gptq(?:[-_](?:(?:int)?4(?:[-_]?bits?)?|g?\d+|g?\d+g|marlin))*", "gptq"),
    (r"(?:quantized[-_. ])?w4a16(?:[-_]g\d+)?", "gptq"),  # groups of 128 in every linear layer, as GPTQ writes them
    (r"int4(?:[-_](?:w4a16|autoround|mixed[-_]autoround|mixed))*", "gptq"),
    (r"(?:quantized[-_. ])?w8a16(?:[-_]g\d+)?", "w8a16"),
    (r"(?:quantized[-_. ])?(?:w8a8|int8)", "int8"),
    (r"(?:nv)?fp4(?:a16)?(?:[-_]v\d+)?", "nvfp4"),
    (r"(?:w[-_])?mxfp4(?:[-_](?:preview|a[-_]fp8|moe[-_]quant))*", "mxfp4"),
    (r"(?:bf16|fp16)", None),
)
_NAMED_PRECISION = tuple(
    (re.compile(f"{_SEPARATOR}(?:{pattern})[)]?$", re.IGNORECASE), method) for pattern, method in _PRECISIONS
)
_UNSUPPORTED = re.compile(
    f"{_SEPARATOR}(?P<format>bnb|gguf|ggml|exl2|exl3|mlx|hqq|aqlm|eetq|\\d-?bits?)(?![a-z])", re.IGNORECASE | re.ASCII
)
_FORMATS = {"bnb": "bitsandbytes", "gguf": "GGUF", "ggml": "GGML", "exl2": "EXL2", "exl3": "EXL3", "mlx": "MLX"}


@dataclass(frozen=True, slots=True)
class ModelName:
    """What a name says.

    Attributes:
        owner: What stands before the slash of a hub id, in lower case; empty without one.
        core: Family, generation and size: `("llama", "2", "7b")`.
        tuned: Words of tuning: `{"chat"}`. They do not change the shape.
        details: Version, context and active parameters: `{"v0.1"}`. Whoever writes one means it.
    """

    owner: str
    core: tuple[str, ...]
    tuned: frozenset[str]
    details: frozenset[str]

    @property
    def version(self) -> tuple[int, ...]:
        """The version of the weights, for sorting; the lowest where there is none."""
        version = next((detail for detail in self.details if _VERSION.fullmatch(detail)), "v")
        return tuple(int(number) for number in version[1:].split(".") if number)


def split_precision(name: str) -> tuple[str, str | None, bool]:
    """Split the precision of the weights off the end of a name.

    Returns:
        The name of the model, the quantization (`None` for 16 bits), and whether the name told a precision at all.
    """
    for pattern, method in _NAMED_PRECISION:
        match = pattern.search(name)
        if match is not None:
            return name[: match.start()], method, True
    return name, None, False


def unsupported_format(name: str) -> str | None:
    """Return the format of the weights that a name tells and that can't be planned, as GGUF; `None` without one."""
    if split_precision(name)[2]:
        return None
    match = _UNSUPPORTED.search(name)
    return None if match is None else _FORMATS.get(match["format"].lower(), match["format"])


def read_name(text: str) -> ModelName:
    """Read any text as a model's name; what is no word and no number is left out."""
    owner, _, name = text.strip().lower().rpartition("/")
    core: list[str] = []
    details: set[str] = set()
    tuned: set[str] = set()
    for token in _TOKEN.findall(_ACTIVE.sub("active", name)):
        if token in _TUNED_NAME:
            tuned.add(token)
        elif _is_detail(token, core):
            details.add(token)
        elif token.isalpha() and core and core[-1].isalpha():
            core[-1] += "" if token in _NOISE else token  # Code Llama is CodeLlama
        elif token not in _NOISE:
            core.append(token)
    # The active parameters (`A3B` of `30B-A3B`) are a detail, at the end of the core.
    if len(core) > 1 and core[-2] == "active":
        core, details = core[:-2], {*details, f"a{core[-1]}"}
    return ModelName(owner, tuple(core), frozenset(tuned), frozenset(details))


def _is_detail(token: str, core: list[str]) -> bool:
    """Tell a version, context or date from a generation: it stands behind the size, or is a number of thousands."""
    sized = any(_SIZE.fullmatch(part) for part in core)
    is_date = bool(core) and bool(_DATE.fullmatch(token))
    return is_date or bool(_CONTEXT.fullmatch(token)) or (sized and bool(_VERSION.fullmatch(token)))


@dataclass(frozen=True, slots=True)
class Licence(Sourced):
    """A licence and the models that have it.

    Attributes:
        licence: Its id on the hub.
        models: Patterns of hub ids and JumpStart ids; upper and lower case don't matter.
    """

    licence: str
    models: tuple[str, ...]

    def covers(self, name: str) -> bool:
        """Return whether a hub id or JumpStart id is among the models."""
        return is_named(name, self.models)


LICENCES: Final = CatalogTable(Licence, "licences.json")


def licence_of(name: str) -> str | None:
    """Return the licence of a hub id or JumpStart id; `None` when it is not known."""
    return next((row.licence for row in LICENCES.rows if row.covers(name)), None)


@dataclass(frozen=True, slots=True)
class NamedModels(Sourced):
    """Repositories that are known by their names: gated ones, and those whose models generate no text.

    Attributes:
        kind: `gated`, or what the models give, as `embeddings`.
        models: Patterns of hub ids; upper and lower case don't matter.
    """

    kind: str
    models: tuple[str, ...]


GATED: Final = CatalogTable(NamedModels, "licences.json#gated")
TEXTLESS: Final = CatalogTable(NamedModels, "engine_limits.json#textless")


def is_gated(hub_id: str) -> bool:
    """Return whether the hub gives a repository to those alone whom its publisher lets in; False where no row knows."""
    return any(is_named(hub_id, row.models) for row in GATED.rows)


def given_instead_of_text(hub_id: str) -> str | None:
    """Return what a model gives that generates no text, by its name: `embeddings`; `None` for any other."""
    named = hub_id if "/" in hub_id else f"/{hub_id}"
    return next((row.kind for row in TEXTLESS.rows if is_named(named, row.models)), None)


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


# Sorted by id.
MODELS: Final = CatalogTable(Architecture, "models.json", key=lambda row: row.id.lower())
_ALIASES: Final = CatalogTable(_Alias, "models.json#aliases", key=lambda row: row.alias.lower())


def find_model(model_id: str) -> Architecture | None:
    """Return the architecture of a hub id, or `None` when the catalog lacks it.

    A tuned model shares the architecture of its base: `-Instruct`, `-Chat`, `-it`, `-Python`,
    `-Thinking` and `-Base` are left out when the
    id itself is unknown (`tiiuae/falcon-40b-instruct`). The aliases of the catalog name the repositories for which
    that is not all, because they were renamed or ship another context length. Upper and lower case don't matter.
    """
    name = model_id.lower()
    return _look_up(name) or _look_up(_TUNED.sub("", name, count=1))


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
    requested = read_name(name)
    named = _by_core().get(requested.core, []) if requested.core else []
    # A name of the same core means another if what it says more is the other's own.
    candidates = [
        (known, architecture)
        for known, model_id in named
        if requested.details <= known.details
        and requested.owner in ("", known.owner)
        and (architecture := _look_up(model_id))
    ]
    # The oldest plain release first.
    ordered = sorted(
        candidates,
        key=lambda pair: (pair[0].version, len(requested.tuned ^ pair[0].tuned), pair[1].max_context, pair[1].id),
    )
    return ordered[0][1] if ordered else None


def resolve_model(name: str) -> tuple[Architecture, str | None] | None:
    """Return what a hub id, a quantized repository or a displayed name means: shape and quantization of the weights.

    `Qwen/Qwen3-235B-A22B-FP8` is `Qwen/Qwen3-235B-A22B` in fp8; another owner may have quantized it, so there the owner
    doesn't count. A name without a precision has that of the published checkpoint, `mxfp4` for `openai/gpt-oss-20b`.
    The architecture's `checkpoint_quantization` is the quantization that is returned with it: a name of
    `catalog.precision`, `None` for 16 bits. `None` where the catalog lacks the model, or where the name tells
    a format that can't be planned (`unsupported_format`).
    """
    if unsupported_format(name) is not None:
        return None
    exact = find_model_by_name(name)
    if exact is not None:
        return exact, exact.checkpoint_quantization
    base, method, precision = split_precision(name)
    owner, _, plain = base.rpartition("/")
    model = find_model_by_name(base)
    if model is None and (precision or owner.lower() in _REPUBLISHERS):
        model = find_model_by_name(plain)
    if model is None:
        return None
    quantization = method if precision else model.checkpoint_quantization
    return stored(model, name, quantization), quantization


def sister_model(name: str) -> tuple[Architecture, str | None] | None:
    """Return the model of the catalog that has this name under another organisation, as `resolve_model` does.

    `None` where no id has it, or several do, unless the name alone says which one (`find_model_by_name`).
    """
    base, method, precision = split_precision(name)
    plain = base.rpartition("/")[2].lower()
    if "/" not in base:
        return None
    same = [model for model in MODELS.rows if model.id.rpartition("/")[2].lower() == plain]
    sibling = same[0] if len(same) == 1 else find_model_by_name(plain)
    if sibling is None:
        return None
    quantization = method if precision else sibling.checkpoint_quantization
    return stored(sibling, name, quantization), quantization


def nearest_models(name: str) -> tuple[str, ...]:
    """Return up to three catalog ids that are written most like this name, best first.

    Compared are family, generation and size, and the owner where there is one; of releases that differ in neither, the
    oldest plain one is named.
    """
    requested = read_name(name)
    ids = _written_ids(with_owner=bool(requested.owner))
    written = _written(requested, with_owner=bool(requested.owner))
    return tuple(ids[match] for match in difflib.get_close_matches(written, ids, n=3, cutoff=_FEWEST_ALIKE))


@cache
def _written_ids(*, with_owner: bool) -> Mapping[str, str]:
    """Return the ids of the catalog by what `nearest_models` compares, the plainest of those that read alike."""
    ids: dict[str, str] = {}
    names = [(read_name(model.id), model.id) for model in MODELS.rows]
    for name, model_id in sorted(names, key=lambda row: (row[0].version, len(row[0].tuned))):
        ids.setdefault(_written(name, with_owner=with_owner), model_id)
    return ids


def _written(name: ModelName, *, with_owner: bool) -> str:
    return " ".join((name.owner, *name.core) if with_owner else name.core)


def _look_up(name: str) -> Architecture | None:
    alias = _ALIASES.get(name)
    model = MODELS.get(alias.id.lower() if alias else name)
    return replace(model, max_context=alias.max_context) if model and alias and alias.max_context else model


@cache
def _by_core() -> Mapping[tuple[str, ...], list[tuple[ModelName, str]]]:
    by_core: dict[tuple[str, ...], list[tuple[ModelName, str]]] = {}
    for written in (*(model.id for model in MODELS.rows), *(row.alias for row in _ALIASES.rows)):
        known = read_name(written.lower())
        by_core.setdefault(known.core, []).append((known, written.lower()))
    return by_core
