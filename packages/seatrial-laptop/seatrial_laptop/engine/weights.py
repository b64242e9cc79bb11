"""A random Llama-shape model in a GGUF file, made on the spot and cached.

It's small enough for one thread of a laptop and writes only ASCII text, one event per token: a constant channel of
the hidden state carries a bias, which forbids the tokens that are control tokens or parts of a UTF-8 character.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from seatrial_base.files import replacing
from seatrial_base.units import MIB
from seatrial_laptop.engine.gguf_types import GgufType, stands_for, stored, write_whole_file
from seatrial_laptop.engine.settings import KV_POOL_TOKENS, start_error

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from seatrial_laptop.engine.settings import EngineSettings


MODEL_VARIABLE: Final = "SEATRIAL_LOCAL_MODEL"
"""Which random model an engine makes: `small` (the default) or `large`, whose weights don't fit in a CPU's caches."""
VERSION: Final = 2
"""Counts the changes of this recipe; part of the file's name."""
SPECIAL: Final = ("<s>", "</s>", "<pad>", "<|im_start|>", "<|im_end|>")
PRINTABLE: Final = frozenset(chr(code) for code in range(33, 127)) | {"Ġ", "Ċ"}
"""Printable ASCII, space and line feed, as a byte-level vocabulary spells them."""
FORBIDDEN_LOGIT: Final = -100.0
CHAT_TEMPLATE: Final = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes of a Llama-shape model; the default decodes about 1,000 tokens per second on one thread."""

    hidden: int = 192
    layers: int = 3
    heads: int = 6
    kv_heads: int = 1
    intermediate: int = 512
    vocabulary: int = 2048

    @property
    def head_dim(self) -> int:
        """Channels of one attention head."""
        return self.hidden // self.heads


LARGE: Final = Shape(hidden=1024, layers=6, heads=16, kv_heads=1, intermediate=2816)


SHAPES: Final = {"small": Shape(), "large": LARGE}
"""Sizes for comparisons of memory and speed: about 66 million weights, more than a CPU's caches hold."""


def weights_file(cache_dir: Path, *, shape: Shape | None = None, seed: int = 0, kind: GgufType = GgufType.F16) -> Path:
    """Return the cached GGUF file, after making it when it's absent; two processes may race, both get a whole file.

    Args:
        seed: Equal seeds give equal weights, of every type.
    """
    shape = shape or Shape()
    sizes = f"{shape.hidden}x{shape.layers}x{shape.heads}x{shape.kv_heads}x{shape.intermediate}x{shape.vocabulary}"
    target = cache_dir / f"random-llama-v{VERSION}-{sizes}-seed{seed}-{kind.lower()}.gguf"
    if target.exists():
        return target
    cache_dir.mkdir(parents=True, exist_ok=True)
    with replacing(target) as part:
        write_weights(part, shape, seed, kind)
    return target


def write_weights(path: Path, shape: Shape, seed: int, kind: GgufType = GgufType.F16) -> None:
    """Write a random model; equal shapes, seeds and types give equal files."""
    import gguf  # noqa: PLC0415 (an optional dependency, needed once per machine)

    tokens, merges = _vocabulary(shape.vocabulary)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("random-llama")
    writer.add_context_length(KV_POOL_TOKENS)
    writer.add_embedding_length(shape.hidden)
    writer.add_block_count(shape.layers)
    writer.add_feed_forward_length(shape.intermediate)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.kv_heads)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(shape.head_dim)
    writer.add_chat_template(CHAT_TEMPLATE)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_merges(merges)
    writer.add_token_types([gguf.TokenType.CONTROL if token in SPECIAL else gguf.TokenType.NORMAL for token in tokens])
    writer.add_bos_token_id(SPECIAL.index("<s>"))
    writer.add_eos_token_id(SPECIAL.index("</s>"))
    writer.add_pad_token_id(SPECIAL.index("<pad>"))
    for name, tensor in _tensors(shape, tokens, seed).items():
        content, how = stored(name, tensor, kind)
        writer.add_tensor(name, content, raw_dtype=how)
    write_whole_file(writer)


def _vocabulary(size: int) -> tuple[list[str], list[str]]:
    """Train a byte-level BPE on English prose that every Python carries: the topics of its own help."""
    from pydoc_data.topics import topics  # noqa: PLC0415 (700 kB of text, needed once per machine)

    from tokenizers import Tokenizer, models, pre_tokenizers, trainers  # noqa: PLC0415 (an optional dependency)

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=list(SPECIAL), initial_alphabet=sorted(alphabet), show_progress=False
    )
    tokenizer.train_from_iterator(topics.values(), trainer)
    model = json.loads(tokenizer.to_str())["model"]
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in model["merges"]]
    return sorted(model["vocab"], key=model["vocab"].__getitem__), merges


def _tensors(shape: Shape, tokens: list[str], seed: int) -> dict[str, NDArray[np.float32]]:
    import numpy as np  # noqa: PLC0415 (an optional dependency)

    random = np.random.default_rng(seed)

    def matrix(rows: int, columns: int, scale: float) -> NDArray[np.float32]:
        return (random.standard_normal((rows, columns)) * scale).astype(np.float32)

    def into_residual(columns: int) -> NDArray[np.float32]:
        weights = matrix(shape.hidden, columns, 0.02)
        # The bias channel stays constant through every layer.
        weights[0] = 0.0
        return weights

    ones = np.ones(shape.hidden, np.float32)
    kv_width = shape.kv_heads * shape.head_dim
    embedding = matrix(len(tokens), shape.hidden, 1.0)
    # Channel 0 is 1 for every token and stays so through every layer. The output layer reads it as a bias, by
    # which a token that can't be printed is never drawn.
    embedding[:, 0] = 1.0
    output = matrix(len(tokens), shape.hidden, 0.1)
    output[:, 0] = [
        0.0 if token not in SPECIAL and PRINTABLE.issuperset(token) else FORBIDDEN_LOGIT for token in tokens
    ]
    tensors = {"token_embd.weight": embedding, "output_norm.weight": ones, "output.weight": output}
    for layer in range(shape.layers):
        block = f"blk.{layer}."
        tensors |= {
            f"{block}attn_norm.weight": ones,
            f"{block}attn_q.weight": matrix(shape.hidden, shape.hidden, 0.02),
            f"{block}attn_k.weight": matrix(kv_width, shape.hidden, 0.02),
            f"{block}attn_v.weight": matrix(kv_width, shape.hidden, 0.02),
            f"{block}attn_output.weight": into_residual(shape.hidden),
            f"{block}ffn_norm.weight": ones,
            f"{block}ffn_gate.weight": matrix(shape.intermediate, shape.hidden, 0.02),
            f"{block}ffn_up.weight": matrix(shape.intermediate, shape.hidden, 0.02),
            f"{block}ffn_down.weight": into_residual(shape.intermediate),
        }
    return tensors


@dataclass(frozen=True, slots=True)
class ServedWeights:
    """A GGUF file and what is told about it.

    Attributes:
        text: What it is, in place of what.
        gguf_type: How its matrices are stored; empty for a mounted file, which may have any type.
    """

    path: Path
    text: str
    bytes: int
    gguf_type: str

    @property
    def sentence(self) -> str:
        """One line of the log."""
        return f"weights: {self.text}; {self.bytes} bytes ({self.bytes / MIB:.1f} MiB)"


def served_weights(
    settings: EngineSettings, model_dir: Path, cache_dir: Path, variables: Mapping[str, str] = os.environ
) -> ServedWeights:
    """Return the weights that an engine serves; random ones are made and cached when they are not there.

    Raises:
        LocalError: SEA605, several GGUF files are mounted, or `SEATRIAL_LOCAL_MODEL` names no model.
    """
    mounted = sorted(model_dir.glob("*.gguf"))
    if len(mounted) > 1:
        names = ", ".join(path.name for path in mounted)
        raise start_error(f"several GGUF files are mounted: {names}; the engine serves one")
    if mounted:
        return ServedWeights(mounted[0], f"{mounted[0].name}, as it was mounted", mounted[0].stat().st_size, "")
    kind = stands_for(settings.quantization)
    name = variables.get(MODEL_VARIABLE) or "small"
    if name not in SHAPES:
        raise start_error(f"{name!r} is not one of {', '.join(SHAPES)}", field=MODEL_VARIABLE)
    path = weights_file(cache_dir, shape=SHAPES[name], kind=kind or GgufType.F16)
    return ServedWeights(path, _weights_text(settings.quantization, kind), path.stat().st_size, kind or GgufType.F16)


def _weights_text(quantization: str, kind: GgufType | None) -> str:
    if kind is None:
        return f"GGUF {GgufType.F16} of random weights; no GGUF type stands for {quantization}"
    return f"GGUF {kind} of random weights" + (f", in place of {quantization}" if quantization else "")
