"""A scaled endpoint on an embedded AWS of its own: deployed, updated and looked at by the public tools and APIs."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import boto3
import yaml
from botocore.config import Config

from benchmarks.living_endpoint.synthesis import synthesize
from seatrial.client import Alias, Schema
from seatrial.deployment.load import load_deployments
from seatrial.documents.live import ROLLBACK_ALARM
from seatrial.locks.lock_file import write_lock
from seatrial.planner.planner import make_plan
from seatrial.specs.load import load_spec
from seatrial_base.tags import ENVIRONMENT_TAG
from seatrial_laptop import lifecycle
from seatrial_laptop.aws.faults import ControlSettings
from seatrial_laptop.control import change_control
from seatrial_laptop.demo.cdk_cli import CdkCli
from seatrial_laptop.demo.embedded_aws import EmbeddedAws
from seatrial_load.documents.request_checks import read_trial_request
from seatrial_load.trial.run import run_trial

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from mypy_boto3_application_autoscaling import ApplicationAutoScalingClient
    from mypy_boto3_cloudwatch import CloudWatchClient
    from mypy_boto3_cloudwatch.type_defs import MetricAlarmTypeDef
    from mypy_boto3_sagemaker import SageMakerClient
    from mypy_boto3_sagemaker_runtime import SageMakerRuntimeClient
    from mypy_boto3_ssm import SSMClient

    from seatrial_laptop.demo.cdk_cli import ToolOutcome

ROOT: Final = Path(__file__).parents[2]
ENVIRONMENT: Final = "local"
NAME: Final = "chat"
STACK: Final = f"seatrial-{ENVIRONMENT}-{NAME}"
ENDPOINT: Final = f"{ENVIRONMENT}-{NAME}"
BESIDE: Final = f"{ENDPOINT}-beside"
FUNCTION: Final = f"AWS_LAMBDA_FUNCTION_NAME=seatrial-{ENVIRONMENT}-trials"
NO_FAULTS: Final[Mapping[str, object]] = ControlSettings().model_dump(mode="json")
COPIES: Final = 3
"""The copies that serve, however few are planned."""
PATIENCE_S: Final = 180.0
LOOK_S: Final = 0.2

SPEC: Final[Mapping[str, object]] = {
    "name": NAME,
    "model": {"hub_id": "meta-llama/Llama-2-7b-chat-hf", "accept_eula": True},
    "workload": {"input_tokens": 48, "output_tokens": 16, "concurrency": 2},
    "slo": {"ttft_ms": {"p95": 20_000}, "tpot_ms": {"p95": 5_000}},
    "serving": {"instance_types": ["ml.g5.2xlarge"], "overrides": {"max_model_len": 512, "max_num_seqs": 8}},
    "scaling": {"min_copies": 1, "max_copies": 5},
    "trial": {"concurrency_levels": [1, 2, 4], "requests_per_concurrency": 4, "budget_minutes": 5},
}
"""One copy is planned; the trial is as short as one that finds a target may be."""


@dataclass(frozen=True, slots=True)
class LivingEndpoint:
    """The endpoint and where it lives.

    Attributes:
        folder: Specs, locks and logs.
        cloud: The embedded AWS.
        tools: The CDK CLI.
        sagemaker: A client for every thread: making one changes the environment for a moment.
        autoscaling: Likewise.
        cloudwatch: Likewise.
        runtime: Likewise; it sends each request once.
        ssm: Likewise.
        faults: Settings of the control interface that hold all the time.
    """

    folder: Path
    cloud: EmbeddedAws
    tools: CdkCli
    sagemaker: SageMakerClient
    autoscaling: ApplicationAutoScalingClient
    cloudwatch: CloudWatchClient
    runtime: SageMakerRuntimeClient
    ssm: SSMClient
    faults: Mapping[str, object] = field(default_factory=dict)

    def control(self, **settings: object) -> None:
        """Let these settings of the control interface hold, beside the faults of this endpoint, and no other ones.

        At once: functions that load an older boto3 would be ended by a moment without it.
        """
        change_control(self.folder / "aws", {**NO_FAULTS, **self.faults, **settings})

    def write(self, **changes: object) -> None:
        """Write the spec with top-level fields changed, and lock its plan, even one that is to miss its SLO.

        Where minutes of waiting are skipped, scaling sees too few requests for a quarter of an hour: it must take no
        copy then.
        """
        spec = self.folder / "endpoints" / f"{NAME}.yaml"
        scaling = {"min_copies": COPIES, "max_copies": 5}  # below `environments` it is not scaled to the laptop
        held = {"environments": {ENVIRONMENT: {"scaling": scaling}}} if "wait_speed" in self.faults else {}
        spec.write_text(yaml.safe_dump({**SPEC, **changes, **held}), encoding="utf-8")
        loaded = load_spec(spec, ENVIRONMENT, environments=self.folder / "environments")
        write_lock(make_plan(loaded, accept_slo_miss=True), spec)

    def synth(self, assembly: str, **context: str) -> Path:
        """Synthesize what is locked into an assembly of this name; the CDK CLI takes its context by `-c`."""
        output = self.folder / assembly
        shutil.rmtree(output, ignore_errors=True)
        given: dict[str, str | Path] = {
            "environment": ENVIRONMENT,
            "endpoints": self.folder / "endpoints",
            "environments": self.folder / "environments",
            **context,
        }
        return synthesize(output, given)

    def deploy(self, assembly: Path) -> ToolOutcome:
        """Deploy an assembly with its trial, and return how that ended."""
        options = ("--method", "direct", "--require-approval", "never", "--no-notices", "--progress", "events")
        return self.tools.cdk("deploy", "--all", "--app", str(assembly), *options)

    def alias(self) -> Alias:
        """Return the endpoint as users name it."""
        return Alias(self.ssm, ENVIRONMENT, NAME, Schema.LMI_ASYNC)

    def set_copies(self, count: int, *, wait: bool = True) -> None:
        """Set the copies of the live component, as a scaling policy does."""
        self.sagemaker.update_inference_component_runtime_config(
            InferenceComponentName=self.component, DesiredRuntimeConfig={"CopyCount": count}
        )
        if wait:
            self.until(lambda: self.status == "InService" and self.copies == count, f"{count} copies")

    def create_beside(self, name: str = BESIDE) -> None:
        """Order a component of one copy of the live model beside the one that serves."""
        client = self.sagemaker
        live = client.describe_inference_component(InferenceComponentName=self.component)
        client.create_inference_component(
            InferenceComponentName=name,
            EndpointName=live["EndpointName"],
            VariantName=live["VariantName"],
            Specification={
                "ModelName": live["Specification"]["ModelName"],
                "ComputeResourceRequirements": live["Specification"]["ComputeResourceRequirements"],
            },
            RuntimeConfig={"CopyCount": 1},
            Tags=[{"Key": ENVIRONMENT_TAG, "Value": ENVIRONMENT}],
        )

    def load_beside(self) -> None:
        """Load that component, once it serves, as the trial of the live configuration does."""
        self.until(lambda: self.status_of(BESIDE) == "InService", BESIDE)
        environments = self.folder / "environments"
        (deployment,) = load_deployments(self.folder / "endpoints", environments, ENVIRONMENT).deployments
        target = {"endpoint_name": ENDPOINT, "inference_component": BESIDE, "region": self.cloud.region}
        whole = {**json.loads(deployment.trial_request), "target": target, "expected": None, "copy_count": 1}
        with environment_of(self.cloud):
            run_trial(read_trial_request(json.dumps(whole)))

    def delete_beside(self) -> None:
        """Delete that component."""
        self.sagemaker.delete_inference_component(InferenceComponentName=BESIDE)

    def status_of(self, name: str) -> str:
        """Return the status of a component."""
        told = self.sagemaker.describe_inference_component(InferenceComponentName=name)
        return told["InferenceComponentStatus"]

    @property
    def component(self) -> str:
        """The name of the component that serves."""
        return self.alias().target().inference_component or ""

    @property
    def status(self) -> str:
        """The status of the live component."""
        return self.status_of(self.component)

    @property
    def copies(self) -> int:
        """The copies of the live component that serve."""
        told = self.sagemaker.describe_inference_component(InferenceComponentName=self.component)
        return told["RuntimeConfig"].get("CurrentCopyCount", 0)

    @property
    def ports(self) -> tuple[int, ...]:
        """Where the copies of the live component listen: a copy that is restarted gets another port."""
        found = lifecycle.read_local_status(self.folder / "aws").components
        return tuple(sorted(next(each.ports for each in found if each.name == self.component)))

    def raise_alarm(self) -> None:
        """Raise the alarm of the live component that has no data, and let the rolling update's wait pass quickly."""
        names = {each["MetricName"]: each["AlarmName"] for each in self.rollback_alarms}
        name = names["NoCapacityInvocationFailures"]
        self.cloudwatch.set_alarm_state(AlarmName=name, StateValue="ALARM", StateReason="raised by hand")
        self.control(clock_speed=60)

    @property
    def rollback_alarms(self) -> list[MetricAlarmTypeDef]:
        """The alarms that roll updates back, as CloudWatch tells them."""
        alarms = self.cloudwatch.describe_alarms(AlarmNamePrefix=STACK)["MetricAlarms"]
        return [each for each in alarms if each["AlarmDescription"].startswith(ROLLBACK_ALARM)]

    @property
    def raised(self) -> list[str]:
        """The metrics of those that are raised."""
        return [each["MetricName"] for each in self.rollback_alarms if each["StateValue"] == "ALARM"]

    def settle_alarm(self) -> None:
        """End the alarm."""
        self.control()
        for each in self.cloudwatch.describe_alarms(AlarmNamePrefix=STACK)["MetricAlarms"]:
            self.cloudwatch.set_alarm_state(AlarmName=each["AlarmName"], StateValue="OK", StateReason="ended by hand")

    @property
    def candidates(self) -> list[str]:
        """The candidate components that are there."""
        found = self.sagemaker.list_inference_components(NameContains="-candidate-")
        return [each["InferenceComponentName"] for each in found["InferenceComponents"]]

    @property
    def is_scale_in_suspended(self) -> bool:
        """Whether any target's scale-in is suspended."""
        targets = self.autoscaling.describe_scalable_targets(ServiceNamespace="sagemaker")["ScalableTargets"]
        return any(target.get("SuspendedState", {}).get("DynamicScalingInSuspended") for target in targets)

    @property
    def target(self) -> float | None:
        """What autoscaling holds, in requests in flight per copy."""
        policies = self.autoscaling.describe_scaling_policies(
            ServiceNamespace="sagemaker", ResourceId=f"inference-component/{self.component}"
        )["ScalingPolicies"]
        targets = [policy["TargetTrackingScalingPolicyConfiguration"]["TargetValue"] for policy in policies]
        return targets[0] if targets else None

    def sweep(self) -> bool:
        """Let the trial service do now what it does every five minutes; return whether nothing is left for it to do.

        One call may not do it: a request of its own is throttled, or copies that it gives back are in transit.
        """
        with environment_of(self.cloud):
            functions = boto3.client("lambda")
        functions.invoke(FunctionName=f"seatrial-{ENVIRONMENT}-trials", Payload=json.dumps({"Sweep": True}))
        return not self.candidates and not self.is_scale_in_suspended

    def until(self, done: Callable[[], object], what: str, *, ended: Callable[[], bool] = lambda: False) -> None:
        """Wait until something is so.

        Args:
            done: Tells whether it is so.
            what: What is waited for.
            ended: Tells whether it can't become so any more.

        Raises:
            TimeoutError: It was not for three minutes, or can't become so any more.
        """
        deadline = time.monotonic() + PATIENCE_S
        while not done():
            if ended() and not done():
                raise TimeoutError(f"{what}: the update ended without it")
            if time.monotonic() > deadline:
                raise TimeoutError(f"{what}: not within {PATIENCE_S:.0f} s")
            time.sleep(LOOK_S)


@contextmanager
def living_endpoint(folder: Path, faults: Mapping[str, object] = MappingProxyType({})) -> Iterator[LivingEndpoint]:
    """Start an embedded AWS with faults, bootstrap it, and remove everything in the end."""
    for name in ("endpoints", "environments", "tmp"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / "environments" / f"{ENVIRONMENT}.yaml", folder / "environments")
    state = folder / "aws"
    try:
        local = lifecycle.start_embedded_aws(state_dir=state)
        env = {**lifecycle.child_variables(local), "TMPDIR": str(folder / "tmp"), "CDK_VALIDATION": "false"}
        tools = CdkCli(ROOT, env, folder / "tools.log", verbose=False)
        tools.cdk_must("bootstrap", f"aws://{local.account}/{local.region}", "--no-notices", folder=folder)
        living = replace(_with_clients(folder, EmbeddedAws(local), tools), faults=faults)
        living.control()
        yield living
    finally:
        lifecycle.stop_embedded_aws(state)


def _with_clients(folder: Path, cloud: EmbeddedAws, tools: CdkCli) -> LivingEndpoint:
    once = Config(retries={"total_max_attempts": 1}, max_pool_connections=16)
    with environment_of(cloud):
        session = boto3.Session()
        return LivingEndpoint(
            folder=folder,
            cloud=cloud,
            tools=tools,
            sagemaker=session.client("sagemaker"),
            autoscaling=session.client("application-autoscaling"),
            runtime=session.client("sagemaker-runtime", config=once),
            cloudwatch=session.client("cloudwatch"),
            ssm=session.client("ssm"),
        )


@contextmanager
def environment_of(cloud: EmbeddedAws) -> Iterator[None]:
    """Let this process be one that reaches the embedded AWS alone."""
    users, session = dict(os.environ), boto3.DEFAULT_SESSION
    os.environ.clear()
    os.environ.update(lifecycle.child_variables(cloud.local))
    boto3.DEFAULT_SESSION = None  # it keeps the credentials that it found first: perhaps those of another embedded AWS
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(users)
        boto3.DEFAULT_SESSION = session


def kill_functions(folder: Path) -> int:
    """Kill every process of the trial service's function of the embedded AWS in a folder; return how many."""
    ps = shutil.which("ps") or "/bin/ps"
    listing = subprocess.run([ps, "axeww", "-o", "pid=,command="], capture_output=True, text=True, check=True)
    ours = [line for line in listing.stdout.splitlines() if str(folder) in line and FUNCTION in line]
    for line in ours:
        with suppress(ProcessLookupError):  # it has ended meanwhile
            os.kill(int(line.split()[0]), signal.SIGKILL)
    return len(ours)
