"""Which weights an engine serves: a GGUF file that was mounted, else random ones, quantized as the configuration says.

What it serves is never the model that the configuration names, and it says so.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from seatrial_base.units import MIB
from seatrial_laptop.engine.gguf_types import GgufType, stands_for
from seatrial_laptop.engine.settings import refusal
from seatrial_laptop.engine.weights import LARGE, Shape, weights_file

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from seatrial_laptop.engine.settings import EngineSettings

MODEL_VARIABLE: Final = "SEATRIAL_LOCAL_MODEL"
"""Which random model an engine makes: `small` (the default) or `large`, whose weights don't fit in a CPU's caches."""
SHAPES: Final = {"small": Shape(), "large": LARGE}


@dataclass(frozen=True, slots=True)
class ServedWeights:
    """A GGUF file and what is told about it.

    Attributes:
        path: The file.
        text: What it is, in place of what.
        bytes: Size of the file.
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
        raise refusal(f"several GGUF files are mounted: {names}; the engine serves one")
    if mounted:
        return ServedWeights(mounted[0], f"{mounted[0].name}, as it was mounted", mounted[0].stat().st_size, "")
    kind = stands_for(settings.quantization)
    path = weights_file(cache_dir, shape=_shape(variables), kind=kind or GgufType.F16)
    return ServedWeights(path, _told(settings.quantization, kind), path.stat().st_size, kind or GgufType.F16)


def _shape(variables: Mapping[str, str]) -> Shape:
    name = variables.get(MODEL_VARIABLE) or "small"
    if name not in SHAPES:
        raise refusal(f"{name!r} is not one of {', '.join(SHAPES)}", field=MODEL_VARIABLE)
    return SHAPES[name]


def _told(quantization: str, kind: GgufType | None) -> str:
    if kind is None:
        return f"GGUF {GgufType.F16} of random weights; no GGUF type stands for {quantization}"
    return f"GGUF {kind} of random weights" + (f", in place of {quantization}" if quantization else "")
