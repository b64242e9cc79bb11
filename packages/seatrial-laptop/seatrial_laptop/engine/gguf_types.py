"""Quantization of GGUF files: which type stands for a quantization of the real container, and files made so.

Matrices of the layers are quantized. Token embedding and output keep 16 bits, as in the checkpoints that the types
stand for; norms keep 32.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

from seatrial_base.files import replacing

if TYPE_CHECKING:
    from pathlib import Path

    import gguf
    import numpy as np
    from numpy.typing import NDArray

BLOCK: Final = 32
"""Weights of a row that share a scale, in Q8_0 and in Q4_0 (ggml `QK8_0`, `QK4_0`)."""
MAGIC: Final = b"GGUF"


class GgufType(StrEnum):
    """How the matrices of a GGUF file's layers are stored."""

    F16 = "F16"
    Q8_0 = "Q8_0"
    Q4_0 = "Q4_0"


_EIGHT_BITS: Final = ("fp8", "int8", "smoothquant", "w8a8", "eetq", "bitsandbytes8", "static_int8", "dynamic_int8")
_FOUR_BITS: Final = ("awq", "gptq", "int4", "mxfp4", "nvfp4", "awq_marlin", "gptq_marlin", "marlin", "squeezellm")
_OF_BITSANDBYTES: Final = ("bitsandbytes", "bitsandbytes4", "bitsandbytes-nf4", "bitsandbytes-fp4")
_STANDS_FOR: Final = {
    **dict.fromkeys(_EIGHT_BITS, GgufType.Q8_0),
    **dict.fromkeys((*_FOUR_BITS, *_OF_BITSANDBYTES), GgufType.Q4_0),
    "": GgufType.F16,
}


def stands_for(quantization: str) -> GgufType | None:
    """Return the type that stands for a quantization; `None` when there is none, F16 for no quantization."""
    return _STANDS_FOR.get(quantization.strip().lower())


def stored(
    name: str, tensor: NDArray[np.float32], kind: GgufType
) -> tuple[NDArray[np.generic], gguf.GGMLQuantizationType]:
    """Return a tensor's content as a file of a type stores it, and how."""
    import gguf  # noqa: PLC0415 (an optional dependency)
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
    import gguf  # noqa: PLC0415 (an optional dependency)

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
