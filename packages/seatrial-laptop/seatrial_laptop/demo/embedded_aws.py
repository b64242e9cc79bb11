"""State of the embedded AWS, read through its public APIs as a user would."""

from __future__ import annotations

import json
import os
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal, overload

from seatrial.account.trials import Bucket, describe_stack, fetch_result, look
from seatrial.deployment.document import service_stack
from seatrial_base.errors import BenchError, LocalError
from seatrial_laptop.lifecycle import child_variables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from mypy_boto3_application_autoscaling import ApplicationAutoScalingClient
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sagemaker import SageMakerClient
    from mypy_boto3_sagemaker_runtime import SageMakerRuntimeClient

    from seatrial.account.trials import LiveTrial
    from seatrial.documents.live import LiveStack
    from seatrial_laptop.lifecycle import LocalAws
    from seatrial_load.documents.result import TrialResult


_ONE_AT_A_TIME = threading.Lock()

Service = Literal["sagemaker", "sagemaker-runtime", "cloudformation", "s3", "application-autoscaling"]


@dataclass(frozen=True, slots=True)
class Live:
    """What serves at the moment.

    Attributes:
        component_arn: The inference component.
        created: When the component was created; an update in place keeps it.
        model_name: The model that it runs.
        target: The autoscaling target, requests in flight per copy; `None` when there is no policy.
    """

    component_arn: str
    created: str
    model_name: str
    target: float | None


@dataclass(frozen=True, slots=True)
class EmbeddedAws:
    """The embedded AWS."""

    local: LocalAws

    @property
    def region(self) -> str:
        """Its only region."""
        return self.local.region

    @overload
    def client(self, service: Literal["sagemaker"]) -> SageMakerClient: ...
    @overload
    def client(self, service: Literal["sagemaker-runtime"]) -> SageMakerRuntimeClient: ...
    @overload
    def client(self, service: Literal["cloudformation"]) -> CloudFormationClient: ...
    @overload
    def client(self, service: Literal["s3"]) -> S3Client: ...
    @overload
    def client(self, service: Literal["application-autoscaling"]) -> ApplicationAutoScalingClient: ...
    def client(self, service: Service) -> object:
        """Return a boto3 client that reaches the embedded AWS and nothing else, through no proxy and by no profile."""
        return _client(self.local, service)

    def stack(self, name: str) -> LiveStack:
        """Return a stack.

        Raises:
            BenchError: SEA502 when there is none.
        """
        return describe_stack(name, self.client("cloudformation"))

    def result(self, uri: str) -> TrialResult:
        """Return a trial's result."""
        return fetch_result(uri, self.client("s3"))

    def watcher(self, environment: str, endpoint_name: str) -> Callable[[float], LiveTrial | None]:
        """Return what looks at an endpoint's trial; the clients are made now, in the caller's thread."""
        cloudformation, s3 = self.client("cloudformation"), self.client("s3")

        def look_at(now_s: float) -> LiveTrial | None:
            try:
                bucket = describe_stack(service_stack(environment), cloudformation).output("ResultsBucket")
                return look(Bucket(s3, bucket), endpoint_name, now_s=now_s)
            except BenchError:
                return None

        return look_at

    def live(self, component: str) -> Live:
        """Return what serves under a component's name."""
        component_view = self.client("sagemaker").describe_inference_component(InferenceComponentName=component)
        policies = self.client("application-autoscaling").describe_scaling_policies(
            ServiceNamespace="sagemaker", ResourceId=f"inference-component/{component}"
        )["ScalingPolicies"]
        targets = [policy["TargetTrackingScalingPolicyConfiguration"]["TargetValue"] for policy in policies]
        return Live(
            component_arn=component_view["InferenceComponentArn"],
            created=component_view["CreationTime"].isoformat(),
            model_name=component_view["Specification"].get("ModelName", ""),
            target=targets[0] if targets else None,
        )

    def ask(self, endpoint: str, component: str) -> str:
        """Send one request as a user would and return the answered text."""
        body = {"inputs": "Where does the boat go?", "parameters": {"max_new_tokens": 8}}
        answer = self.client("sagemaker-runtime").invoke_endpoint(
            EndpointName=endpoint,
            InferenceComponentName=component,
            ContentType="application/json",
            Body=json.dumps(body),
        )
        text = json.loads(answer["Body"].read()).get("generated_text")
        if not isinstance(text, str) or not text:
            raise LocalError.of("SEA606", "the answer has no text", where=endpoint)
        return text

    def leftovers(self, stack: str) -> list[str]:
        """Return what is left of a stack: endpoints, components, models, configurations, targets, buckets."""
        sagemaker = self.client("sagemaker")
        targets = self.client("application-autoscaling").describe_scalable_targets(ServiceNamespace="sagemaker")
        buckets = [bucket.get("Name", "") for bucket in self.client("s3").list_buckets()["Buckets"]]
        return [
            *(endpoint["EndpointName"] for endpoint in sagemaker.list_endpoints()["Endpoints"]),
            *(part["InferenceComponentName"] for part in sagemaker.list_inference_components()["InferenceComponents"]),
            *(model["ModelName"] for model in sagemaker.list_models()["Models"]),
            *(config["EndpointConfigName"] for config in sagemaker.list_endpoint_configs()["EndpointConfigs"]),
            *(target["ResourceId"] for target in targets["ScalableTargets"]),
            *(bucket for bucket in buckets if bucket.startswith(stack)),
        ]


@cache
def _client(local: LocalAws, service: Service) -> object:
    """Make a client once: its service's model is read for a second, and whoever waits for a stack looks often."""
    import boto3  # noqa: PLC0415 (costs a second; the scenario begins without it)
    from botocore.config import Config  # noqa: PLC0415 (likewise)

    with _environment(child_variables(local)):
        return boto3.Session().client(
            service,
            region_name=local.region,
            endpoint_url=local.endpoint_url,
            config=Config(s3={"addressing_style": "path"}, proxies={}),
        )


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Let this process have these variables and no others: a client reads dozens of them when it is made."""
    # Two threads in here would each restore what the other has set.
    with _ONE_AT_A_TIME:
        users = dict(os.environ)
        os.environ.clear()
        os.environ.update(variables)
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(users)
