"""Instance types, recipes and degrees compared: what each is predicted to do, what it costs, why it is not taken."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from seatrial.documents.plan import SizedDeployment
from seatrial_base.frozen_model import FrozenModel

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seatrial.documents.prediction import Band


class TypeAtLoad(FrozenModel):
    """The cheapest deployment of one instance type that keeps SLO, budget and limits at the planned load.

    Attributes:
        tensor_parallel_degree: Accelerators of a copy; 0 where no deployment of the type keeps them.
        instance_count: Instances of the planned size; 0 likewise.
        usd_per_hour: All of them; `None` where there are none or the price is unknown.
        output_tok_s: Of all copies at the planned load; `None` where there are none.
        exceeds: What the nearest deployment of the type does not keep; `None` where one keeps all.
    """

    instance_type: str
    tensor_parallel_degree: int = 0
    instance_count: int = 0
    usd_per_hour: float | None = None
    output_tok_s: float | None = None
    exceeds: Literal["slo", "copies", "price", "budget"] | None = None


class InstanceComparison(FrozenModel):
    """What one instance of a type is predicted to do.

    Attributes:
        tensor_parallel_degree: The degree that gives the instance the highest throughput.
        kv_limited_batch: Sequences that the KV room of one copy holds.
        ms_per_token_alone: End-to-end latency of a single request over its output tokens; `None` when nothing fits.
        highest_concurrency: Largest doubling number of requests in flight, over all copies, that are all answered
            before the request timeout; 0 when not even one is.
        highest_tok_s: Output tokens per second of the instance there.
        usd_per_hour: Of one instance; `None` when unknown.
        usd_per_million_output_tokens: At the highest throughput.
        blended_usd_per_million_tokens: The same at three input tokens to one output token.
        because: One full sentence: why this degree, or why nothing fits.
    """

    instance_type: str
    accelerators: int
    tensor_parallel_degree: int
    copies_per_instance: int
    kv_limited_batch: int
    ms_per_token_alone: float | None
    highest_concurrency: int
    highest_tok_s: float
    usd_per_hour: float | None
    usd_per_million_output_tokens: float | None
    blended_usd_per_million_tokens: float | None
    fits: bool
    because: str


@dataclass(frozen=True, slots=True)
class Basis:
    """What every number of a comparison rests on.

    Attributes:
        constants: The performance constants that the predictions use.
        workload: The load, in words.
        discount: Share off the list prices.
        bands: How far the predictions may be off, by instance type.
        unknown_there: What is not known of prices and offers in the environment's region, as sentences; empty where
            all is known.
    """

    engine: str
    engine_version: str
    constants: str
    workload: str
    discount: float
    bands: Mapping[str, Band]
    unknown_there: str = ""


class PredictedRecipe(SizedDeployment):
    """What the best deployment of a recipe is predicted to do.

    Attributes:
        output_tok_s: Of all copies at the planned load.
        ttft_ms: Mean time to first token at the planned load.
        tpot_ms: Mean time per output token after the first at the planned load.
        weights_bytes: Weights on one accelerator.
        kv_room_bytes: KV cache on one accelerator.
        usd_per_million_output_tokens: At the planned load; `None` when the price is unknown.
        blended_usd_per_million_tokens: The same at three input tokens to one output token.
        times_throughput: `output_tok_s` over that of the plain recipe; `None` when that has no deployment.
        times_price: Price per million output tokens over that of the plain recipe.
        throughput_band: Share by which the throughput may be off.
        latency_band: The same of latencies.
        band_because: Where the bands come from.
    """

    output_tok_s: float
    ttft_ms: float
    tpot_ms: float
    weights_bytes: int
    kv_room_bytes: int
    usd_per_million_output_tokens: float | None
    blended_usd_per_million_tokens: float | None
    times_throughput: float | None
    times_price: float | None
    throughput_band: float
    latency_band: float
    band_because: str


class RecipeRow(FrozenModel):
    """One recipe.

    Attributes:
        recipe: Its text, as `seatrial.specs.recipe` reads it.
        rule: The rule that refuses it; empty when nothing does.
        because: Why it is refused; empty when it is not.
        needs: What the spec would have to name; empty when it names it all.
        predicted: Of its best deployment; `None` when it is refused.
        gives_up: What each optimization gives up, a sentence each.
    """

    recipe: str
    names: tuple[str, ...]
    rule: str
    because: str
    needs: tuple[str, ...]
    predicted: PredictedRecipe | None
    gives_up: tuple[str, ...]


class DegreeVerdict(FrozenModel):
    """What became of an instance type with one degree.

    Attributes:
        won: It is the plan's.
        stage: Where it was decided: `chosen`, `allowed` (not among the allowed types), `ranking` (it keeps everything,
            another is better), or the question at which it failed: `specifications`, `degree`, `memory`, `slo`,
            `copies`, `price`, `budget`.
        because: Full sentences.
        usd_per_hour: Price of the size that it would have; `None` when unknown or not reached.
        output_tok_s: Of all its copies at the planned load; `None` when not reached.
    """

    instance_type: str
    tensor_parallel_degree: int
    won: bool
    stage: str
    because: str
    usd_per_hour: float | None
    output_tok_s: float | None
