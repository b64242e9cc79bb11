"""The alias of an endpoint: an SSM parameter that names the endpoint and component that serve at the moment."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AliasValue:
    """What an alias names.

    Attributes:
        endpoint_name: SageMaker's name of the endpoint.
        inference_component_name: Its component; `None` when the model is in the production variant.
    """

    endpoint_name: str
    inference_component_name: str | None

    def to_json(self) -> str:
        """Return the parameter's value."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> AliasValue:
        """Read a parameter's value; fields that a later release adds are ignored.

        Raises:
            ValueError: It is not the value of an alias.
        """
        document = json.loads(text)
        names = document if isinstance(document, dict) else {}
        endpoint_name, component_name = (names.get(name, "") for name in cls.__slots__)
        if not isinstance(endpoint_name, str) or not endpoint_name or component_name == "":
            raise ValueError(f"not an alias: {text[:100]!r}")
        if component_name is not None and not isinstance(component_name, str):
            raise ValueError(f"not an alias: {text[:100]!r}")
        return cls(endpoint_name=endpoint_name, inference_component_name=component_name)


def alias_name(environment: str, endpoint: str) -> str:
    """Return the name of the SSM parameter.

    Args:
        environment: The environment's name.
        endpoint: The name in the endpoint's spec.
    """
    return f"/seatrial/{environment}/{endpoint}/alias"
