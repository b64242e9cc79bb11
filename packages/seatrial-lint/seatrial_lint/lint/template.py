"""Reads the models and endpoint configs of CloudFormation templates, those of CDK too, and of Terraform plans."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from seatrial_lint.cloudformation.intrinsic import TemplateScope, evaluate, references
from seatrial_lint.lint.literal import as_object, unknown_node
from seatrial_lint.lint.sagemaker_json import components, models, variant_sources
from seatrial_lint.lint.source import ConfigSource, SourceEntry
from seatrial_lint.text.json_text import Member, Node, plain_value

if TYPE_CHECKING:
    from collections.abc import Iterator

_SAGEMAKER = "AWS::SageMaker::"


def is_template(root: Node) -> bool:
    """Say whether a document is a CloudFormation template."""
    resources = root.member("Resources")
    return resources is not None and any(one.node.member("Type") for one in resources.members())


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
    """Say whether a document is a Terraform plan, as `terraform show -json` writes it."""
    planned = root.member("planned_values")
    return planned is not None and planned.member("root_module") is not None


def read_plan(root: Node, file: str) -> Iterator[ConfigSource]:
    """Yield the containers and variants that a Terraform plan will make."""
    planned = root.member("planned_values")
    module = planned.member("root_module") if planned else None
    unknowns = _unknowns(root)
    for resource in _resources(module) if module else ():
        kind, values, address = (resource.member(name) for name in ("type", "values", "address"))
        if kind is None or values is None:
            continue
        later = unknowns.get((address.text() if address else "") or "")
        for source in _planned(kind.text() or "", _as_in_api(values, later), file):
            yield replace(source, is_fixable=False)


def _planned(kind: str, values: Node, file: str) -> Iterator[ConfigSource]:
    if kind == "aws_sagemaker_model":
        yield from models(values, file)
    elif kind == "aws_sagemaker_endpoint_configuration":
        yield from variant_sources(values, file)


def _resources(module: Node) -> Iterator[Node]:
    for name in ("resources", "child_modules"):
        found = module.member(name)
        for one in found.items() if found else ():
            yield from _resources(one) if name == "child_modules" else (one,)


def _unknowns(root: Node) -> dict[str, Node]:
    """Return by address what is known after the plan is applied only."""
    changes = root.member("resource_changes")
    found: dict[str, Node] = {}
    for change in changes.items() if changes else ():
        address, inner = change.member("address"), change.member("change")
        later = inner.member("after_unknown") if inner else None
        if address is not None and later is not None and (name := address.text()):
            found[name] = later
    return found


_BLOCKS = {"model_data_source", "s3_data_source", "model_access_config", "primary_container", "image_config"}
_API_NAMES = {
    "container": "Containers",
    "name": "ModelName",
    "container_startup_health_check_timeout_in_seconds": "ContainerStartupHealthCheckTimeoutInSeconds",
}


def _as_in_api(values: Node, later: Node | None) -> Node:
    """Return a resource's arguments under the API's names; what is known later is unknown."""
    members: list[Member] = []
    names = {one.name for one in values.members()}
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


def _with_unknown(environment: Node, later: Node | None) -> Node:
    """Return an environment with the variables that are known later."""
    if later is None or not later.members():
        return unknown_node(environment.line) if later is not None and later.text() == "true" else environment
    names = {one.name for one in environment.members()}
    more = {one.name: unknown_node(environment.line) for one in later.members() if one.name not in names}
    return replace(environment, value=(*environment.members(), *as_object(more, environment.line).members()))
