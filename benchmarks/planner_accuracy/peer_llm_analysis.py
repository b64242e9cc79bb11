"""Asks llm-analysis about the published cells.

Runs in llm-analysis's own environment: `run_peers.sh`. It ships both cards and the model; a request is one static
batch from its prefill to its last token.
"""

from __future__ import annotations

from functools import partial

from llm_analysis.analysis import infer  # type: ignore[import-not-found]  # in its own environment only

from benchmarks.planner_accuracy.cells import Cell, write_peer

GPUS = {"ml.p4d.24xlarge": "a100-sxm-40gb"}
A10G = "a10g-pcie-24gb"
EFFICIENCIES = {"llm-analysis": (1.0, 1.0), "llm-analysis-65": (0.65, 0.5)}
"""Of memory bandwidth and of operations: as shipped; and as its own warnings advise (0.6 to 0.7, and about 0.5)."""


def main() -> None:
    """Write one file of predictions per pair of efficiencies."""
    for name, efficiency in EFFICIENCIES.items():
        write_peer(name, partial(_serve, efficiency))


def _serve(efficiency: tuple[float, float], cell: Cell, batch: int) -> float | None:
    memory_efficiency, flops_efficiency = efficiency
    try:
        summary = infer(
            model_name="NousResearch_Llama-2-7b-hf",
            gpu_name=GPUS.get(cell.instance_type, A10G),
            dtype_name="w16a16e16",
            batch_size_per_gpu=batch,
            tp_size=cell.tp_degree,
            seq_len=cell.input_tokens,
            num_tokens_to_generate=cell.output_tokens,
            hbm_memory_efficiency=memory_efficiency,
            flops_efficiency=flops_efficiency,
            log_level="ERROR",
        )
    except AssertionError as refusal:
        if "too large" not in str(refusal):
            raise
        return None
    return float(summary["total_tokens_per_sec"])


if __name__ == "__main__":
    main()
