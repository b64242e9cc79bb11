"""The container of a model or an inference component."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypedDict

from seatrial_base.catalog import images
from seatrial_laptop.aws.api import invalid
from seatrial_laptop.aws.control_plane.records import Kind, Record, Store
from seatrial_laptop.aws.json_document import Document, child, children, text_map, text_member, whole
from seatrial_laptop.aws.rights import assumption_denial, download_denial, pull_denial, role_exists
from seatrial_laptop.aws.runtime.artifacts import ArtifactError, copy_prefix, unpack_artifact
from seatrial_laptop.state import REGION

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from seatrial_laptop.aws.runtime.running_copies import CopyPlace


LONGEST_START_S: Final = 120
"""The local cap of ContainerStartupHealthCheckTimeoutInSeconds: no weights are loaded here."""


@dataclass(frozen=True, slots=True)
class ContainerSpec:
    """What runs as one copy.

    Attributes:
        artifact_url: The tar.gz file that is unpacked into the model folder; empty for none.
        properties_prefix: The S3 prefix whose configuration and GGUF files are copied; empty for none.
        health_timeout_s: How long the container may take until /ping answers 200, in real seconds.
        download_limit_s: ModelDataDownloadTimeoutInSeconds, virtual; None when the request doesn't say.
        startup_limit_s: ContainerStartupHealthCheckTimeoutInSeconds, virtual; None when the request doesn't say.
        checked_role: The execution role that pulls the image and downloads files; empty for one that is not known.
    """

    image: str
    environment: Mapping[str, str] = field(default_factory=dict)
    artifact_url: str = ""
    properties_prefix: str = ""
    health_timeout_s: int = LONGEST_START_S
    download_limit_s: int | None = None
    startup_limit_s: int | None = None
    checked_role: str = ""

    def fill(self, model_dir: Path) -> None:
        """Put the container's files into its model folder.

        Raises:
            ArtifactError: The artifact can't be had, or the execution role may not pull or download.
        """
        # A role that is not known is one of a real account: its rights are not known either, so it is not judged.
        if self.checked_role and (reason := self._denial(self.checked_role)):
            raise ArtifactError(reason)
        if self.artifact_url:
            unpack_artifact(self.artifact_url, model_dir)
        if self.properties_prefix:
            copy_prefix(self.properties_prefix, model_dir)

    def _denial(self, role: str) -> str | None:
        properties = f"{self.properties_prefix.rstrip('/')}/serving.properties" if self.properties_prefix else ""
        if role_exists(role) and (reason := assumption_denial(role) or pull_denial(role, self.image)):
            return reason
        return next(
            (reason for url in (self.artifact_url, properties) if url and (reason := download_denial(role, url))), None
        )


def model_container(store: Store, model_name: str, startup: Document) -> ContainerSpec:
    """Return the container of a model; `startup` holds the health check's timeout.

    Raises:
        ApiError: ValidationException, there is no such model, or it has several containers.
    """
    model = store.need(Kind.MODEL, model_name)
    container = primary_container(model)
    source = child(child(container, "ModelDataSource"), "S3DataSource")
    uri = text_member(source, "S3Uri")
    is_archive = text_member(source, "CompressionType") == "Gzip"
    package = text_member(container, "ModelPackageName")
    # There are no packages here, so that of a model package is not known: another image runs for it.
    return ContainerSpec(
        image=images.uri(images.builds_of("lmi")[-1], REGION) if package else text_member(container, "Image"),
        environment={**({"HF_MODEL_ID": package} if package else {}), **text_map(container, "Environment")},
        artifact_url=text_member(container, "ModelDataUrl") or (uri if is_archive else ""),
        properties_prefix="" if is_archive else uri,
        **_limits(startup),
        checked_role=text_member(model.request, "ExecutionRoleArn") if model.role_is_known else "",
    )


def known_role(store: Store, place: CopyPlace) -> str:
    """Return the execution role that the copies of a place act with; empty when that is not known.

    A model has its own; a component with a container of its own has that of the endpoint configuration (API reference,
    InferenceComponentContainerSpecification).
    """
    component = None if place.variant else store.find(Kind.INFERENCE_COMPONENT, place.owner)
    endpoint = text_member(component.request, "EndpointName") if component else place.owner
    config = _config_of(store, endpoint)
    variants = children(config.request, "ProductionVariants") if config else []
    variant = next((each for each in variants if text_member(each, "VariantName") == place.variant), {})
    named = child(component.request, "Specification") if component else variant
    model = store.find(Kind.MODEL, text_member(named, "ModelName"))
    return _known(model) if model else known_instance_role(store, endpoint)


def known_instance_role(store: Store, endpoint_name: str) -> str:
    """Return the execution role of an endpoint's configuration; empty when it has none, or none that is known."""
    return _known(_config_of(store, endpoint_name))


def _known(record: Record | None) -> str:
    role = text_member(record.request, "ExecutionRoleArn") if record else ""
    return role if role_exists(role) else ""


def _config_of(store: Store, endpoint_name: str) -> Record | None:
    endpoint = store.find(Kind.ENDPOINT, endpoint_name)
    return store.find(Kind.ENDPOINT_CONFIG, text_member(endpoint.request, "EndpointConfigName")) if endpoint else None


def component_container(store: Store, specification: Document) -> ContainerSpec:
    """Return the container of an inference component's specification.

    Raises:
        ApiError: ValidationException, the model that it names isn't there.
    """
    startup = child(specification, "StartupParameters")
    if model_name := text_member(specification, "ModelName"):
        return model_container(store, model_name, startup)
    container = child(specification, "Container")
    return ContainerSpec(
        image=text_member(container, "Image"),
        environment=text_map(container, "Environment"),
        artifact_url=text_member(container, "ArtifactUrl"),
        **_limits(startup),
    )


def primary_container(model: Record) -> Document:
    """Return the one container of a model.

    Raises:
        ApiError: ValidationException, the model is an inference pipeline.
    """
    containers = children(model.request, "Containers") or [child(model.request, "PrimaryContainer")]
    if len(containers) != 1:
        raise invalid(f"The embedded AWS runs one container per model; {model.name} has {len(containers)}.")
    return containers[0]


class _Limits(TypedDict):
    health_timeout_s: int
    download_limit_s: int | None
    startup_limit_s: int | None


def _limits(startup: Document) -> _Limits:
    download, health = "ModelDataDownloadTimeoutInSeconds", "ContainerStartupHealthCheckTimeoutInSeconds"
    return {
        # The limit of the request covers the loading of weights, which takes no time here: a container that
        # hangs fails after the local one.
        "health_timeout_s": min(whole(startup, health, LONGEST_START_S), LONGEST_START_S),
        "download_limit_s": whole(startup, download) if download in startup else None,
        "startup_limit_s": whole(startup, health) if health in startup else None,
    }
