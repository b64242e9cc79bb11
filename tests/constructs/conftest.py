"""One trial's properties and result, written out by hand, and a store in memory."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal, cast

import pytest
from botocore.exceptions import ClientError
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, utils

from seatrial_base.tags import is_candidate_name
from seatrial_cdk.trials.runtime.components import ComponentState, VariantCapacity
from seatrial_cdk.trials.runtime.outcome import KmsSeal
from seatrial_cdk.trials.runtime.store import UnavailableError, Versioned
from seatrial_load.documents.distribution import Distribution
from seatrial_load.documents.request import Expected, Load, Objective, TrialRequest, TrialTarget, Workload
from seatrial_load.documents.result import Check, Knee, LevelResult, LiveProof, TrialResult, Verdict
from seatrial_load.documents.stop import Stop, StopReason

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mypy_boto3_application_autoscaling.type_defs import SuspendedStateTypeDef
    from mypy_boto3_kms import KMSClient

    from seatrial_cdk.trials.runtime.order import CustomResourceEvent

OBJECTIVE = Objective(metric="ttft_ms", statistic="p95", bound=2000.0, sense="at_most")
IMAGE = "763104351884.dkr.ecr.us-east-1.amazonaws.com/djl-inference:0.36.0-lmi27.0.0-cu129"
TTFT_MISSED = "ttft_ms p95 2400.0 ms exceeds 2000.0 ms at concurrency 16 per copy"


@dataclass
class DictStore:
    texts: dict[str, str] = field(default_factory=dict)

    def read(self, key: str) -> str | None:
        return self.texts.get(key)

    def write(self, key: str, text: str) -> None:
        self.texts[key] = text

    def read_versioned(self, key: str) -> Versioned | None:
        text = self.texts.get(key)
        return None if text is None else Versioned(text, sha256(text.encode()).hexdigest())

    def replace(self, key: str, text: str, version: str) -> bool:
        found = self.read_versioned(key)
        same = found is not None and found.version == version
        if same:
            self.texts[key] = text
        return same

    def create(self, key: str, text: str) -> bool:
        new = key not in self.texts
        self.texts.setdefault(key, text)
        return new

    def uri(self, key: str) -> str:
        return f"s3://results/{key}"

    def keys(self, prefix: str) -> list[str]:
        return sorted(key for key in self.texts if key.startswith(prefix))

    def clear(self, endpoint_name: str) -> None:
        kept = [key for key in self.texts if endpoint_name not in key.split("/")[:-1] or key.startswith("trials/")]
        self.texts = {key: self.texts[key] for key in kept}


def request_of_dev() -> TrialRequest:
    return TrialRequest(
        endpoint="chat",
        environment="dev",
        plan_digest="b",
        target=TrialTarget(endpoint_name="dev-chat", inference_component="dev-chat-model", region="us-east-1"),
        expected=Expected(endpoint_config_name="config-2", model_name="model-2", image=IMAGE),
        workload=Workload(input_tokens=256, output_tokens=256, schema="lmi"),
        load=Load(
            concurrency_levels=(8, 16),
            requests_per_concurrency=3,
            warmup_requests=2,
            budget_s=600.0,
            request_timeout_s=60.0,
        ),
        objectives=(OBJECTIVE,),
        gate_concurrency=16,
        copy_count=1,
        mode="rollback",
        usd_per_hour_per_copy=1.515,
        fallback_target_concurrency=12.8,
        target_utilization=0.8,
    )


def level(concurrency: int, output_tok_s: float) -> LevelResult:
    times = Distribution(count=48, mean=40.0, p50=40.0, p90=44.0, p95=45.5, p99=50.0, max=51.0)
    return LevelResult(
        concurrency=concurrency,
        requests=48,
        succeeded=48,
        errors={},
        first_errors=(),
        window_s=30.0,
        output_tok_s=output_tok_s,
        requests_per_s=1.6,
        goodput_requests_per_s=1.6,
        ttft_ms=replace(times, p95=812.25),
        tpot_ms=times,
        itl_ms=times,
        ms_per_token=times,
        e2e_latency_ms=times,
        input_tokens_mean=256.0,
        output_tokens_mean=256.0,
        meets_slo=True,
        misses=(),
    )


def passing_result() -> TrialResult:
    check = Check(objective=OBJECTIVE, measured=812.25, met=True, sentence="ttft_ms p95 is within its bound")
    return TrialResult(
        schema_version="3",
        request=request_of_dev(),
        started_at="2026-11-21T01:00:00+00:00",
        duration_s=61.0,
        engine_note="",
        live=LiveProof(
            proven=True, endpoint_config_name="config-2", model_name="model-2", copy_count=1, because="asked"
        ),
        levels=(level(8, 250.0), level(16, 410.5)),
        knees=(
            Knee(detector="slo", concurrency=16, because="every level meets the SLO"),
            Knee(detector="kneedle", concurrency=8, because="the curve bends there"),
        ),
        verdict=Verdict(status="pass", because="objective met", checks=(check,)),
        target_concurrency_per_copy=12.8,
        target_detector="slo",
        target_because="slo knee 16 per copy x target utilization 0.8",
        usd_per_million_output_tokens=1.0251725,
        stopped=Stop(reason=StopReason.ALL_MEASURED, because="every level was measured"),
        blended_usd_per_million_tokens=0.26,
    )


@dataclass
class EvidenceKey:
    """A key as AWS KMS keeps it: it signs digests, and its private half is never given away."""

    arn: str = "arn:aws:kms:us-east-1:123456789012:key/0f"
    private: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    denied: bool = False

    def sign(self, **asked: Any) -> dict[str, bytes]:  # noqa: ANN401 (the arguments of boto3)
        if self.denied:
            raise UnavailableError("AccessDeniedException")
        assert (asked["KeyId"], asked["MessageType"]) == (self.arn, "DIGEST")
        return {"Signature": self.private.sign(asked["Message"], ec.ECDSA(utils.Prehashed(hashes.SHA256())))}

    def get_public_key(self, **asked: Any) -> dict[str, bytes]:  # noqa: ANN401 (likewise)
        if self.denied:
            refusal: Any = {"Error": {"Code": "AccessDeniedException", "Message": "no"}}
            raise ClientError(refusal, "GetPublicKey")
        assert asked["KeyId"] == self.arn
        return {"PublicKey": b64decode(self.public)}

    @property
    def public(self) -> str:
        """The public half, as it stands in the file of an environment."""
        form = serialization.PublicFormat.SubjectPublicKeyInfo
        return b64encode(self.private.public_key().public_bytes(serialization.Encoding.DER, form)).decode()

    @property
    def seal(self) -> KmsSeal:
        executions = "arn:aws:states:us-east-1:123456789012:execution:seatrial-dev-trials"
        return KmsSeal(cast("KMSClient", self), self.arn, executions)


@pytest.fixture
def store() -> DictStore:
    return DictStore()


@dataclass
class DictScaling:
    """What is suspended, by component; a component that nothing scales is absent."""

    states: dict[str, SuspendedStateTypeDef] = field(default_factory=dict)
    calls: list[SuspendedStateTypeDef] = field(default_factory=list)
    most: int = 8

    def suspended(self, component: str) -> SuspendedStateTypeDef | None:
        return self.states.get(component)

    def most_copies(self, component: str) -> int | None:
        return self.most if component in self.states else None

    def suspend(self, component: str, state: SuspendedStateTypeDef) -> None:
        self.states[component] = state
        self.calls.append(state)


@pytest.fixture
def scaling() -> DictScaling:
    return DictScaling()


SPECIFICATION: dict[str, object] = {
    "ModelName": "model-2",
    "ComputeResourceRequirements": {"NumberOfAcceleratorDevicesRequired": 1},
}
OLD: dict[str, object] = {**SPECIFICATION, "ModelName": "model-1"}


def component(name: str = "dev-chat-model", **changes: object) -> ComponentState:
    """Return a component that serves the old configuration in one copy, with changes."""
    usual = ComponentState(
        name=name,
        endpoint_name="dev-chat",
        variant_name="AllTraffic",
        status="InService",
        current_copies=1,
        desired_copies=1,
        specification=OLD,
        arn=f"arn:aws:sagemaker:us-east-1:123456789012:inference-component/{name}",
    )
    return replace(usual, **changes)  # type: ignore[arg-type] # the fields of the dataclass


@dataclass
class DictComponents:
    """Components by name; what is deleted is gone at once, what is created is as `born` says.

    The tags of `unseen` are not visible yet; a component without an entry in `tagged` is one of a stack.
    """

    found: dict[str, ComponentState] = field(default_factory=dict)
    born: dict[str, object] = field(default_factory=lambda: {"status": "InService"})
    created: list[tuple[str, dict[str, object], dict[str, str]]] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    unknown: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    tagged: dict[str, dict[str, str]] = field(default_factory=dict)
    unseen: set[str] = field(default_factory=set)
    in_stack: set[str] = field(default_factory=set)
    instances: VariantCapacity = field(default_factory=lambda: VariantCapacity(1, 8))

    def describe(self, name: str) -> ComponentState | None:
        return self.found.get(name)

    def live_config(self, endpoint_name: str) -> str:
        if endpoint_name in self.gone:
            raise UnavailableError(f'describing endpoint {endpoint_name}: Could not find endpoint "{endpoint_name}"')
        return f"config-of-{endpoint_name}"

    def capacity(self, endpoint_name: str, variant_name: str) -> VariantCapacity:
        assert (endpoint_name, variant_name) == ("dev-chat", "AllTraffic")
        return self.instances

    def unknown_members(self, specification: Mapping[str, object]) -> list[str]:
        return [f"Specification.{name}" for name in specification if name in self.unknown]

    def on_endpoint(self, endpoint_name: str) -> list[str]:
        return sorted(name for name, each in self.found.items() if each.endpoint_name == endpoint_name)

    def create(
        self, name: str, beside: ComponentState, specification: dict[str, object], tags: Mapping[str, str]
    ) -> None:
        assert beside.name == "dev-chat-model"
        self.created.append((name, specification, dict(tags)))
        self.tagged[name] = dict(tags)
        self.found[name] = replace(component(name, specification=specification), **self.born)  # type: ignore[arg-type]

    def delete(self, name: str) -> None:
        if self.found[name].in_transit:
            raise UnavailableError(f"{name} is in transit")
        self.deleted.append(name)
        del self.found[name]

    def like_candidates(self) -> list[str]:
        return sorted(filter(is_candidate_name, self.found))

    def tags(self, component: ComponentState) -> dict[str, str]:
        if component.name in self.unseen:
            return {}
        return self.tagged.get(component.name, {"seatrial:environment": "dev"})

    def is_in_stack(self, component: ComponentState) -> bool:
        return component.name in self.in_stack

    def set_copies(self, name: str, count: int) -> None:
        if self.found[name].in_transit:
            raise UnavailableError(f"{name} is in transit")
        self.found[name] = replace(self.found[name], current_copies=count, desired_copies=count)


@pytest.fixture
def components() -> DictComponents:
    return DictComponents({"dev-chat-model": component()})


@pytest.fixture
def passed() -> TrialResult:
    return passing_result()


@pytest.fixture
def missed() -> Callable[[Literal["fail", "inconclusive"]], TrialResult]:
    def result(status: Literal["fail", "inconclusive"]) -> TrialResult:
        return replace(passing_result(), verdict=Verdict(status=status, because=TTFT_MISSED, checks=()))

    return result


@pytest.fixture
def properties() -> dict[str, str]:
    template = json.loads(request_of_dev().to_json())
    del template["target"], template["expected"]
    return {
        "ServiceToken": "arn:aws:lambda:us-east-1:123456789012:function:provider",
        "EndpointName": "dev-chat",
        "InferenceComponentName": "dev-chat-model",
        "EndpointConfigName": "config-2",
        "ModelName": "model-2",
        "Specification": json.dumps(SPECIFICATION),
        "CopyCount": "1",
        "MostCopies": "8",
        "StartSeconds": "1200",
        "InstanceSeconds": "900",
        "InstanceAccelerators": "1",
        "Alarms": "errors,latency",
        "Component": "policy-1",
        "Update": "candidate",
        "Replaces": "",
        "Alias": "/seatrial/dev/chat/alias",
        "PlanDigest": "b",
        "Request": json.dumps(template),
        "Mode": "rollback",
        "BudgetSeconds": "600",
        "FallbackTarget": "9.6",
    }


@pytest.fixture
def create(properties: dict[str, str]) -> CustomResourceEvent:
    return {
        "RequestType": "Create",
        "RequestId": "request-1",
        "StackId": "arn:aws:cloudformation:us-east-1:123456789012:stack/seatrial-dev-chat/1",
        "LogicalResourceId": "TrialResource",
        "ResponseURL": "https://cloudformation.example/answer?signature=x",
        "ResourceProperties": properties,
    }


@pytest.fixture
def update(create: CustomResourceEvent, properties: dict[str, str]) -> CustomResourceEvent:
    return {
        **create,
        "RequestType": "Update",
        "PhysicalResourceId": "smoke-benchmark-dev-chat",
        "OldResourceProperties": {**properties, "PlanDigest": "a"},
    }


@pytest.fixture
def unverified() -> dict[str, str]:
    return {
        "TargetConcurrencyPerCopy": "9.6",
        "KneeConcurrencyPerCopy": "unknown",
        "SloKneeConcurrencyPerCopy": "unknown",
        "SaturationKneeConcurrencyPerCopy": "unknown",
        "TargetKnee": "unknown",
        "OutputTokensPerSecond": "unknown",
        "TtftP50Ms": "unknown",
        "TtftP95Ms": "unknown",
        "TpotP95Ms": "unknown",
        "E2eP95Ms": "unknown",
        "UsdPerMillionOutputTokens": "unknown",
        "BlendedUsdPerMillionTokens": "unknown",
        "TrialUsd": "unknown",
        "Comparison": "unknown",
        "ReportUri": "unknown",
        "Verdict": "unknown",
        "Verified": "false",
        "ResultUri": "unknown",
    }


@pytest.fixture
def verified() -> dict[str, str]:
    return {
        "TargetConcurrencyPerCopy": "12.8",
        "KneeConcurrencyPerCopy": "16",
        "SloKneeConcurrencyPerCopy": "16",
        "SaturationKneeConcurrencyPerCopy": "unknown",
        "TargetKnee": "slo",
        "OutputTokensPerSecond": "410.5",
        "TtftP50Ms": "40",
        "TtftP95Ms": "812.25",
        "TpotP95Ms": "45.5",
        "E2eP95Ms": "45.5",
        "UsdPerMillionOutputTokens": "1.02517",
        "BlendedUsdPerMillionTokens": "0.26",
        "TrialUsd": "0.0256708",
        "Comparison": "none: first release",
        "Verdict": "pass",
        "Verified": "true",
    }
