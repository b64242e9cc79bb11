"""Compiled models: what an artifact is compiled for, what makes it useless, and how long a build takes.

An artifact fits one combination of weights, shapes, types, sharding, accelerator and framework. Whoever changes one of
them compiles again: at the next start of a container, or ahead of time.
"""

from __future__ import annotations

from typing import Literal

from seatrial_base.frozen_model import FrozenModel, canonical_json, digest

Compiler = Literal["neuron", "trtllm"]

# LMI's tutorial of TensorRT-LLM's ahead-of-time compilation: Falcon 40B and Llama 2 70B take about 7 minutes and more,
# 140 GB in 420 s for the larger one. A third of that speed is assumed: a timeout that is too long costs nothing.
# https://docs.djl.ai/docs/serving/serving/docs/lmi/tutorials/trtllm_aot_tutorial.html
BUILD_BYTES_S = 100_000_000
QUANTIZED_BUILDS = 2  # times a build: calibration reads all weights again (assumed)
_NAMES = {
    "compiler": "compiler",
    "model": "model",
    "revision": "revision of the weights",
    "batch_size": "batch size",
    "sequence_length": "sequence length",
    "batched_tokens": "tokens of an iteration",
    "dtype": "type of the weights",
    "quantization": "quantization",
    "degree": "tensor parallel degree",
    "accelerator": "accelerator",
    "framework": "framework and its version",
}


class CompilationKey(FrozenModel):
    """What a compiled artifact was made for; artifacts of an equal key can be used again.

    Attributes:
        compiler: AWS Neuron's or TensorRT-LLM's.
        model: The model, or the place of its weights.
        revision: Commit of the hub repository, or a digest of the weights; `None` where neither is known.
        batch_size: Most sequences of a batch.
        sequence_length: Longest sequence, in tokens.
        batched_tokens: Prompt tokens of one iteration, which the engine's shapes hold.
        dtype: Type of weights and activations.
        quantization: Quantization of the weights; `None` for 16 bits.
        degree: Accelerators that one copy is sharded over; NeuronCores on AWS Neuron.
        accelerator: The accelerator: an artifact of one generation does not run on another.
        framework: Image repository and tag, which fix framework and compiler version.
    """

    compiler: Compiler
    model: str
    revision: str | None
    batch_size: int
    sequence_length: int
    batched_tokens: int
    dtype: str
    quantization: str | None
    degree: int
    accelerator: str
    framework: str

    @property
    def digest(self) -> str:
        """Digest of the key: the name under which an artifact is kept."""
        return digest(canonical_json(self))


def invalidated(before: CompilationKey | None, after: CompilationKey | None) -> tuple[str, ...]:
    """Return what makes compiled artifacts useless, a sentence each; nothing when they can be used again.

    Args:
        before: What they were compiled for; `None` for nothing.
        after: What is needed now; `None` when nothing is compiled any more.
    """
    if before is None or after is None or before.compiler != after.compiler:
        return ()
    old, new = before.model_dump(), after.model_dump()
    return tuple(
        f"The {_NAMES[name]} changes from {_text(old[name])} to {_text(new[name])}: compiled artifacts are made anew."
        for name in _NAMES
        if old[name] != new[name]
    )


def _text(value: str | int | None) -> str:
    return "none" if value is None else f"{value:,}" if isinstance(value, int) else value


def build_seconds(weights_bytes: int, *, quantizes: bool) -> float:
    """Return how long TensorRT-LLM may take to build its engine, in seconds; an assumption, slow on purpose.

    Args:
        weights_bytes: Of all weights at 16 bits.
        quantizes: The build quantizes them too.
    """
    return weights_bytes / BUILD_BYTES_S * (QUANTIZED_BUILDS if quantizes else 1)
