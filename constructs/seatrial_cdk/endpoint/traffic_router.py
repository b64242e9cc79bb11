"""A function with a URL that splits requests over the components of an endpoint by weight."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from aws_cdk import CfnOutput, Duration, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

import seatrial
import seatrial_cdk
from seatrial.packaging import zip_bytes
from seatrial_cdk.endpoint.execution_role import NO_OPTIONS, RoleOptions, role_arguments
from seatrial_cdk.endpoint.serving_container import archive_file
from seatrial_cdk.policy import acknowledge, allow, policy_document
from seatrial_cdk.service_function import handler_module, log_group_of, packed_modules

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial_cdk.endpoint.endpoint_interface import ILlmEndpoint

# The name that deployed functions have; `handler_module` makes a module of it, wherever the source is.
HANDLER = "seatrial_cdk.traffic_router.runtime.handler.handler"
LONGEST_REQUEST_S = 75  # SageMaker answers within 60 s; the rest is for the start and the connection
MEMORY_MB = 256
ACKNOWLEDGED = {"L1": "The function runs on the Python version that its code is tested with."}


class TrafficRouter(Construct):
    """A function with a URL that splits requests over the components of an endpoint by weight.

    Callers sign requests to its URL with IAM (`grant_invoke`). The body is sent as it is, and the answer comes in one
    piece; header `x-seatrial-session` keeps a session at one component, header `x-seatrial-component` of the answer
    names it. The function may invoke these components and nothing else.

    Args:
        endpoint_name: Name of the endpoint.
        components: The components with their weights; each is there before the function.
        role_options: Path and permissions boundary of the function's role.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        endpoint_name: str,
        components: Sequence[tuple[ILlmEndpoint, float]],
        role_options: RoleOptions = NO_OPTIONS,
    ) -> None:
        super().__init__(scope, construct_id)
        logs = log_group_of(self)
        arns = (arn for each, _ in components for arn in (each.endpoint_arn, each.inference_component_arn) if arn)
        calls = allow(["sagemaker:InvokeEndpoint"], [*dict.fromkeys(arns)])
        writing = allow(["logs:CreateLogStream", "logs:PutLogEvents"], [logs.log_group_arn])
        self.role = iam.Role(
            self,
            "Role",
            description=f"Router of {endpoint_name}",
            assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
            **role_arguments(role_options),
            inline_policies={"Route": policy_document([calls, writing])},
        )
        weights = {
            each.inference_component_name: weight for each, weight in components if each.inference_component_name
        }
        with archive_file("router.zip", router_archive()) as path:
            self.function = lambda_.Function(
                self,
                "Function",
                description=f"Splits requests over the components of {endpoint_name}",
                runtime=lambda_.Runtime.PYTHON_3_13,
                architecture=lambda_.Architecture.ARM_64,
                handler=HANDLER,
                code=lambda_.Code.from_asset(path),
                role=self.role,
                timeout=Duration.seconds(LONGEST_REQUEST_S),
                memory_size=MEMORY_MB,
                log_group=logs,
                environment={"ENDPOINT_NAME": endpoint_name, "WEIGHTS": Stack.of(self).to_json_string(weights)},
            )
        self.url = self.function.add_function_url(auth_type=lambda_.FunctionUrlAuthType.AWS_IAM)
        for component, _ in components:
            self.function.node.add_dependency(component)
        acknowledge(self, ACKNOWLEDGED)
        CfnOutput(self, "Url", value=self.url.url)

    def grant_invoke(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow sending requests to the URL."""
        return self.url.grant_invoke_url(grantee)


def router_archive() -> bytes:
    """Return the zip archive of the function, laid out as the packages are; equal sources give equal bytes."""
    core, library = Path(seatrial.__path__[0]), Path(seatrial_cdk.__path__[0])
    shared = [core / "__init__.py", core / "deployment" / "__init__.py", core / "deployment" / "traffic.py"]
    own = [library / name for name in ("__init__.py", "endpoint/__init__.py", "endpoint/router_function.py")]
    entry = handler_module(HANDLER, "seatrial_cdk.endpoint.router_function")
    return zip_bytes({**packed_modules(core, shared), **packed_modules(library, own), **entry})
