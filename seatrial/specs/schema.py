"""JSON schemas of the spec documents, for editors."""

from __future__ import annotations

import json

from seatrial.specs.endpoint import EndpointSpec
from seatrial.specs.environment import EnvironmentSpec
from seatrial.specs.product import ProductSpec
from seatrial.specs.yaml_source import OVERRIDES

_DRAFT = "https://json-schema.org/draft/2020-12/schema"


def schema_texts() -> dict[str, str]:
    """Return the schema of each document as JSON text, by the document's name."""
    # The schema of a product; its endpoint has the fields of an endpoint spec but the name.
    schema, endpoint = ProductSpec.model_json_schema(), _endpoint_schema()
    fields = endpoint["properties"]
    if not isinstance(fields, dict):
        raise TypeError("a schema of an object has properties")
    schema["$defs"] |= endpoint["$defs"]
    schema["properties"]["endpoint"] |= {
        "properties": {name: field for name, field in fields.items() if name != "name"},
        "additionalProperties": False,
    }
    return {
        "endpoint": schema_text(_endpoint_schema()),
        "environment": schema_text(EnvironmentSpec.model_json_schema()),
        "product": schema_text(schema),
    }


def _endpoint_schema() -> dict[str, object]:
    schema = EndpointSpec.model_json_schema()
    partial = {
        "type": ["object", "null"],
        "description": "Fields that differ in this environment; null removes a field.",
    }
    schema["properties"][OVERRIDES] = {
        "type": "object",
        "description": "Overrides per environment, merged before validation.",
        "additionalProperties": partial,
    }
    return schema


def schema_text(schema: dict[str, object]) -> str:
    """Return a JSON schema as it is written into a file."""
    return json.dumps({"$schema": _DRAFT, **schema}, indent=2, ensure_ascii=False) + "\n"
