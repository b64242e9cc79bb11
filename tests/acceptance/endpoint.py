"""An endpoint of the suite: written, planned, deployed and looked at as its owner does, and asked as its users do."""

from __future__ import annotations

import json
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import yaml
from botocore.exceptions import BotoCoreError, ClientError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tests.acceptance.target import Target
    from tests.tools import Ended

INSTANCE_TYPES: Final = ("ml.g4dn.xlarge", "ml.g6.xlarge", "ml.g5.xlarge")
"""The smallest GPU types of the catalog with one accelerator; the planner takes the cheapest that holds the model."""
SPEC: Final[Mapping[str, object]] = {
    "model": {"hub_id": "Qwen/Qwen2.5-0.5B-Instruct"},
    "workload": {"input_tokens": 48, "output_tokens": 16, "concurrency": 2},
    "slo": {"ttft_ms": {"p95": 20_000}, "tpot_ms": {"p95": 5_000}},
    "scaling": {"min_copies": 2, "max_copies": 3},
    "trial": {"concurrency_levels": [1, 2, 4], "requests_per_concurrency": 4, "budget_minutes": 5},
}
"""Two copies at least, so that an update replaces them one after the other; the trial is as short as one may be."""
MISSED: Final = {"ttft_ms": {"p95": 0.01}, "tpot_ms": {"p95": 5_000}}
"""An objective that no engine meets."""
ASK_EVERY_S: Final = 0.5
CANDIDATE: Final = "-candidate-"


def batch_of(sequences: int) -> dict[str, object]:
    """Return the change of a spec that makes another configuration: another batch limit."""
    overrides = {"max_model_len": 512, "max_num_seqs": sequences}
    return {"serving": {"instance_types": list(INSTANCE_TYPES), "overrides": overrides}}


@dataclass(slots=True)
class Seen:
    """What was seen of an endpoint while something happened to it.

    Attributes:
        requests: Requests of users.
        failures: Why those without an answer failed.
        least_copies: The fewest copies that served at any look.
        candidates: Names of candidates that were there.
    """

    requests: int = 0
    failures: list[str] = field(default_factory=list)
    least_copies: int = 1_000
    candidates: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An endpoint.

    Attributes:
        target: Where.
        name: Its name in its spec.
        is_openai: Its container is asked as OpenAI's API is.
    """

    target: Target
    name: str
    is_openai: bool = False

    @property
    def stack(self) -> str:
        """Name of its stack."""
        return f"seatrial-{self.target.environment}-{self.name}"

    @property
    def endpoint_name(self) -> str:
        """Its name in SageMaker."""
        return f"{self.target.environment}-{self.name}"

    def write(self, **changes: object) -> None:
        """Write the spec with top-level fields changed, and lock its plan with `seatrial plan`."""
        spec = self.target.folder / "endpoints" / f"{self.name}.yaml"
        spec.parent.mkdir(parents=True, exist_ok=True)
        document = {"name": self.name, **SPEC, **batch_of(8), **changes}
        document["environments"] = {self.target.environment: {"scaling": document["scaling"]}}  # the laptop's copies
        spec.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
        words = ("plan", f"endpoints/{self.name}.yaml", "-e", self.target.environment, "--write", "--accept-slo-miss")
        planned = self.target.seatrial(*words)
        assert planned.exit_code == 0, planned.output

    def deploy(self, **changes: object) -> Ended:
        """Write, plan, synthesize and deploy; the trial service is deployed with it."""
        self.write(**changes)
        assembly = self.target.synth(f"cdk.out.{self.name}", endpoint=self.name)
        return self.target.deploy(assembly)

    def update(
        self, changes: Mapping[str, object], beside: Callable[[Update], object] | None = None
    ) -> tuple[Ended, Seen]:
        """Deploy under the load of users, and do something beside it; return how it ended and what was seen.

        Raises:
            Exception: What was raised beside the update, once it has ended.
        """
        self.write(**changes)
        assembly = self.target.synth(f"cdk.out.{self.name}", endpoint=self.name)
        update = Update(self)
        with self.watched() as seen:
            task = Task(beside or nothing, update)
            try:
                ended = self.target.deploy(assembly)
            finally:
                update.ended.set()
            task.result()
        return ended, seen

    def outputs(self) -> dict[str, str]:
        """Return the outputs of its stack."""
        return self.target.outputs(self.stack)

    @property
    def component(self) -> str:
        """Name of the component that serves."""
        return f"{self.endpoint_name}-model"

    def described(self) -> dict[str, Any]:
        """Return what SageMaker tells of the component that serves."""
        client = self.target.client("sagemaker")
        told: dict[str, Any] = client.describe_inference_component(InferenceComponentName=self.component)
        return told

    def model(self) -> str:
        """Return the name of the model that serves."""
        return str(self.described()["Specification"]["ModelName"])

    def copies(self) -> int:
        """Return the copies that serve."""
        return int(self.described()["RuntimeConfig"].get("CurrentCopyCount", 0))

    def set_copies(self, count: int) -> None:
        """Set the copies by hand, as a scaling policy does, and wait for them."""
        self._order_copies(count)
        self._until_copies(count)

    def hold_copies(self, count: int) -> None:
        """Set the copies by hand, and the least that scaling leaves: it would soon take idle ones away again."""
        self._order_copies(count)
        self.target.client("application-autoscaling").register_scalable_target(
            ServiceNamespace="sagemaker",
            ResourceId=f"inference-component/{self.component}",
            ScalableDimension="sagemaker:inference-component:DesiredCopyCount",
            MinCapacity=count,
        )
        self._until_copies(count)

    def set_copies_when_settled(self, count: int) -> None:
        """Set the copies once no change is under way any more, and wait for them."""
        self.target.until(lambda: self.described()["InferenceComponentStatus"] == "InService", "a settled component")
        self.set_copies(count)

    def _order_copies(self, count: int) -> None:
        self.target.client("sagemaker").update_inference_component_runtime_config(
            InferenceComponentName=self.component, DesiredRuntimeConfig={"CopyCount": count}
        )

    def _until_copies(self, count: int) -> None:
        def is_so() -> bool:
            told = self.described()
            return (told["InferenceComponentStatus"], told["RuntimeConfig"].get("CurrentCopyCount")) == (
                "InService",
                count,
            )

        self.target.until(is_so, f"{count} copies")

    def candidates(self) -> list[str]:
        """Return the names of its candidates."""
        found = self.target.client("sagemaker").list_inference_components(NameContains=CANDIDATE)["InferenceComponents"]
        return [each["InferenceComponentName"] for each in found if each["EndpointName"] == self.endpoint_name]

    def left(self) -> list[str]:
        """Return what an update left: candidates, and suspended scale-in."""
        targets = self.target.client("application-autoscaling").describe_scalable_targets(ServiceNamespace="sagemaker")
        suspended = [
            f"scale-in of {each['ResourceId']} is suspended"
            for each in targets["ScalableTargets"]
            if self.component in each["ResourceId"] and each.get("SuspendedState", {}).get("DynamicScalingInSuspended")
        ]
        return [*self.candidates(), *suspended]

    def result(self) -> dict[str, Any]:
        """Return the result of its last trial."""
        bucket, _, key = self.outputs()["TrialResultUri"].removeprefix("s3://").partition("/")
        body = self.target.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read()
        document: dict[str, Any] = json.loads(body)
        return document

    def ask(self, component: str = "") -> str:
        """Send one request, to the component that serves unless another is named, and return the answered text.

        Raises:
            ClientError: It was refused.
        """
        text = "Where does the boat go?"
        chat = {"messages": [{"role": "user", "content": text}], "max_tokens": 16}
        answer = self.target.client("sagemaker-runtime").invoke_endpoint(
            EndpointName=self.endpoint_name,
            InferenceComponentName=component or self.component,
            ContentType="application/json",
            Body=json.dumps(chat if self.is_openai else {"inputs": text, "parameters": {"max_new_tokens": 16}}),
        )
        told = json.loads(answer["Body"].read())
        return str(told["choices"][0]["message"]["content"] if self.is_openai else told["generated_text"])

    def stream(self) -> bytes:
        """Send one request whose answer is a stream, and return what it held."""
        answer = self.target.client("sagemaker-runtime").invoke_endpoint_with_response_stream(
            EndpointName=self.endpoint_name,
            InferenceComponentName=self.component,
            ContentType="application/json",
            Body=json.dumps({"inputs": "Where?", "parameters": {"max_new_tokens": 8}, "stream": True}),
        )
        return b"".join(each["PayloadPart"]["Bytes"] for each in answer["Body"] if "PayloadPart" in each)

    @contextmanager
    def watched(self) -> Iterator[Seen]:
        """Send requests and look at the copies while the block runs."""
        seen, over = Seen(), threading.Event()

        def ask() -> None:
            while not over.is_set():
                seen.requests += 1
                try:
                    self.ask()
                except (BotoCoreError, ClientError, KeyError) as failed:
                    seen.failures.append(f"{failed}")
                over.wait(ASK_EVERY_S)

        def look() -> None:
            while not over.is_set():
                seen.least_copies = min(seen.least_copies, self.copies())
                seen.candidates |= set(self.candidates())
                over.wait(self.target.look_s)

        tasks = [Task(ask), Task(look)]
        try:
            yield seen
        finally:
            over.set()
            for task in tasks:
                task.result()


class Task:
    """A call in a thread of its own."""

    def __init__(self, call: Callable[..., object], *arguments: object) -> None:
        self._raised: list[BaseException] = []

        def run() -> None:
            try:
                call(*arguments)
            except BaseException as error:  # noqa: BLE001 (told where the result is asked for)
                self._raised.append(error)

        self._thread = threading.Thread(target=run, daemon=True)
        self._thread.start()

    def result(self) -> None:
        """Wait for its end.

        Raises:
            BaseException: What the call raised.
        """
        self._thread.join()
        for error in self._raised:
            raise error


@dataclass(frozen=True, slots=True)
class Update:
    """An update that is under way.

    Attributes:
        endpoint: What is updated.
        ended: Is set once the deployment has ended.
    """

    endpoint: Endpoint
    ended: threading.Event = field(default_factory=threading.Event)

    def until(self, done: Callable[[], object], what: str) -> None:
        """Wait until something is so, or the update has ended.

        Raises:
            TimeoutError: It ended without it, or it was not so in time.
        """
        self.endpoint.target.until(done, what, ended=self.ended.is_set)

    def until_candidate(self) -> None:
        """Wait for a candidate.

        Raises:
            TimeoutError: There was none.
        """
        self.until(self.endpoint.candidates, "a candidate")

    def until_rollout(self) -> None:
        """Wait until the component itself is updated, which its candidate has left.

        Raises:
            TimeoutError: It was not.
        """
        self.until_candidate()
        self.until(lambda: not self.endpoint.candidates() and self.is_updating(), "the rolling update")

    def is_updating(self) -> bool:
        """Whether SageMaker updates the component that serves."""
        return bool(self.endpoint.described()["InferenceComponentStatus"] == "Updating")


def nothing(update: Update) -> None:
    """Do nothing beside an update."""
    del update


def refusal(call: Callable[[], object]) -> dict[str, str]:
    """Return code and words of a refusal; the code is `none` when there is no refusal."""
    try:
        call()
    except ClientError as refused:
        return {"code": refused.response["Error"]["Code"], "words": refused.response["Error"]["Message"]}
    return {"code": "none", "words": ""}


def awake(call: Callable[[], object], pause_s: float, longest_s: float) -> bool:
    """Call until it is answered; tell whether it was within a time."""
    deadline = time.monotonic() + longest_s
    while time.monotonic() < deadline:
        try:
            call()
        except ClientError:
            time.sleep(pause_s)
        else:
            return True
    return False
