"""An account with one endpoint that serves; tests break what they look at."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, cast

from botocore.exceptions import ClientError

from seatrial.operations.doctor.diagnose import diagnose
from seatrial.operations.doctor.gather import EndpointQuery, examine
from seatrial_base.tags import candidate_name, candidate_tags
from tests.operations.test_preflight import Account
from tests.sample_plan import LMI_IMAGE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seatrial.account.clients import AccountClients
    from seatrial.operations.doctor.facts import Examination
    from seatrial_base.findings import Finding
    from seatrial_load.aws.container_metrics import PromQl

NOW = datetime(2026, 11, 24, 12, tzinfo=UTC)
ROLE = "arn:aws:iam::123456789012:role/dev-chat-model"
TRUST = {"Statement": [{"Effect": "Allow", "Principal": {"Service": "sagemaker.amazonaws.com"}}]}
DIMENSION = "sagemaker:inference-component:DesiredCopyCount"
COMPONENT = "dev-chat-model"
TARGET = f"inference-component/{COMPONENT}"


def error(code: str, message: str, operation: str = "Any") -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": message}}, operation)


def absent() -> ClientError:
    return error("ValidationException", "Could not find it.")


def ago(minutes: float) -> datetime:
    return NOW - timedelta(minutes=minutes)


def component(status: str = "InService", *, copies: int = 1, minutes: float = 5, reason: str = "") -> dict[str, object]:
    return {
        "InferenceComponentStatus": status,
        "FailureReason": reason,
        "RuntimeConfig": {"CurrentCopyCount": copies, "DesiredCopyCount": 1},
        "Specification": {"ModelName": "model-1"},
        "CreationTime": ago(minutes),
        "LastModifiedTime": ago(minutes),
    }


def target(resource: str = TARGET, **more: object) -> dict[str, object]:
    return {"ResourceId": resource, "ScalableDimension": DIMENSION, "MinCapacity": 1, "MaxCapacity": 4, **more}


@dataclass
class Aws:
    """What AWS answers; `errors` by operation come first, `done` are the changes in order."""

    endpoint: Mapping[str, object] | None = field(default_factory=lambda: {"EndpointStatus": "InService"})
    tags: dict[str, str] = field(default_factory=lambda: {"seatrial:environment": "dev"})
    other_tags: dict[str, dict[str, str]] = field(default_factory=dict)
    absent_alarms: tuple[str, ...] = ()
    ami: str = "al2023-ami-sagemaker-inference-gpu-4-1"
    image: str = LMI_IMAGE
    instance_type: str = "ml.g5.2xlarge"
    environment: dict[str, str] = field(default_factory=dict)
    components: dict[str, dict[str, object]] = field(default_factory=lambda: {COMPONENT: component()})
    targets: list[dict[str, object]] = field(default_factory=lambda: [target()])
    policies: tuple[str, ...] = ("TargetTrackingScaling",)
    activities: list[dict[str, object]] = field(default_factory=list)
    alarms: list[dict[str, object]] = field(default_factory=list)
    stack: str = "UPDATE_COMPLETE"
    other_stack: str = ""
    resources: list[Mapping[str, object]] = field(default_factory=list)
    events: list[Mapping[str, object]] = field(default_factory=list)
    workflows: tuple[float, ...] = ()
    log: list[str] | None = field(default_factory=lambda: ["ready"])
    earlier_log: tuple[str, ...] = ()
    trust: object = field(default_factory=lambda: TRUST)
    errors: dict[str, list[ClientError]] = field(default_factory=lambda: defaultdict(list))
    done: list[tuple[str, dict[str, object]]] = field(default_factory=list)

    def __call__(self, _service: str, operation: str, /, **asked: object) -> Mapping[str, object]:
        if self.errors[operation]:
            left = self.errors[operation]
            raise left.pop(0) if len(left) > 1 else left[0]
        if not operation.startswith(("describe", "list", "get")):
            self.done.append((operation, asked))
        return cast("Mapping[str, object]", getattr(self, operation)(**asked))

    def describe_endpoint(self, **_asked: object) -> object:
        if self.endpoint is None:
            raise absent()
        variant = {"VariantName": "AllTraffic", "CurrentInstanceCount": 1, "DesiredInstanceCount": 1}
        known = {"EndpointArn": "arn:e/dev-chat", "EndpointConfigName": "config-1", "LastModifiedTime": ago(5)}
        return {**known, "ProductionVariants": [variant], **self.endpoint}

    def describe_endpoint_config(self, **_asked: object) -> object:
        variant = {"VariantName": "AllTraffic", "InstanceType": self.instance_type, "InferenceAmiVersion": self.ami}
        variants = [{**variant, "ManagedInstanceScaling": {"MaxInstanceCount": 3}}]
        return {"EndpointConfigArn": "arn:c/config-1", "ProductionVariants": variants}

    def list_tags(self, *, ResourceArn: str, **_asked: object) -> object:  # noqa: N803
        tags = self.other_tags.get(ResourceArn.rpartition("/")[2], self.tags)
        return {"Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}

    def list_inference_components(self, **asked: object) -> object:
        assert asked["EndpointNameEquals"] == "dev-chat"
        return {"InferenceComponents": [{"InferenceComponentName": name} for name in self.components]}

    def describe_inference_component(self, *, InferenceComponentName: str) -> object:  # noqa: N803
        if InferenceComponentName not in self.components:
            raise absent()
        arn = f"arn:i/{InferenceComponentName}"
        return {"InferenceComponentArn": arn, **self.components[InferenceComponentName]}

    def describe_model(self, *, ModelName: str) -> object:  # noqa: N803
        container = {"Image": self.image, "ModelDataUrl": "s3://weights/llama/", "Environment": self.environment}
        return {"ModelArn": f"arn:m/{ModelName}", "ExecutionRoleArn": ROLE, "PrimaryContainer": container}

    def describe_scalable_targets(self, **_asked: object) -> object:
        return {"ScalableTargets": self.targets}

    def describe_scaling_policies(self, **_asked: object) -> object:
        return {"ScalingPolicies": [{"PolicyType": each} for each in self.policies]}

    def describe_scaling_activities(self, **_asked: object) -> object:
        return {"ScalingActivities": self.activities}

    def describe_alarms(self, **asked: object) -> object:
        if "AlarmNames" in asked:
            names = cast("list[str]", asked["AlarmNames"])
            return {"MetricAlarms": [{"AlarmName": name} for name in names if name not in self.absent_alarms]}
        assert asked["StateValue"] == "ALARM"
        return {"MetricAlarms": self.alarms}

    def describe_stack_resources(self, *, PhysicalResourceId: str) -> object:  # noqa: N803
        if not self.other_stack:
            raise error("ValidationError", f"Stack for {PhysicalResourceId} does not exist")
        return {"StackResources": [{"StackName": self.other_stack}]}

    def describe_stacks(self, *, StackName: str) -> object:  # noqa: N803
        if self.other_stack == StackName:
            return {"Stacks": [{"StackStatus": "CREATE_COMPLETE"}]}
        if not self.stack:
            raise error("ValidationError", "Stack with id seatrial-dev-chat does not exist")
        return {"Stacks": [{"StackStatus": self.stack}]}

    def list_stack_resources(self, *, StackName: str, **_asked: object) -> object:  # noqa: N803
        if StackName == "seatrial-dev-trials":
            machine = {"ResourceType": "AWS::StepFunctions::StateMachine", "PhysicalResourceId": "arn:machine"}
            return {"StackResourceSummaries": [machine]}
        return {"StackResourceSummaries": self.resources}

    def list_executions(self, **asked: object) -> object:
        assert (asked["stateMachineArn"], asked["statusFilter"]) == ("arn:machine", "RUNNING")
        return {"executions": [{"startDate": ago(minutes)} for minutes in self.workflows]}

    def describe_stack_events(self, **_asked: object) -> object:
        return {"StackEvents": self.events}

    def describe_log_streams(self, **_asked: object) -> object:
        if self.log is None:
            raise error("ResourceNotFoundException", "The specified log group does not exist.")
        # The newest first, as it is read.
        return {"logStreams": [{"logStreamName": "AllTraffic/2"}, {"logStreamName": "AllTraffic/1"}]}

    def get_log_events(self, *, logStreamName: str, **_asked: object) -> object:  # noqa: N803
        return {"events": [{"message": line} for line in (self.earlier_log, self.log or ())[logStreamName[-1] == "2"]]}

    def get_role(self, *, RoleName: str) -> object:  # noqa: N803
        assert RoleName == "dev-chat-model"
        return {"Role": {"AssumeRolePolicyDocument": self.trust}}

    def continue_update_rollback(self, **_asked: object) -> object:
        self.stack = "UPDATE_ROLLBACK_COMPLETE"
        return {}

    def delete_stack(self, **_asked: object) -> object:
        self.stack = ""
        return {}

    def delete_inference_component(self, *, InferenceComponentName: str) -> object:  # noqa: N803
        self.components.pop(InferenceComponentName, None)
        return {}

    def delete_endpoint(self, **_asked: object) -> object:
        self.endpoint = None
        return {}

    def delete_endpoint_config(self, **_asked: object) -> object:
        return {}

    def delete_model(self, **_asked: object) -> object:
        return {}

    def deregister_scalable_target(self, *, ResourceId: str, **_asked: object) -> object:  # noqa: N803
        self.targets = [each for each in self.targets if each["ResourceId"] != ResourceId]
        return {}

    def register_scalable_target(self, *, SuspendedState: object, **_asked: object) -> object:  # noqa: N803
        self.targets = [{**each, "SuspendedState": SuspendedState} for each in self.targets]
        return {}

    def add_candidate(self, request_id: str, described: dict[str, object]) -> str:
        """Add a component that the trial service made, and return its name."""
        name = candidate_name("dev-chat", request_id)
        self.components[name], self.other_tags[name] = described, candidate_tags("dev", "dev-chat", request_id)
        return name

    def examined(self, account: Account | None = None, promql: PromQl | None = None) -> Examination:
        clients: AccountClients = (account or Account()).clients()
        asked = EndpointQuery(name="dev-chat", region="us-east-1", calls=self, account=clients, promql=promql)
        return examine(asked, NOW)

    def diagnosed(self, account: Account | None = None) -> tuple[Finding, ...]:
        return diagnose(self.examined(account))

    def rules(self) -> list[str]:
        return [each.rule for each in self.diagnosed()]
