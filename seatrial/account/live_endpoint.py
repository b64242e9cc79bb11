"""Reads an endpoint of an account with its components and models; every call only reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.account.reader import count, mapping, moment, number, rows, text_at
from seatrial.documents.live import (
    ROLLBACK_ALARM,
    LiveComponent,
    LiveEndpoint,
    LiveModel,
    LivePool,
    LiveVariant,
    RaisedAlarm,
)
from seatrial_base.secrets import redacted
from seatrial_base.text import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from seatrial.account.reader import AwsReader


def read_endpoint(name: str, reader: AwsReader, *, with_tags: bool = True) -> LiveEndpoint:
    """Read an endpoint with its configuration."""
    answer = reader.read(f"endpoint {name}", "sagemaker", "describe_endpoint", EndpointName=name)
    live = answer.document
    if answer.state != "found":
        return LiveEndpoint(existence=answer.state)
    config_name, arn = text_at(live, "EndpointConfigName"), text_at(live, "EndpointArn")
    what = f"endpoint configuration {config_name}"
    planned = reader.read(what, "sagemaker", "describe_endpoint_config", EndpointConfigName=config_name)
    config = planned.document
    return LiveEndpoint(
        existence="found",
        arn=arn,
        status=text_at(live, "EndpointStatus"),
        reason=safe_text(text_at(live, "FailureReason")),
        config=config_name,
        config_arn=text_at(config, "EndpointConfigArn"),
        has_config=planned.state != "absent",
        changed=moment(live, "LastModifiedTime"),
        variants=tuple(_variants(live, config, "ProductionVariants")),
        shadow_variants=tuple(_variants(live, config, "ShadowProductionVariants")),
        tags=read_tags(name, arn, reader) if with_tags else {},
    )


def _variants(live: Mapping[str, object], config: Mapping[str, object], kind: str) -> Iterator[LiveVariant]:
    """Yield the variants of the configuration, or those that run where it could not be read."""
    running = {text_at(row, "VariantName"): row for row in rows(live, kind)}
    planned = {text_at(row, "VariantName"): row for row in rows(config, kind)}
    for name in sorted(planned.keys() | running.keys()):
        now, wanted = running.get(name, {}), planned.get(name, {})
        scaling = mapping(wanted, "ManagedInstanceScaling")
        pools = [*rows(now, "InstancePools")] or [*rows(wanted, "InstancePools")]
        yield LiveVariant(
            name=name,
            instance_type=text_at(wanted, "InstanceType"),
            pools=tuple(LivePool(text_at(pool, "InstanceType"), count(pool, "CurrentInstanceCount")) for pool in pools),
            current=count(now, "CurrentInstanceCount"),
            desired=count(now, "DesiredInstanceCount"),
            least=count(scaling, "MinInstanceCount") if scaling else None,
            most=max(count(scaling, "MaxInstanceCount"), count(wanted, "InitialInstanceCount")),
            ami=text_at(wanted, "InferenceAmiVersion"),
            model=text_at(wanted, "ModelName"),
            statuses=tuple(
                f"{text_at(row, 'Status')}: {text_at(row, 'StatusMessage')}" for row in rows(now, "VariantStatus")
            ),
        )


def component_names(endpoint_name: str, reader: AwsReader) -> list[str]:
    """Return the names of an endpoint's components, sorted; the service lists them also when the endpoint is gone."""
    listed = reader.rows(
        "inference components",
        "sagemaker",
        "list_inference_components",
        "InferenceComponents",
        EndpointNameEquals=endpoint_name,
    )
    return sorted(text_at(row, "InferenceComponentName") for row in listed)


def read_component(name: str, reader: AwsReader) -> LiveComponent | None:
    """Read an inference component; `None` where it is absent or could not be read."""
    what = f"inference component {name}"
    answer = reader.read(what, "sagemaker", "describe_inference_component", InferenceComponentName=name)
    if answer.state != "found":
        return None
    live = answer.document
    copies, specification = mapping(live, "RuntimeConfig"), mapping(live, "Specification")
    container = mapping(specification, "Container")
    needs, startup = mapping(specification, "ComputeResourceRequirements"), mapping(specification, "StartupParameters")
    return LiveComponent(
        name=name,
        arn=text_at(live, "InferenceComponentArn"),
        endpoint=text_at(live, "EndpointName"),
        variant=text_at(live, "VariantName"),
        status=text_at(live, "InferenceComponentStatus"),
        reason=safe_text(text_at(live, "FailureReason")),
        copies=count(copies, "CurrentCopyCount"),
        desired=count(copies, "DesiredCopyCount"),
        model=text_at(specification, "ModelName"),
        artifact=text_at(container, "ArtifactUrl"),
        resolved_image=text_at(mapping(container, "DeployedImage"), "ResolvedImage"),
        accelerators=number(needs, "NumberOfAcceleratorDevicesRequired"),
        cpu_cores=number(needs, "NumberOfCpuCoresRequired"),
        memory_mb=number(needs, "MinMemoryRequiredInMb"),
        startup_timeout_s=number(startup, "ContainerStartupHealthCheckTimeoutInSeconds"),
        download_timeout_s=number(startup, "ModelDataDownloadTimeoutInSeconds"),
        created=moment(live, "CreationTime"),
        changed=moment(live, "LastModifiedTime"),
    )


def read_tags(what: str, arn: str, reader: AwsReader) -> dict[str, str]:
    """Read the tags of a resource of SageMaker; none where it is absent or could not be read."""
    tags = reader.rows(f"tags of {what}", "sagemaker", "list_tags", "Tags", ResourceArn=arn)
    return {text_at(row, "Key"): text_at(row, "Value") for row in tags}


def read_model(name: str, reader: AwsReader) -> LiveModel | None:
    """Read a model; of one that is absent only that, and `None` where it could not be read."""
    answer = reader.read(f"model {name}", "sagemaker", "describe_model", ModelName=name)
    if answer.state != "found":
        return LiveModel(name=name, is_there=False) if answer.state == "absent" else None
    live = answer.document
    container = mapping(live, "PrimaryContainer") or next(rows(live, "Containers"), {})
    prefix = text_at(mapping(mapping(container, "ModelDataSource"), "S3DataSource"), "S3Uri")
    return LiveModel(
        name=name,
        image=text_at(container, "Image"),
        environment={key: f"{value}" for key, value in mapping(container, "Environment").items()},
        uris=tuple(sorted({text_at(container, "ModelDataUrl"), prefix} - {""})),
        role_arn=text_at(live, "ExecutionRoleArn"),
        arn=text_at(live, "ModelArn"),
    )


def safe_text(text: str) -> str:
    """Return a text of AWS without credentials and control characters."""
    return printable(redacted(text))


def raised_alarms(endpoint: str, components: Iterable[str], reader: AwsReader) -> tuple[RaisedAlarm, ...]:
    """Return the alarms in state ALARM on metrics of an endpoint or its components, by name."""
    ours = {("EndpointName", endpoint)} | {("InferenceComponentName", each) for each in components}
    alarms = reader.rows("alarms", "cloudwatch", "describe_alarms", "MetricAlarms", StateValue="ALARM")
    return tuple(
        RaisedAlarm(
            text_at(row, "AlarmName"),
            text_at(row, "StateReason"),
            text_at(row, "AlarmDescription").startswith(ROLLBACK_ALARM),
        )
        for row in sorted(alarms, key=lambda each: text_at(each, "AlarmName"))
        if ours & {*_dimensions(row)} and not _only_scales(row)
    )


def _only_scales(alarm: Mapping[str, object]) -> bool:
    """Return whether an alarm does nothing but scale: that of scaling in is raised whenever there is little traffic."""
    actions = alarm.get("AlarmActions")
    return isinstance(actions, list) and bool(actions) and all(":scalingPolicy:" in f"{each}" for each in actions)


def _dimensions(alarm: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    watched = [alarm, *(mapping(mapping(row, "MetricStat"), "Metric") for row in rows(alarm, "Metrics"))]
    for metric in watched:
        for row in rows(metric, "Dimensions"):
            yield text_at(row, "Name"), text_at(row, "Value")
