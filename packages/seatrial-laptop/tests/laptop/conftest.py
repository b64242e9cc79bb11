"""One embedded AWS for the whole session, with clients, and the shortest way to something that serves."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.config import Config

from seatrial_laptop import lifecycle
from tests.environment import environment
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sagemaker import SageMakerClient
    from mypy_boto3_sagemaker_runtime import SageMakerRuntimeClient
    from mypy_boto3_sts.type_defs import AssumeRoleRequestTypeDef

LMI = "763104351884.dkr.ecr.us-east-1.amazonaws.com/djl-inference:0.36.0-lmi27.0.0-cu130"
TGI = "763104351884.dkr.ecr.us-east-1.amazonaws.com/huggingface-pytorch-tgi-inference:2.7.0-tgi3.3.6-gpu-py311"
ROLE = "arn:aws:iam::000000000000:role/an-execution-role"
FUNCTION_ROLE = "a-function"
LONGEST_WAIT_S = 30.0


@dataclass
class Laptop:
    """The embedded AWS as a user sees it."""

    local: lifecycle.LocalAws
    state_dir: Path
    sagemaker: SageMakerClient
    runtime: SageMakerRuntimeClient
    cloudformation: CloudFormationClient
    s3: S3Client
    serial: int = field(default=0)

    def name(self, stem: str) -> str:
        """Return a fresh name."""
        self.serial += 1
        return f"{stem}-{self.serial}"

    def model(self, *, image: str = LMI, artifact: str | None = None, **environment: str) -> str:
        """Create a model; its environment names a model unless the artifact does."""
        name = self.name("model")
        named = {} if artifact else {"HF_MODEL_ID": "org/model"}
        container: dict[str, object] = {"Image": image, "Environment": {**named, **environment}}
        if artifact:
            container["ModelDataUrl"] = artifact
        self.sagemaker.create_model(ModelName=name, ExecutionRoleArn=ROLE, PrimaryContainer=container)  # type: ignore[arg-type]  # a container of the two shapes
        return name

    def endpoint(self, *, model: str | None = None, most_instances: int = 64, role: str = ROLE) -> str:
        """Create an endpoint and wait; without a model it takes inference components, one on each of its instances."""
        config, name = self.name("config"), self.name("endpoint")
        variant: dict[str, object] = {"VariantName": "main", "InstanceType": "ml.g5.2xlarge", "InitialInstanceCount": 1}
        scaling = {"Status": "ENABLED", "MinInstanceCount": 1, "MaxInstanceCount": most_instances}
        variant |= {"ModelName": model} if model else {"ManagedInstanceScaling": scaling}
        self.sagemaker.create_endpoint_config(
            EndpointConfigName=config,
            ExecutionRoleArn=role,
            ProductionVariants=[variant],  # type: ignore[list-item]  # a variant of the two shapes
        )
        self.sagemaker.create_endpoint(EndpointName=name, EndpointConfigName=config)
        self.endpoint_settled(name)
        return name

    def component(self, endpoint: str, model: str, *, copies: int = 1) -> str:
        """Create an inference component and wait until it doesn't change any more."""
        name = self.name("component")
        self.sagemaker.create_inference_component(
            InferenceComponentName=name,
            EndpointName=endpoint,
            VariantName="main",
            Specification=specification(model),  # type: ignore[arg-type]  # the stub wants its own dictionary
            RuntimeConfig={"CopyCount": copies},
        )
        self.component_settled(name)
        return name

    def endpoint_settled(self, name: str) -> tuple[str, str]:
        """Wait and return the endpoint's status and failure reason."""
        deadline = time.monotonic() + LONGEST_WAIT_S
        while time.monotonic() < deadline:
            found = self.sagemaker.describe_endpoint(EndpointName=name)
            if not found["EndpointStatus"].endswith("ing"):
                return found["EndpointStatus"], found.get("FailureReason", "")
            time.sleep(0.05)
        raise TimeoutError(name)

    def component_settled(self, name: str) -> tuple[str, str]:
        """Wait and return the component's status and failure reason."""
        deadline = time.monotonic() + LONGEST_WAIT_S
        while time.monotonic() < deadline:
            found = self.sagemaker.describe_inference_component(InferenceComponentName=name)
            if not found["InferenceComponentStatus"].endswith("ing"):
                return found["InferenceComponentStatus"], found.get("FailureReason", "")
            time.sleep(0.05)
        raise TimeoutError(name)

    def stack_settled(self, name: str) -> str:
        """Wait and return the stack's status, `DELETE_COMPLETE` when it is gone."""

        def settled() -> str:
            stacks = self.cloudformation.describe_stacks()["Stacks"]
            status: str = next(
                (stack["StackStatus"] for stack in stacks if stack["StackName"] == name), "DELETE_COMPLETE"
            )
            return "" if status.endswith("PROGRESS") else status

        return until(settled, name)

    def ports(self, component: str) -> tuple[int, ...]:
        """Return the ports of a component's copies."""
        found = lifecycle.read_local_status(self.state_dir).components
        return next((entry.ports for entry in found if entry.name == component), ())


def trust(*services: str, account: str = "000000000000") -> str:
    """Return the trust policy of a role: the account's own users and roles, and services, may assume it."""
    principal = {"AWS": f"arn:aws:iam::{account}:root", **({"Service": [*services]} if services else {})}
    return json.dumps({"Statement": {"Effect": "Allow", "Principal": principal, "Action": "sts:AssumeRole"}})


def specification(model: str) -> dict[str, object]:
    """Return a component's specification."""
    resources = {"NumberOfAcceleratorDevicesRequired": 1, "MinMemoryRequiredInMb": 1024}
    return {"ModelName": model, "ComputeResourceRequirements": resources}


@dataclass
class Roles:
    """Makes roles of the running embedded AWS, and sessions of them."""

    serial: int = 0

    def role(
        self, *statements: object, boundary: str | None = None, services: tuple[str, ...] = (), path: str = "/"
    ) -> str:
        """Return the ARN of a role with one inline policy of these statements."""
        self.serial += 1
        name, iam = f"tested-{self.serial}-{time.time_ns()}", boto3.client("iam")
        bound = {"PermissionsBoundary": boundary} if boundary else {}
        made: Any = iam.create_role(RoleName=name, Path=path, AssumeRolePolicyDocument=trust(*services), **bound)
        arn: str = made["Role"]["Arn"]
        policy = json.dumps({"Version": "2012-10-17", "Statement": [*statements]})
        if statements:
            iam.put_role_policy(RoleName=name, PolicyName="tested", PolicyDocument=policy)
        return arn

    def session(self, role: str, policy: str | None = None) -> boto3.Session:
        """Return a session that acts with a role, within a session policy."""
        request: AssumeRoleRequestTypeDef = {"RoleArn": role, "RoleSessionName": "tester"}
        if policy:
            request["Policy"] = policy
        made = boto3.client("sts").assume_role(**request)["Credentials"]
        return boto3.Session(
            aws_access_key_id=made["AccessKeyId"],
            aws_secret_access_key=made["SecretAccessKey"],
            aws_session_token=made["SessionToken"],
        )

    def client(self, service: str, *statements: object, boundary: str | None = None, policy: str | None = None) -> Any:  # noqa: ANN401 (of any service)
        """Return a client of a new role's session; it asks once."""
        once = Config(retries={"total_max_attempts": 1})
        session = self.session(self.role(*statements, boundary=boundary), policy)
        return session.client(service, config=once)  # type: ignore[call-overload] # a service by its name


@pytest.fixture
def roles(laptop: Laptop) -> Roles:
    return Roles()


@pytest.fixture(scope="session")
def processes() -> Callable[[str], list[int]]:
    """Return a function that tells the processes of ours whose command line has a word."""
    ps = shutil.which("ps") or "/bin/ps"

    def of(word: str) -> list[int]:
        listing = subprocess.run([ps, "-ewwo", "pid=,args="], capture_output=True, text=True, check=True).stdout
        return [int(line.split()[0]) for line in listing.splitlines() if "seatrial_laptop" in line and word in line]

    return of


@pytest.fixture(scope="session")
def cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def cache(cache_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let what a test starts find the weights that were made for another one."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache_folder))
    return cache_folder


def make_function_role(iam: Any) -> None:  # noqa: ANN401 (its stub is not installed)
    """Make the role of functions that may do everything."""
    iam.create_role(RoleName=FUNCTION_ROLE, AssumeRolePolicyDocument=trust("lambda.amazonaws.com"))
    everything = {"Version": "2012-10-17", "Statement": {"Effect": "Allow", "Action": "*", "Resource": "*"}}
    iam.put_role_policy(RoleName=FUNCTION_ROLE, PolicyName="everything", PolicyDocument=json.dumps(everything))


@pytest.fixture(scope="session")
def shared_laptop(tmp_path_factory: pytest.TempPathFactory, cache_folder: Path) -> Iterator[Laptop]:
    state_dir = tmp_path_factory.mktemp("aws")
    try:
        with environment({"XDG_CACHE_HOME": str(cache_folder)}):
            local = lifecycle.start_embedded_aws(state_dir=state_dir)
        once = Config(retries={"total_max_attempts": 1})
        with environment(lifecycle.environment(local)):
            session = boto3.Session()
            make_function_role(session.client("iam", config=once))
            shared = Laptop(
                local=local,
                state_dir=state_dir,
                sagemaker=session.client("sagemaker", config=once),
                runtime=session.client("sagemaker-runtime", config=once),
                cloudformation=session.client("cloudformation", config=once),
                s3=session.client("s3", config=once),
            )
        yield shared
    finally:
        lifecycle.stop_embedded_aws(state_dir)


@pytest.fixture(scope="module")
def laptop(shared_laptop: Laptop, cache_folder: Path) -> Iterator[Laptop]:
    """Return the embedded AWS of the session, to which the environment leads while this file's tests run."""
    with environment({**lifecycle.environment(shared_laptop.local), "XDG_CACHE_HOME": str(cache_folder)}):
        yield shared_laptop


@pytest.fixture(scope="session")
def host(shared_laptop: Laptop) -> str:
    """Return an endpoint that takes inference components."""
    return shared_laptop.endpoint()


@pytest.fixture(scope="session")
def chat(shared_laptop: Laptop, host: str) -> str:
    """Return an inference component on `host` that serves with two slots."""
    model = shared_laptop.model(
        OPTION_MAX_ROLLING_BATCH_SIZE="2", OPTION_MAX_MODEL_LEN="2048", SERVING_JOB_QUEUE_SIZE="1"
    )
    return shared_laptop.component(host, model)
