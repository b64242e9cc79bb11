"""Pools, reservation, routing, data cache and placement, as YAML asks for them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from aws_cdk import App
from aws_cdk.assertions import Annotations, Match, Template

from seatrial.specs.environment import EMBEDDED_ACCOUNT
from seatrial.specs.hosting import HostingSpec
from seatrial_cdk.endpoint.planned_endpoint import planned_instances
from seatrial_stacks.endpoint_stack import EndpointStack
from tests.sample_plan import decided, sample_plan
from tests.stacks.conftest import dev

if TYPE_CHECKING:
    from seatrial.deployment.document import Deployment

RESERVATION = "arn:aws:sagemaker:us-east-1:111122223333:training-plan/may"
HOSTING: dict[str, object] = {
    "instance_pools": ["ml.g5.2xlarge", "ml.g6.2xlarge"],
    "provision_timeout_s": 600,
    "routing": {"strategy": "prefix_aware", "prefix_length": 2048, "concurrency_threshold": 8},
    "data_cache": True,
    "placement": {"strategy": "binpack", "max_imbalance": 2},
}


def hosted(fields: dict[str, object]) -> Deployment:
    base = dev()
    hosting = HostingSpec.model_validate(fields)
    return replace(base, endpoint=base.endpoint.model_copy(update={"hosting": hosting}))


@pytest.fixture(scope="module")
def template() -> Template:
    return Template.from_stack(EndpointStack(App(), "Pools", deployment=hosted(HOSTING)))


def test_pools_stand_in_place_of_the_instance_type(template: Template) -> None:
    variant = {
        "InstanceType": Match.absent(),
        "InstancePools": [
            {"InstanceType": "ml.g5.2xlarge", "Priority": 1},
            {"InstanceType": "ml.g6.2xlarge", "Priority": 2},
        ],
        "VariantInstanceProvisionTimeoutInSeconds": 600,
        "RoutingConfig": {
            "RoutingStrategy": "PREFIX_AWARE",
            "PrefixAwareRoutingConfig": {"PrefixLength": 2048, "ConcurrencyThreshold": 8},
        },
    }
    expected = {"ProductionVariants": [Match.object_like(variant)]}
    template.has_resource_properties("AWS::SageMaker::EndpointConfig", expected)


@pytest.mark.parametrize("kind", ["inference_component", "single_model"])
def test_containers_are_debugged_as_the_spec_says_and_else_not(kind: str) -> None:
    for debugged in ({}, {"ssm_access": True, "core_dump_s3_uri": "s3://dumps/chat/"}):
        base = hosted({"kind": kind, **debugged})
        plan = base.plan.model_copy(update={"hosting_kind": decided(kind)})
        template = Template.from_stack(EndpointStack(App(), "Debugged", deployment=replace(base, plan=plan)))
        text = json.dumps(template.to_json())
        (config,) = template.find_resources("AWS::SageMaker::EndpointConfig").values()
        (variant,) = config["Properties"]["ProductionVariants"]
        dumps = {"DestinationS3Uri": "s3://dumps/chat/"} if debugged else None
        assert (variant.get("EnableSSMAccess"), variant.get("CoreDumpConfig")) == (True if debugged else None, dumps)
        roles = 2 if kind == "inference_component" else 1
        for action in ("ssmmessages:OpenDataChannel", "s3:PutObject"):
            assert text.count(action) == (roles if debugged else 0)
        assert text.count(":s3:::dumps/chat/*") == (roles if debugged else 0)


def test_a_component_has_one_size_for_every_pool_and_its_cache_and_placement(template: Template) -> None:
    specification = {
        "DataCacheConfig": {"EnableCaching": True},
        "SchedulingConfig": {
            "PlacementStrategy": "BINPACK",
            "AvailabilityZoneBalance": {"EnforcementMode": "PERMISSIVE", "MaxImbalance": 2},
        },
    }
    template.has_resource_properties(
        "AWS::SageMaker::InferenceComponent",
        {"Specification": Match.object_like(specification), "Specifications": Match.absent()},
    )


@pytest.mark.parametrize("kind", ["inference_component", "single_model"])
def test_metrics_are_published_as_the_spec_says(kind: str) -> None:
    metrics = {"detailed": False, "enhanced": True, "frequency_s": 10}
    base = hosted({"kind": kind, "metrics": metrics})
    plan = base.plan if kind == "inference_component" else base.plan.model_copy(update={"hosting_kind": decided(kind)})
    template = Template.from_stack(EndpointStack(App(), "Metrics", deployment=replace(base, plan=plan)))
    template.has_resource_properties(
        "AWS::SageMaker::EndpointConfig",
        {
            "MetricsConfig": {
                "EnableDetailedObservability": False,
                "EnableEnhancedMetrics": True,
                "MetricPublishFrequencyInSeconds": 10,
            }
        },
    )


@pytest.mark.parametrize("kind", ["inference_component", "single_model"])
def test_detailed_metrics_have_alarms_on_the_kv_cache_the_queue_and_first_tokens(kind: str) -> None:
    base = hosted({"kind": kind, "metrics": {"detailed": True}})
    plan = base.plan if kind == "inference_component" else base.plan.model_copy(update={"hosting_kind": decided(kind)})
    template = Template.from_stack(EndpointStack(App(), "Metrics", deployment=replace(base, plan=plan)))
    labels = {
        "inference_component": '"aws.sagemaker.inference_component.name"="dev-chat-model"',
        "single_model": '"aws.sagemaker.endpoint.name"="dev-chat","aws.sagemaker.variant.name"="AllTraffic"',
    }[kind]
    caches = ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "sglang:token_usage")
    queues = ("vllm:num_requests_waiting", "sglang:num_queue_reqs")
    queries = (
        " or ".join(f'{{"{name}",{labels}}} >= 0.95' for name in caches),
        " or ".join(f'sum({{"{name}",{labels}}}) >= 1' for name in queues),
        # Seconds: the SLO of the spec is 2,000 ms.
        "("
        + " or ".join(
            f'histogram_quantile(0.95, sum(rate({{"{engine}:time_to_first_token_seconds",{labels}}}[{window}s])))'
            for engine in ("vllm", "sglang")
            for window in (300, 1200)
        )
        + ") >= 2",
    )
    for query in queries:
        criteria = {"Query": query, "PendingPeriod": 300, "RecoveryPeriod": 300}
        template.has_resource_properties(
            "AWS::CloudWatch::Alarm",
            {
                "EvaluationCriteria": {"PromQLCriteria": criteria},
                "EvaluationInterval": 60,
                "MetricName": Match.absent(),
            },
        )


def test_synthesis_says_where_no_alarm_watches_first_tokens() -> None:
    for fields, count in (({}, 1), ({"metrics": {"detailed": True}}, 0)):
        stack = EndpointStack(App(), "Metrics", deployment=hosted({**fields}))
        told = Annotations.from_stack(stack).find_info("*", Match.string_like_regexp("^SEA141: .*hosting.metrics"))
        assert len(told) == count


def test_the_dashboard_shows_the_states_of_the_engines_alarms() -> None:
    base = hosted({"metrics": {"detailed": True}})
    seen = base.environment.observability.model_copy(update={"dashboards": "endpoint"})
    environment = base.environment.model_copy(update={"observability": seen})
    template = Template.from_stack(
        EndpointStack(App(), "Metrics", deployment=replace(base, environment=environment))
    ).to_json()
    (dashboard,) = (each for each in template["Resources"].values() if each["Type"] == "AWS::CloudWatch::Dashboard")
    parts = dashboard["Properties"]["DashboardBody"]["Fn::Join"][1]
    assert any('"type":"alarm"' in part for part in parts if isinstance(part, str))
    named = [part["Fn::GetAtt"] for part in parts if isinstance(part, dict) and "Fn::GetAtt" in part]
    watched = [name for name, attribute in named if attribute == "Arn"]
    criteria = [template["Resources"][each]["Properties"].get("EvaluationCriteria") for each in watched]
    assert [bool(each) for each in criteria] == [True, True, True]


@pytest.mark.parametrize("account", ["123456789012", EMBEDDED_ACCOUNT])
def test_an_alarm_is_raised_before_reserved_capacity_ends(account: str) -> None:
    ending = {"capacity_reservation_arn": RESERVATION, "capacity_reservation_ends_at": "2027-01-31T11:30:00Z"}
    base = hosted(ending | {"capacity_reservation_notice_days": 9})
    place = base.environment.model_copy(update={"account": account})
    template = Template.from_stack(EndpointStack(App(), "Reserved", deployment=replace(base, environment=place)))
    alarms = template.find_resources("AWS::CloudWatch::Alarm", {"Properties": {"Metrics": Match.any_value()}})
    # The embedded AWS has no metric math in alarms.
    assert len(alarms) == (account != EMBEDDED_ACCOUNT)
    for alarm in (each["Properties"] for each in alarms.values()):
        watched, days = alarm["Metrics"]
        assert days["Expression"] == "(1801395000 - EPOCH(requests)) / 86400"
        assert (watched["Id"], watched["ReturnData"], days["ReturnData"]) == ("requests", False, True)
        assert (alarm["Threshold"], alarm["ComparisonOperator"]) == (9, "LessThanOrEqualToThreshold")
        assert alarm["AlarmActions"]
        assert "2027-01-31 11:30 UTC" in alarm["AlarmDescription"]


@pytest.mark.parametrize(("engine", "fields"), [("lmi", {}), ("tgi", {"metrics": {"detailed": True}})])
def test_what_the_spec_leaves_open_is_sagemakers_and_tgi_publishes_nothing(
    engine: str, fields: dict[str, object]
) -> None:
    base = hosted(fields)
    plan = base.plan.model_copy(update={"engine": decided(engine)})
    template = Template.from_stack(EndpointStack(App(), "Metrics", deployment=replace(base, plan=plan)))
    config = Match.any_value() if fields else Match.absent()
    template.has_resource_properties("AWS::SageMaker::EndpointConfig", {"MetricsConfig": config})
    assert not template.find_resources(
        "AWS::CloudWatch::Alarm", {"Properties": {"EvaluationCriteria": Match.any_value()}}
    )


@pytest.mark.parametrize(
    ("own", "guest", "newest"),
    [
        ("gpu-3-1", "gpu-4-1", "gpu-4-1"),
        ("gpu-4-1", "gpu-3-1", "gpu-4-1"),
        (None, "gpu-4-1", "gpu-4-1"),
        (None, None, None),
    ],
)
def test_instances_have_the_newest_ami_of_their_models(own: str | None, guest: str | None, newest: str | None) -> None:
    known = {"gpu-3-1": "al2-ami-sagemaker-inference-gpu-3-1", "gpu-4-1": "al2023-ami-sagemaker-inference-gpu-4-1"}
    plan, other = (sample_plan(inference_ami_version=decided(known.get(each or ""))) for each in (own, guest))
    assert planned_instances(plan, guests=[other]).inference_ami_version == known.get(newest or "")


def test_a_reservation_alone_is_used() -> None:
    hosting = HostingSpec(capacity_reservation_arn=RESERVATION)
    instances = planned_instances(sample_plan(), hosting)
    assert instances.capacity_reservation_arn == RESERVATION
    assert instances.pools == ()


def test_a_pool_with_local_nvme_takes_no_volume() -> None:
    plan = sample_plan(instance_type=decided("ml.inf2.xlarge"), volume_size_gb=decided(100))
    hosting = HostingSpec(instance_pools=("ml.inf2.xlarge", "ml.g5.2xlarge"))
    assert planned_instances(plan, volume_key_arn="arn").volume_size_gb == 100
    mixed = planned_instances(plan, hosting, volume_key_arn="arn")
    assert (mixed.volume_size_gb, mixed.volume_key_arn) == (None, None)
