"""What a drift check finds of a live endpoint that somebody changed by hand, and what it leaves alone."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from botocore.exceptions import ClientError

from seatrial.deployment.document import Deployment
from seatrial.engines.rendered import RenderedConfig
from seatrial.operations.drift.check import DriftClients, Locked, check_drift
from seatrial.operations.drift.day import with_day
from seatrial.operations.drift.report import DriftReport, EndpointDrift, drift_judgement, drift_lines, drift_markdown
from seatrial.operations.drift.trials import scheduled_key
from seatrial.specs.endpoint import EndpointSpec
from seatrial.specs.environment import EnvironmentSpec
from seatrial.specs.load import load_spec
from seatrial_base.findings import Finding, Place
from seatrial_cdk.trials.runtime.store import scheduled_latest_key
from seatrial_load.documents.result import Comparison, Verdict
from tests.constructs.conftest import passing_result
from tests.operations.test_preflight import Account, refused
from tests.operations.test_simulation import Account as CountedAccount
from tests.sample_plan import LMI_IMAGE, sample_plan

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seatrial_load.documents.result import TrialResult

ROOT = Path(__file__).parents[3]
NOW = datetime(2026, 11, 24, tzinfo=UTC)  # three days after the trial
ENDPOINT = EndpointSpec.model_validate(
    {
        "name": "chat",
        "model": {"hub_id": "meta-llama/Llama-2-7b-chat-hf"},
        "workload": {"input_tokens": 256, "output_tokens": 256, "concurrency": 16},
        "scaling": {"min_copies": 1, "max_copies": 2},
    }
)
PLACE = EnvironmentSpec.model_validate({"name": "dev", "region": "us-east-1", "account": "123456789012"})
SERVING = RenderedConfig(
    engine="lmi",
    engine_version="27",
    image=LMI_IMAGE,
    payload_schema="lmi",
    files={},
    container_env={"OPTION_DTYPE": "fp16"},
    secret_env={"HF_TOKEN": "hub-token"},
    weights_s3_uri=None,
    isolated=False,
)
DEPLOYMENT = Deployment(ENDPOINT, PLACE, sample_plan(), SERVING, "{}", has_local_nvme=True)
AT = "arn:aws:sagemaker:us-east-1:123456789012:"
DIGEST = DEPLOYMENT.serving.container_digest
OUTPUTS = {
    "PlanDigest": DEPLOYMENT.plan.digest,
    "EndpointConfigName": "config-2",
    "ModelName": "model-2",
    "ResultsBucket": "results",
    "TrialResultUri": "s3://results/passed/chat.json",
}


def day_of(**sums: list[float]) -> DriftReport:
    loaded = load_spec(ROOT / "endpoints/llama-2-7b-chat.yaml", "dev", environments=ROOT / "environments")
    account = CountedAccount("chat", **sums)
    clients = cast("Any", SimpleNamespace(alarms=account, endpoints=account))
    drift = EndpointDrift(endpoint="llama-2-7b-chat", stack_name="")
    return DriftReport(environment="dev", endpoints=(with_day(drift, loaded, clients, date(2026, 11, 20)),))


def test_a_live_day_is_compared_with_its_simulation() -> None:
    even = [12.0] * 1440
    report = day_of(Invocations=even, InvocationsPerCopy=even)
    assert (report.all_findings, report.endpoints[0].unreadable) == ((), ())
    assert "day 2026-11-20: copies equal in 100.0% of 1,440 minutes; refused 0.00%" in "\n".join(drift_lines(report))
    # Two copies from eight to half past nine, an hour without any, and then minutes without requests.
    counted = [0.0 if 600 <= at < 660 or 700 <= at < 800 else 12.0 for at in range(1440)]
    per_copy = [came / 2 if 480 <= at < 570 else came for at, came in enumerate(counted)]
    failed = [12.0 * (600 <= at < 660) for at in range(1440)]
    report = day_of(Invocations=counted, InvocationsPerCopy=per_copy, NoCapacityInvocationFailures=failed)
    copies, refusals = report.all_findings
    assert (copies.rule, copies.severity, refusals.rule) == ("SEA569", "warning", "SEA570")
    hours = (
        "08:00 UTC (live 2.0, simulated 1.0), 10:00 UTC (live 0.0, simulated 1.0), 09:00 UTC (live 1.5, simulated 1.0)"
    )
    assert f"equal to the simulation's in 88.8% of the minutes; most apart at {hours}" in copies.message
    assert refusals.message == "4.48%, expected 0.00% as simulated"
    unread = day_of(Invocations=[9.0]).endpoints[0]
    assert (unread.findings, unread.unreadable) == ((), ("day 2026-11-20: CloudWatch has no InvocationsPerCopy of it",))


@dataclass
class Live:
    """SageMaker, CloudFormation and S3 with the endpoint as it was deployed; tests change what they hold."""

    status: str = "UPDATE_COMPLETE"
    outputs: dict[str, str] = field(default_factory=lambda: dict(OUTPUTS))
    endpoints: dict[str, str] = field(default_factory=lambda: {"dev-chat": "dev"})
    instance_type: str = "ml.g5.2xlarge"
    config: str = field(default_factory=lambda: DEPLOYMENT.serving.container_digest)
    copies: int = 1
    endpoint_status: str = "InService"
    cores: float = 6.5
    least: int = 1
    documents: dict[str, str] = field(default_factory=lambda: {"passed/chat.json": passing_result().to_json()})
    error: Exception | None = None
    exceptions: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(ClientError=ClientError))

    def describe_stacks(self, *, StackName: str) -> Mapping[str, object]:  # noqa: N803
        if not self.status:
            told = {"Error": {"Code": "ValidationError", "Message": f"Stack with id {StackName} does not exist"}}
            raise ClientError(cast("Any", told), "DescribeStacks")
        outputs = [{"OutputKey": key, "OutputValue": value} for key, value in self.outputs.items()]
        return {"Stacks": [{"StackStatus": self.status, "Outputs": outputs}]}

    def describe_endpoint(self, *, EndpointName: str) -> Mapping[str, object]:  # noqa: N803
        if self.error is not None:
            raise self.error
        assert EndpointName == "dev-chat"
        return {
            "EndpointConfigName": "config-2",
            "EndpointStatus": self.endpoint_status,
            "EndpointArn": f"{AT}endpoint/dev-chat",
        }

    def describe_endpoint_config(self, *, EndpointConfigName: str) -> Mapping[str, object]:  # noqa: N803
        assert EndpointConfigName == "config-2"
        scaling = {"MinInstanceCount": self.least, "MaxInstanceCount": 3}
        return {"ProductionVariants": [{"InstanceType": self.instance_type, "ManagedInstanceScaling": scaling}]}

    def describe_inference_component(self, *, InferenceComponentName: str) -> Mapping[str, object]:  # noqa: N803
        assert InferenceComponentName == "dev-chat-model"
        needs = {
            "NumberOfAcceleratorDevicesRequired": 1.0,
            "NumberOfCpuCoresRequired": self.cores,
            "MinMemoryRequiredInMb": 16384,
        }
        startup = {"ContainerStartupHealthCheckTimeoutInSeconds": 900, "ModelDataDownloadTimeoutInSeconds": 600}
        specification = {"ModelName": "model-2", "ComputeResourceRequirements": needs, "StartupParameters": startup}
        return {
            "InferenceComponentStatus": "InService",
            "Specification": specification,
            "RuntimeConfig": {"CurrentCopyCount": self.copies},
        }

    def list_endpoints(self, **asked: str) -> Mapping[str, object]:
        """Return one endpoint a page."""
        number, names = int(asked.get("NextToken", "0")), [*self.endpoints]
        page = [{"EndpointName": name, "EndpointArn": f"arn:{name}"} for name in names[number : number + 1]]
        return {"Endpoints": page, **({"NextToken": f"{number + 1}"} if number + 1 < len(names) else {})}

    def list_tags(self, **asked: str) -> Mapping[str, object]:
        if asked["ResourceArn"] == f"{AT}model/model-2":
            return {"Tags": [{"Key": "seatrial:config", "Value": self.config}] if self.config else []}
        value = self.endpoints[asked["ResourceArn"][4:]]
        key = "seatrial:product" if value == "chat-small" else "seatrial:environment"
        return {"Tags": [{"Key": key, "Value": value}]}

    def get_object(self, *, Bucket: str, Key: str) -> Mapping[str, object]:  # noqa: N803
        assert Bucket == "results"
        if Key not in self.documents:
            raise refused("NoSuchKey", "GetObject")
        return {"Body": io.BytesIO(self.documents[Key].encode())}

    def clients(self, account: Account | None = None) -> DriftClients:
        mine = cast("Any", self)
        return DriftClients(stacks=mine, endpoints=mine, results=mine, account=(account or Account()).clients())


def locked(deployment: Deployment = DEPLOYMENT, **changes: object) -> Locked:
    usual = Locked(environment=deployment.environment, deployments=(deployment,), names=("chat",))
    return replace(usual, **changes)  # type: ignore[arg-type]  # the fields of the dataclass


def checked(live: Live, given: Locked | None = None, account: Account | None = None) -> DriftReport:
    return check_drift(given or locked(), live.clients(account), now=NOW, most_days=14)


def told(findings: tuple[Finding, ...]) -> list[tuple[str, str, str, str]]:
    return [(each.rule, each.severity, each.field, each.message) for each in findings]


def test_the_end_of_reserved_capacity_is_told() -> None:
    arn = "arn:aws:sagemaker:us-east-1:123456789012:training-plan/may"
    hosting = {"capacity_reservation_arn": arn, "capacity_reservation_ends_at": "2026-11-26T11:30:00Z"}
    spec = ENDPOINT.model_copy(update={"hosting": ENDPOINT.hosting.model_copy(update=hosting)})
    plan = {"EndTime": datetime(2026, 11, 26, 11, 30, tzinfo=UTC), "TotalInstanceCount": 9}
    report = checked(Live(), locked(replace(DEPLOYMENT, endpoint=spec)), Account(plan=plan))
    assert [(each.rule, each.severity) for each in report.findings] == [("SEA630", "warning")]


def test_an_endpoint_that_somebody_deleted_is_an_error() -> None:
    report = checked(Live(error=refused("ValidationException", message="Could not find endpoint dev-chat")))
    (finding,) = report.endpoints[0].findings
    assert (finding.rule, finding.severity) == ("SEA432", "error")
    assert report.endpoints[0].unreadable == ()


def test_what_runs_as_it_is_locked_has_no_finding() -> None:
    report = checked(Live())
    assert (len(report.all_findings), report.unreadable, report.endpoints[0].unreadable) == (0, (), ())
    assert report.endpoints[0].trial == "pass, 2026-11-21 (3 days ago)"


def test_a_container_is_told_apart_without_a_look_at_its_variables() -> None:
    serving = DEPLOYMENT.serving
    changes: tuple[dict[str, object], ...] = (
        {"image": "other"},
        {"container_env": {"OPTION_DTYPE": "bf16"}},
        {"secret_env": {}},
        {"files": {"serving.properties": "a=b"}},
    )
    for changed in changes:
        assert serving.model_copy(update=changed).container_digest != DIGEST
    assert not hasattr(Live(), "describe_model")


def test_what_was_changed_by_hand_is_told_field_by_field() -> None:
    live = Live(
        instance_type="ml.g5.12xlarge",
        copies=5,
        cores=2.0,
        config="0123456789abcdef",
    )
    assert told(checked(live).endpoints[0].findings) == [
        ("SEA432", "warning", "instance type", "ml.g5.12xlarge, expected ml.g5.2xlarge"),
        ("SEA432", "warning", "CPU cores per copy", "2, expected 6.5"),
        ("SEA432", "warning", "container configuration", f"0123456789abcdef, expected {DIGEST}"),
        ("SEA432", "warning", "copies", "5, expected 1 to 2"),
    ]


@dataclass
class Single(Live):
    """An endpoint whose variants have their models; the second one runs another image."""

    instances: int = 1

    def describe_endpoint(self, *, EndpointName: str) -> Mapping[str, object]:  # noqa: N803
        variants = [{"VariantName": "new", "CurrentInstanceCount": 9}]
        variants += [{"VariantName": "old", "CurrentInstanceCount": self.instances}]
        return {**super().describe_endpoint(EndpointName=EndpointName), "ProductionVariants": variants}

    def describe_endpoint_config(self, *, EndpointConfigName: str) -> Mapping[str, object]:  # noqa: N803
        assert EndpointConfigName == "config-2"
        old = {"VariantName": "old", "InstanceType": self.instance_type, "ModelName": "model-2"}
        return {"ProductionVariants": [{"VariantName": "new", "ModelName": "model-3"}, old]}

    def describe_inference_component(self, *, InferenceComponentName: str) -> Mapping[str, object]:  # noqa: N803
        raise AssertionError(InferenceComponentName)


def of(**fields: object) -> Locked:
    endpoint = EndpointSpec.model_validate({**ENDPOINT.model_dump(exclude_unset=True), **fields})
    return locked(replace(DEPLOYMENT, endpoint=endpoint))


SPLIT = {
    "hosting": {
        "kind": "single_model",
        "variants": [{"name": "new", "image": "123456789012.dkr.ecr.us-east-1.amazonaws.com/a:1"}, {"name": "old"}],
    },
    "trial": {"mode": "off"},
}


@pytest.mark.parametrize(
    ("live", "expected"),
    [
        (Single(), []),
        (Single(instances=2), []),
        (Single(instances=0), [("SEA432", "error", "instances", "0, expected 1 to 2")]),
        (Single(config=""), [("SEA432", "warning", "container configuration", f"absent, expected {DIGEST}")]),
        (
            Single(instance_type="ml.m5.large"),
            [("SEA432", "warning", "instance type", "ml.m5.large, expected ml.g5.2xlarge")],
        ),
    ],
)
def test_of_several_variants_the_planned_one_is_compared(live: Single, expected: list[object]) -> None:
    assert told(checked(live, of(**SPLIT)).endpoints[0].findings) == expected


def test_an_endpoint_that_may_go_to_zero_has_no_least_instances() -> None:
    given = of(scaling={"min_copies": 0, "max_copies": 2})
    assert told(checked(Live(copies=0), given).endpoints[0].findings) == [
        ("SEA432", "warning", "least instances", "1, expected 0")
    ]
    assert told(checked(Live(copies=0, least=0), given).endpoints[0].findings) == []


def test_an_endpoint_that_does_not_serve_is_severe() -> None:
    found = told(checked(Live(endpoint_status="Failed", copies=0)).endpoints[0].findings)
    assert found == [
        ("SEA432", "error", "endpoint status", "Failed, expected InService"),
        ("SEA432", "error", "copies", "0, expected 1 to 2"),
    ]


def test_a_missing_stack_is_a_finding() -> None:
    findings = told(checked(Live(status="")).endpoints[0].findings)
    assert findings == [("SEA430", "error", "stack", "none, expected deployed")]


@pytest.mark.parametrize(
    ("status", "plan", "severity"),
    [
        ("UPDATE_ROLLBACK_COMPLETE", "other", "warning"),
        ("UPDATE_ROLLBACK_COMPLETE", DEPLOYMENT.plan.digest, "note"),  # a deployment without changes leaves it so
        ("UPDATE_ROLLBACK_FAILED", DEPLOYMENT.plan.digest, "error"),
    ],
)
def test_a_stack_that_went_back_is_a_finding(status: str, plan: str, severity: str) -> None:
    (found, *_) = checked(Live(status=status, outputs={**OUTPUTS, "PlanDigest": plan})).endpoints[0].findings
    assert (found.rule, found.severity, found.message) == (
        "SEA430",
        severity,
        f"{status}, expected CREATE_COMPLETE or UPDATE_COMPLETE",
    )


def test_another_plan_is_told_once_and_not_field_by_field() -> None:
    live = Live(outputs={**OUTPUTS, "PlanDigest": "other"}, instance_type="ml.g5.12xlarge")
    (drift,) = checked(live).endpoints
    assert told(drift.findings) == [("SEA431", "warning", "plan digest", f"other, expected {DEPLOYMENT.plan.digest}")]
    assert drift.unreadable == ("live endpoint, field by field: another plan is deployed",)


def test_an_update_that_runs_is_no_finding() -> None:
    report = checked(Live(status="UPDATE_IN_PROGRESS", outputs={**OUTPUTS, "PlanDigest": "other"}))
    assert (len(report.all_findings), report.endpoints[0].unreadable) == (
        0,
        ("live endpoint, field by field: the stack is being updated",),
    )


def test_what_could_not_be_asked_is_told_and_is_no_finding() -> None:
    live = Live(error=refused("AccessDeniedException", "DescribeEndpoint"))
    report = checked(live, account=Account(errors={"quotas": refused("AccessDeniedException")}))
    assert len(report.all_findings) == 0
    assert report.endpoints[0].unreadable[0].startswith("live endpoint: ")
    assert report.unreadable[0].startswith("quota ml.g5.2xlarge")


def test_endpoints_without_a_spec_are_found_by_prefix_and_tag() -> None:
    names = {"dev-chat": "dev", "dev-old": "dev", "dev-chat-2": "dev", "dev-mine": "", "x": ""}
    names["dev-vended"] = "chat-small"
    assert [(each.message, each.severity, each.field) for each in checked(Live(endpoints=names)).findings] == [
        ("dev-chat-2", "warning", "endpoint of another generation than the locked one"),
        ("dev-mine", "note", "endpoint with this environment's prefix, without its tag"),
        ("dev-old", "warning", "endpoint without a spec"),
    ]


def test_a_small_quota_is_a_finding_of_the_environment() -> None:
    (found,) = checked(Live(), account=Account(set_quotas={"ml.g5.2xlarge for endpoint usage": 1})).findings
    assert (found.rule, found.severity) == ("SEA460", "error")


def test_an_outdated_image_is_a_finding() -> None:
    image = DEPLOYMENT.plan.image.value.model_copy(update={"tag": "0.32.0-lmi14.0.0-cu126"})
    plan = sample_plan(image=DEPLOYMENT.plan.image.model_copy(update={"value": image}))
    live = Live(outputs={**OUTPUTS, "PlanDigest": plan.digest})
    found = checked(live, locked(replace(DEPLOYMENT, plan=plan))).endpoints[0].findings
    assert [(each.rule, each.field) for each in found][:1] == [("SEA434", "image version")]


SCHEDULED = replace(DEPLOYMENT, environment=PLACE.model_copy(update={"trial_schedule": "rate(7 days)"}))


def with_scheduled(result: TrialResult | None, error: str = "") -> Live:
    live = Live()
    text = json.dumps({"error": error}) if result is None else result.to_json()
    live.documents[scheduled_key("dev-chat")] = text
    return live


def test_the_key_of_scheduled_trials_is_the_services() -> None:
    assert scheduled_key("dev-chat") == scheduled_latest_key("dev-chat")


def test_a_schedule_without_a_trial_yet_is_told() -> None:
    (found,) = checked(Live(), locked(SCHEDULED)).endpoints[0].findings
    assert (found.rule, found.severity, found.message) == ("SEA435", "note", "none yet")


def test_a_failed_regressed_or_old_scheduled_trial_is_a_finding() -> None:
    slow = Verdict(status="fail", because="too slow", checks=())
    worse = Comparison(status="worse", because="ttft_ms rose")
    bad = replace(passing_result(), verdict=slow, comparison=worse, started_at="2026-10-01T00:00:00+00:00")
    (drift,) = checked(with_scheduled(bad), locked(SCHEDULED)).endpoints
    assert told(drift.findings) == [
        ("SEA435", "error", "scheduled trial", "fail: too slow, expected pass"),
        ("SEA435", "warning", "scheduled trial against the one before", "ttft_ms rose, expected no regression"),
        ("SEA435", "warning", "age of the scheduled trial", "54 days, expected at most 14 days"),
    ]
    assert drift.scheduled_trial == "fail, 2026-10-01 (54 days ago)"


def test_a_scheduled_trial_that_could_not_be_made_is_a_finding() -> None:
    found = checked(with_scheduled(None, "no room"), locked(SCHEDULED)).endpoints[0].findings
    assert [(each.field, each.message) for each in found] == [("scheduled trial", "error: no room, expected pass")]


def test_a_lock_that_can_not_be_read_is_a_finding() -> None:
    problem = Finding("SEA402", Place("chat.lock.json", field="dev"), "the spec changed", "plan again")
    (drift,) = checked(Live(), locked(deployments=(), unreadable={"chat": (problem,)})).endpoints
    assert told(drift.findings) == [("SEA402", "warning", "lock", "the spec changed")]


def test_the_views_say_the_same_the_severest_first() -> None:
    live = Live(copies=0, config="a|b @team", endpoints={"dev-chat": "dev", "dev-old": "dev"})
    report = checked(live)
    lines = list(drift_lines(report))
    assert lines[0] == "Drift in dev: 3 findings"
    assert lines[3].startswith("  copies: SEA432: error: 0, expected 1 to 2")
    text = drift_markdown(report)
    assert text.startswith("# Drift in dev: 3 findings\n\n## chat\n\nUPDATE_COMPLETE; plan ")
    assert "a\\|b @\N{WORD JOINER}team" in text
    assert drift_markdown(checked(live)) == text
    judgement = drift_judgement(report)
    assert [finding.place.resource for finding in judgement.findings] == ["chat", "chat", ""]
    assert judgement.facts["environment"] == "dev"
