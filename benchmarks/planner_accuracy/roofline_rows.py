"""The floor of the comparison on the measured rows: a roofline with the catalog's nominal numbers.

    python -m benchmarks.planner_accuracy.roofline_rows

A prompt is bound by its arithmetic; a step reads every weight once or is bound by the arithmetic of the batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.planner_accuracy.judged import bits_written
from benchmarks.planner_accuracy.peer_rows import write_peer
from benchmarks.planner_accuracy.questions import MS_PER_S, Figures, Question
from seatrial_base.catalog.instances import find_instance
from seatrial_base.catalog.models import resolve_model

if TYPE_CHECKING:
    from seatrial_base.catalog.instances import Instance

BITS_PER_BYTE, BITS_16 = 8, 16


def serve(question: Question, batch: int) -> Figures | None:
    """Return TTFT and TPOT of a batch.

    Raises:
        LookupError: The catalog lacks the model, the instance type, or its rates.
    """
    resolved, instance = resolve_model(question.model), find_instance(question.instance_type)
    if resolved is None or instance is None or instance.memory_bandwidth_bytes_s is None:
        raise LookupError(f"the catalog lacks {question.model} or {question.instance_type}")
    bits, flops = bits_written(question.precision), _flops(instance, bits_written(question.precision))
    shape, _ = resolved
    operations_s = 2 * shape.params_active / (question.tp_degree * flops)
    read_s = shape.params_total * bits / BITS_PER_BYTE / (question.tp_degree * instance.memory_bandwidth_bytes_s)
    step_s = max(read_s, operations_s * batch)
    return Figures(ttft_ms=operations_s * question.input_tokens * MS_PER_S, tpot_ms=step_s * MS_PER_S)


def _flops(instance: Instance, bits: int) -> int:
    flops = instance.flops_16bit if bits == BITS_16 else instance.flops_8bit or instance.flops_16bit
    if flops is None:
        raise LookupError(f"the catalog lacks the operations per second of {instance.instance_type}")
    return flops


if __name__ == "__main__":
    write_peer("roofline", serve)
