"""A random Llama-shape model in a GGUF file, made on the spot and cached.

It's small enough for one thread of a laptop and writes only ASCII text, one event per token: a constant channel of
the hidden state carries a bias, which forbids the tokens that are control tokens or parts of a UTF-8 character.

Quantization of GGUF files: which type stands for a quantization of the real container, and files made so.

Matrices of the layers are quantized. Token embedding and output keep 16 bits, as in the checkpoints that the types
stand for; norms keep 32.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from seatrial_base.files import replacing
from seatrial_base.units import MIB
from seatrial_laptop.engine.settings import KV_POOL_TOKENS, start_error

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import gguf
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


BLOCK: Final = 32
"""Weights of a row that share a scale, in Q8_0 and in Q4_0 (ggml `QK8_0`, `QK4_0`)."""
MAGIC: Final = b"GGUF"


class GgufType(StrEnum):
    """How the matrices of a GGUF file's layers are stored."""

    F16 = "F16"
    Q8_0 = "Q8_0"
    Q4_0 = "Q4_0"


_INT8: Final = ("int8", "w8a8", "w8a16", "smoothquant", "static_int8", "dynamic_int8")
_EIGHT_BITS: Final = ("fp8", "eetq", "bitsandbytes8", *_INT8)
_FOUR_BITS: Final = ("awq", "gptq", "int4", "mxfp4", "nvfp4", "awq_marlin", "gptq_marlin", "marlin", "squeezellm")
_OF_BITSANDBYTES: Final = ("bitsandbytes", "bitsandbytes4", "bitsandbytes-nf4", "bitsandbytes-fp4")
_STANDS_FOR: Final = {
    **dict.fromkeys(_EIGHT_BITS, GgufType.Q8_0),
    **dict.fromkeys((*_FOUR_BITS, *_OF_BITSANDBYTES), GgufType.Q4_0),
    "": GgufType.F16,
}


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
    """A GGUF file and its description.

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
    text = f"GGUF {kind or GgufType.F16} of random weights"
    if kind is None:
        text += f"; no GGUF type stands for {settings.quantization}"
    elif settings.quantization:
        text += f", in place of {settings.quantization}"
    return ServedWeights(path, text, path.stat().st_size, kind or GgufType.F16)


def stands_for(quantization: str) -> GgufType | None:
    """Return the type that stands for a quantization; `None` when there is none, F16 for no quantization."""
    return _STANDS_FOR.get(quantization.strip().lower())


def stored(
    name: str, tensor: NDArray[np.float32], kind: GgufType
) -> tuple[NDArray[np.generic], gguf.GGMLQuantizationType]:
    """Return a tensor's content as a file of a type stores it, and how."""
    import gguf  # noqa: PLC0415 (an optional dependency, needed once per machine)
    import numpy as np  # noqa: PLC0415 (an optional dependency)

    if tensor.ndim == 1:
        return tensor.astype(np.float32), gguf.GGMLQuantizationType.F32
    narrow = kind is not GgufType.F16 and name.startswith("blk.") and tensor.shape[-1] % BLOCK == 0
    if not narrow:
        return tensor.astype(np.float16), gguf.GGMLQuantizationType.F16
    quantization = gguf.GGMLQuantizationType[kind.value]
    return gguf.quants.quantize(np.ascontiguousarray(tensor, np.float32), quantization), quantization


def quantize_file(source: Path, target: Path, kind: GgufType) -> None:
    """Write a GGUF file again, with its matrices as the type stores them; `target` is whole or not there.

    Raises:
        ValueError: The source isn't a GGUF file.
    """
    import gguf  # noqa: PLC0415 (an optional dependency, needed once per machine)

    with source.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise ValueError(f"{source.name} is not a GGUF file")
    reader = gguf.GGUFReader(source)
    with replacing(target) as part:
        field = reader.get_field("general.architecture")
        if field is None:
            raise ValueError("the GGUF file names no architecture")
        writer = gguf.GGUFWriter(part, str(field.contents()))
        for metadata_field in reader.fields.values():
            if metadata_field.name.startswith("GGUF.") or metadata_field.name == "general.architecture":
                # The writer writes them.
                continue
            metadata_kind = metadata_field.types[0]
            inner = metadata_field.types[-1] if metadata_kind is gguf.GGUFValueType.ARRAY else None
            writer.add_key_value(metadata_field.name, metadata_field.contents(), metadata_kind, sub_type=inner)
        for tensor in reader.tensors:
            values = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
            content, how = stored(tensor.name, values, kind)
            writer.add_tensor(tensor.name, content, raw_dtype=how)
        write_whole_file(writer)


def write_whole_file(writer: gguf.GGUFWriter) -> None:
    """Write everything that a writer holds, and close it."""
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
