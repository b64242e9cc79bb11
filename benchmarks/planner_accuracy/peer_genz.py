"""Asks GenZ about the published cells.

Runs in GenZ's own environment: `run_peers.sh`. GenZ gives the time of one prefill and of one decode step of a static
batch; a request is one prefill and, per output token, one step in the middle of the output. The A100 is the one that
it ships, the A10G is told by `a10g.py`.
"""

from __future__ import annotations

from functools import partial

from GenZ import decode_moddeling, prefill_moddeling  # type: ignore[import-not-found]  # in its own environment only

from benchmarks.planner_accuracy import a10g
from benchmarks.planner_accuracy.cells import MS_PER_S, Cell, write_peer

SYSTEMS: dict[str, str | dict[str, float]] = {"ml.p4d.24xlarge": "A100_40GB_GPU"}
A10G = {
    "Flops": a10g.FLOPS / 1e12,
    "Memory_size": a10g.MEMORY_BYTES / 2**30,
    "Memory_BW": a10g.MEMORY_BANDWIDTH_BYTES_S / 1e9,
    "ICN": a10g.LINK_BYTES_S / 1e9,
    "real_values": True,
}
EFFICIENCIES = {"genz": 1.0, "genz-65": 0.65}
"""As shipped; and llm-analysis's advice for memory, for want of one from GenZ, which has one number for both."""


def main() -> None:
    """Write one file of predictions per efficiency."""
    for name, efficiency in EFFICIENCIES.items():
        write_peer(name, partial(_serve, efficiency))


def _serve(efficiency: float, cell: Cell, batch: int) -> float | None:
    shared = {
        "model": "meta-llama/Llama-2-7B",
        "batch_size": batch,
        "input_tokens": cell.input_tokens,
        "system_name": SYSTEMS.get(cell.instance_type, A10G),
        "system_eff": efficiency,
        "bits": "bf16",
        "tensor_parallel": cell.tp_degree,
        "parallelism_heirarchy": f"TP{{{cell.tp_degree}}}_EP{{1}}_PP{{1}}",
    }
    try:
        decode_moddeling(**shared, Bb=1, output_tokens=cell.output_tokens)  # refuses what does not fit at the end
        step_ms = decode_moddeling(**shared, Bb=1, output_tokens=cell.output_tokens // 2)["Latency"]
        prefill_ms = prefill_moddeling(**shared)["Latency"]
    except ValueError as refusal:
        if "would not fit on chip" not in str(refusal):
            raise
        return None
    return float(batch * cell.output_tokens / (prefill_ms + cell.output_tokens * step_ms) * MS_PER_S)


if __name__ == "__main__":
    main()
