"""Reads what defines containers: SageMaker's JSON, CloudFormation templates, Terraform plans, and manifests.

SageMaker's JSON is of models, inference components and endpoint configs, as described or as asked for; a manifest is a
docker-compose file or an object of Kubernetes.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from seatrial_lint.cloudformation.intrinsic import TemplateScope, evaluate, is_function, is_no_value, references
from seatrial_lint.lint.source import HOLE, ConfigSource, SourceEntry, as_object, is_known, scalar_text, unknown_node
from seatrial_lint.text_nodes import Member, Node, plain_value

if TYPE_CHECKING:
    from collections.abc import Iterator


# Facts, by the path below a container definition (CreateModel, CreateInferenceComponent).
_CONTAINER_FACTS = {
    "image": ("Image",),
    "model_data_url": ("ModelDataUrl",),
    "artifact_url": ("ArtifactUrl",),
    "s3_uri": ("ModelDataSource", "S3DataSource", "S3Uri"),
    "s3_data_type": ("ModelDataSource", "S3DataSource", "S3DataType"),
    "compression": ("ModelDataSource", "S3DataSource", "CompressionType"),
    "mode": ("Mode",),
    "accept_eula": ("ModelDataSource", "S3DataSource", "ModelAccessConfig", "AcceptEula"),
}
_VARIANT_FACTS = {
    "instance_type": ("InstanceType",),
    "ami_version": ("InferenceAmiVersion",),
    "startup_timeout_s": ("ContainerStartupHealthCheckTimeoutInSeconds",),
    "model_name": ("ModelName",),
}
_COUNTS = frozenset(["model_data_url", "artifact_url"])
# So that nothing is said of what is not known.
_TAKEN_FOR = {"accept_eula": "true", "s3_uri": f"{HOLE}/", "repository_access": "Vpc", "mode": "MultiModel"}
_TAKEN_FOR |= {"accelerators": ""}
# `${NAME}` and `$NAME` of compose, `$(NAME)` of Kubernetes.
_INTERPOLATED = re.compile(r"(?<!\$)\$(?:\{|\(|[A-Za-z_])")
_ARGUMENTS = ("command", "args", "entrypoint")
_SAGEMAKER = "AWS::SageMaker::"


def read_definition(root: Node, file: str) -> tuple[ConfigSource, ...]:
    """Return the containers that a JSON document defines, or its variants; none when it is something else."""
    # Wrapped, as tools print several at once.
    for name in ("Model", "EndpointConfig", "InferenceComponent"):
        inner = root.member(name)
        if inner is not None and inner.is_object and len(root.members()) == 1:
            root = inner
    return (*models(root, file), *components(root, file), *variant_sources(root, file), *_environment(root, file))


def models(root: Node, file: str) -> Iterator[ConfigSource]:
    """Yield the containers of a model's definition."""
    primary, several = root.member("PrimaryContainer"), root.member("Containers")
    containers = [node for node in (primary, *(several.items() if several else ())) if node and node.is_object]
    shared = {
        "network_isolation": _fact(root, ("EnableNetworkIsolation",)),
        "model_name": _fact(root, ("ModelName",)),
        "role": _fact(root, ("ExecutionRoleArn",)),
    }
    for container in containers:
        yield _container(container, file, shared)
    if not containers and root.member("Image") and (root.member("Environment") or root.member("ModelDataUrl")):
        yield _container(root, file, shared)


def components(root: Node, file: str) -> Iterator[ConfigSource]:
    """Yield the containers of an inference component's definition."""
    specification = root.member("Specification")
    several = root.member("Specifications")
    nodes = [node for node in (specification, *(several.items() if several else ())) if node and node.is_object]
    for one in nodes:
        startup = one.member("StartupParameters")
        timeout = _fact(startup, ("ContainerStartupHealthCheckTimeoutInSeconds",)) if startup else None
        shared = {"startup_timeout_s": timeout} if startup else {}
        shared["network_isolation"] = None
        shared["accelerators"] = _fact(one, ("ComputeResourceRequirements", "NumberOfAcceleratorDevicesRequired"))
        if container := one.member("Container"):
            yield _container(container, file, shared)


def variant_sources(root: Node, file: str) -> Iterator[ConfigSource]:
    """Yield the variants of an endpoint config's definition."""
    every = root.member("ProductionVariants")
    for variant in every.items() if every else ():
        facts = {name: _fact(variant, path) for name, path in _VARIANT_FACTS.items()}
        yield ConfigSource(file, "endpoint config", (), _known(_written(facts)), is_json=True, line=variant.line)


def _environment(root: Node, file: str) -> Iterator[ConfigSource]:
    """Take a mapping of names to scalars for an environment, also below `Environment` or `environment` alone."""
    inner = root.member("Environment") or root.member("environment") or root.member("env")
    node = inner if inner is not None and len(root.members()) == 1 else root
    members = node.members()
    names = [member.name for member in members if member.node.text() is not None]
    is_named = all(name.replace("_", "").isalnum() and any(map(str.isupper, name)) for name in names)
    if members and is_named and len(names) == len(members):
        yield ConfigSource(file, "environment JSON", read_environment(node), is_json=True, line=node.line)


def _container(node: Node, file: str, shared: dict[str, SourceEntry | None]) -> ConfigSource:
    facts = {name: _fact(node, path) for name, path in _CONTAINER_FACTS.items()}
    # As DescribeInferenceComponent returns it.
    facts["image"] = facts["image"] or _fact(node, ("DeployedImage", "SpecifiedImage"))
    if (access := _fact(node, ("ImageConfig", "RepositoryAccessMode"))) and access.value != "Platform":
        facts["repository_access"] = access
    environment = node.member("Environment")
    # A function as a whole, or among the names, may give further ones.
    is_partial = environment is not None and (
        is_function(plain_value(environment))
        or any(member.name.startswith(("Fn::", "**")) for member in environment.members())
    )
    return ConfigSource(
        file,
        "model definition",
        read_environment(environment) if environment else (),
        _known(_written(facts | shared)),
        is_json=True,
        line=node.line,
        is_partial=is_partial,
        unread="its Environment is not literal" if is_partial else "",
    )


def _known(facts: dict[str, SourceEntry]) -> dict[str, SourceEntry]:
    """Leave out facts that only the deployment knows; of some it counts that there is one."""
    known: dict[str, SourceEntry] = {}
    for name, fact in facts.items():
        if is_known(fact.value) or name in _COUNTS or (name == "image" and is_known(fact.value.rpartition("/")[2])):
            known[name] = fact
        elif name in _TAKEN_FOR:
            known[name] = replace(fact, value=_TAKEN_FOR[name])
    return known


def _written(facts: dict[str, SourceEntry | None]) -> dict[str, SourceEntry]:
    return {name: fact for name, fact in facts.items() if fact is not None}


def read_environment(node: Node) -> tuple[SourceEntry, ...]:
    """Return the variables of a mapping; the values that only the deployment knows have holes."""
    pairs = [
        (member, scalar_text(member.node)) for member in node.members() if not is_no_value(plain_value(member.node))
    ]
    return tuple(
        SourceEntry(member.name, value, member.line, "env", member.span, member.node.span, is_known=is_known(value))
        for member, value in pairs
        if value is not None and not member.name.startswith(("Fn::", "**")) and member.name != "Ref"
    )


def _fact(node: Node, path: tuple[str, ...]) -> SourceEntry | None:
    member: Node | None = node
    for name in path:
        member = member.member(name) if member else None
    value = scalar_text(member) if member and not is_no_value(plain_value(member)) else None
    return (
        SourceEntry(".".join(path), value, member.line, "env", value_span=member.span)
        if member and value is not None
        else None
    )


def is_manifest(root: Node) -> bool:
    """Return whether a document is a docker-compose file or a Kubernetes object."""
    return root.member("services") is not None or (
        root.member("apiVersion") is not None and root.member("kind") is not None
    )


def read_manifest(root: Node, file: str) -> Iterator[ConfigSource]:
    """Yield the containers of a document that have an image and an environment."""
    services = root.member("services")
    written = (member.node for member in services.members()) if services else _containers(root)
    for node in written:
        environment = node.member("environment") or node.member("env")
        if environment is None:
            continue
        image = node.member("image")
        text = scalar_text(image) if image else None
        facts = {"image": SourceEntry("image", text, image.line, "env")} if image and text and _is_known(text) else {}
        taken = next((name for name in _ARGUMENTS if node.member(name) is not None), "")
        yield ConfigSource(
            file,
            "container manifest",
            tuple(_variables(environment)),
            facts,
            is_json=True,
            line=node.line,
            is_fixable=False,
            # The image, files and arguments may give more.
            is_partial=True,
            unread=f"its {taken} is not read" if taken else "",
        )


def _containers(root: Node) -> Iterator[Node]:
    """Yield the containers of a pod, wherever its template stands."""
    for name, inner in ((member.name, member.node) for member in root.members()):
        if name == "containers":
            yield from (one for one in inner.items() if one.is_object)
        elif name in ("spec", "template", "jobTemplate", "predictor", "model", "items"):
            for one in (inner, *inner.items()):
                yield from _containers(one)


def _variables(environment: Node) -> Iterator[SourceEntry]:
    for member in environment.members():
        value = scalar_text(member.node)
        yield SourceEntry(member.name, value or "", member.line, "env", is_known=value is not None and _is_known(value))
    for node in environment.items():
        if (pair := node.text()) is not None:
            name, equals, value = pair.partition("=")
            yield SourceEntry(name, value, node.line, "env", is_known=bool(equals) and _is_known(value))
        else:
            name_node, value_node = node.member("name"), node.member("value")
            text = scalar_text(value_node) if value_node else None
            if name_node is not None and (variable_name := name_node.text() or ""):
                yield SourceEntry(
                    variable_name, text or "", node.line, "env", is_known=text is not None and _is_known(text)
                )


def _is_known(value: str) -> bool:
    return _INTERPOLATED.search(value) is None


def is_template(root: Node) -> bool:
    """Return whether a document is a CloudFormation template."""
    resources = root.member("Resources")
    return resources is not None and any(member.node.member("Type") for member in resources.members())


def template_sources(root: Node, file: str) -> Iterator[ConfigSource]:
    """Yield the containers and variants of a CloudFormation template; a reference joins a variant to its model."""
    resources = root.member("Resources")
    for one in resources.members() if resources else ():
        kind, properties = one.node.member("Type"), one.node.member("Properties")
        if kind is None or properties is None:
            continue
        match (kind.text() or "").removeprefix(_SAGEMAKER):
            case "Model":
                yield from (_named(source, f"{file}#{one.name}") for source in models(properties, file))
            case "InferenceComponent":
                yield from components(properties, file)
            case "EndpointConfig":
                yield from _variants(properties, file)


def _named(source: ConfigSource, name: str) -> ConfigSource:
    facts = {"model_name": SourceEntry("ModelName", name, source.line, "env")} | source.facts
    return replace(source, facts=facts)


def _variants(properties: Node, file: str) -> Iterator[ConfigSource]:
    every = properties.member("ProductionVariants")
    written = every.items() if every else ()
    for node, source in zip(written, variant_sources(properties, file), strict=False):
        name = node.member("ModelName")
        logical = next(references(evaluate(plain_value(name), TemplateScope())), None) if name else None
        own = {fact: value for fact, value in source.facts.items() if fact != "model_name" or not logical}
        yield _named(replace(source, facts=own), f"{file}#{logical.logical_id if logical else None}")


def is_plan(root: Node) -> bool:
    """Return whether a document is a Terraform plan, as `terraform show -json` writes it."""
    planned = root.member("planned_values")
    return planned is not None and planned.member("root_module") is not None


def read_plan(root: Node, file: str) -> Iterator[ConfigSource]:
    """Yield the containers and variants that a Terraform plan will make."""
    planned = root.member("planned_values")
    module = planned.member("root_module") if planned else None
    unknowns = _unknowns(root)
    readers = {"aws_sagemaker_model": models, "aws_sagemaker_endpoint_configuration": variant_sources}
    for resource in _resources(module) if module else ():
        kind, values, address = (resource.member(name) for name in ("type", "values", "address"))
        if kind is None or values is None:
            continue
        later, read = unknowns.get((address.text() if address else "") or ""), readers.get(kind.text() or "")
        for source in read(_as_in_api(values, later), file) if read else ():
            yield replace(source, is_fixable=False, unread=f"{source.unread}; {_UNCHECKED}".removeprefix("; "))


# That nobody takes silence for a check of them.
_UNCHECKED = "roles, scaling and alarms of a plan are not checked"


def _resources(module: Node) -> Iterator[Node]:
    for name in ("resources", "child_modules"):
        member = module.member(name)
        for one in member.items() if member else ():
            yield from _resources(one) if name == "child_modules" else (one,)


_BLOCKS = {"model_data_source", "s3_data_source", "model_access_config", "primary_container", "image_config"}
_API_NAMES = {
    "container": "Containers",
    "name": "ModelName",
    "container_startup_health_check_timeout_in_seconds": "ContainerStartupHealthCheckTimeoutInSeconds",
}


def _unknowns(root: Node) -> dict[str, Node]:
    changes = root.member("resource_changes")
    unknowns: dict[str, Node] = {}
    for change in changes.items() if changes else ():
        address, inner = change.member("address"), change.member("change")
        later = inner.member("after_unknown") if inner else None
        if address is not None and later is not None and (name := address.text()):
            unknowns[name] = later
    return unknowns


def _with_unknown(environment: Node, later: Node | None) -> Node:
    if later is None or not later.members():
        return unknown_node(environment.line) if later is not None and later.text() == "true" else environment
    names = {member.name for member in environment.members()}
    more = {member.name: unknown_node(environment.line) for member in later.members() if member.name not in names}
    return replace(environment, value=(*environment.members(), *as_object(more, environment.line).members()))


def _as_in_api(values: Node, later: Node | None) -> Node:
    """Return a resource's arguments under the API's names; what is known later is unknown."""
    members: list[Member] = []
    names = {member.name for member in values.members()}
    for one in values.members():
        inner = later.member(one.name) if later else None
        name = _api(one.name)
        if one.name == "environment":
            members.append(Member("Environment", one.line, one.span, _with_unknown(one.node, inner)))
            continue
        node = _blocks(one.node, inner)
        if one.name in _BLOCKS and node.items():
            node = node.items()[0]
        members.append(Member(name, one.line, one.span, node))
    missing = [one for one in (later.members() if later else ()) if one.name not in names and one.node.text() == "true"]
    members += [Member(_api(one.name), values.line, (0, 0), unknown_node(values.line)) for one in missing]
    return replace(values, value=tuple(members))


def _api(name: str) -> str:
    return _API_NAMES.get(name, "".join(part.capitalize() for part in name.split("_")))


def _blocks(node: Node, later: Node | None) -> Node:
    if node.items():
        others = later.items() if later else ()
        return replace(
            node,
            value=tuple(_blocks(one, others[i] if i < len(others) else None) for i, one in enumerate(node.items())),
        )
    return _as_in_api(node, later) if node.is_object else node
