"""Which container an image is, and what its configuration says."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from seatrial_base.catalog import precision
from seatrial_base.catalog.models import find_model, split_precision
from seatrial_laptop.engine.lmi import lmi_settings
from seatrial_laptop.engine.settings import EngineSettings, start_error
from seatrial_laptop.engine.tgi import tgi_settings
from seatrial_laptop.engine.vllm import vllm_settings
from seatrial_lint.engines.properties import parse_properties

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


KNOWN: Final = "djl-inference, *tgi-inference* and vllm"


def read_settings(image: str, environment: Mapping[str, str], model_dir: Path) -> EngineSettings:
    """Read the configuration of a container: its environment and the `serving.properties` beside its model.

    A configuration without quantization has that of the checkpoint, as every engine reads it: of its `config.json`
    where it was mounted, else of the model's name.

    Raises:
        LocalError: SEA605, the image isn't known or the real container would not start.
    """
    settings = _configured(image, environment, model_dir)
    if settings.quantization:
        return settings
    return replace(settings, quantization=_of_checkpoint(settings.model_id, model_dir))


def _configured(image: str, environment: Mapping[str, str], model_dir: Path) -> EngineSettings:
    repository = image.rpartition("/")[2].partition(":")[0].partition("@")[0]
    if repository == "djl-inference":
        properties = model_dir / "serving.properties"
        text = properties.read_text() if properties.is_file() else ""
        return lmi_settings(image, environment, parse_properties(text))
    if "tgi-inference" in repository:
        return tgi_settings(environment)
    if repository in ("vllm", "huggingface-vllm"):
        return vllm_settings(environment)
    raise start_error(f"the local engine can't stand for image {image}: it knows {KNOWN}")


def _of_checkpoint(model_id: str, model_dir: Path) -> str:
    config = model_dir / "config.json"
    if config.is_file():
        return _of_config(config)
    name = model_id.rstrip("/").rpartition("/")[2]
    _, named, is_named = split_precision(name)
    known = None if is_named else find_model(model_id)
    return named or (known.checkpoint_quantization if known else None) or ""


def _of_config(config: Path) -> str:
    """Return the quantization that a checkpoint's `config.json` tells; one that we can't plan keeps its own name."""
    try:
        document = json.loads(config.read_bytes())
    except ValueError as error:
        raise start_error(f"config.json of the model is not JSON: {error}") from None
    try:
        described = document.get("quantization_config") if isinstance(document, dict) else None
        return precision.quantization_of(described) or ""
    except ValueError as error:
        return str(error)
