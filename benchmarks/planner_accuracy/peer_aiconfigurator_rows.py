"""Asks aiconfigurator about the measured rows, in its silicon mode: tables of kernels that NVIDIA measured.

Runs in aiconfigurator's own environment: `run_peers.sh`. It has no table of the A10G: those rows are not answered. A
model in a precision is one of the checkpoints that it ships, or the 16-bit checkpoint with the precision asked for.
"""

from __future__ import annotations

from aiconfigurator.cli.api import cli_estimate  # type: ignore[import-not-found]  # in its own environment only

from benchmarks.planner_accuracy.peer_rows import write_peer
from benchmarks.planner_accuracy.questions import Figures, Question

SYSTEMS = {
    "ml.p5.48xlarge": "h100_sxm",
    "ml.p5en.48xlarge": "h200_sxm",
    "ml.p6-b200.48xlarge": "b200_sxm",
    "ml.g7e.2xlarge": "rtx_pro_6000_server",
}
FP8 = {"gemm_quant_mode": "fp8", "kvcache_quant_mode": "fp8"}
NVFP4 = {"gemm_quant_mode": "nvfp4", "kvcache_quant_mode": "fp8"}
MODELS: dict[tuple[str, str], tuple[str, dict[str, str]]] = {
    ("Qwen/Qwen3-32B", "16-bit"): ("Qwen/Qwen3-32B", {}),
    ("Qwen/Qwen3-32B", "fp8"): ("Qwen/Qwen3-32B-FP8-Static-PerTensor", {}),
    ("meta-llama/Llama-3.1-8B-Instruct", "16-bit"): ("meta-llama/Meta-Llama-3.1-8B", {}),
    ("meta-llama/Llama-3.1-8B-Instruct", "fp8"): ("meta-llama/Meta-Llama-3.1-8B", FP8),
    ("meta-llama/Llama-3.1-70B", "fp8"): ("nvidia/Llama-3.1-70B-Instruct-FP8", {}),
    ("meta-llama/Llama-3.1-70B", "nvfp4"): ("meta-llama/Meta-Llama-3.1-70B", NVFP4),
    ("Qwen/Qwen3-235B-A22B-FP8", "fp8"): ("Qwen/Qwen3-235B-A22B-FP8", {}),
    ("Qwen/Qwen3.5-397B-A17B", "16-bit"): ("Qwen/Qwen3.5-397B-A17B", {}),
    ("Qwen/Qwen3.5-397B-A17B", "fp8"): ("Qwen/Qwen3.5-397B-A17B", {**FP8, "moe_quant_mode": "fp8"}),
    ("Qwen/Qwen3.5-397B-A17B", "nvfp4"): ("nvidia/Qwen3.5-397B-A17B-NVFP4", {}),
    ("MiniMaxAI/MiniMax-M2.5", "fp8"): ("MiniMaxAI/MiniMax-M2.5", {}),
    ("MiniMaxAI/MiniMax-M2.5", "nvfp4"): ("nvidia/MiniMax-M2.5-NVFP4", {}),
    ("moonshotai/Kimi-K2.5", "int4"): ("moonshotai/Kimi-K2.5", {}),
    ("moonshotai/Kimi-K2.5", "nvfp4"): ("nvidia/Kimi-K2.5-NVFP4", {}),
    ("openai/gpt-oss-120b", "mxfp4"): ("openai/gpt-oss-120b", {}),
    ("openai/gpt-oss-20b", "mxfp4"): ("openai/gpt-oss-20b", {}),
}
DENSE = ("Qwen/Qwen3-32B", "meta-llama/")
_REFUSALS = (ValueError, RuntimeError, KeyError, NotImplementedError, TypeError)


def _serve(question: Question, batch: int) -> Figures | None:
    system = SYSTEMS.get(question.instance_type)
    model = MODELS.get((question.model, question.precision))
    if system is None:
        raise LookupError(f"no table of the accelerator of {question.instance_type}")
    if model is None:
        raise LookupError(f"no checkpoint of {question.model} in {question.precision}")
    path, modes = model
    experts = {} if question.model.startswith(DENSE) else {"moe_tp_size": question.tp_degree, "moe_ep_size": 1}
    try:
        estimate = cli_estimate(
            path,
            system,
            backend_name=question.engine,
            database_mode="SILICON",
            isl=round(question.input_tokens),
            osl=round(question.output_tokens),
            batch_size=batch,
            tp_size=question.tp_degree,
            **experts,
            **modes,
        )
    except _REFUSALS as refusal:
        if "does not fit in GPU memory" in str(refusal):
            return None
        raise LookupError(" ".join(str(refusal).split())[:160]) from refusal
    if estimate.kv_cache_warning:
        return None
    return Figures(ttft_ms=float(estimate.ttft), tpot_ms=float(estimate.tpot))


if __name__ == "__main__":
    write_peer("aiconfigurator", _serve)
