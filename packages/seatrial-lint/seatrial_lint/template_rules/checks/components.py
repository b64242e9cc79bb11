"""Models and inference components: names, weights, secrets, environment, creation, order, and room on instances."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from seatrial_base.catalog import images as catalog_images
from seatrial_base.catalog.image_addresses import judge_image
from seatrial_base.catalog.instances import find_instance
from seatrial_base.catalog.resource_types import availability
from seatrial_base.secrets import credentials, holds_credential
from seatrial_lint.template_rules.hosting import (
    COMPONENT,
    CONFIG,
    ENDPOINT,
    MODEL,
    containers_of,
    finding_at,
    listed_names,
    most_instances,
    rule,
    specifications,
    types_of,
)
from seatrial_lint.weights import WeightSource, weight_problems

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from seatrial_base.catalog.instances import Instance
    from seatrial_base.findings import Finding
    from seatrial_lint.cloudformation.template import TemplateResource, TemplateValue
    from seatrial_lint.template_rules.hosting import Hosting

MOST_ENTRIES = 100
# Of an ARN.
_ACCOUNT = 4
_REGION = re.compile(r"arn:aws[a-z-]*:[a-z0-9-]+:([a-z]{2}-[a-z-]+-\d):")
MOST_CHARACTERS = 1024
_PSEUDO = re.compile(r"\$\{AWS::[A-Za-z]+\}")
_HASHED = re.compile(r"(?:^|[^A-Za-z0-9])(?=[0-9a-f]*\d)[0-9a-f]{8,64}$")
_HUB_NAMES = ("HF_MODEL_ID", "OPTION_MODEL_ID", "SM_VLLM_MODEL", "SM_SGLANG_MODEL_PATH")
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
_GATED = re.compile(r"s3://jumpstart-private-cache-", re.IGNORECASE)
LOADING = "VLLM_ALLOW_RUNTIME_LORA_UPDATING"
"""Without it vLLM's container has no POST /adapters (vLLM pull request 27892, required by SageMaker's standards)."""
_OFF = ("0", "false", "False")
LONGEST_NAME = 63
_NAME = re.compile(r"[a-zA-Z0-9](?:-*[a-zA-Z0-9])*")
_NAMED = (
    (MODEL, "ModelName"),
    (CONFIG, "EndpointConfigName"),
    (ENDPOINT, "EndpointName"),
    (COMPONENT, "InferenceComponentName"),
)


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
        hint = "read the EULA, then set ModelAccessConfig: {AcceptEula: true} next to S3Uri"
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
        for container in containers_of(resource):
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
    for model in hosting.resources.of(MODEL):
        for container in containers_of(model):
            yield model, container
    for component in hosting.resources.of(COMPONENT):
        for specification in specifications(component):
            yield component, specification.at("Container")


def _environment(container: TemplateValue) -> list[tuple[str, TemplateValue]]:
    return list(container.at("Environment").fields.items())


@rule("SEA730")
def copies(hosting: Hosting) -> Iterator[Finding]:
    """A component that is created without a copy."""
    for component in hosting.resources.of(COMPONENT):
        count = component.at("RuntimeConfig", "CopyCount")
        if count.number == 0:
            hint = "set CopyCount to 1, and let Application Auto Scaling remove the copy: MinCapacity 0"
            yield finding_at(component, count, "SEA730", "a component can't be created with CopyCount 0", hint)


@rule("SEA731")
def component_order(hosting: Hosting) -> Iterator[Finding]:
    """A component that may be created before its endpoint."""
    for component in hosting.resources.of(COMPONENT):
        endpoint = hosting.endpoint_of(component)
        if endpoint and endpoint.template == component.template and not hosting.resources.depends(component, endpoint):
            message = f"the component does not wait for its endpoint {endpoint.logical_id}"
            hint = f"set DependsOn: {endpoint.logical_id}, or refer to it in EndpointName"
            yield finding_at(component, component.at("EndpointName"), "SEA731", message, hint)


@rule("SEA732")
def fits(hosting: Hosting) -> Iterator[Finding]:
    """A copy that is larger than an instance."""
    for component in hosting.resources.of(COMPONENT):
        variant = hosting.variant_of(component)
        for specification in specifications(component) if variant else ():
            own = specification.at("InstanceType")
            kinds = types_of(variant) if own.is_absent and variant else (own,)
            for name in (kind.text for kind in kinds):
                yield from _too_large(component, specification, name)


def _too_large(component: TemplateResource, specification: TemplateValue, name: str | None) -> Iterator[Finding]:
    instance = find_instance(name) if name else None
    if instance is None:
        return
    needed = specification.at("ComputeResourceRequirements")
    for field, has, unit in _measures(instance):
        value = needed.at(field)
        if value.number is not None and value.number > has:
            message = f"{field} {value.text} exceeds the {has} {unit} of {name}"
            yield finding_at(
                component, value, "SEA732", message, f"ask for at most {has}, or choose a larger instance type"
            )


def _measures(instance: Instance) -> tuple[tuple[str, int, str], ...]:
    """Return each resource that a copy requests: its field, how much an instance has, and its unit."""
    return (
        ("NumberOfAcceleratorDevicesRequired", instance.accelerator_count, "accelerators"),
        ("NumberOfCpuCoresRequired", instance.vcpus, "vCPUs"),
        ("MinMemoryRequiredInMb", instance.memory_mib, "MiB of memory"),
    )


@rule("SEA733")
def packed(hosting: Hosting) -> Iterator[Finding]:
    """Copies of all components of a variant that need more than its instances have."""
    for endpoint in hosting.resources.of(ENDPOINT):
        placed: dict[str, list[TemplateResource]] = {}
        for component in hosting.components_on(endpoint):
            if variant := hosting.variant_of(component):
                placed.setdefault(variant.path, []).append(component)
        for together in placed.values():
            yield from _overfull(hosting, together)


def _overfull(hosting: Hosting, together: list[TemplateResource]) -> Iterator[Finding]:
    variant = hosting.variant_of(together[0])
    kinds = types_of(variant) if variant else ()
    instance = find_instance(kinds[0].text or "") if len(kinds) == 1 else None
    most = most_instances(variant) if variant else None
    if instance is None or most is None:
        return
    # The first specification only: the others are for other instance types.
    first = (next(hosting.requirements(each), None) for each in together)
    needed = [requirement for requirement in first if requirement]
    for field, of_one, unit in _measures(instance):
        # `None` where one is known at deployment only.
        counts = [each.number(field) for each in needed]
        total = sum(count for count in counts if count is not None)
        if None in counts or total <= of_one * most:
            continue
        named = listed_names([each.logical_id for each in together])
        message = f"the copies of {named} need {total:.0f} {unit}; "
        message += f"{most:.0f} x {instance.instance_type} have {of_one * most:.0f}"
        value = together[-1].at("RuntimeConfig", "CopyCount")
        yield finding_at(together[-1], value, "SEA733", message, "raise MaxInstanceCount, or lower CopyCount")


@rule("SEA734")
def same_names(hosting: Hosting) -> Iterator[Finding]:
    """Two components or two endpoints of one template with the same name."""
    for kind, name in ((COMPONENT, "InferenceComponentName"), (ENDPOINT, "EndpointName")):
        seen: dict[tuple[str, str], TemplateResource] = {}
        for resource in hosting.resources.of(kind):
            written = hosting.resources.written(resource.template, resource.at(name))
            if not written:
                continue
            first = seen.setdefault((resource.template, written), resource)
            if first is not resource:
                message = f"{hosting.resources.readable(written)} is also the name of {first.logical_id}"
                yield finding_at(resource, resource.at(name), "SEA734", message, f"give each its own {name}")


@rule("SEA735")
def names(hosting: Hosting) -> Iterator[Finding]:
    """A name that the API refuses."""
    given = [(each, each.at(name)) for kind, name in _NAMED for each in hosting.resources.of(kind)]
    given += [
        (config, variant.at("VariantName"))
        for config in hosting.resources.of(CONFIG)
        for variant in config.at("ProductionVariants").items
    ]
    for resource, value in given:
        text = value.text
        if text is None or "{{resolve:" in text:
            continue
        if len(text) > LONGEST_NAME:
            message = f"{text} has {len(text)} characters, more than {LONGEST_NAME}"
            yield finding_at(resource, value, "SEA735", message, f"use at most {LONGEST_NAME} characters")
        elif not _NAME.fullmatch(text):
            message = f"{text!r} has other characters than letters, digits and hyphens between them"
            yield finding_at(
                resource, value, "SEA735", message, "use letters, digits and hyphens; begin and end without one"
            )


@rule("SEA736")
def regions(hosting: Hosting) -> Iterator[Finding]:
    """A region where CloudFormation is not known to have inference components."""
    region = hosting.region
    if region is None or region in availability().regions:
        return
    for component in hosting.resources.of(COMPONENT):
        message = f"AWS::SageMaker::InferenceComponent is not listed for {region}"
        yield finding_at(component, component.at(), "SEA736", message, "check the region, or deploy in another one")


@rule("SEA737")
def requirements(hosting: Hosting) -> Iterator[Finding]:
    """A specification without what the API requires, or an adapter with what it refuses."""
    for component in hosting.resources.of(COMPONENT):
        for specification in filter(lambda each: each.is_known, specifications(component)):
            needs = specification.at("ComputeResourceRequirements")
            base = specification.at("BaseInferenceComponentName")
            if base.is_there and needs.is_there:
                message = "an adapter uses the resources of its base component, and ComputeResourceRequirements is set"
                yield finding_at(component, needs, "SEA737", message, "remove ComputeResourceRequirements")
            elif base.is_absent and needs.at("MinMemoryRequiredInMb").is_absent:
                message = "ComputeResourceRequirements has no MinMemoryRequiredInMb, which the API requires"
                yield finding_at(component, needs, "SEA737", message, "set MinMemoryRequiredInMb to at least 128")


@rule("SEA738")
def missing_variants(hosting: Hosting) -> Iterator[Finding]:
    """A component on a variant that its endpoint doesn't have."""
    for component in hosting.resources.of(COMPONENT):
        config, name = hosting.config_of(hosting.endpoint_of(component)), component.at("VariantName")
        variants = hosting.variants(config)
        if name.text and variants and name.text not in variants and None not in variants:
            known = cast("Collection[str]", variants)
            message = f"the endpoint has no variant {name.text}; it has {listed_names(known)}"
            yield finding_at(component, name, "SEA738", message, f"set VariantName to {next(iter(known))}")


@rule("SEA803")
def adapters(hosting: Hosting) -> Iterator[Finding]:
    """An adapter on a base whose container does not load adapters; of other images nothing is known."""
    for component in hosting.resources.of(COMPONENT):
        for named in (each.at("BaseInferenceComponentName") for each in specifications(component)):
            base = hosting.resources.named(component.template, named, COMPONENT, "InferenceComponentName")
            for container in _containers_of(hosting, base) if base else ():
                environment = container.at("Environment")
                is_known = container.is_known and (environment.is_known or environment.is_absent)
                repository = (container.at("Image").text or "").rpartition("/")[2].partition(":")[0]
                loading = environment.at(LOADING)
                if repository in catalog_images.repositories("tgi"):
                    message = f"{repository} has no POST /adapters, which SageMaker calls to load an adapter"
                    yield finding_at(component, named, "SEA803", message, "serve the base with LMI or vLLM")
                elif repository == "vllm" and is_known and (loading.is_absent or loading.text in _OFF):
                    message = f"the base does not load adapters: {LOADING} is not set in its environment"
                    hint = f'set {LOADING} to "true" in the environment of its model'
                    yield finding_at(component, named, "SEA803", message, hint)


def _containers_of(hosting: Hosting, component: TemplateResource) -> Iterator[TemplateValue]:
    for specification in specifications(component):
        model = hosting.model_of(component.template, specification.at("ModelName"))
        yield from containers_of(model) if model else (specification.at("Container"),)


@rule("SEA388", "SEA389", "SEA390", "SEA391")
def images(hosting: Hosting) -> Iterator[Finding]:
    """An image that SageMaker can't pull or start, by its address."""
    rules = {"registry": "SEA388", "place": "SEA389", "tag": "SEA390", "start": "SEA391"}
    for resource, container in _containers(hosting):
        image, role = container.at("Image"), (resource.at("ExecutionRoleArn").text or "").split(":")
        access = container.at("ImageConfig", "RepositoryAccessMode")
        is_private = not access.is_absent and access.text != "Platform"
        region = hosting.region or _named_region(hosting, resource.template)
        own_account = role[_ACCOUNT] if len(role) > _ACCOUNT else ""
        for problem in judge_image(image.text or "", region, own_account, is_private=is_private):
            made = finding_at(resource, image, rules[problem.kind], problem.message, problem.hint)
            severity = problem.severity or made.severity
            yield replace(made, severity=severity)


def _named_region(hosting: Hosting, template: str) -> str | None:
    """Return the Region that every ARN of a template's policies has; `None` where they name several, or none."""
    policies = (policy.resource for policy in hosting.policies if policy.resource.template == template)
    named = {region for policy in policies for region in _REGION.findall(json.dumps(policy.at().raw))}
    return named.pop() if len(named) == 1 else None


@rule("SEA393", "SEA394")
def container_weights(hosting: Hosting) -> Iterator[Finding]:
    """Weights that the container does not find, or passes over for those of the hub."""
    for resource, container in _containers(hosting):
        source = container.at("ModelDataSource")
        uri, archive = source.at("S3DataSource", "S3Uri"), container.at("ModelDataUrl")
        archive = container.at("ArtifactUrl") if archive.is_absent else archive
        models = [value for name, value in _environment(container) if name in _HUB_NAMES]
        given = WeightSource(
            archive=archive.text or "",
            s3_uri=uri.text or "",
            s3_data_type=source.at("S3DataSource", "S3DataType").text or "",
            compression=source.at("S3DataSource", "CompressionType").text or "",
            is_mounted=not source.is_absent,
            is_multi_model=not container.at("Mode").is_absent,
        )
        places = {"archive": archive, "s3_uri": uri, "model_id": models[0] if models else uri}
        for problem in weight_problems(replace(given, model_id=models[0].text or "" if models else "")):
            rule_id = "SEA393" if problem.kind == "form" else "SEA394"
            yield finding_at(resource, places[problem.field], rule_id, problem.message, problem.hint)
