"""A SageMaker endpoint that serves an LLM as an inference component, and has room for more of them."""

from __future__ import annotations

from seatrial_cdk.endpoint.component_endpoint import ComponentEndpoint
from seatrial_cdk.endpoint.spec_endpoint import SpecEndpoint


class LlmEndpoint(ComponentEndpoint, SpecEndpoint):
    """Model, endpoint configuration, endpoint and inference component.

    Only the endpoint and the component have names of their own. Model and endpoint configuration can't be changed,
    only replaced, and a replacement under a fixed name collides with what it replaces. The component's change of
    model is an update in place.

    CopyCount is the count that is given. With a `CandidateTrial` an update carries the live count instead; without one
    it sets the given count again, and scaling goes on from there. New copies run beside the old ones meanwhile, so
    `instances.max_count` must have room for them.

    Another instance type, tensor parallel degree, AMI or volume is not safe in place: the service moves a live
    endpoint's instances and its components one after the other, and copies of the old size may not fit on what the new
    ones need. Give such a change another `construct_id` and `endpoint_name`: CloudFormation creates the new endpoint
    and component, and deletes the old ones in its clean-up. A plan counts such changes as its generation.

    Its resources carry the environment's name as a tag (`seatrial_base.tags`), where one is given.

    More models share the endpoint's instances as `AddedComponent`s.

    Args:
        instances: What it runs on.
        container: What a copy runs.
        copies: How many copies run, and what each takes of an instance.
        endpoint_name: The endpoint's name; the component is called the same with `-model` behind it. Default: a name
            made of the construct's path.
        base_name: The name of the first generation, which the later ones begin with; default: `endpoint_name`.
        environment: The environment of Seatrial whose trial service may try it; default: none.
        alias_name: Name of the SSM parameter that names the endpoint that serves (`EndpointAlias`); default: none.
        vpc: The VPC of the containers; default: the service's own network.
        vpc_subnets: Its subnets; default: the private ones.
        security_groups: Security groups of the containers; default: a new one, in a VPC.
        network: The VPC by IDs, in place of `vpc`.
        weights_key: Key that the weights are encrypted with; default: none.
        instance_role: The role of the instances; default: a new one that writes logs and metrics.
        model_role: The role of the containers; default: a new one that reads the image and the model alone.
        role_options: Path and permissions boundary of the new roles.
    """
