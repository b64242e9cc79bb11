"""Cases in which two simulators of the same engine are asked the same: requests, arrivals, and time of each iteration.

What differs is how they queue, admit and batch. The lengths of a case are normal, or those of a long tail; the arrivals
are a Poisson process at a share of the copy's saturation.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from seatrial.planner.predict.copy_model import hardware_of, place_copy
from seatrial.planner.predict.memory import fit_memory
from seatrial.planner.predict.simulation import AT_RANDOM, SEED, saturation_per_s
from seatrial_base.catalog.engines import find_engine
from seatrial_base.catalog.instances import find_instance
from seatrial_base.catalog.models import find_model
from seatrial_load.measure.lengths import RequestLengths, normal_lengths, paired_lengths

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial.planner.predict.copy_model import Copy

UTILIZATIONS = (0.2, 0.4, 0.6, 0.7, 0.8)
REQUESTS = 3_000
FIRST_MEASURED = 500


@dataclass(frozen=True, slots=True)
class QueueCase:
    """A copy under a workload; its engine schedules no iteration ahead, as the peer's does not."""

    name: str
    copy: Copy

    def due_s(self, utilization: float) -> Sequence[float]:
        """Return when its requests arrive at a share of its saturation."""
        rate_per_s = utilization * saturation_per_s(self.copy)
        return AT_RANDOM.due_s(rate_per_s, REQUESTS / rate_per_s, SEED)


def queue_cases() -> tuple[QueueCase, ...]:
    """Return the cases: two models, short and long prompts, normal lengths and a long tail."""
    small, large = "meta-llama/Llama-3.1-8B-Instruct", "meta-llama/Llama-3.1-70B-Instruct"
    chat = normal_lengths(input_tokens=512, output_tokens=256, input_tokens_stddev=200, output_tokens_stddev=100)
    document = normal_lengths(input_tokens=3_000, output_tokens=200, input_tokens_stddev=1_000, output_tokens_stddev=60)
    tail = paired_lengths(_long_tail(512))
    return (
        QueueCase("8B, A10G, chat", _placed(small, "ml.g5.2xlarge", 1, chat)),
        QueueCase("8B, L40S, long tail", _placed(small, "ml.g6e.2xlarge", 1, tail)),
        QueueCase("8B, H100, documents", _placed(small, "ml.p5.4xlarge", 1, document)),
        QueueCase("70B, 4 x H100, chat", _placed(large, "ml.p5.48xlarge", 4, chat)),
        QueueCase("70B, 8 x A100, long tail", _placed(large, "ml.p4d.24xlarge", 8, tail)),
    )


def _long_tail(count: int) -> list[tuple[int, int]]:
    """Return pairs whose logarithms are normal: a median of 400 and 150 tokens, a hundredth beyond six times that."""
    draw = random.Random("long tail")  # noqa: S311 (lengths that can be drawn again, not a secret)

    def drawn(median: float) -> int:
        return min(6_000, max(1, round(median * math.exp(draw.gauss(0, 0.8)))))

    return [(drawn(400), drawn(150)) for _ in range(count)]


def _placed(hub_id: str, instance_type: str, degree: int, lengths: RequestLengths) -> Copy:
    model, instance = find_model(hub_id), find_instance(instance_type)
    hardware = None if instance is None else hardware_of(instance)
    if model is None or instance is None or hardware is None:
        raise LookupError(f"{hub_id} or {instance_type} is not in the catalog")
    engine = replace(find_engine("vllm", "0.15.1"), steps_ahead=0)
    prompt, answer = round(lengths.input.mean), round(lengths.output.mean)
    memory = fit_memory(
        model,
        instance,
        engine,
        degree=degree,
        quantization=None,
        tokens=prompt + answer,
        batched_tokens=engine.default_batched_tokens,
    )
    return place_copy(
        model,
        hardware,
        engine,
        memory,
        degree=degree,
        quantization=None,
        input_tokens=prompt,
        output_tokens=answer,
        batched_tokens=engine.default_batched_tokens,
        max_num_seqs=256,
        lengths=lengths,
    )
