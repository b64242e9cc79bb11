"""Reads a model's name as people and tables write it: `Llama 2 7B Chat`, `CodeLlama-34b-hf`, `Mistral 7B v0.3`.

A name is a family, a generation and a size, which say what the shape is, and details, which mostly do not: how it was
tuned, which version of the weights, which context, how many parameters are active.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_TOKEN = re.compile(r"v\d+(?:\.\d+)*|\d+x\d+(?:\.\d+)?[bm]|\d+(?:\.\d+)*[bmk]?(?![a-z])|[a-z]+|\d+(?:\.\d+)*", re.ASCII)
_SIZE = re.compile(r"(?:\d+x)?\d+(?:\.\d+)*[bm]")
_ACTIVE = re.compile(r"(?<=[-_ ])a(?=\d+(?:\.\d+)?b)")
_VERSION = re.compile(r"v\d+(?:\.\d+)*")
_CONTEXT = re.compile(r"\d+k")
_TUNED = frozenset({"chat", "instruct", "it", "python"})
_NOISE = frozenset({"base", "hf", "meta"})


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
    """Tell a version or context from a generation: it stands behind the size, or is a number of thousands."""
    sized = any(_SIZE.fullmatch(part) for part in core)
    return bool(_CONTEXT.fullmatch(token)) or (sized and bool(_VERSION.fullmatch(token)))


def _with_active(owner: str, core: list[str], tuned: set[str], details: set[str]) -> ModelName:
    """Move the active parameters (`A3B` of `30B-A3B`) from the end of the core to the details."""
    if len(core) > 1 and core[-2] == "active":
        core, details = core[:-2], {*details, f"a{core[-1]}"}
    return ModelName(owner, tuple(core), frozenset(tuned), frozenset(details))
