"""The prediction of one copy: its band, what bounds it, its knee and its memory."""

from __future__ import annotations

from enum import StrEnum, unique
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from seatrial_base.field_facts import Facts
from seatrial_base.frozen_model import FrozenModel, SealedModel, model_field

EXTRAPOLATED = "the band is extrapolated."
"""The end of the sentences of a band that no row earned: `Band.extrapolated`."""
TTFT = 0.9
"""The band of TTFT, as a share, where rows of other deployments gave the band; the larger one of both counts.

80 % of the measured TTFTs were within 97 % while their model was left out of the fit, within 71 % while their degree
and 80 % while their lengths were, whatever the band of their latencies (benchmarks/planner_accuracy/left_out.csv).
"""
OTHER_LENGTHS = "while their lengths were left out of the fit"
"""Words of a band that rows of this very deployment earned: `Band.of_same_deployment`."""


class Band(FrozenModel):
    """The band around each predicted value, as a share of it: from value / (1 + share) to value * (1 + share).

    Attributes:
        throughput: Of throughputs.
        latency: Of latencies; of TTFT: `latency_of`.
        measured: Whether the shares were measured on left-out points; an assumption when not.
        because: Where they come from, full sentences.
        points: Measured points of this very deployment that the predictions are calibrated with; 0 without any.
        engine_note: How the local or simulated engine announced itself that was calibrated with; empty on AWS.
    """

    throughput: float = Field(ge=0)
    latency: float = Field(ge=0)
    measured: bool
    because: Annotated[str, Facts(explains=True)]
    points: int = 0
    engine_note: str = ""

    @property
    def extrapolated(self) -> bool:
        """Whether no row has this accelerator, engine, precision or degree, by the end of `because`.

        It is no field: one more would change the bytes, and so the digest, of every lock.
        """
        return self.because.endswith(EXTRAPOLATED)

    def latency_of(self, metric: str) -> float:
        """Return the share of one latency: `ttft_ms`, which is less certain, or another."""
        # A doubt about an earned band makes it no measured one, and TTFT no surer.
        earned = self.measured or "measured rows" in self.because
        ttft = metric == "ttft_ms" and earned and not self.points
        return max(self.latency, TTFT) if ttft else self.latency

    @property
    def of_same_deployment(self) -> bool:
        """Whether this very deployment was measured, if at other lengths, by `because`."""
        return self.points > 0 or OTHER_LENGTHS in self.because

    @property
    def kind(self) -> Literal["measured", "extrapolated", "assumed"]:
        """Where the shares come from, as a word."""
        if self.extrapolated:
            return "extrapolated"
        return "measured" if self.measured else "assumed"


@unique
class Limit(StrEnum):
    """What bounds a copy at a load: a part of the step, or what keeps requests out of the batch."""

    MEMORY = "memory"
    COMPUTE = "compute"
    HOST = "host"
    LINK = "link"
    KV = "kv"
    BATCH_LIMIT = "batch limit"
    ADMISSION = "admission"


PredictedBy: TypeAlias = Literal["slo", "saturation", "gate", "batch_limit"]

MEANING = {
    "slo": "the highest load predicted to meet the SLO",
    "saturation": "more load is predicted to add little throughput",
    "gate": "the load that copies are planned for",
    "batch_limit": "the sequences that the engine batches at once",
}


class PredictedKnee(FrozenModel):
    """The knee that the autoscaling target is a share of until a trial has measured one.

    Attributes:
        concurrency: Requests in flight on the copy.
        detector: What sets it, as in a trial; `batch_limit` in plans of earlier releases.
    """

    concurrency: int
    detector: PredictedBy

    @property
    def meaning(self) -> str:
        """What the detector looks for, in words."""
        return MEANING[self.detector]


class MemoryFit(SealedModel):
    """How the memory of one accelerator is used, in bytes.

    Attributes:
        activation_bytes: What an iteration of the most prompt tokens needs while it runs.
        reserve_bytes: What the engine, the driver and fragmentation keep.
        kv_bytes_per_token: KV cache of one token on one accelerator.
        kv_limited_batch: Sequences of the workload's length that the KV room holds.
        adapters_bytes: Slots that the engine keeps for LoRA adapters; 0 without.
    """

    accelerator_memory_bytes: int
    weights_bytes: int
    activation_bytes: int
    reserve_bytes: int
    kv_room_bytes: int
    kv_bytes_per_token: int
    kv_limited_batch: int
    adapters_bytes: int = model_field(0, since="0.2")


class LevelRegime(FrozenModel):
    """What bounds one copy at one concurrency.

    Attributes:
        concurrency: Requests in flight on the copy.
        bound_by: What bounds it there.
        share_of_step: Part of a mean step (`memory`, `compute`, `host`, `link`) and its share; they add up to 1.
    """

    concurrency: int
    bound_by: Limit
    share_of_step: tuple[tuple[Limit, float], ...]


class Regime(FrozenModel):
    """What bounds one copy, and what keeps its throughput from growing with the load.

    Attributes:
        arithmetic_intensity_flops_per_byte: Of a decode step at the gate's batch.
        machine_balance_flops_per_byte: FLOPS over memory bandwidth, both as the engine reaches them.
        critical_batch_size: Batch at which arithmetic takes as long as reading the weights, by the data sheet.
        bound_by: What bounds the copy at the gate, named as in `LevelRegime`.
        growth_limit: What keeps throughput from growing, named as in `LevelRegime`.
        sentence: Both in words.
        per_level: What bounds the copy at each level.
    """

    arithmetic_intensity_flops_per_byte: float
    machine_balance_flops_per_byte: float
    critical_batch_size: int
    bound_by: Limit
    growth_limit: Limit
    sentence: Annotated[str, Facts(explains=True)]
    per_level: tuple[LevelRegime, ...]
