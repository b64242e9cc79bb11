"""Models: fixed names, weights, isolation, secrets, and the limits of the container environment."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from seatrial_base.secrets import credentials, holds_credential
from seatrial_lint.template_rules.hosting import COMPONENT, CONFIG, MODEL, finding_at, rule, specifications

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial_base.findings import Finding
    from seatrial_lint.cloudformation.template import TemplateResource, TemplateValue
    from seatrial_lint.template_rules.hosting import Hosting

MOST_ENTRIES = 100
MOST_CHARACTERS = 1024
_PSEUDO = re.compile(r"\$\{AWS::[A-Za-z]+\}")
_HASHED = re.compile(r"(?:^|[^A-Za-z0-9])(?=[0-9a-f]*\d)[0-9a-f]{8,64}$")
_HUB_NAMES = ("HF_MODEL_ID", "OPTION_MODEL_ID", "SM_VLLM_MODEL", "SM_SGLANG_MODEL_PATH")
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
_GATED = re.compile(r"s3://jumpstart-private-cache-", re.IGNORECASE)


@rule("SEA701")
def fixed_names(hosting: Hosting) -> Iterator[Finding]:
    """A name that a replacement would collide with; names that end in a digest of their content are none."""
    for kind, name in ((MODEL, "ModelName"), (CONFIG, "EndpointConfigName")):
        for resource in hosting.resources.of(kind):
            value = resource.at(name)
            written = hosting.resources.written(resource.template, value)
            shown = hosting.resources.readable(written or "")
            if not written or "${" in _PSEUDO.sub("", shown) or _HASHED.search(shown):
                continue
            message = f"{shown} is a fixed name: every change replaces the resource, and the name is taken"
            yield finding_at(resource, value, "SEA701", message, f"leave out {name}: CloudFormation makes a new name")


@rule("SEA715")
def prefixes(hosting: Hosting) -> Iterator[Finding]:
    """A prefix of S3 that doesn't end in a slash."""
    for resource, container in _containers(hosting):
        source = container.at("ModelDataSource", "S3DataSource")
        uri = source.at("S3Uri")
        written = hosting.resources.written(resource.template, uri)
        if source.at("S3DataType").text == "S3Prefix" and written and not written.endswith("/"):
            shown = hosting.resources.readable(written)
            if not shown.endswith("}"):
                message = f"S3Uri {shown} has S3DataType S3Prefix and does not end in a slash"
                yield finding_at(resource, uri, "SEA715", message, f"write {shown}/")


@rule("SEA718")
def eulas(hosting: Hosting) -> Iterator[Finding]:
    """Gated weights without an accepted EULA."""
    for resource, container in _containers(hosting):
        source = container.at("ModelDataSource", "S3DataSource")
        accepted = source.at("ModelAccessConfig", "AcceptEula")
        hint = "read the EULA, then set ModelAccessConfig: {AcceptEula: true} beside S3Uri"
        if accepted.flag is False:
            yield finding_at(resource, accepted, "SEA718", "AcceptEula is false: the weights are refused", hint)
        elif accepted.is_absent and _GATED.match(source.at("S3Uri").text or ""):
            message = f"the weights in {source.at('S3Uri').text} are gated, and no ModelAccessConfig accepts their EULA"
            yield finding_at(resource, source, "SEA718", message, hint)


@rule("SEA716")
def isolated_model(hosting: Hosting) -> Iterator[Finding]:
    """An isolated container that would download its model."""
    for resource in hosting.resources.of(MODEL):
        if resource.at("EnableNetworkIsolation").flag is not True:
            continue
        for container in _of_model(resource):
            for name, value in _environment(container):
                model = value.text or ""
                if name in _HUB_NAMES and (_HUB_ID.fullmatch(model) or model.startswith("s3://")):
                    message = f"EnableNetworkIsolation is true, and the container would download {model}"
                    hint = f"put the weights in ModelDataSource and set {name} to /opt/ml/model"
                    yield finding_at(resource, value, "SEA716", message, hint)


@rule("SEA717")
def environment_secrets(hosting: Hosting) -> Iterator[Finding]:
    """A secret in plain text in a container's environment; no part of it is repeated."""
    for resource, container in _containers(hosting):
        for name, value in _environment(container):
            text = value.text or ""
            if text.startswith("{{resolve:") or not (credentials(text, name=name) or holds_credential(name)):
                continue
            message = "a secret is in plain text, and sagemaker:DescribeModel returns it"
            hint = "revoke it; write {{resolve:secretsmanager:NAME}}, or stage the weights in S3"
            yield finding_at(resource, value, "SEA717", message, hint)


@rule("SEA719")
def environments(hosting: Hosting) -> Iterator[Finding]:
    """A container environment above the limits of the API, which CloudFormation's schema does not have."""
    for resource, container in _containers(hosting):
        entries = _environment(container)
        if len(entries) > MOST_ENTRIES:
            value = container.at("Environment")
            message = f"{len(entries)} environment variables exceed {MOST_ENTRIES}"
            yield finding_at(resource, value, "SEA719", message, "put the settings in a file of the model's archive")
        for name, value in entries:
            longest = max(len(name), len(value.text or ""))
            if longest > MOST_CHARACTERS:
                message = f"{longest} characters of name or value exceed {MOST_CHARACTERS}"
                yield finding_at(resource, value, "SEA719", message, "put the setting in a file of the model's archive")


def _containers(hosting: Hosting) -> Iterator[tuple[TemplateResource, TemplateValue]]:
    """Yield each container of a model or component with its resource."""
    for model in hosting.resources.of(MODEL):
        for container in _of_model(model):
            yield model, container
    for component in hosting.resources.of(COMPONENT):
        for specification in specifications(component):
            yield component, specification.at("Container")


def _of_model(model: TemplateResource) -> tuple[TemplateValue, ...]:
    primary = model.at("PrimaryContainer")
    return (*(() if primary.is_absent else (primary,)), *model.at("Containers").items)


def _environment(container: TemplateValue) -> list[tuple[str, TemplateValue]]:
    return list(container.at("Environment").fields.items())
