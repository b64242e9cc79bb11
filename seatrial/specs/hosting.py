"""Hosting of an endpoint by SageMaker: its kind, instances, routing, and what runs next to the model."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, StringConstraints

from seatrial.specs import shapes
from seatrial.specs.relations import excludes, is_mapping, is_other, is_set, is_value, needs
from seatrial_base.catalog.instances import INSTANCES
from seatrial_base.frozen_model import FrozenModel, left_out_or_mapping, model_field

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial.specs.relations import Fields, Rule
    from seatrial.specs.yaml_source import FieldPath, Yaml
    from seatrial_base.findings import Finding

EndpointName = Annotated[str, StringConstraints(pattern=shapes.ENDPOINT_NAME, max_length=40)]
InstanceType = Annotated[str, StringConstraints(pattern=shapes.INSTANCE_TYPE)]
ImageUri = Annotated[str, StringConstraints(pattern=shapes.IMAGE_URI)]
TopicArn = Annotated[str, StringConstraints(pattern=shapes.SNS_TOPIC_ARN)]
ReservationArn = Annotated[str, StringConstraints(pattern=shapes.RESERVATION_ARN, max_length=258)]
UtcTime = Annotated[str, StringConstraints(pattern=shapes.UTC_TIME)]
OutputUri = Annotated[str, StringConstraints(pattern=shapes.S3_PREFIX, max_length=512)]
AdapterUri = Annotated[str, StringConstraints(pattern=shapes.ARCHIVE_URI, max_length=1024)]
PartName = Annotated[str, StringConstraints(pattern=shapes.ENDPOINT_NAME, max_length=20)]
Weight = Annotated[float, Field(ge=0, le=1_000_000)]
Percentage = Annotated[int, Field(ge=1, le=100)]
Instances = Annotated[int, Field(ge=1, le=1000)]  # a bound against slips of the hand, not one of the service

# API reference: ProductionVariant, PrefixAwareRoutingConfig, InferenceComponentAvailabilityZoneBalance.
MOST_POOLS = 5
SHORTEST_PREFIX, LONGEST_PREFIX = 1024, 65_536
MOST_BEFORE_REROUTE = 1024
MOST_MODELS = 50
MOST_ADAPTERS = 200
MOST_VARIANTS = 10
SHORTEST_PROVISION_S, LONGEST_PROVISION_S = 300, 3600
LONGEST_NOTICE_DAYS = 182  # a bound against slips of the hand, not one of the service


class RoutingSpec(FrozenModel):
    """How the endpoint chooses the instance, or the copy, that takes a request."""

    strategy: Literal["least_outstanding_requests", "random", "prefix_aware"] = Field(
        "least_outstanding_requests",
        description="By load, at random, or to where requests with the same beginning went before.",
    )
    prefix_length: Annotated[int, Field(ge=SHORTEST_PREFIX, le=LONGEST_PREFIX)] | None = Field(
        None, description="Bytes at the beginning of a request that are compared; for `prefix_aware` only."
    )
    concurrency_threshold: Annotated[int, Field(ge=1, le=MOST_BEFORE_REROUTE)] | None = Field(
        None,
        description="Requests in flight on an instance from which the next goes to another; for `prefix_aware` only.",
    )


class PlacementSpec(FrozenModel):
    """How the copies of a component are placed on instances."""

    strategy: Literal["spread", "binpack"] = Field(
        "spread", description="`spread` uses every instance; `binpack` puts as many copies on an instance as fit."
    )
    max_imbalance: Annotated[int, Field(ge=0, le=100)] | None = Field(
        None, description="Most copies that one availability zone may have more than another. Default: not balanced."
    )


class AsynchronousSpec(FrozenModel):
    """Asynchronous inference: requests wait in a queue, and answers are written to S3."""

    output_s3_uri: OutputUri = Field(description="S3 prefix of the answers, with its final slash.")
    failure_s3_uri: OutputUri | None = Field(None, description="S3 prefix of failed requests. Default: not kept.")
    success_topic_arn: TopicArn | None = Field(None, description="SNS topic that is notified of each response.")
    error_topic_arn: TopicArn | None = Field(None, description="SNS topic that is notified of each failed request.")
    max_concurrent_invocations_per_instance: Annotated[int, Field(ge=1, le=1000)] | None = Field(
        None, description="Most requests that an instance is sent at a time. Default: the service's choice."
    )


class DataCaptureSpec(FrozenModel):
    """Requests and answers that SageMaker writes to S3."""

    s3_uri: OutputUri = Field(description="S3 prefix of what is captured, with its final slash.")
    sampling_percentage: Percentage = Field(100, description="Share of the requests, in percent.")
    capture: Annotated[tuple[Literal["input", "output"], ...], Field(min_length=1, max_length=2)] = Field(
        ("input", "output"), description="What is captured of a request."
    )


class VariantSpec(FrozenModel):
    """A production variant of a single-model endpoint; the one without `spec` and `image` is the endpoint's own."""

    name: PartName = Field(description="Name of the variant.")
    spec: EndpointName | None = Field(
        None, description="Another spec of the same folder, whose locked plan says what the variant runs."
    )
    image: ImageUri | None = Field(None, description="Another image for the endpoint's own model and environment.")
    weight: Weight = Field(1, description="Share of the traffic, relative to the other variants.")
    instance_count: Instances | None = Field(None, description="Instances at the start. Default: as planned.")


class ShadowSpec(FrozenModel):
    """A shadow variant: it gets copies of requests, and its answers are not returned."""

    name: PartName = Field("shadow", description="Name of the variant.")
    spec: EndpointName | None = Field(
        None, description="Another spec of the same folder, whose locked plan says what the variant runs."
    )
    image: ImageUri | None = Field(None, description="Another image for the endpoint's own model and environment.")
    sampling_percentage: Percentage = Field(100, description="Share of the requests that are copied, in percent.")
    instance_count: Instances | None = Field(None, description="Instances at the start. Default: as planned.")


class TrafficShare(FrozenModel):
    """A share of the requests of an endpoint's alias."""

    spec: EndpointName = Field(description="The endpoint's own name, or one of `more_models`.")
    weight: Weight = Field(description="Share of the traffic, relative to the others; 0 gets none.")


class AdapterSpec(FrozenModel):
    """A LoRA adapter that is an inference component of its own, on the copies of the model."""

    name: PartName = Field(description="Name of the adapter; its component is ENDPOINT-adapter-NAME.")
    s3_uri: AdapterUri = Field(description="S3 URI of the adapter's files as a `.tar.gz`.")


class MetricsSpec(FrozenModel):
    """Metrics that SageMaker publishes of the endpoint, beside those of every endpoint."""

    detailed: bool | None = Field(
        None,
        description="Metrics of containers (`/metrics` of the engine: queue, KV cache), GPUs, hosts and placement, in "
        "CloudWatch's OpenTelemetry metrics. Default: SageMaker's, on for new configurations. CloudWatch bills "
        "what is published.",
    )
    enhanced: bool | None = Field(
        None,
        description="Invocations and utilization of each instance and copy. Default: SageMaker's, which is off. "
        "CloudWatch bills a metric for each.",
    )
    frequency_s: Literal[10, 30, 60, 120, 180, 240, 300] | None = Field(
        None,
        description="How often they are published, in seconds. Default: SageMaker's, 60; less is more to pay.",
    )


class HostingSpec(FrozenModel):
    """How SageMaker hosts the endpoint."""

    kind: Literal["inference_component", "single_model"] = model_field(
        "inference_component",
        "`inference_component`: models are components that share the endpoint's instances. "
        "`single_model`: the model is in the production variant.",
        since="0.2",
    )
    more_models: Annotated[tuple[EndpointName, ...], Field(max_length=MOST_MODELS)] = model_field(
        (), "Names of other specs in the same folder whose models share this endpoint's instances.", planned=False
    )
    traffic: Annotated[tuple[TrafficShare, ...], Field(min_length=2, max_length=MOST_MODELS)] | None = model_field(
        None, "Weights by which the alias splits requests over this model and some of `more_models`.", planned=False
    )
    router: bool = model_field(
        default=False,
        description="Add a function with a URL that splits requests as `traffic` says, for any client.",
        planned=False,
    )
    instance_pools: Annotated[tuple[InstanceType, ...], Field(min_length=2, max_length=MOST_POOLS)] | None = (
        model_field(
            None,
            "Instance types in order of priority: the next one is used where there is no capacity. The plan "
            "is made for the first one.",
            since="0.2",
        )
    )
    provision_timeout_s: Annotated[int, Field(ge=SHORTEST_PROVISION_S, le=LONGEST_PROVISION_S)] | None = model_field(
        None, "Time to find capacity in all pools, in seconds; for `instance_pools` only.", planned=False
    )
    capacity_reservation_arn: ReservationArn | None = model_field(
        None,
        "ARN of reserved capacity (a training plan for endpoints). Only it is used: without free capacity no instance "
        "starts, and when it ends the endpoint serves no more. It is of one instance type, which `serving` names.",
        planned=False,
    )
    capacity_reservation_ends_at: UtcTime | None = model_field(
        None,
        "When the reserved capacity ends, in UTC, in quotes. An alarm is raised before, and `validate`, `preflight` "
        "and `drift` warn.",
        planned=False,
    )
    capacity_reservation_notice_days: Annotated[int, Field(ge=1, le=LONGEST_NOTICE_DAYS)] = model_field(
        7, "How long before the end the alarm is raised and commands warn, in days.", planned=False
    )
    ssm_access: bool = model_field(
        default=False,
        description="Let Session Manager open a shell in the containers, for debugging. SageMaker patches and replaces "
        "such instances a day later, and AWS Support must have allowed it for the account.",
        planned=False,
    )
    core_dump_s3_uri: OutputUri | None = model_field(
        None,
        "S3 prefix of core dumps of a container that crashes, with its final slash. They hold what was in memory: "
        "prompts, answers, weights.",
        planned=False,
    )
    routing: RoutingSpec = model_field(RoutingSpec(), planned=False)
    data_cache: bool = model_field(
        default=False,
        description="Instances keep model data and image, so that further copies start faster.",
        planned=False,
    )
    placement: PlacementSpec | None = model_field(
        None,
        "Placement of copies. Default: the service's choice.",
        json_schema_extra=left_out_or_mapping,
        planned=False,
    )
    asynchronous: AsynchronousSpec | None = model_field(
        None, "Asynchronous inference.", json_schema_extra=left_out_or_mapping, since="0.2", planned="presence"
    )
    data_capture: DataCaptureSpec | None = model_field(
        None, "Capture of requests and answers.", json_schema_extra=left_out_or_mapping, planned=False
    )
    variants: Annotated[tuple[VariantSpec, ...], Field(min_length=2, max_length=MOST_VARIANTS)] | None = model_field(
        None, "Production variants that share the traffic by weight (A/B).", planned=False
    )
    shadow: ShadowSpec | None = model_field(
        None, "Shadow variant.", json_schema_extra=left_out_or_mapping, planned=False
    )
    metrics: MetricsSpec | None = model_field(
        None, "Metrics that are published.", json_schema_extra=left_out_or_mapping, planned=False
    )

    @property
    def reservation_end(self) -> datetime | None:
        """When the reserved capacity ends; `None` where the spec doesn't say."""
        return None if self.capacity_reservation_ends_at is None else _time(self.capacity_reservation_ends_at)


def _time(text: str) -> datetime | None:
    """Return a time of the calendar; `None` for one that it lacks, such as February 30."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


_COMPONENTS, _SINGLE = "inference_component", "single_model"
_ONLY_COMPONENTS = (
    *(f"hosting.{name}" for name in ("more_models", "traffic", "router", "data_cache", "placement")),
    "serving.adapters",
)
_ONLY_SINGLE = tuple(f"hosting.{name}" for name in ("asynchronous", "data_capture", "variants", "shadow"))
_PREFIX_AWARE = is_value("hosting.routing.strategy", "prefix_aware")
_LORA = "serving.overrides.lora"

# Field, its value (None for any), why a stack can't have it, and what to do.
# Read on 2026-11-27: botocore 1.44.8, which has all (CreateInferenceRouter, CrossRegionTrafficConfig, KV_AWARE,
# AcceleratorPartitionType); the resource schemas of cfn-lint 1.58.0 and aws-cdk-lib 2.275.0, which have none. A change
# that CloudFormation does not know of would be undone by its next update, so no custom resource makes them.
_NOT_IN_CLOUDFORMATION: tuple[tuple[str, str | None, str, str], ...] = (
    (
        "hosting.routing.strategy",
        "kv_aware",
        "KV-aware routing is in SageMaker's API alone: CloudFormation's EndpointConfig has no KV_AWARE",
        "write `strategy: prefix_aware`, which keeps requests with the same beginning together",
    ),
    (
        "hosting.accelerator_partition",
        None,
        "GPU partitions (MIG) are in SageMaker's API alone: CloudFormation has no AcceleratorPartitionType",
        "remove it; a smaller instance type, or more_models on whole GPUs, is what a stack can make",
    ),
    (
        "hosting.inference_router",
        None,
        "inference routers are in SageMaker's API alone, and their runtime streams nothing, takes 6 MB, waits for 60 s",
        "remove it; hosting.router splits requests by a function, and the alias follows the endpoint",
    ),
    (
        "hosting.cross_region_traffic",
        None,
        "CrossRegionTrafficConfig is in SageMaker's API alone: CloudFormation's EndpointConfig has none",
        "remove it; docs/reference/sagemaker-features.md says which cap to set once CloudFormation takes it",
    ),
)


def _not_in_cloudformation(fields: Fields) -> Iterator[Finding]:
    for path, refused, because, hint in _NOT_IN_CLOUDFORMATION:
        value = fields.written(path)
        if value is not None and (refused is None or value == refused):
            yield fields.problem(path, "SEA139", because, hint)


def _pools(fields: Fields) -> Iterator[Finding]:
    pools, types = (_texts(fields.written(path)) for path in ("hosting.instance_pools", "serving.instance_types"))
    yield from _repeated(fields, "hosting.instance_pools", pools, "SEA127", "remove the second")
    if pools and types and types != pools[:1]:
        message = f"serving.instance_types differs from {pools[0]}, the first of hosting.instance_pools"
        hint = "remove serving.instance_types: the plan is made for the first pool"
        yield fields.problem("serving.instance_types", "SEA127", message, hint)


def _reservation(fields: Fields) -> Iterator[Finding]:
    types, pools = fields.value("serving.instance_types"), fields.written("hosting.instance_pools")
    if fields.written("hosting.capacity_reservation_arn") is not None and pools is None:
        reservable = [row.instance_type for row in INSTANCES.rows if row.reservable]
        hint = f"write `instance_types: [TYPE]` below serving: one of {', '.join(reservable)}"
        if not types or len(types) > 1:
            message = "a capacity reservation is of one instance type, and serving.instance_types doesn't name one"
            yield fields.problem("hosting.capacity_reservation_arn", "SEA144", message, hint)
        for index, name in enumerate(types or ()):
            if name not in reservable:
                place = ("serving", "instance_types", index)
                yield fields.document.problem(place, "SEA144", f"{name} can't be reserved", hint)
    path = "hosting.capacity_reservation_ends_at"
    if (ends_at := fields.value(path)) is not None and _time(ends_at) is None:
        yield fields.problem(path, "SEA145", f"the calendar has no {ends_at}", shapes.HINTS[shapes.UTC_TIME])


def _more_models(fields: Fields) -> Iterator[Finding]:
    path, own = "hosting.more_models", fields.written("name")
    members = _texts(fields.written(path))
    hint = "remove the second: one component has as many copies as needed"
    yield from _repeated(fields, path, members, "SEA128", hint)
    if own in members:
        place = ("hosting", "more_models", members.index(str(own)))
        yield fields.document.problem(place, "SEA128", f"{own} can't be its own guest", "remove it")


def _traffic(fields: Fields) -> Iterator[Finding]:
    path, shares = "hosting.traffic", fields.written("hosting.traffic")
    if not isinstance(shares, list):
        return
    names = _names(shares, "spec")
    known = [fields.written("name"), *_texts(fields.written("hosting.more_models"))]
    yield from _repeated(fields, path, names, "SEA129", "add the weights up", key="spec")
    for index, name in enumerate(names):
        if name and name not in known:
            message = f"{name} is neither this endpoint nor one of more_models"
            hint = f"add it to hosting.more_models: {name}"
            yield fields.document.problem(("hosting", "traffic", index, "spec"), "SEA129", message, hint)
    yield from _weightless(fields, path, shares, "SEA129")


def _variants(fields: Fields) -> Iterator[Finding]:
    path, variants = "hosting.variants", fields.written("hosting.variants")
    if not isinstance(variants, list):
        return
    shadow = fields.written("hosting.shadow")
    names = [*_names(variants, "name"), *([str(shadow.get("name", "shadow"))] if isinstance(shadow, dict) else [])]
    yield from _repeated(fields, path, names, "SEA130", "give each variant its own name", key="name")
    written = [variant for variant in variants if isinstance(variant, dict)]
    own = [variant for variant in written if not (variant.get("spec") or variant.get("image"))]
    if len(own) != 1:
        message = f"{len(own)} variants have neither spec nor image, which is the endpoint's own model"
        yield fields.problem(path, "SEA130", message, "let exactly one variant have neither")
    for index, variant in enumerate(variants):
        if isinstance(variant, dict) and variant.get("spec") and variant.get("image"):
            place = ("hosting", "variants", index, "image")
            yield fields.document.problem(place, "SEA130", "spec and image exclude each other", "keep one")
    yield from _weightless(fields, path, variants, "SEA130")


def _capture(fields: Fields) -> Iterator[Finding]:
    path = "hosting.data_capture.capture"
    yield from _repeated(fields, path, _texts(fields.written(path)), "SEA131", "remove the second")


def _adapters(fields: Fields) -> Iterator[Finding]:
    adapters, hint = fields.written("serving.adapters"), "give each adapter its own name"
    names = _names(adapters, "name") if isinstance(adapters, list) else []
    yield from _repeated(fields, "serving.adapters", names, "SEA132", hint, key="name")


def _adapters_in_memory(fields: Fields) -> Iterator[Finding]:
    adapters, most = fields.value("serving.adapters"), fields.value(f"{_LORA}.max_cpu_adapters")
    if most is not None and most < len(adapters):
        message = f"max_cpu_adapters {most} is below the {len(adapters)} adapters of the endpoint"
        yield fields.problem(f"{_LORA}.max_cpu_adapters", "SEA132", message, f"set it to at least {len(adapters)}")


def _texts(value: Yaml) -> list[str]:
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []


def _names(entries: list[Yaml], key: str) -> list[str]:
    """Return the name of each entry; empty where it has none."""
    return [str(entry.get(key) or "") if isinstance(entry, dict) else "" for entry in entries]


def _repeated(
    fields: Fields, path: str, names: list[str], rule: str, hint: str, *, key: str | None = None
) -> Iterator[Finding]:
    for name, count in Counter(names).items():
        if name and count > 1:
            last = len(names) - 1 - names[::-1].index(name)
            place: FieldPath = (*path.split("."), last, *(() if key is None else (key,)))
            yield fields.document.problem(place, rule, f"{name} is listed {count} times", hint)


def _weightless(fields: Fields, path: str, entries: list[Yaml], rule: str) -> Iterator[Finding]:
    weights = [entry.get("weight", 1) for entry in entries if isinstance(entry, dict)]
    if weights and all(isinstance(weight, int | float) and weight == 0 for weight in weights):
        yield fields.problem(path, rule, "all weights are 0", "give at least one a weight above 0")


RULES: tuple[Rule, ...] = (
    *(
        needs(
            "SEA125",
            is_set(path),
            is_value("hosting.kind", kind),
            message=f"{path.rpartition('.')[2]} needs hosting.kind {kind}",
            hint=f"remove it, or write `kind: {kind}` below hosting",
        )
        for kind, paths in ((_SINGLE, _ONLY_SINGLE), (_COMPONENTS, _ONLY_COMPONENTS))
        for path in paths
    ),
    *(
        relation
        for name, meaning in (
            ("prefix_length", "the length of the shared beginning, 1024 or more"),
            ("concurrency_threshold", "16, for example"),
        )
        for relation in (
            needs(
                "SEA126",
                _PREFIX_AWARE,
                f"hosting.routing.{name}",
                place=f"hosting.routing.{name}",
                message=f"prefix_aware routing needs {name}",
                hint=f"add `{name}`: {meaning}",
            ),
            needs(
                "SEA126",
                f"hosting.routing.{name}",
                _PREFIX_AWARE,
                message=f"{name} is for prefix_aware routing only",
                hint="write `strategy: prefix_aware`, or remove it",
            ),
        )
    ),
    _pools,
    needs("SEA127", "hosting.provision_timeout_s", is_set("hosting.instance_pools"), hint="remove it"),
    excludes(
        "SEA127",
        is_set("hosting.instance_pools"),
        "hosting.capacity_reservation_arn",
        message="a capacity reservation is of one instance type, instance_pools are several",
        hint="keep one of them",
    ),
    _reservation,
    needs(
        "SEA145",
        "hosting.capacity_reservation_ends_at",
        "hosting.capacity_reservation_arn",
        hint="remove it, or name the reservation",
    ),
    needs(
        "SEA145",
        "hosting.capacity_reservation_notice_days",
        "hosting.capacity_reservation_ends_at",
        hint='write `capacity_reservation_ends_at: "2027-01-31T11:30:00Z"`, as the training plan has it',
    ),
    _more_models,
    needs("SEA129", is_other("hosting.router", value=False), "hosting.traffic", hint="add hosting.traffic"),
    _traffic,
    _variants,
    excludes(
        "SEA130",
        "hosting.variants",
        "hosting.shadow",
        message="a shadow variant needs exactly one production variant",
        hint="remove variants or shadow",
    ),
    needs(
        "SEA130",
        is_mapping("hosting.shadow"),
        is_set("hosting.shadow.spec"),
        is_set("hosting.shadow.image"),
        message="the shadow variant needs a spec or an image",
        hint="give one of spec and image",
    ),
    excludes(
        "SEA130",
        is_set("hosting.shadow.spec"),
        is_set("hosting.shadow.image"),
        place="hosting.shadow",
        hint="give one of spec and image",
    ),
    excludes(
        "SEA130",
        "hosting.asynchronous",
        is_mapping("hosting.shadow"),
        message="an asynchronous endpoint can't have a shadow variant",
        hint="remove shadow or asynchronous",
    ),
    _not_in_cloudformation,
    excludes(
        "SEA136",
        "hosting.asynchronous",
        is_value("workload.api", "openai"),
        message="an asynchronous endpoint has no OpenAI path",
        hint="remove workload.api",
    ),
    _capture,
    _adapters,
    needs(
        "SEA132",
        is_set("serving.adapters"),
        is_mapping(_LORA),
        message="adapters need an engine with LoRA on",
        hint="add serving.overrides.lora with max_adapters and the highest max_rank of the adapters",
    ),
    *(
        needs(
            "SEA132",
            is_mapping(_LORA),
            f"{_LORA}.{name}",
            when=(is_set("serving.adapters"),),
            message=f"adapters need {_LORA}.{name}",
            hint=f"add `{name}`: {meaning}",
        )
        for name, meaning in (("max_rank", "the highest rank of the adapters"), ("max_adapters", "most in one batch"))
    ),
    _adapters_in_memory,
    # The trial service tries a component and sends requests that are answered: a variant has neither of both.
    needs(
        "SEA136",
        is_value("hosting.kind", _SINGLE),
        is_value("trial.mode", "off"),
        place="trial.mode",
        message="the trial service tries inference components only",
        hint='write `mode: "off"` below trial, and try a real-time endpoint with `seatrial bench`',
    ),
    needs(
        "SEA133",
        "model.hub_content_arn",
        "model.s3_uri",
        "model.jumpstart_id",
        message="hub_content_arn needs weights that SageMaker mounts",
        hint="give model.s3_uri or model.jumpstart_id",
    ),
    *(
        excludes(
            "SEA133",
            "model.model_package_arn",
            path,
            message=f"{name} and model_package_arn exclude each other: the package has image and model",
            hint="remove it",
        )
        for path, name in (
            ("serving.image", "image"),
            ("serving.code", "code"),
            ("model.hub_token_secret", "hub_token_secret"),
        )
    ),
)
"""What contradicts itself in how an endpoint is hosted."""
