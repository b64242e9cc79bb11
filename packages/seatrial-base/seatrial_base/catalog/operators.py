"""Speeds of accelerators at the operators of a model: matrix products, experts, attention, all-reduce.

    seconds = latency + ((read / memory efficiency) ** q + (arithmetic / compute efficiency) ** q) ** (1 / q)

`read` is bytes over the data sheet's bandwidth, `arithmetic` operations over its FLOPS, q the sharpness: 1 adds them
up, a large one takes the longer. An all-reduce of n accelerators takes what was measured for its size, or latency +
2 (n - 1) / n * bytes / bandwidth. The constants are fitted on measured kernels, operator by operator
(`scripts/operator_tables.py`); those of AWS Neuron are assumed (`data/neuron.json`). Experts and all-reduces are
kernels of an engine: where its own were measured, they count, elsewhere the fastest of all engines.

Of E experts a token chooses k, and some experts are more popular than others. A step reads those that any of its T
tokens chose:

    chosen(T) = s T / (1 + s (T - 1))      s = k / E

which is the mean where popularity is distributed exponentially (a gamma distribution of shape 1; a uniform one would
be 1 - (1 - s) ** T). Of the shapes tried, 0.7 and 1 fit the kernels that were measured with a power law of routing
best, and 1 the served rows (benchmarks/planner_accuracy).
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cache
from typing import Final, Literal

from seatrial_base.catalog.rows import CatalogTable

Kind = Literal["product", "experts", "decode attention", "prefill attention"]

# The precision of weights that are not quantized.
WIDE = "16-bit"

# Accelerators without tables, and the one with tables whose multiprocessors and memory are built most alike.
_ALIKE = {
    "NVIDIA A100 40GB SXM4": "NVIDIA A100 80GB SXM4",
    "NVIDIA A10G": "NVIDIA L40S",
    "NVIDIA L4": "NVIDIA L40S",
    "NVIDIA T4": "NVIDIA L40S",
    "NVIDIA RTX PRO 4500 Blackwell Server": "NVIDIA RTX PRO 6000 Blackwell Server",
    "AWS Inferentia2": "AWS Neuron",
    "AWS Trainium1": "AWS Neuron",
    "AWS Trainium2": "AWS Neuron",
}
# Precisions without a table of their own; 4-bit weights of dense layers are read as those of experts are.
_INSTEAD = {"int8": "fp8", "w8a16": WIDE, "awq": "int4", "gptq": "int4", "int4": WIDE, "mxfp4": WIDE, "nvfp4": "mxfp4"}


@dataclass(frozen=True, slots=True)
class Operator:
    """The constants of one operator on one accelerator.

    Attributes:
        precision: Of the weights, or of the KV cache.
        latency_s: Least time, in seconds.
        memory_efficiency: Share of the memory bandwidth that it reaches.
        compute_efficiency: Share of the peak FLOPS that it reaches.
        sharpness: How reading and arithmetic add up.
        half_length: Tokens of a prompt at which attention reaches half of `compute_efficiency`; 0 elsewhere.
        points: Measured kernels of the fit; 0 where the constants are assumed.
        error: Mean error of the fit, as a share.
        engine: The engine whose kernels they are; empty where the fastest of all engines count.
    """

    accelerator: str
    operator: Kind
    precision: str
    latency_s: float
    memory_efficiency: float
    compute_efficiency: float
    sharpness: float
    half_length: float
    points: int
    error: float
    source: str
    engine: str = ""


@dataclass(frozen=True, slots=True)
class Link:
    """All-reduce among the accelerators of one instance.

    Attributes:
        degree: Accelerators that take part.
        latency_s: Least time, in seconds.
        bus_bytes_s: Bus bandwidth.
        hop_s: What each further accelerator adds where none reaches another's memory: data goes through the host's.
            Fitted where rows show it.
        engine: The engine whose all-reduce it is; empty for any engine.
        message_bytes: Sizes that were measured, ascending; none where latency and bandwidth stand for all.
        message_s: What an all-reduce of each size took.
    """

    accelerator: str
    degree: int
    latency_s: float
    bus_bytes_s: float
    source: str
    hop_s: float = 0.0
    engine: str = ""
    message_bytes: tuple[float, ...] = ()
    message_s: tuple[float, ...] = ()

    def all_reduce_s(self, size_bytes: float) -> float:
        """Return the time of an all-reduce of so many bytes on each accelerator, without hops."""
        if not self.message_bytes:
            return self.latency_s + 2 * (self.degree - 1) / self.degree * size_bytes / self.bus_bytes_s
        if size_bytes >= self.message_bytes[-1]:
            return self.message_s[-1] * size_bytes / self.message_bytes[-1]
        above = bisect_right(self.message_bytes, size_bytes)
        if not above:
            return self.message_s[0]
        low, high = self.message_bytes[above - 1], self.message_bytes[above]
        less, more = self.message_s[above - 1], self.message_s[above]
        return less + (more - less) * (size_bytes - low) / (high - low)


OPERATORS: Final = CatalogTable(
    Operator,
    "operators.json",
    "neuron.json#operators",
    key=lambda row: (row.accelerator, row.operator, row.precision, row.engine),
)
LINKS: Final = CatalogTable(Link, "operators.json#links", "neuron.json#links", key="accelerator")


@cache
def find_operator(accelerator: str, kind: Kind, quantization: str | None, engine: str = "") -> Operator:
    """Return the constants of an operator, of the accelerator most alike where it has none.

    Args:
        quantization: Of the weights; `None` for 16 bits.
        engine: Whose kernels; the fastest of all engines where its own were not measured.
    """
    name = _known(accelerator)
    wanted = quantization or WIDE
    while wanted != WIDE and (name, kind, wanted, "") not in OPERATORS:
        wanted = _INSTEAD.get(wanted, WIDE)
    return OPERATORS.get((name, kind, wanted, engine)) or OPERATORS[name, kind, wanted, ""]


@cache
def link(accelerator: str, degree: int, engine: str = "") -> Link:
    """Return an engine's all-reduce at a degree; of the next higher measured degree where it has none.

    A link's cost is that of its own accelerators: one without rows takes the table of the one most alike, without hops.
    """
    rows = LINKS.having(accelerator) or LINKS.having(_known(accelerator))
    measured = [each for each in rows if each.engine == engine] or [each for each in rows if not each.engine]
    return min(measured, key=lambda each: (each.degree < degree, abs(each.degree - degree)))


def chosen_share(share: float, tokens: float) -> float:
    """Return the share of the experts that any of some tokens chose, of the share that each chooses."""
    return share * tokens / (1 + share * (tokens - 1))


def is_measured(accelerator: str) -> bool:
    """Return whether the accelerator has tables of its own."""
    own = (row for row in OPERATORS.rows if row.accelerator == accelerator)
    return accelerator not in _ALIKE and any(row.points for row in own)


def _known(accelerator: str) -> str:
    return _ALIKE.get(accelerator, accelerator)
