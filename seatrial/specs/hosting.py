"""How SageMaker hosts an endpoint: its kind, instances, routing, and what runs beside the model."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from seatrial.specs import shapes
from seatrial_base.frozen_model import FrozenModel, left_out_or_mapping, model_field

EndpointName = Annotated[str, StringConstraints(pattern=shapes.ENDPOINT_NAME, max_length=40)]
InstanceType = Annotated[str, StringConstraints(pattern=shapes.INSTANCE_TYPE)]
ImageUri = Annotated[str, StringConstraints(pattern=shapes.IMAGE_URI)]
TopicArn = Annotated[str, StringConstraints(pattern=shapes.SNS_TOPIC_ARN)]
ReservationArn = Annotated[str, StringConstraints(pattern=shapes.RESERVATION_ARN, max_length=258)]
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
    success_topic_arn: TopicArn | None = Field(None, description="SNS topic that is told of each answer.")
    error_topic_arn: TopicArn | None = Field(None, description="SNS topic that is told of each failed request.")
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
        None, "ARN of reserved capacity. Only it is used: without free capacity no instance starts.", planned=False
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
