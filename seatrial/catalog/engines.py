"""Engine constants: how fast a serving engine runs on given hardware, and the defaults that shape its batches."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal

from seatrial.catalog.table import read_rows

Family = Literal["lmi", "tgi"]


@dataclass(frozen=True, slots=True)
class Performance:
    """The fitted constants of the closed-form latency model (`seatrial.plan.latency`).

    Attributes:
        id: Engine and version that the constants belong to.
        memory_efficiency: Share of the memory bandwidth that a decode step reaches.
        compute_efficiency: Share of the peak FLOPS that a matrix product reaches.
        layer_floor_s: Least time of one layer: kernel launches of the host.
        sequence_s: Work of the server per sequence and step.
        input_token_s: Work of the server per prompt token.
        hop_s: Latency of an all-reduce per additional accelerator.
        pcie_bytes_s: Bus bandwidth of an all-reduce over PCIe, up to four accelerators.
        nvlink_bytes_s: Bus bandwidth of an all-reduce over NVLink.
        reserve_bytes: Memory of one accelerator that neither weights nor KV cache can use.
        uncertainty: Mean absolute error of the predictions, as a share, where the constants were fitted.
        fitted_accelerators: Accelerators of the fit.
        source: What the constants were fitted on.
        date: When.
    """

    id: str
    memory_efficiency: float
    compute_efficiency: float
    layer_floor_s: float
    sequence_s: float
    input_token_s: float
    hop_s: float
    pcie_bytes_s: float
    nvlink_bytes_s: float
    reserve_bytes: int
    uncertainty: float
    fitted_accelerators: tuple[str, ...]
    source: str
    date: str


@dataclass(frozen=True, slots=True)
class Engine:
    """What the planner knows about one engine.

    Attributes:
        id: Name of the row.
        family: The container that it belongs to.
        version_prefix: Versions that it holds for begin like this.
        constants: Row of its performance constants, or of those that it borrows.
        fitted: Whether the constants were fitted on this engine; borrowed when not.
        steps_between_prefills: Decode steps after which waiting prompts are admitted.
        default_batched_tokens: Prompt tokens of one iteration by default.
        memory_utilization: Share of the accelerator's memory that the engine takes by default.
        source: Where the defaults were read.
        date: When.
    """

    id: str
    family: Family
    version_prefix: str
    constants: str
    fitted: bool
    steps_between_prefills: int
    default_batched_tokens: int
    memory_utilization: float
    source: str
    date: str

    @property
    def performance(self) -> Performance:
        """The performance constants of this engine, or those that it borrows."""
        return _performance()[self.constants]


def find(family: Family, version: str) -> Engine:
    """Return the constants of an engine's version: those of the longest prefix that matches."""
    matching = [row for row in _every() if row.family == family and version.startswith(row.version_prefix)]
    return max(matching, key=lambda row: len(row.version_prefix))


@cache
def _every() -> tuple[Engine, ...]:
    return read_rows("engines.json", Engine)


@cache
def _performance() -> dict[str, Performance]:
    return {row.id: row for row in read_rows("engines.json", Performance, part="performance")}
