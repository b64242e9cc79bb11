"""Which container an image is, and what its configuration says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.local.engine.lmi import lmi_settings
from seatrial.local.engine.settings import EngineSettings, refusal
from seatrial.local.engine.tgi import tgi_settings
from seatrial.serving.properties import parse_properties

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def read_settings(image: str, environment: Mapping[str, str], model_dir: Path) -> EngineSettings:
    """Read the configuration of a container: its environment and the `serving.properties` beside its model.

    Raises:
        LocalError: SEA605, the image isn't known or the real container would not start.
    """
    repository = image.rpartition("/")[2].partition(":")[0].partition("@")[0]
    if repository == "djl-inference":
        properties = model_dir / "serving.properties"
        text = properties.read_text() if properties.is_file() else ""
        return lmi_settings(image, environment, parse_properties(text))
    if "tgi-inference" in repository:
        return tgi_settings(environment)
    raise refusal(f"the local engine can't stand for image {image}: it knows djl-inference and *tgi-inference*")
