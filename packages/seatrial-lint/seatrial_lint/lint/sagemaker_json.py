"""Reads SageMaker's JSON: models, inference components and endpoint configs, as described or as asked for."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from seatrial_lint.cloudformation.intrinsic import is_function, is_no_value
from seatrial_lint.lint.literal import HOLE, is_known, scalar_text
from seatrial_lint.lint.source import ConfigSource, SourceEntry
from seatrial_lint.text.json_text import plain_value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial_lint.text.json_text import Member, Node


# Facts, by the path below a container definition (CreateModel, CreateInferenceComponent).
_CONTAINER_FACTS = {
    "image": ("Image",),
    "model_data_url": ("ModelDataUrl",),
    "artifact_url": ("ArtifactUrl",),
    "s3_uri": ("ModelDataSource", "S3DataSource", "S3Uri"),
    "s3_data_type": ("ModelDataSource", "S3DataSource", "S3DataType"),
    "accept_eula": ("ModelDataSource", "S3DataSource", "ModelAccessConfig", "AcceptEula"),
}
_VARIANT_FACTS = {
    "instance_type": ("InstanceType",),
    "ami_version": ("InferenceAmiVersion",),
    "startup_timeout_s": ("ContainerStartupHealthCheckTimeoutInSeconds",),
    "model_name": ("ModelName",),
}
_COUNTS = frozenset(["model_data_url", "artifact_url"])
_TAKEN_FOR = {"accept_eula": "true", "s3_uri": f"{HOLE}/"}  # so that nothing is said of what is not known
_STARTUP = {"startup_timeout_s": ("ContainerStartupHealthCheckTimeoutInSeconds",)}
_IMAGE = {"image": ("DeployedImage", "SpecifiedImage")}  # as DescribeInferenceComponent tells it


def read_definition(root: Node, file: str) -> tuple[ConfigSource, ...]:
    """Return the containers that a JSON document defines, or its variants; none when it is something else."""
    for name in ("Model", "EndpointConfig", "InferenceComponent"):  # wrapped, as tools print several at once
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
    }
    for container in containers:
        yield _container(container, file, shared)
    if not containers and root.member("Image") and (root.member("Environment") or root.member("ModelDataUrl")):
        yield _container(root, file, shared)


def components(root: Node, file: str) -> Iterator[ConfigSource]:
    """Yield the containers of an inference component's definition."""
    specification = root.member("Specification")
    several = root.member("Specifications")
    found = [node for node in (specification, *(several.items() if several else ())) if node and node.is_object]
    for one in found:
        startup = one.member("StartupParameters")
        shared = {name: _fact(startup, path) for name, path in _STARTUP.items()} if startup else {}
        shared["network_isolation"] = None
        if container := one.member("Container"):
            yield _container(container, file, shared)


def variant_sources(root: Node, file: str) -> Iterator[ConfigSource]:
    """Yield the variants of an endpoint config's definition."""
    every = root.member("ProductionVariants")
    for variant in every.items() if every else ():
        facts = {name: _fact(variant, path) for name, path in _VARIANT_FACTS.items()}
        yield ConfigSource(file, "endpoint config", (), _known(_said(facts)), is_json=True, line=variant.line)


def _environment(root: Node, file: str) -> Iterator[ConfigSource]:
    """Take a mapping of names to scalars for an environment, also below `Environment` or `environment` alone."""
    inner = root.member("Environment") or root.member("environment") or root.member("env")
    node = inner if inner is not None and len(root.members()) == 1 else root
    members = node.members()
    if members and all(_is_name(member) and member.node.text() is not None for member in members):
        yield ConfigSource(file, "environment JSON", read_environment(node), is_json=True, line=node.line)


def _is_name(member: Member) -> bool:
    return member.name.replace("_", "").isalnum() and any(char.isupper() for char in member.name)


def _container(node: Node, file: str, shared: dict[str, SourceEntry | None]) -> ConfigSource:
    facts = {name: _fact(node, path) for name, path in (_CONTAINER_FACTS | _IMAGE).items()}
    facts |= {name: _fact(node, path) or facts.get(name) for name, path in (("image", ("Image",)),)}
    environment = node.member("Environment")
    is_partial = environment is not None and not _is_whole(environment)
    return ConfigSource(
        file,
        "model definition",
        read_environment(environment) if environment else (),
        _known(_said(facts | shared)),
        is_json=True,
        line=node.line,
        is_partial=is_partial,
        unread="its Environment is not literal" if is_partial else "",
    )


def _is_whole(environment: Node) -> bool:
    """Say whether every name is written; a function as a whole, or among the names, may give further ones."""
    return not is_function(plain_value(environment)) and not any(
        member.name.startswith(("Fn::", "**")) for member in environment.members()
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


def _said(facts: dict[str, SourceEntry | None]) -> dict[str, SourceEntry]:
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
    found: Node | None = node
    for name in path:
        found = found.member(name) if found else None
    value = scalar_text(found) if found and not is_no_value(plain_value(found)) else None
    return (
        SourceEntry(".".join(path), value, found.line, "env", value_span=found.span)
        if found and value is not None
        else None
    )
