"""The floor of the comparison: a roofline in four lines, with the catalog's nominal numbers.

    python -m benchmarks.planner_accuracy.roofline

A step reads every weight once or is bound by the arithmetic of the batch. No KV cache, no prefill, no link, no host.
"""

from __future__ import annotations

from benchmarks.planner_accuracy.cells import MODEL, Cell, write_peer
from seatrial_base.catalog.instances import find_instance
from seatrial_base.catalog.models import find_model

WEIGHT_BYTES = 2


def serve(cell: Cell, batch: int) -> float | None:
    """Return output tok/s: batch / max(weights / bandwidth, operations / FLOP/s); `None` without published rates."""
    architecture, instance = find_model(MODEL), find_instance(cell.instance_type)
    if not (architecture and instance and instance.memory_bandwidth_bytes_s and instance.flops_16bit):
        return None
    memory_s = WEIGHT_BYTES * architecture.params_total / (cell.tp_degree * instance.memory_bandwidth_bytes_s)
    arithmetic_s = 2 * architecture.params_active * batch / (cell.tp_degree * instance.flops_16bit)
    return batch / max(memory_s, arithmetic_s)


if __name__ == "__main__":
    write_peer("roofline", serve)
