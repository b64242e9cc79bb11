"""The SSM parameter that names the endpoint that serves: clients follow it when another endpoint takes over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Annotations
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from seatrial.deployment.alias import AliasValue
from seatrial_cdk.place import TOKEN_MARKER

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from constructs import IDependable

    from seatrial_cdk.added_component import AddedComponent
    from seatrial_cdk.llm_endpoint import LlmEndpoint
    from seatrial_cdk.single_model_endpoint import SingleModelEndpoint


class EndpointAlias(Construct):
    """The alias of an endpoint; it moves only after everything that must hold before traffic comes.

    Its value is JSON with `endpoint_name`, `inference_component_name`, which is null where the model is in the
    production variant, and `weights` by component where requests are split. A failed trial leaves it where it was.

    Args:
        endpoint: What the alias names.
        after: What must be there first: the trial, scaling, the other components.
        weights: Share of the requests of each component, by its name; default: all go to the endpoint's own.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        endpoint: LlmEndpoint | AddedComponent | SingleModelEndpoint,
        after: Iterable[IDependable] = (),
        weights: Mapping[str, float] | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        alias = endpoint.alias_name
        if alias is None or ("/" in alias and not alias.startswith(("/", TOKEN_MARKER))):
            message = f"SEA447: the alias_name of {endpoint.node.path} is {alias}. Give one as /seatrial/dev/chat."
            Annotations.of(self).add_error(message)
        value = AliasValue(
            endpoint_name=endpoint.endpoint_name,
            inference_component_name=endpoint.inference_component_name,
            weights=weights or {},
        )
        self.parameter = ssm.CfnParameter(
            self,
            "Resource",
            name=endpoint.alias_name,
            type="String",
            value=value.to_json(),
            description=f"Endpoint and component that serve {endpoint.base_name}",
        )
        self.parameter.node.add_dependency(endpoint.serving_resource, *after)
