"""Options in `serving.overrides.extra` that spread experts or attention over a copy's accelerators.

| engine | experts | attention | source |
|---|---|---|---|
| vLLM | `enable_expert_parallel`: over all | - | docs.vllm.ai, expert parallel deployment |
| SGLang | `ep_size` | `dp_size` with `enable_dp_attention` | docs.sglang.io, server arguments |
| TensorRT-LLM | `moe_expert_parallel_size` | `enable_attention_dp`: over all | djl-serving; docs.nvidia.com/dynamo |

Without `enable_dp_attention`, `data_parallel_size` starts further copies of the model on accelerators of their own
(vLLM, SGLang), which a plan does not count.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from seatrial_base.catalog.architecture import Architecture
    from seatrial_lint.engines.engine_options import OptionValue

_EXPERTS_EVERYWHERE = ("enable_expert_parallel",)
_EXPERT_GROUPS = ("ep_size", "ep", "expert_parallel_size", "moe_expert_parallel_size")
_ATTENTION_EVERYWHERE = ("enable_attention_dp",)
_GROUPED_ATTENTION = ("enable_dp_attention",)
_GROUPS = ("dp_size", "dp", "data_parallel_size")


@dataclass(frozen=True, slots=True)
class Groups:
    """How a copy's accelerators share experts and attention.

    Attributes:
        experts: Groups that the experts are dealt out to.
        attention: Groups that attend to sequences of their own.
        refused: Why the engine does not start at this degree; empty where it does.
    """

    experts: int = 1
    attention: int = 1
    refused: str = ""


def groups_at(extra: Mapping[str, OptionValue], architecture: Architecture, degree: int) -> Groups:
    """Return the groups that the options of a spec make of a copy's accelerators.

    Args:
        extra: The options, by name.
        architecture: The model.
        degree: Accelerators of the copy.
    """
    experts = 1 if architecture.experts is None else _experts(extra, degree)
    attention = _attention(extra, degree)
    for option, groups in ((_EXPERT_GROUPS, experts), (_GROUPS, attention)):
        if degree % groups:
            return Groups(refused=f"{_named(extra, option)[0]} {groups} does not divide degree {degree}.")
    return Groups(experts, attention)


def groups_words(groups: Groups, degree: int) -> str:
    """Say how experts and attention are spread, a sentence each behind a space; empty for tensor parallelism alone."""
    words = ""
    if groups.experts > 1:
        words += f" Experts are dealt out to {groups.experts} groups of {degree // groups.experts}."
    if groups.attention > 1:
        words += (
            f" Attention runs in {groups.attention} groups of {degree // groups.attention}, each with its requests."
        )
    return words


def unplanned_copies(extra: Mapping[str, OptionValue]) -> tuple[str, ...]:
    """Warn of data parallelism that takes more accelerators than are planned."""
    named = _named(extra, _GROUPS)
    if not named or _number(extra, _GROUPS) == 1 or _has(extra, _GROUPED_ATTENTION):
        return ()
    name = named[0]
    more = f"{name} {extra[name]} starts so many copies of the model on accelerators of their own"
    return (f"{more}, which the plan does not count: leave it out, and let the plan place copies.",)


def _experts(extra: Mapping[str, OptionValue], degree: int) -> int:
    return degree if _has(extra, _EXPERTS_EVERYWHERE) else _number(extra, _EXPERT_GROUPS)


def _attention(extra: Mapping[str, OptionValue], degree: int) -> int:
    if _has(extra, _ATTENTION_EVERYWHERE):
        return degree
    return _number(extra, _GROUPS) if _has(extra, _GROUPED_ATTENTION) else 1


def _named(extra: Mapping[str, OptionValue], names: Iterable[str]) -> list[str]:
    """Return the options of these names that are written, in the order of the names."""
    written = {name.lower(): name for name in extra}
    return [written[name] for name in names if name in written]


def _has(extra: Mapping[str, OptionValue], names: Iterable[str]) -> bool:
    """Tell whether a flag is set: SGLang's environment variable is so with an empty value, too."""
    return any(str(extra[name]).lower() in {"true", "1", ""} for name in _named(extra, names))


def _number(extra: Mapping[str, OptionValue], names: Iterable[str]) -> int:
    """Return the number of an option; 1 where it is not written, or is no number, which the engine refuses itself."""
    for name in _named(extra, names):
        text = str(extra[name])
        return max(1, int(text)) if text.isdecimal() else 1
    return 1
