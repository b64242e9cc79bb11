"""The alias of an endpoint: an SSM parameter that names the endpoint and component that serve at the moment."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from seatrial.deployment.traffic import choose_traffic

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class AliasValue:
    """What an alias names.

    Attributes:
        inference_component_name: Its component; `None` when the model is in the production variant.
        weights: Share of the requests of each component of the endpoint; empty where one component takes all.
        openai_base_url: The base URL for OpenAI clients, of the component; they are not split. Empty where the endpoint
            is asynchronous, and in an alias of an earlier release.
    """

    endpoint_name: str
    inference_component_name: str | None
    weights: Mapping[str, float] = field(default_factory=dict)
    openai_base_url: str = ""

    def to_json(self) -> str:
        """Return the parameter's value; weights and URL are written only where there are some."""
        document: dict[str, object] = {
            "endpoint_name": self.endpoint_name,
            "inference_component_name": self.inference_component_name,
        }
        if self.weights:
            document["weights"] = {**self.weights}
        if self.openai_base_url:
            document["openai_base_url"] = self.openai_base_url
        return json.dumps(document, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> AliasValue:
        """Read a parameter's value, also of an earlier release; fields that a later release adds are ignored.

        Raises:
            ValueError: It is not the value of an alias.
        """
        document = json.loads(text)
        read = document if isinstance(document, dict) else {}
        endpoint_name, component_name = (read.get(name, "") for name in ("endpoint_name", "inference_component_name"))
        weights = read.get("weights", {})
        named = (
            isinstance(endpoint_name, str)
            and endpoint_name
            and (component_name is None or (isinstance(component_name, str) and component_name != ""))
        )
        if not named or not _are_weights(weights):
            raise ValueError(f"not an alias: {text[:100]!r}")
        return cls(
            endpoint_name=endpoint_name,
            inference_component_name=component_name,
            weights=weights,
            openai_base_url=str(read.get("openai_base_url") or ""),
        )

    def component_at(self, fraction: float) -> str | None:
        """Return the component that takes a request; `None` when the model is in the production variant.

        Args:
            fraction: From 0 to below 1: random, or that of a session.
        """
        return choose_traffic(self.weights, fraction) if self.weights else self.inference_component_name


def _are_weights(weights: object) -> bool:
    """Return whether these are weights by component: numbers from 0 on, of which one is above 0, or none at all."""
    if not isinstance(weights, dict):
        return False
    numbers = [each for each in weights.values() if isinstance(each, int | float) and not isinstance(each, bool)]
    plain = len(numbers) == len(weights) and all(0 <= each < math.inf for each in numbers)
    return plain and (not weights or any(numbers))


def alias_name(environment: str, endpoint: str) -> str:
    """Return the name of the SSM parameter."""
    return f"/seatrial/{environment}/{endpoint}/alias"
