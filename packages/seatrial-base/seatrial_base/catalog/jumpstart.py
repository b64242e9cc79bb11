"""Places of the artifacts of JumpStart models: from the catalog, or from metadata that the user has.

JumpStart keeps one public and one gated bucket per region (sagemaker-python-sdk, `jumpstart/constants.py`); an
artifact's key is the same in each. The gated one wants the licence to be accepted where the model is defined
(`ModelAccessConfig.AcceptEula` of that data source).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from seatrial_base.catalog.rows import CatalogTable, nearest_names
from seatrial_base.text import json_document

if TYPE_CHECKING:
    from collections.abc import Iterator

FILE = "jumpstart.json"
# The region that the catalog's metadata was read from.
HOME = "us-east-1"

# How the addresses of gated artifacts begin.
GATED = "s3://jumpstart-private-cache-prod-"
MOST_BYTES = 50 * 10**6  # of one metadata file; the largest are a few MB


class MetadataError(ValueError):
    """A file of JumpStart metadata can't be read, or does not describe the model."""


@dataclass(frozen=True, slots=True)
class JumpStartModel:
    """One model of JumpStart.

    Attributes:
        key: Key of its artifact: a prefix with its final slash, or a `.tar.gz` object.
        gated: It is in the gated bucket.
        eula_key: Key of its licence in the public bucket; `None` when it has none of its own.
    """

    id: str
    version: str
    key: str
    gated: bool
    eula_key: str | None

    def s3_uri(self, region: str) -> str:
        """Return where the artifact is for a region."""
        return f"s3://jumpstart-{'private-' if self.gated else ''}cache-prod-{region}/{self.key}"

    def eula_url(self, region: str) -> str | None:
        """Return where its licence can be read."""
        host = f"jumpstart-cache-prod-{region}.s3.{region}.amazonaws.com"
        return f"https://{host}/{self.eula_key}" if self.eula_key else None


# Sorted by id.
JUMPSTART_MODELS: Final = CatalogTable(JumpStartModel, FILE, key="id")


@cache
def jumpstart_regions() -> tuple[str, ...]:
    """Return the regions that have JumpStart buckets."""
    document = json.loads((Path(__file__).parent / "data" / FILE).read_text(encoding="utf-8"))
    return tuple(document["regions"])


def find_jumpstart_model(model_id: str) -> JumpStartModel | None:
    """Return a model of the catalog; `None` when it has none of that id."""
    return JUMPSTART_MODELS.get(model_id)


def nearest_jumpstart_ids(model_id: str) -> tuple[str, ...]:
    """Return the ids of the catalog that are written most like this one."""
    return nearest_names(model_id, [model.id for model in JUMPSTART_MODELS.rows])


def read_metadata(path: Path, model_id: str) -> JumpStartModel:
    """Read a model from metadata as JumpStart publishes it: a JSON file, or a folder with such files.

    A file holds one specification or a list of them, with `model_id`, `version`, `hosting_prepacked_artifact_key` or
    `hosting_artifact_key`, and, where it applies, `gated_bucket` and `hosting_eula_key` (the format of the SDK's
    `AWS_JUMPSTART_SPECS_LOCAL_ROOT_DIR_OVERRIDE`). Of several versions the newest counts.

    Raises:
        MetadataError: A file can't be read or is no such JSON, or none describes the model.
    """
    files = sorted(path.rglob("*.json")) if path.is_dir() else [path]
    specs = [spec for file in files for spec in _specs(file) if spec.get("model_id") == model_id]
    if not specs:
        raise MetadataError(f"no file describes {model_id}")
    return _model(max(specs, key=lambda spec: _version(str(spec.get("version", "")))))


def _specs(file: Path) -> Iterator[dict[str, object]]:
    try:
        if file.stat().st_size > MOST_BYTES:
            raise MetadataError(f"{file.name} is larger than {MOST_BYTES:,} bytes")
        content = json_document(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise MetadataError(f"{file.name} can't be read: {error}") from error
    yield from (spec for spec in (content if isinstance(content, list) else [content]) if isinstance(spec, dict))


def _model(spec: dict[str, object]) -> JumpStartModel:
    key = spec.get("hosting_prepacked_artifact_key") or spec.get("hosting_artifact_key")
    if not isinstance(key, str) or not key.endswith(("/", ".tar.gz")):
        raise MetadataError(f"{spec.get('model_id')} has no hosting_prepacked_artifact_key or hosting_artifact_key")
    eula = spec.get("hosting_eula_key")
    return JumpStartModel(
        id=str(spec["model_id"]),
        version=str(spec.get("version", "")),
        key=key,
        gated=spec.get("gated_bucket") is True,
        eula_key=eula if isinstance(eula, str) else None,
    )


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) if part.isdecimal() else 0 for part in text.split("."))
