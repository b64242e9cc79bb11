"""The alias of an endpoint: an SSM parameter that names the endpoint and component that serve at the moment."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AliasValue:
    """What an alias names.

    Attributes:
        endpoint_name: SageMaker's name of the endpoint.
        inference_component_name: Its component.
    """

    endpoint_name: str
    inference_component_name: str

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
        names = [document.get(name) for name in cls.__slots__] if isinstance(document, dict) else []
        if not names or not all(isinstance(name, str) and name for name in names):
            raise ValueError(f"not an alias: {text[:100]!r}")
        endpoint_name, component_name = map(str, names)
        return cls(endpoint_name=endpoint_name, inference_component_name=component_name)


def alias_name(environment: str, endpoint: str) -> str:
    """Return the name of the SSM parameter.

    Args:
        environment: The environment's name.
        endpoint: The name in the endpoint's spec.
    """
    return f"/seatrial/{environment}/{endpoint}/alias"
