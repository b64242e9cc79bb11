"""Asks GenZ about the measured rows of the models that it ships: Llama 3.1 8B and 70B.

Runs in GenZ's own environment: `run_peers.sh`. TTFT is one prefill of one prompt, TPOT one decode step of the batch in
the middle of the output. The H100 is the one that it ships; H200 and B200 are told in its format, with the catalog's
numbers.
"""

from __future__ import annotations

from GenZ import decode_moddeling, prefill_moddeling  # type: ignore[import-not-found]  # in its own environment only

from benchmarks.planner_accuracy.peer_rows import write_peer
from benchmarks.planner_accuracy.questions import Figures, Question

SYSTEMS: dict[str, str | dict[str, float]] = {
    "ml.p5.48xlarge": "H100_GPU",
    "ml.p5en.48xlarge": {"Flops": 989, "Memory_size": 141, "Memory_BW": 4800, "ICN": 450, "real_values": True},
    "ml.p6-b200.48xlarge": {"Flops": 2250, "Memory_size": 179, "Memory_BW": 7700, "ICN": 900, "real_values": True},
}
BITS = {"16-bit": "bf16", "fp8": "fp8", "nvfp4": "fp4"}
MODELS = {
    "meta-llama/Llama-3.1-70B": "meta-llama/Llama-3.1-70B",
    "meta-llama/Llama-3.1-8B-Instruct": "meta-llama/meta-llama-3.1-8b",
}


def _serve(question: Question, batch: int) -> Figures | None:
    model, system = MODELS.get(question.model), SYSTEMS.get(question.instance_type)
    if model is None or system is None:
        raise LookupError(f"GenZ ships no {question.model}, or was not told {question.instance_type}")
    shared = {
        "model": model,
        "input_tokens": round(question.input_tokens),
        "system_name": system,
        "bits": BITS[question.precision],
        "tensor_parallel": question.tp_degree,
        "parallelism_heirarchy": f"TP{{{question.tp_degree}}}_EP{{1}}_PP{{1}}",
    }
    output_tokens = round(question.output_tokens)
    try:
        decode_moddeling(**shared, batch_size=batch, Bb=1, output_tokens=output_tokens)  # refuses what does not fit
        step_ms = decode_moddeling(**shared, batch_size=batch, Bb=1, output_tokens=output_tokens // 2)["Latency"]
        prefill_ms = prefill_moddeling(**shared, batch_size=1)["Latency"]
    except ValueError as refusal:
        if "would not fit on chip" not in str(refusal):
            raise
        return None
    return Figures(ttft_ms=float(prefill_ms), tpot_ms=float(step_ms))


if __name__ == "__main__":
    write_peer("genz", _serve)
