"""Endpoints, their configurations and variants, and how endpoints and components are updated."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

from seatrial_base.catalog import images
from seatrial_base.catalog.hosting_kinds import CONCURRENCY, EXCLUSIONS, MEMORY_MB, hosting_texts, kinds_of
from seatrial_base.catalog.instances import find_instance
from seatrial_lint.cloudformation.template import TemplateValue
from seatrial_lint.lint.definitions import read_definition
from seatrial_lint.lint.lint import Given, lint_sources
from seatrial_lint.template_rules.hosting import (
    COMPONENT,
    CONFIG,
    ENDPOINT,
    MODEL,
    containers_of,
    finding_at,
    for_components,
    rule,
    types_of,
    with_model,
)
from seatrial_lint.template_rules.hosting import specifications as specifications_of
from seatrial_lint.text_nodes import read_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic import JsonValue

    from seatrial_base.catalog.hosting_kinds import HostingKind, Place
    from seatrial_base.findings import Finding
    from seatrial_lint.cloudformation.template import TemplateResource
    from seatrial_lint.template_rules.hosting import Hosting

STEPS_OF_A_CONTAINER = 500
"""Of the budget of `TemplateResources`, what it takes to lint a container on one type."""
MOST_ALARMS = 10
BATCH_PERCENT = (5, 50)
LINEAR_PERCENT = (10, 50)
_HALF = 50
_REQUIRED = ("MaximumBatchSize", "WaitIntervalInSeconds")
MOST_POOLS = 5
TIMEOUT_S = (60, 3600)
PROVISION_TIMEOUT_S = (300, 3600)
PREFIX_LENGTH = (1024, 65536)
CONCURRENCY_THRESHOLD = (1, 1024)
REFUSED_ZERO = ("eu-west-3",)
"""Where MinInstanceCount 0 was refused; stdapi issue 43, one report."""
_CUDA = re.compile(r"cu(\d{2})(\d)")
_FOR_GPU = re.compile(r"cu1\d\d(?!\d)|(?:^|-)gpu(?:-|$)")
# What a Region is known of: an ARN, or a bucket that SageMaker or JumpStart makes for each.
_OF_REGION = re.compile(
    r"arn:aws[a-z-]*:(?:sns|kms|sagemaker|cloudwatch):(?P<arn>[a-z]{2,4}(?:-[a-z]+)+-\d):"
    r"|s3://(?:jumpstart-(?:private-)?cache-prod-|sagemaker-)(?P<bucket>[a-z]{2}(?:-[a-z]+)+-\d)(?:[-/]|$)"
)
_WITHOUT_GPU = re.compile(r"ml\.[cmrt]\d")
_TIMEOUTS = ("ContainerStartupHealthCheckTimeoutInSeconds", "ModelDataDownloadTimeoutInSeconds")


@rule("SEA702")
def execution_role(hosting: Hosting) -> Iterator[Finding]:
    """A configuration for components without a role."""
    for config in hosting.resources.of(CONFIG):
        role = config.at("ExecutionRoleArn")
        if role.is_absent and any(map(for_components, config.at("ProductionVariants").items)):
            message = "a variant without ModelName is for inference components, and ExecutionRoleArn is missing"
            yield finding_at(
                config, role, "SEA702", message, "set ExecutionRoleArn to a role that SageMaker may assume"
            )


@rule("SEA704")
def instances_given(hosting: Hosting) -> Iterator[Finding]:
    """A variant without instance type or count."""
    for config, variant in _variants(hosting):
        if not variant.is_known or not variant.at("ServerlessConfig").is_absent:
            continue
        if not types_of(variant) and variant.at("InstancePools").is_absent:
            hint = "set InstanceType, InstancePools or ServerlessConfig"
            yield finding_at(config, variant, "SEA704", "the variant has neither InstanceType nor InstancePools", hint)
        if variant.at("InitialInstanceCount").is_absent and variant.at("ManagedInstanceScaling").is_absent:
            message = "the variant has neither InitialInstanceCount nor ManagedInstanceScaling"
            yield finding_at(config, variant, "SEA704", message, "set InitialInstanceCount to at least 1")
        count = variant.at("InitialInstanceCount")
        if count.number == 0:
            hint = "set InitialInstanceCount to at least 1; scaling removes instances later"
            yield finding_at(config, count, "SEA704", "InitialInstanceCount is 0, and the API takes 1 or more", hint)


@rule("SEA705", "SEA706", "SEA707")
def managed_scaling(hosting: Hosting) -> Iterator[Finding]:
    """Managed scaling of a variant with a model, and its bounds."""
    for config, variant in _variants(hosting):
        scaling = variant.at("ManagedInstanceScaling")
        least, most = scaling.at("MinInstanceCount"), scaling.at("MaxInstanceCount")
        if scaling.is_there and with_model(variant) and scaling.at("Status").text != "DISABLED":
            message = "ManagedInstanceScaling is for inference components, and the variant has a ModelName"
            hint = "scale the variant with Application Auto Scaling, or deploy the model as an inference component"
            yield finding_at(config, scaling, "SEA705", message, hint)
        if least.number == 0 and hosting.region in REFUSED_ZERO:
            message = f"MinInstanceCount 0 was refused in {hosting.region} (one report)"
            yield finding_at(
                config, least, "SEA706", message, "try it in this region first, or set MinInstanceCount to 1"
            )
        if least.number is not None and most.number is not None and least.number > most.number:
            message = f"MinInstanceCount {least.text} exceeds MaxInstanceCount {most.text}"
            yield finding_at(config, least, "SEA707", message, "raise MaxInstanceCount")


@rule("SEA708")
def pools(hosting: Hosting) -> Iterator[Finding]:
    """Pools of instances that the API refuses."""
    for config, variant in _variants(hosting):
        given = variant.at("InstancePools")
        if given.is_absent or not given.is_known:
            continue
        items = given.items
        if not 1 <= len(items) <= MOST_POOLS:
            message = f"{len(items)} instance pools are outside 1 to {MOST_POOLS}"
            yield finding_at(config, given, "SEA708", message, f"give 1 to {MOST_POOLS} pools")
        for name in ("Priority", "InstanceType"):
            for twice in _repeated([each.at(name) for each in items]):
                message = f"two instance pools have {name} {twice.text}"
                yield finding_at(config, twice, "SEA708", message, f"give each pool another {name}")
        for priority in (each.at("Priority") for each in items):
            if priority.number is not None and not 1 <= priority.number <= MOST_POOLS:
                message = f"Priority {priority.text} is outside 1 to {MOST_POOLS}"
                yield finding_at(config, priority, "SEA708", message, "1 is tried first")


@rule("SEA709")
def routing(hosting: Hosting) -> Iterator[Finding]:
    """Prefix-aware routing without its settings, out of bounds, or beside another strategy."""
    for config, variant in _variants(hosting):
        given = variant.at("RoutingConfig")
        strategy, prefix = given.at("RoutingStrategy"), given.at("PrefixAwareRoutingConfig")
        if strategy.is_known and strategy.text != "PREFIX_AWARE" and prefix.is_there:
            message = f"PrefixAwareRoutingConfig is set, and RoutingStrategy is {strategy.text}"
            yield finding_at(config, prefix, "SEA709", message, "set RoutingStrategy to PREFIX_AWARE, or remove it")
        if strategy.text != "PREFIX_AWARE":
            continue
        for name, bounds in (("PrefixLength", PREFIX_LENGTH), ("ConcurrencyThreshold", CONCURRENCY_THRESHOLD)):
            value = prefix.at(name)
            if value.is_absent:
                message = f"RoutingStrategy PREFIX_AWARE requires PrefixAwareRoutingConfig.{name}"
                yield finding_at(config, value, "SEA709", message, f"set {name}: {bounds[0]} to {bounds[1]}")
            elif _outside(value, bounds):
                message = f"{name} {value.text} is outside {bounds[0]} to {bounds[1]}"
                yield finding_at(config, value, "SEA709", message, f"set {name}: {bounds[0]} to {bounds[1]}")


@rule("SEA710")
def timeouts(hosting: Hosting) -> Iterator[Finding]:
    """Timeouts that the API refuses."""
    given = [(config, variant.at(name), TIMEOUT_S) for config, variant in _variants(hosting) for name in _TIMEOUTS]
    given += [
        (config, variant.at("VariantInstanceProvisionTimeoutInSeconds"), PROVISION_TIMEOUT_S)
        for config, variant in _variants(hosting)
    ]
    given += [
        (component, specification.at("StartupParameters", name), TIMEOUT_S)
        for component in hosting.resources.of(COMPONENT)
        for specification in specifications_of(component)
        for name in _TIMEOUTS
    ]
    for resource, value, bounds in given:
        if _outside(value, bounds):
            message = f"{value.path.rpartition('.')[2]} of {value.text} s is outside {bounds[0]} s to {bounds[1]} s"
            yield finding_at(resource, value, "SEA710", message, f"set {bounds[0]} to {bounds[1]} seconds")


@rule("SEA711", "SEA726")
def driver_of_ami(hosting: Hosting) -> Iterator[Finding]:
    """An AMI whose driver is too old for the CUDA of an image, or none chosen."""
    for resource, config, variant, image in _images(hosting):
        cuda = _CUDA.search((image.text or "").rpartition(":")[2])
        chosen = variant.at("InferenceAmiVersion")
        if cuda is None or not variant.at("ServerlessConfig").is_absent or not _is_too_old(chosen, int(cuda[1])):
            continue
        needs = f"the image of {resource.logical_id} needs CUDA {cuda[1]}.{cuda[2]}"
        hint = f"set InferenceAmiVersion to {images.ami_version(cuda[0]) or images.NEWEST_AMI}"
        ending = f"newer than {chosen.text} runs" if chosen.text else "and no InferenceAmiVersion is chosen"
        yield finding_at(config, chosen, "SEA711" if chosen.text else "SEA726", f"{needs}, {ending}", hint)


def _is_too_old(chosen: TemplateValue, needed: int) -> bool:
    """Return whether an AMI, or the default one, is not known to run the major version of a CUDA."""
    if not (chosen.is_absent or chosen.is_known):
        return False
    has = images.ami_cuda(chosen.text) if chosen.text else images.DEFAULT_AMI_CUDA
    return has is not None and needed > has[0]


@rule("SEA254", "SEA255", "SEA256", "SEA257")
def starts(hosting: Hosting) -> Iterator[Finding]:
    """What lint says of what an engine can start, by its own checks, with the types that the templates tell."""
    rules = frozenset(("SEA254", "SEA255", "SEA256", "SEA257"))
    seen: set[tuple[object, ...]] = set()
    for holder, container, definition, config, kind in _running(hosting):
        # Other types, whose engine refuses it for the same reason, say nothing new.
        for each in _linted(hosting, holder, definition, kind.text, rules):
            variable = each.field in container.at("Environment").fields
            value = container.at("Environment", each.field) if variable else kind if config else container
            resource = config if config and not variable else holder
            place = finding_at(resource, value, each.rule, each.message, each.hint).place
            if (place, each.message) not in seen:
                seen.add((place, each.message))
                yield replace(each, place=place)


def _linted(
    hosting: Hosting,
    holder: TemplateResource,
    definition: dict[str, JsonValue],
    instance_type: str | None,
    rules: frozenset[str],
) -> tuple[Finding, ...]:
    """Return what lint's checks of some rules say of a container's definition; nothing of an image that is unknown."""
    if not hosting.resources.takes(STEPS_OF_A_CONTAINER, of=holder.template):
        return ()
    try:
        sources = read_definition(read_json(json.dumps(definition)), holder.template)
    except ValueError:
        # More values than lint reads of one file.
        return ()
    known = [replace(one, kind="CloudFormation template") for one in sources if one.fact("image")]
    return lint_sources(known, Given(instance_type=instance_type), rules).findings


_Running: TypeAlias = (
    "tuple[TemplateResource, TemplateValue, dict[str, JsonValue], TemplateResource | None, TemplateValue]"
)


def _running(hosting: Hosting) -> Iterator[_Running]:
    """Yield each container with who defines it and its definition, and the configuration and type that it runs on."""
    placed: set[tuple[tuple[str, str], str]] = set()
    for each in chain(_on_variants(hosting), _on_components(hosting)):
        placed.add((each[0].key, each[1].path))
        yield each
    for model in hosting.resources.of(MODEL):
        for container in containers_of(model):
            if (model.key, container.path) not in placed:
                yield model, container, {"PrimaryContainer": container.raw}, None, TemplateValue("", None)


def _on_variants(hosting: Hosting) -> Iterator[_Running]:
    for config, variant in _variants(hosting):
        own = variant.at("ModelName")
        places = [(own, variant.at("InstanceType"))]
        for pool in variant.at("InstancePools").items:
            other = pool.at("ModelNameOverride")
            places.append((own if other.is_absent else other, pool.at("InstanceType")))
        for model, kind in ((hosting.model_of(config.template, name), kind) for name, kind in places):
            for container in containers_of(model) if model and not kind.is_absent else ():
                yield model or config, container, {"PrimaryContainer": container.raw}, config, kind


def _on_components(hosting: Hosting) -> Iterator[_Running]:
    for component in hosting.resources.of(COMPONENT):
        on, config = hosting.variant_of(component), hosting.config_of(hosting.endpoint_of(component))
        for specification in specifications_of(component):
            model = hosting.model_of(component.template, specification.at("ModelName"))
            needs, own = specification.at("ComputeResourceRequirements"), specification.at("InstanceType")
            # Accelerators that nobody counts are as unknown as those of a parameter.
            counted = {"NumberOfAcceleratorDevicesRequired": "", **(needs.raw if isinstance(needs.raw, dict) else {})}
            kinds = types_of(on) if on and own.is_absent else (own,)
            for container in containers_of(model) if model else (specification.at("Container"),):
                definition = {"Container": container.raw, "ComputeResourceRequirements": counted}
                for kind in kinds:
                    place = config if on and own.is_absent else component
                    yield model or component, container, {"Specification": definition}, place, kind


@rule("SEA712")
def volumes(hosting: Hosting) -> Iterator[Finding]:
    """A volume or its key on an instance type with local NVMe disks."""
    for config, variant in _variants(hosting):
        instances = (find_instance(each.text) for each in types_of(variant) if each.text)
        local = [instance.instance_type for instance in instances if instance and instance.nvme_gb is not None]
        if not local:
            continue
        for value, what in ((config.at("KmsKeyId"), "KmsKeyId"), (variant.at("VolumeSizeInGB"), "VolumeSizeInGB")):
            if value.is_there:
                message = f"{what} is set, and {local[0]} has local NVMe disks in place of a volume"
                yield finding_at(
                    config, value, "SEA712", message, f"remove {what}: local disks are encrypted by hardware"
                )


@rule("SEA713", "SEA714")
def kinds(hosting: Hosting) -> Iterator[Finding]:
    """Asynchronous inference with components, and how many shadow variants there may be."""
    for config in hosting.resources.of(CONFIG):
        variants = config.at("ProductionVariants").items
        asynchronous, shadows = config.at("AsyncInferenceConfig"), config.at("ShadowProductionVariants")
        if asynchronous.is_there and any(map(for_components, variants)):
            message = "AsyncInferenceConfig is set, and InvokeEndpointAsync can't name an inference component"
            yield finding_at(config, asynchronous, "SEA713", message, "set ModelName in the variant, or remove it")
        if shadows.items and any(for_components(variant) for variant in (*variants, *shadows.items)):
            message = "ShadowProductionVariants are set, and a variant has no ModelName"
            yield finding_at(config, shadows, "SEA714", message, "set ModelName in every variant")
        if shadows.items and (len(shadows.items) > 1 or len(variants) > 1):
            message = f"{len(shadows.items)} shadow variants for {len(variants)} production variants"
            yield finding_at(config, shadows, "SEA714", message, "shadow one production variant by one shadow variant")


@rule("SEA795")
def excluded(hosting: Hosting) -> Iterator[Finding]:
    """What the kind of an endpoint excludes (`hosting_kinds.json`); what only the deployment knows is of no kind."""
    for kind, on, resource, value in _kinds(hosting):
        for row in EXCLUSIONS.having((kind, on)):
            written = value.at(*row.path.split("."))
            if written.is_known and row.holds(written.raw):
                page, severity = hosting_texts("sources")[row.source], row.severity
                hint = row.remedy or f"remove {row.path}"
                finding = finding_at(resource, written, "SEA795", row.refusal(written.raw), hint)
                yield replace(finding, severity=severity, source=page)


def _kinds(hosting: Hosting) -> Iterator[tuple[HostingKind, Place, TemplateResource, TemplateValue]]:
    """Yield each kind with every resource, or variant, that belongs to an endpoint of it."""
    above: dict[tuple[tuple[str, str], str], list[tuple[Place, TemplateResource]]] = {}
    for endpoint in hosting.resources.of(ENDPOINT):
        if config := hosting.config_of(endpoint):
            above.setdefault((config.key, ""), []).append(("endpoint", endpoint))
    for target in hosting.targets:
        config, scaled = hosting.config_of(target.endpoint), hosting.target_variant(target)
        if config and scaled:
            above.setdefault((config.key, scaled.path), []).append(("target", target.resource))
    for config, variant in _variants(hosting):
        model = hosting.model_of(config.template, variant.at("ModelName"))
        places: list[tuple[Place, TemplateResource]] = [
            ("config", config),
            *((("model", model),) if model else ()),
            *above.get((config.key, ""), ()),
            *above.get((config.key, variant.path), ()),
        ]
        for kind in sorted(_kinds_of(config, variant)):
            yield kind, "variant", config, variant
            for place, resource in places:
                yield kind, place, resource, resource.at()


def _kinds_of(config: TemplateResource, variant: TemplateValue) -> set[HostingKind]:
    serverless = variant.at("ServerlessConfig")
    types: tuple[str | None, ...] = tuple(each.text for each in types_of(variant)) or (None,)
    kinds: set[HostingKind] = set()
    if serverless.is_known or serverless.is_absent:
        kinds.update(kind for each in types for kind in kinds_of(each, is_serverless=serverless.is_known))
    if config.at("AsyncInferenceConfig").is_known:
        kinds.add("asynchronous")
    if config.at("ShadowProductionVariants").items:
        kinds.add("shadowed")
    return kinds


@rule("SEA796")
def serverless_sizes(hosting: Hosting) -> Iterator[Finding]:
    """A memory size or a concurrency of a serverless variant that the API refuses."""
    for config, variant in _variants(hosting):
        given = variant.at("ServerlessConfig")
        memory, most, kept = (given.at(name) for name in ("MemorySizeInMB", "MaxConcurrency", "ProvisionedConcurrency"))
        if memory.number is not None and memory.number not in MEMORY_MB:
            message = f"MemorySizeInMB {memory.text} is none of {', '.join(map(str, MEMORY_MB))}"
            yield finding_at(config, memory, "SEA796", message, "give a whole number of GiB: 1024 to 6144")
        for name, value in (("MaxConcurrency", most), ("ProvisionedConcurrency", kept)):
            if _outside(value, CONCURRENCY):
                message = f"{name} {value.text} is outside {CONCURRENCY[0]} to {CONCURRENCY[1]}"
                yield finding_at(config, value, "SEA796", message, f"set {CONCURRENCY[0]} to {CONCURRENCY[1]}")
        if most.number is not None and kept.number is not None and kept.number > most.number:
            message = f"ProvisionedConcurrency {kept.text} exceeds MaxConcurrency {most.text}"
            yield finding_at(config, kept, "SEA796", message, "raise MaxConcurrency")


@rule("SEA797")
def images_for_gpus(hosting: Hosting) -> Iterator[Finding]:
    """An image for GPUs on a variant that has none."""
    for resource, config, variant, image in _images(hosting):
        if not _FOR_GPU.search((image.text or "").rpartition("/")[2].partition(":")[2]):
            continue
        place = variant.at("ServerlessConfig")
        if not place.is_known:
            place = next((each for each in types_of(variant) if _WITHOUT_GPU.match(each.text or "")), place)
        if place.is_known:
            on = place.text or "a serverless variant"
            message = f"the image of {resource.logical_id} is for GPUs, and {on} has none"
            yield finding_at(
                config, place, "SEA797", message, "choose an instance type with GPUs, or an image for CPUs"
            )


@rule("SEA802")
def other_regions(hosting: Hosting) -> Iterator[Finding]:
    """A topic, key or bucket of another Region than the templates', where its ARN or its name tells."""
    for resource in (each for kind in (MODEL, CONFIG, ENDPOINT, COMPONENT) for each in hosting.resources.of(kind)):
        for value in _texts(resource.at()):
            match = _OF_REGION.match(value.text or "")
            other = match and (match["arn"] or match["bucket"])
            if hosting.region and other and other != hosting.region:
                message = f"{value.text} is in {other}, and the templates are of {hosting.region}"
                yield finding_at(resource, value, "SEA802", message, f"name one in {hosting.region}")


def _texts(value: TemplateValue) -> Iterator[TemplateValue]:
    """Yield every text below a value but those of a container's environment, which the container reads itself."""
    if isinstance(value.raw, str):
        yield value
    for name, below in (*((None, each) for each in value.items), *value.fields.items()):
        if name not in {"Environment", "Tags"}:
            yield from _texts(below)


@rule("SEA703")
def mixed(hosting: Hosting) -> Iterator[Finding]:
    """A component on a variant that has a model."""
    for component in hosting.resources.of(COMPONENT):
        variant = hosting.variant_of(component)
        if variant and with_model(variant):
            name = variant.at("VariantName").text
            message = f"variant {name} has a ModelName, so no inference component can use its instances"
            hint = "remove ModelName from the variant, and give it to an inference component"
            yield finding_at(component, component.at("VariantName"), "SEA703", message, hint)


def _variants(hosting: Hosting) -> Iterator[tuple[TemplateResource, TemplateValue]]:
    for config in hosting.resources.of(CONFIG):
        for name in ("ProductionVariants", "ShadowProductionVariants"):
            for variant in config.at(name).items:
                yield config, variant


def _images(hosting: Hosting) -> Iterator[tuple[TemplateResource, TemplateResource, TemplateValue, TemplateValue]]:
    """Yield each image with who runs it, and the configuration and variant that it runs on."""
    for config, variant in _variants(hosting):
        if model := hosting.model_of(config.template, variant.at("ModelName")):
            yield model, config, variant, model.at("PrimaryContainer", "Image")
    for endpoint in hosting.resources.of(ENDPOINT):
        config_of = hosting.config_of(endpoint)
        for component in hosting.components_on(endpoint) if config_of else ():
            on = hosting.variant_of(component)
            for specification in specifications_of(component) if on else ():
                model = hosting.model_of(component.template, specification.at("ModelName"))
                image = model.at("PrimaryContainer", "Image") if model else specification.at("Container", "Image")
                if config_of and on:
                    yield component, config_of, on, image


def _outside(value: TemplateValue, bounds: tuple[int, int]) -> bool:
    return value.number is not None and not bounds[0] <= value.number <= bounds[1]


def _repeated(values: list[TemplateValue]) -> Iterator[TemplateValue]:
    seen = set[str]()
    for value in values:
        if value.text in seen:
            yield value
        if value.text:
            seen.add(value.text)


@rule("SEA720", "SEA722")
def policies(hosting: Hosting) -> Iterator[Finding]:
    """Two update policies, or a rolling one without what the API requires."""
    for resource in _updated(hosting):
        config = resource.at("DeploymentConfig")
        rolling, blue_green = config.at("RollingUpdatePolicy"), config.at("BlueGreenUpdatePolicy")
        if rolling.is_known and blue_green.is_known:
            message = "DeploymentConfig has both RollingUpdatePolicy and BlueGreenUpdatePolicy"
            yield finding_at(resource, config, "SEA720", message, "keep one of them")
        for missing in (rolling.at(name) for name in _REQUIRED if rolling.is_known):
            if missing.is_absent:
                name = missing.path.rpartition(".")[2]
                message = f"RollingUpdatePolicy has no {name}, which the API requires"
                yield finding_at(resource, missing, "SEA722", message, f"set {name}")


@rule("SEA721")
def batches(hosting: Hosting) -> Iterator[Finding]:
    """A batch of a rolling update outside 5 % to 50 %."""
    for resource in _updated(hosting):
        size = resource.at("DeploymentConfig", "RollingUpdatePolicy", "MaximumBatchSize")
        value, of = size.at("Value"), _size_of(hosting, resource)
        if value.number is None:
            continue
        if size.at("Type").text == "CAPACITY_PERCENT":
            bad = not BATCH_PERCENT[0] <= value.number <= BATCH_PERCENT[1]
            shown = f"{value.text} %"
        elif of is not None and of > 1:
            # One copy is a batch of one.
            bad = not of * BATCH_PERCENT[0] / 100 <= value.number <= of * BATCH_PERCENT[1] / 100
            shown = f"{value.text} of {of:.0f}"
        else:
            continue
        if bad:
            message = f"a batch of {shown} is outside {BATCH_PERCENT[0]} % to {BATCH_PERCENT[1]} %"
            yield finding_at(resource, value, "SEA721", message, "set a batch of at most half of the capacity")


@rule("SEA723")
def rollback_alarms(hosting: Hosting) -> Iterator[Finding]:
    """More alarms than the API takes, or a rollback without any."""
    for resource in _updated(hosting):
        rollback = resource.at("DeploymentConfig", "AutoRollbackConfiguration")
        given = rollback.at("Alarms")
        if len(given.items) > MOST_ALARMS:
            message = f"{len(given.items)} alarms exceed {MOST_ALARMS}"
            yield finding_at(resource, given, "SEA723", message, "name the ten that matter most")
        elif rollback.is_known and (given.is_absent or given.raw == []):
            message = "AutoRollbackConfiguration has no alarm, so nothing rolls an update back"
            yield finding_at(resource, given, "SEA723", message, "name an alarm, or remove AutoRollbackConfiguration")


@rule("SEA725")
def traffic(hosting: Hosting) -> Iterator[Finding]:
    """Steps of a blue/green update that the API refuses."""
    for endpoint in hosting.resources.of(ENDPOINT):
        routing = endpoint.at("DeploymentConfig", "BlueGreenUpdatePolicy", "TrafficRoutingConfiguration")
        for kind, name, least in (("CANARY", "CanarySize", 0), ("LINEAR", "LinearStepSize", LINEAR_PERCENT[0])):
            size = routing.at(name)
            if routing.at("Type").text == kind and size.is_absent:
                yield finding_at(endpoint, size, "SEA725", f"Type {kind} requires {name}", f"set {name}")
            value = size.at("Value")
            is_percent = size.at("Type").text == "CAPACITY_PERCENT"
            if is_percent and value.number is not None and not least <= value.number <= _HALF:
                message = f"{name} {value.text} % is outside {least} % to {_HALF} %"
                yield finding_at(endpoint, value, "SEA725", message, f"set {least} to {_HALF}")


@rule("SEA727")
def several_variants(hosting: Hosting) -> Iterator[Finding]:
    """A rolling update of several variants, which falls back to all at once."""
    for endpoint in hosting.resources.of(ENDPOINT):
        rolling, config = endpoint.at("DeploymentConfig", "RollingUpdatePolicy"), hosting.config_of(endpoint)
        variants = config.at("ProductionVariants").items if config else ()
        if rolling.is_known and len(variants) > 1:
            message = f"{len(variants)} variants are not updated in batches: all traffic moves at once, without alarms"
            yield finding_at(endpoint, rolling, "SEA727", message, "set BlueGreenUpdatePolicy with Type CANARY")


@rule("SEA724")
def retained(hosting: Hosting) -> Iterator[Finding]:
    """An update that sets a scaled variant back to its initial counts."""
    scaled = {target.endpoint.key for target in hosting.targets if target.endpoint}
    for endpoint in hosting.resources.of(ENDPOINT):
        retain = endpoint.at("RetainAllVariantProperties")
        if endpoint.key in scaled and (retain.is_absent or retain.flag is False):
            message = "the variant is scaled, and an update sets it back to InitialInstanceCount"
            yield finding_at(endpoint, retain, "SEA724", message, "set RetainAllVariantProperties: true")


def _updated(hosting: Hosting) -> tuple[TemplateResource, ...]:
    return (*hosting.resources.of(ENDPOINT), *hosting.resources.of(COMPONENT))


def _size_of(hosting: Hosting, resource: TemplateResource) -> float | None:
    """Return the copies of a component or the instances of an endpoint with one variant, where they are fixed."""
    if resource.resource_type == COMPONENT:
        return None if resource.key in hosting.scaled else resource.at("RuntimeConfig", "CopyCount").number
    config = hosting.config_of(resource)
    variants: tuple[TemplateValue, ...] = config.at("ProductionVariants").items if config else ()
    scaled = resource.key in hosting.scaled
    managed = any(not variant.at("ManagedInstanceScaling").is_absent for variant in variants)
    return variants[0].at("InitialInstanceCount").number if len(variants) == 1 and not (scaled or managed) else None
