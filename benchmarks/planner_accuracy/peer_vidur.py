"""Asks Vidur's event simulator about the queues of `queue_cases.py`: the same requests and the same iteration times.

Runs in Vidur's own environment, beside Seatrial (README, "To run it"). Its Sarathi scheduler mixes chunks of prompts
into decode steps, as vLLM V1 does, and allocates the cache block by block, with preemption. Its predictor of iteration
times is replaced by Seatrial's, so that what differs is the queue and the batch alone.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from typing import Any

from vidur.config import (  # type: ignore[import-not-found]  # in its own environment only
    ClusterConfig,
    MetricsConfig,
    ReplicaConfig,
    SarathiSchedulerConfig,
    SimulationConfig,
)
from vidur.entities import Replica, Request  # type: ignore[import-not-found]
from vidur.events import RequestArrivalEvent  # type: ignore[import-not-found]
from vidur.execution_time_predictor import ExecutionTimePredictorRegistry  # type: ignore[import-not-found]
from vidur.simulator import Simulator  # type: ignore[import-not-found]

from benchmarks.planner_accuracy.queue_cases import FIRST_MEASURED, REQUESTS, UTILIZATIONS, QueueCase, queue_cases
from benchmarks.planner_accuracy.queues import QueueFigures, figures_of, write_queues
from seatrial.planner.predict.iteration_cost import Costs, costs_of


@dataclass(frozen=True, slots=True)
class _Took:
    """What Vidur asks of an iteration, in seconds."""

    total_time: float
    model_time: float


class _SeatrialTimes:
    """Seatrial's time of an iteration, in the place of Vidur's predictor."""

    def __init__(self, costs: Costs) -> None:
        self.costs = costs

    def get_execution_time(self, batch: Any, pipeline_stage: int) -> _Took:  # noqa: ANN401 (Vidur's, untyped)
        """Return the time of a batch: chunks of prompts beside decode steps."""
        del pipeline_stage
        decoding = [request for request in batch.requests if request.is_prefill_complete]
        prompt = sum(batch.num_tokens) - len(decoding)
        size, context = len(decoding), sum(request.num_processed_tokens for request in decoding)
        seconds = self.costs.mixed(size, prompt) if prompt else self.costs.step(size)
        seconds += context * self.costs.attention(size) if size else 0.0
        return _Took(seconds, seconds)


def main() -> None:
    """Write `vidur_queues.csv`."""
    found = {
        (case.name, utilization): _simulated(case, utilization)
        for case in queue_cases()
        for utilization in UTILIZATIONS
    }
    write_queues(found)


def _simulated(case: QueueCase, utilization: float) -> QueueFigures:
    copy = case.copy
    Replica._id = -1  # noqa: SLF001 (a run's only replica must be the first)
    ExecutionTimePredictorRegistry.get = lambda *_, **__: _SeatrialTimes(costs_of(copy))
    size = copy.engine.kv_block_tokens
    scheduler = SarathiSchedulerConfig(
        batch_size_cap=copy.max_num_seqs,
        chunk_size=copy.batched_tokens,
        block_size=size,
        num_blocks=copy.kv_room_tokens // size,
    )
    with tempfile.TemporaryDirectory() as folder:
        simulator = Simulator(
            SimulationConfig(
                cluster_config=ClusterConfig(
                    num_replicas=1, replica_config=ReplicaConfig(), replica_scheduler_config=scheduler
                ),
                metrics_config=MetricsConfig(write_metrics=False, enable_chrome_trace=False, output_dir=folder),
            )
        )
        requests = _requests(case, utilization)
        simulator._event_queue.clear()  # noqa: SLF001 (it draws its own, and takes no others)
        _add(simulator, requests)
        simulator.run()
    measured = requests[FIRST_MEASURED : REQUESTS - FIRST_MEASURED]
    return figures_of(
        [(each.prefill_completed_at - each.arrived_at, each.completed_at - each.arrived_at) for each in measured]
    )


def _requests(case: QueueCase, utilization: float) -> list[Any]:
    lengths = case.copy.lengths
    return [
        Request(arrived_at=at_s, num_prefill_tokens=prompt, num_decode_tokens=answer)
        for row, at_s in enumerate(case.due_s(utilization))
        for prompt, answer in ([lengths.of(row)] if lengths else [(case.copy.input_tokens, case.copy.output_tokens)])
    ]


def _add(simulator: Any, requests: list[Any]) -> None:  # noqa: ANN401
    for request in requests:
        simulator._add_event(RequestArrivalEvent(request.arrived_at, request))  # noqa: SLF001


if __name__ == "__main__":
    main()
