"""Asks llm-analysis about the measured rows of Llama 3.1 8B and 70B on H100.

Runs in llm-analysis's own environment: `run_peers.sh`. It ships the H100, but no H200 and no B200, and no such model:
`given/llm-analysis/` tells it both, with the three matrices of the MLP as two of the same size. TTFT is the prefill of
one prompt, TPOT one decode step of the batch.
"""

from __future__ import annotations

from pathlib import Path

from llm_analysis.analysis import infer  # type: ignore[import-not-found]  # in its own environment only

from benchmarks.planner_accuracy.peer_rows import write_peer
from benchmarks.planner_accuracy.questions import MS_PER_S, Figures, Question

GIVEN = Path(__file__).parent / "given" / "llm-analysis"
GPUS = {"ml.p5.48xlarge": "h100-sxm-80gb"}
MODELS = {
    "meta-llama/Llama-3.1-70B": "llama-3.1-70b.json",
    "meta-llama/Llama-3.1-8B-Instruct": "llama-3.1-8b.json",
}
DTYPES = {"16-bit": "w16a16e16", "fp8": "w8a8e16"}


def _serve(question: Question, batch: int) -> Figures | None:
    model, gpu = MODELS.get(question.model), GPUS.get(question.instance_type)
    if model is None or gpu is None:
        raise LookupError(f"llm-analysis was not told {question.model}, or ships no GPU of {question.instance_type}")
    try:
        step, prompt = (_summary(question, model, gpu, size) for size in (batch, 1))
    except AssertionError as refusal:
        if "too large" not in str(refusal):
            raise
        return None
    return Figures(
        ttft_ms=float(prompt["prefill_latency"]) * MS_PER_S, tpot_ms=float(step["decode_latency"]) * MS_PER_S
    )


def _summary(question: Question, model: str, gpu: str, batch: int) -> dict[str, float]:
    found: dict[str, float] = infer(
        model_name=str(GIVEN / model),
        gpu_name=gpu,
        dtype_name=DTYPES[question.precision],
        batch_size_per_gpu=batch,
        tp_size=question.tp_degree,
        seq_len=round(question.input_tokens),
        num_tokens_to_generate=round(question.output_tokens),
        hbm_memory_efficiency=1.0,
        flops_efficiency=1.0,
        log_level="ERROR",
    )
    return found


if __name__ == "__main__":
    write_peer("llm-analysis", _serve)
