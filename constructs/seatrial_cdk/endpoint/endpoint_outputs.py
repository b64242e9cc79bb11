"""Outputs of an endpoint: the alias that names it, stack outputs and parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Annotations, CfnOutput
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from seatrial.deployment.alias import AliasValue
from seatrial_base.errors import SpecError
from seatrial_cdk.place import TOKEN_MARKER

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from constructs import IDependable

    from seatrial_cdk.endpoint.endpoint_interface import DefinedEndpoint
    from seatrial_cdk.endpoint.inference_component import AddedComponent
    from seatrial_cdk.trials.endpoint_trial import SmokeBenchmark


class EndpointAlias(Construct):
    """The alias of an endpoint; it moves only after everything that must hold before traffic comes.

    Its value is JSON with `endpoint_name`, `inference_component_name`, which is null where the model is in the
    production variant, `weights` by component where requests are split, and `openai_base_url`, which OpenAI clients
    take (not where the endpoint is asynchronous). A failed trial leaves it where it was.

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
        endpoint: DefinedEndpoint | AddedComponent,
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
            openai_base_url=endpoint.openai_base_url or "",
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


class EndpointOutputs(Construct):
    """Stack outputs and SSM parameters, one for each value.

    Programs of other stacks read a parameter by its name (`ssm.StringParameter.value_for_string_parameter`): no stack
    exports anything, and the endpoint can be replaced while they use it.

    Args:
        values: Values, or tokens of them, by name; `endpoint_values` has those of an endpoint.
        outputs: Make a stack output of each.
        stack_wide: Each output belongs to `scope`: in a stack it is called by its name alone, so that a stack has one
            of these; else the construct's path stands in front of the name.
        parameters: Path of SSM parameters, as `/seatrial/dev/chat`: each is called by it, a slash and its name;
            default: no parameters.

    Raises:
        SpecError: SEA447 when the path has no slash in front, or one behind it.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        values: Mapping[str, str],
        outputs: bool = True,
        stack_wide: bool = False,
        parameters: str | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        if parameters is not None and (not parameters.startswith("/") or parameters.endswith("/")):
            message = f"the path of parameters is {parameters!r}"
            raise SpecError.of(
                "SEA447", message, hint="begin it with a slash and end it without, as in /seatrial/dev/chat"
            )
        for name, value in values.items():
            if outputs:
                CfnOutput(scope if stack_wide else self, name, value=value)
            if parameters is not None:
                ssm.CfnParameter(self, f"{name}Parameter", name=f"{parameters}/{name}", type="String", value=value)


def endpoint_values(
    endpoint: DefinedEndpoint, *, plan_digest: str, trial: SmokeBenchmark | None = None
) -> dict[str, str]:
    """Return the outputs of a stack on an endpoint, by name."""
    component, base_url = endpoint.inference_component_name, endpoint.openai_base_url
    values = {
        "EndpointName": endpoint.endpoint_name,
        **({} if component is None else {"InferenceComponentName": component}),
        **({} if base_url is None else {"OpenAiBaseUrl": base_url}),
        "EndpointConfigName": endpoint.endpoint_config_name,
        "ModelName": endpoint.model_name,
        "PlanDigest": plan_digest,
    }
    return values if trial is None else values | trial.outputs()
