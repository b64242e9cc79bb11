"""How fast accelerators run the operators of a model: matrix products, experts, attention, all-reduce.

    seconds = latency + ((read / memory efficiency) ** q + (arithmetic / compute efficiency) ** q) ** (1 / q)

`read` is bytes over the data sheet's bandwidth, `arithmetic` operations over its FLOPS, q the sharpness: 1 adds them
up, a large one takes the longer. An all-reduce of n accelerators takes latency + 2 (n - 1) / n * bytes / bandwidth.
The constants are fitted on measured kernels, operator by operator (`scripts/operator_tables.py`); those of AWS Neuron
are assumed (`data/neuron.json`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal

from seatrial_base.catalog.rows import catalog_rows

Kind = Literal["product", "experts", "decode attention", "prefill attention"]

WIDE = "16-bit"
"""The precision of weights that are not quantized."""

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
_INSTEAD = {"int8": "fp8", "awq": "int4", "gptq": "int4", "int4": WIDE, "mxfp4": WIDE, "nvfp4": "mxfp4"}


@dataclass(frozen=True, slots=True)
class Operator:
    """The constants of one operator on one accelerator.

    Attributes:
        accelerator: The accelerator's name, as instances have it.
        operator: What it does.
        precision: Of the weights, or of the KV cache.
        latency_s: Least time, in seconds.
        memory_efficiency: Share of the memory bandwidth that it reaches.
        compute_efficiency: Share of the peak FLOPS that it reaches.
        sharpness: How reading and arithmetic add up.
        half_length: Tokens of a prompt at which attention reaches half of `compute_efficiency`; 0 elsewhere.
        points: Measured kernels of the fit; 0 where the constants are assumed.
        error: Mean error of the fit, as a share.
        source: Where they were measured.
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


@dataclass(frozen=True, slots=True)
class Link:
    """All-reduce among the accelerators of one instance.

    Attributes:
        accelerator: The accelerator's name.
        degree: Accelerators that take part.
        latency_s: Least time, in seconds.
        bus_bytes_s: Bus bandwidth.
        hop_s: What each further accelerator adds where none reaches another's memory: data goes through the host's.
        source: Where they were measured.
    """

    accelerator: str
    degree: int
    latency_s: float
    bus_bytes_s: float
    source: str
    hop_s: float = 0.0


@cache
def find_operator(accelerator: str, kind: Kind, quantization: str | None) -> Operator:
    """Return the constants of an operator, of the accelerator most alike where it has none.

    Args:
        accelerator: The accelerator's name.
        kind: What is done.
        quantization: Of the weights; `None` for 16 bits.
    """
    table = _operators()
    name = _known(accelerator)
    wanted = quantization or WIDE
    while wanted != WIDE and (name, kind, wanted) not in table:
        wanted = _INSTEAD.get(wanted, WIDE)
    return table[name, kind, wanted]


@cache
def link(accelerator: str, degree: int) -> Link:
    """Return the all-reduce of an accelerator at a degree; of the next higher measured degree where it has none."""
    table, name = _links(), _known(accelerator)
    measured = [each for key, each in table.items() if key[0] == name]
    return min(measured, key=lambda each: (each.degree < degree, abs(each.degree - degree)))


def is_measured(accelerator: str) -> bool:
    """Tell whether the accelerator has tables of its own."""
    own = (row for key, row in _operators().items() if key[0] == accelerator)
    return accelerator not in _ALIKE and any(row.points for row in own)


def _known(accelerator: str) -> str:
    return _ALIKE.get(accelerator, accelerator)


@cache
def _operators() -> dict[tuple[str, Kind, str], Operator]:
    rows = (*catalog_rows("operators.json", Operator), *catalog_rows("neuron.json", Operator, part="operators"))
    return {(row.accelerator, row.operator, row.precision): row for row in rows}


@cache
def _links() -> dict[tuple[str, int], Link]:
    rows = (*catalog_rows("operators.json", Link, part="links"), *catalog_rows("neuron.json", Link, part="links"))
    return {(row.accelerator, row.degree): row for row in rows}
