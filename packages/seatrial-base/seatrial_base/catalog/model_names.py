"""Names of models as people and tables write them (`Llama 2 7B Chat`, `Mistral 7B v0.3`), and licences of models.

A name is a family, a generation and a size, which say what the shape is, and details, which mostly do not: how it was
tuned, which version of the weights, which context, how many parameters are active. What stands at its end may be the
precision of the weights: `Qwen3-32B-FP8`, `Llama-3.1-8B-Instruct-quantized.w4a16`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

from seatrial_base.catalog.rows import CatalogTable

_TOKEN = re.compile(r"v\d+(?:\.\d+)*|\d+x\d+(?:\.\d+)?[bm]|\d+(?:\.\d+)*[bmk]?(?![a-z])|[a-z]+|\d+(?:\.\d+)*", re.ASCII)
_SIZE = re.compile(r"(?:\d+x)?\d+(?:\.\d+)*[bm]")
_ACTIVE = re.compile(r"(?<=[-_ ])a(?=\d+(?:\.\d+)?b)")
_VERSION = re.compile(r"v\d+(?:\.\d+)*")
_CONTEXT = re.compile(r"\d+k")
_DATE = re.compile(r"\d{4}")  # year and month, or month and day, of a release: 2507, 0528
_TUNED = frozenset({"chat", "instruct", "it", "pt", "python", "thinking"})
_NOISE = frozenset({"base", "hf", "meta"})
_SEPARATOR = "[-_. (]+"
_PRECISIONS: tuple[tuple[str, str | None], ...] = (
    (r"fp8(?:[-_](?:dynamic|static|block|kv|per[-_]?tensor|per[-_]?token))*", "fp8"),
    (r"awq(?:[-_](?:w?4a16|(?:int)?4(?:[-_]?bits?)?|g?\d+))*", "awq"),
    (r"gptq[-_](?:int)?8(?:[-_]?bits?)?(?:[-_]g?\d+)*", "int8"),
    (r"gptq(?:[-_](?:(?:int)?4(?:[-_]?bits?)?|g?\d+|g?\d+g|marlin))*", "gptq"),
    (r"(?:quantized[-_. ])?w4a16(?:[-_]g\d+)?", "gptq"),  # groups of 128 in every linear layer, as GPTQ writes them
    (r"int4(?:[-_](?:w4a16|autoround|mixed[-_]autoround|mixed))*", "gptq"),
    (r"(?:quantized[-_. ])?(?:w8a8|w8a16|int8)", "int8"),
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
        found = next((detail for detail in self.details if _VERSION.fullmatch(detail)), "v")
        return tuple(int(number) for number in found[1:].split(".") if number)


def split_precision(name: str) -> tuple[str, str | None, bool]:
    """Split the precision of the weights off the end of a name.

    Returns:
        The name of the model, the quantization (`None` for 16 bits), and whether the name told a precision at all.
    """
    for pattern, method in _NAMED_PRECISION:
        found = pattern.search(name)
        if found is not None:
            return name[: found.start()], method, True
    return name, None, False


def unsupported_format(name: str) -> str | None:
    """Return the format of the weights that a name tells and that can't be planned, as GGUF; `None` without one."""
    if split_precision(name)[2]:
        return None
    found = _UNSUPPORTED.search(name)
    return None if found is None else _FORMATS.get(found["format"].lower(), found["format"])


def read_name(text: str) -> ModelName:
    """Read any text as a model's name; what is no word and no number is left out."""
    owner, _, name = text.strip().lower().rpartition("/")
    core: list[str] = []
    details: set[str] = set()
    tuned: set[str] = set()
    for token in _TOKEN.findall(_ACTIVE.sub("active", name)):
        if token in _TUNED:
            tuned.add(token)
        elif _is_detail(token, core):
            details.add(token)
        elif token.isalpha() and core and core[-1].isalpha():
            core[-1] += "" if token in _NOISE else token  # Code Llama is CodeLlama
        elif token not in _NOISE:
            core.append(token)
    return _with_active(owner, core, tuned, details)


def _is_detail(token: str, core: list[str]) -> bool:
    """Tell a version, context or date from a generation: it stands behind the size, or is a number of thousands."""
    sized = any(_SIZE.fullmatch(part) for part in core)
    is_date = bool(core) and bool(_DATE.fullmatch(token))
    return is_date or bool(_CONTEXT.fullmatch(token)) or (sized and bool(_VERSION.fullmatch(token)))


def _with_active(owner: str, core: list[str], tuned: set[str], details: set[str]) -> ModelName:
    """Move the active parameters (`A3B` of `30B-A3B`) from the end of the core to the details."""
    if len(core) > 1 and core[-2] == "active":
        core, details = core[:-2], {*details, f"a{core[-1]}"}
    return ModelName(owner, tuple(core), frozenset(tuned), frozenset(details))


@dataclass(frozen=True, slots=True)
class Licence:
    """A licence and the models that have it.

    Attributes:
        licence: Its id on the hub.
        models: Patterns of hub ids and JumpStart ids; upper and lower case don't matter.
        source: Where it was read.
        date: When it was entered.
    """

    licence: str
    models: tuple[str, ...]
    source: str
    date: str

    def covers(self, name: str) -> bool:
        """Tell whether a hub id or JumpStart id is among the models."""
        return any(fnmatchcase(name.lower(), pattern.lower()) for pattern in self.models)


LICENCES: Final = CatalogTable(Licence, "licences.json")


def licence_of(name: str) -> str | None:
    """Return the licence of a hub id or JumpStart id; `None` when it is not known."""
    return next((row.licence for row in LICENCES.rows if row.covers(name)), None)
