"""The base of every frozen document that passes between stages, and its canonical form."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

if TYPE_CHECKING:
    from pydantic.config import JsonDict


class FrozenModel(BaseModel):
    """A pydantic model that refuses unknown fields and can't be changed once made."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


def left_out_or_mapping(schema: JsonDict) -> None:
    """Make the schema of an optional mapping that of the mapping: editors complete it, and null is left out."""
    options = schema.pop("anyOf")
    if isinstance(options, list) and isinstance(options[0], dict):
        schema["$ref"] = options[0]["$ref"]


def canonical_json(document: BaseModel) -> str:
    """Write a document as JSON with sorted keys and no spaces: equal documents give equal bytes."""
    return json.dumps(document.model_dump(mode="json"), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def digest(text: str) -> str:
    """Return the first 16 hexadecimal digits of the SHA-256 of a text: enough to tell plans apart, short to read."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]
