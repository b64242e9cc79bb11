"""SageMaker's own limits on a model: timeouts, AMI, accelerators, isolation, secrets, EULA, weights."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from seatrial_base.catalog.images import NEWEST_AMI, ami_cuda, ami_version
from seatrial_lint.lint.redaction import secret_in
from seatrial_lint.lint.rules import finding, rule
from seatrial_lint.lint.subject import MOUNT, hub_id

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial_base.findings import Finding
    from seatrial_lint.lint.subject import Subject

# ContainerStartupHealthCheckTimeoutInSeconds.
MAX_STARTUP_TIMEOUT_S = 3600
_CUDA = re.compile(r"cu(\d{2})(\d)")
_GATED_BUCKET = re.compile(r"s3://jumpstart-private-cache-", re.IGNORECASE)


@rule("SEA323", handler="any")
def cut_off_loading(subject: Subject) -> Iterator[Finding]:
    """A loading timeout that the startup health check cuts off."""
    field = subject.fields.get("model_loading_timeout_s")
    check, loading_s = subject.fact("startup_timeout_s"), field.number if field else None
    if field is None or loading_s is None:
        return
    limit_s = int(check) if check and check.isdigit() else MAX_STARTUP_TIMEOUT_S
    if loading_s > limit_s:
        limit = f"the startup health check's {limit_s} s" if check else f"{limit_s} s, the longest startup health check"
        message = f"{loading_s} s of loading exceed {limit}, which stops the container first"
        yield finding(subject, "SEA323", field.option.entry, message, f"write at most {limit_s}")


@rule("SEA324", handler="any")
def instance_ami(subject: Subject) -> Iterator[Finding]:
    """A CUDA that the instance's AMI can't run."""
    chosen = subject.fact("ami_version")
    if chosen is None and "variant" not in subject.facts:
        # Which AMI is used is not told.
        return
    image = subject.fact("image") or ""
    if (gap := driver_gap(image, chosen)) is not None:
        fix = f"write InferenceAmiVersion {gap[1]}"
        yield finding(subject, "SEA324", subject.source.facts.get("image"), gap[0], fix)
    elif (cuda := _CUDA.search(image.rpartition(":")[2])) and chosen and _is_newer(chosen, int(cuda[1])):
        message = (
            f"CUDA {cuda[1]}.{cuda[2]} of the image is older than the driver of {chosen}: "
            "such endpoints were seen to stay in Creating without a log"
        )
        fix = f"write InferenceAmiVersion {ami_version('cu124')}, or use an image with CUDA 13"
        yield finding(subject, "SEA324", subject.source.facts.get("image"), message, fix, severity="warning")


def _is_newer(chosen: str, major: int) -> bool:
    """Say whether an AMI's driver is of a newer CUDA (aws/deep-learning-containers pull 6187)."""
    has = ami_cuda(chosen)
    return has is not None and has[0] > major


def driver_gap(image: str, chosen: str | None) -> tuple[str, str] | None:
    """Return why the AMI of an instance has no driver for an image, and the AMI that has; None when it has one.

    Args:
        image: The image's URI; its tag tells its CUDA (`cu130`).
        chosen: The variant's InferenceAmiVersion; None for the service's own choice.
    """
    cuda = _CUDA.search(image.rpartition(":")[2])
    if cuda is None:
        return None
    needed = (int(cuda[1]), int(cuda[2]))
    has = ami_cuda(chosen) if chosen else None
    if needed[0] <= (has[0] if has else 12 if chosen is None else needed[0]):
        return None
    ami = chosen or "the default AMI"
    message = f"CUDA {needed[0]}.{needed[1]} of the image needs a newer driver than {ami} has; it fails without a log"
    return message, ami_version(cuda[0]) or NEWEST_AMI


@rule("SEA325", handler="any")
def accelerator(subject: Subject) -> Iterator[Finding]:
    """An image for other accelerators than the instance has."""
    image, instance = subject.fact("image"), subject.instance
    if image is None or instance is None:
        return
    for_neuron = "neuron" in image
    has_neuron = instance.link == "neuron"
    if for_neuron != has_neuron:
        wanted = "AWS Neuron" if for_neuron else "NVIDIA GPUs"
        message = f"the image is for {wanted}, but {instance.instance_type} has {instance.accelerator}"
        fix = (
            "choose ml.inf2, ml.trn1 or ml.trn2"
            if for_neuron
            else "choose an image for Neuron, or an instance with GPUs"
        )
        yield finding(subject, "SEA325", subject.facts["image"], message, fix)


@rule("SEA329", handler="any")
def isolated_download(subject: Subject) -> Iterator[Finding]:
    """An isolated container that would fetch its model."""
    field = subject.fields.get("model_id")
    if field is None or (subject.fact("network_isolation") or "").lower() != "true":
        return
    if hub_id(field.value) or field.value.startswith("s3://"):
        message = f"with network isolation, the container can't download {field.value}"
        fix = f"stage the weights (seatrial stage), set ModelDataSource, and write {MOUNT} here"
        yield finding(subject, "SEA329", field.option.entry, message, fix)


@rule("SEA330", handler="any")
def option_secrets(subject: Subject) -> Iterator[Finding]:
    """A secret in plain text; no part of it is repeated."""
    for entry in subject.source.entries:
        if what := secret_in(entry.key, entry.value):
            message = f"{what} is in plain text, readable with sagemaker:DescribeModel"
            fix = "revoke it and remove it; use Secrets Manager: model.hub_token_secret"
            yield finding(subject, "SEA330", entry, message, fix)


@rule("SEA331", handler="any")
def eula(subject: Subject) -> Iterator[Finding]:
    """Gated weights whose EULA is not accepted."""
    uri, accepted = subject.facts.get("s3_uri"), subject.facts.get("accept_eula")
    if accepted and accepted.value.lower() != "true":
        message = "the EULA is declined: SageMaker refuses the weights"
        yield finding(subject, "SEA331", accepted, message, "read it, then set ModelAccessConfig.AcceptEula: true")
    elif uri and accepted is None and _GATED_BUCKET.match(uri.value):
        message = "these weights are gated, but no ModelAccessConfig accepts their EULA"
        fix = "read the EULA, then set ModelAccessConfig: {AcceptEula: true} beside S3Uri"
        yield finding(subject, "SEA331", uri, message, fix)


@rule("SEA338", handler="any")
def prefix(subject: Subject) -> Iterator[Finding]:
    """A prefix that doesn't end in a slash."""
    uri = subject.facts.get("s3_uri")
    if uri and subject.fact("s3_data_type") == "S3Prefix" and not uri.value.endswith("/"):
        yield finding(subject, "SEA338", uri, "an S3Prefix must end in a slash", f"write {uri.value}/")
