"""The product spec: a standard endpoint that a platform team offers, and what a product team may choose of it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

from pydantic import Field, JsonValue, StringConstraints

from seatrial.specs import shapes
from seatrial.specs.endpoint import TagValue
from seatrial.specs.environment import EnvironmentName
from seatrial.specs.yaml_source import YamlSource, overlay
from seatrial_base.frozen_model import FrozenModel
from seatrial_base.tags import COST_CENTER_TAG, TEAM_TAG

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from seatrial.specs.yaml_source import Document, FieldPath, Yaml
    from seatrial_base.findings import Finding

LONGEST_PRODUCT, LONGEST_SIZE, LONGEST_TEAM = 24, 8, 12
MOST_SIZES = 8  # each is written out in the template, which has at most 500 resources
MOST_TEAMS = 100
PRODUCT_ENDPOINT = "TEAM-ENDPOINT"
"""Stands for the name of a product's endpoint, TEAM-NAME, until a team has chosen it."""

ProductName = Annotated[str, StringConstraints(pattern=shapes.PRODUCT_NAME, max_length=LONGEST_PRODUCT)]
SizeName = Annotated[str, StringConstraints(pattern=shapes.ENVIRONMENT_NAME, max_length=LONGEST_SIZE)]
TeamName = Annotated[str, StringConstraints(pattern=shapes.TEAM_NAME, max_length=LONGEST_TEAM)]
Version = Annotated[str, StringConstraints(pattern=shapes.PRODUCT_VERSION, max_length=32)]
Principal = Annotated[str, StringConstraints(pattern=shapes.PRINCIPAL, max_length=1000)]
Fields = dict[str, JsonValue]


class Support(FrozenModel):
    """Whom a team asks about the product: Service Catalog shows it."""

    description: Annotated[str, StringConstraints(max_length=8191)] = Field("", description="How support is given.")
    email: Annotated[str, StringConstraints(pattern=shapes.EMAIL, max_length=254)] | None = Field(
        None, description="Contact e-mail address."
    )
    url: Annotated[str, StringConstraints(pattern=shapes.HTTPS_URL, max_length=2083)] | None = Field(
        None, description="Contact URL."
    )


class ProductParameters(FrozenModel):
    """What a team chooses beside the endpoint's name and size."""

    teams: Annotated[tuple[TeamName, ...], Field(min_length=1, max_length=MOST_TEAMS)] | None = Field(
        None, description="Teams that may be named. Default: any."
    )
    cost_centers: Annotated[tuple[TagValue, ...], Field(min_length=1, max_length=MOST_TEAMS)] | None = Field(
        None, description="Values of the tag `cost-center`. Default: the tag is not requested."
    )
    copies: bool = Field(
        default=True, description="Fewest and most copies may be chosen, within `scaling` of the size."
    )
    alarm_topic: bool = Field(default=True, description="An SNS topic for alarms may be given.")
    alarm_email: bool = Field(default=True, description="An e-mail address for alarms may be given.")


class ProductSpec(FrozenModel):
    """One product: a base endpoint in named sizes, offered in environments to principals."""

    name: ProductName = Field(description="Name of the product; that of its file.")
    description: Annotated[str, StringConstraints(min_length=1, max_length=1000)] = Field(description="For teams.")
    owner: Annotated[str, StringConstraints(min_length=1, max_length=1000)] = Field(
        description="Who publishes the product."
    )
    version: Version = Field(description="Semantic version. Raise it for every change of what teams get.")
    deprecated: tuple[Version, ...] = Field((), description="Published versions that no one should launch any more.")
    environments: Annotated[tuple[EnvironmentName, ...], Field(min_length=1)] = Field(
        description="Environments where it is offered; each must have `vending: true`."
    )
    principals: tuple[Principal, ...] = Field(
        (),
        description="IAM roles that may launch it for every team: `arn:aws:iam::ACCOUNT:role/NAME`, or without the "
        "account and with wildcards, `arn:aws:iam:::role/NAME*`.",
    )
    team_principals: dict[TeamName, Annotated[tuple[Principal, ...], Field(min_length=1)]] = Field(
        {},
        description="IAM roles by team, which may launch it for that team alone: each team has a portfolio of its own, "
        "in which `Team` is that team.",
    )
    support: Support = Support()
    parameters: ProductParameters = ProductParameters()
    endpoint: Fields = Field(
        description="The endpoint's fields as in an endpoint spec, without `name`, which the team chooses."
    )
    sizes: Annotated[dict[SizeName, Fields | None], Field(min_length=1, max_length=MOST_SIZES)] = Field(
        description="Sizes by name: fields of the endpoint that differ in this size; null removes a field."
    )


def chosen_tags(parameters: ProductParameters) -> dict[str, tuple[str, ...]]:
    """Return the tags that a launch fills, each with the values that may be chosen; none for any value."""
    chosen = {TEAM_TAG: parameters.teams or (), COST_CENTER_TAG: parameters.cost_centers}
    return {key: values for key, values in chosen.items() if values is not None}


def size_source(product: YamlSource, size: str) -> YamlSource:
    """Return the endpoint spec of one size, each field with the line of the product where it was written."""
    base, sizes = product.data.get("endpoint"), product.data.get("sizes")
    override = sizes.get(size) if isinstance(sizes, dict) else None
    origins: dict[FieldPath, FieldPath] = {
        path[1:]: path for path in product.lines if path[0] == "endpoint" and len(path) > 1
    }
    data: Mapping[str, Yaml] = base if isinstance(base, dict) else {}
    merged = overlay(dict(data), override if isinstance(override, dict) else {}, (), ("sizes", size), origins)
    # The lines of fields, and of what is below them, as far as it was written.
    lines: dict[FieldPath, int] = {}
    for path, origin in origins.items():
        below = (written for written in product.lines if written[: len(origin)] == origin)
        lines |= {(*path, *written[len(origin) :]): product.lines[written] for written in below}
    return YamlSource(product.path, {**merged, "name": f"{PRODUCT_ENDPOINT}-{size}"}, lines)


def written_field(product: YamlSource, size: str, field: str) -> str:
    """Return where a field of a size is in the product's file: below `sizes`, or below `endpoint`."""
    path = field.partition("[")[0].split(".")
    below = {
        place: max(cut for cut in range(len(path) + 1) if not cut or (*place, *path[:cut]) in product.lines)
        for place in (("sizes", size), ("endpoint",))
    }
    return ".".join((*max(below, key=lambda place: below[place]), field))


def product_problems(product: ProductSpec, document: Document, stem: str) -> Iterator[Finding]:
    """Yield what contradicts itself within a product.

    `stem`: the name of its file without the suffix.
    """
    if product.name != stem:
        message = f"the name {product.name} differs from the file name {stem}"
        yield document.problem(("name",), "SEA108", message, f"write `name: {stem}`")
    if product.version in product.deprecated:
        message = f"{product.version} is both the version and deprecated"
        yield document.problem(("deprecated",), "SEA492", message, "raise the version, or take it off the list")
    if "name" in product.endpoint:
        yield document.problem(("endpoint", "name"), "SEA490", "the team names the endpoint", "leave it out")
    for index, value in enumerate(product.parameters.cost_centers or ()):
        if not any(map(str.isalnum, value)):
            message = f"the cost center {value!r} has neither a letter nor a digit"
            yield document.problem(("parameters", "cost_centers", index), "SEA107", message, "name it, or leave it out")
    yield from _principal_problems(product, document)
    serving = product.endpoint.get("serving")
    if isinstance(serving, dict) and serving.get("code") is not None:
        message = "a product has no archive, so its container can't run code of its own"
        yield document.problem(("endpoint", "serving", "code"), "SEA493", message, "build an image with the code")


def _principal_problems(product: ProductSpec, document: Document) -> Iterator[Finding]:
    """Yield a product that nobody may launch, unknown teams, and principals of a team that may launch for every one."""
    if not (product.principals or product.team_principals):
        hint = "give team_principals, by team, or principals, which launch for every team"
        yield document.problem(("principals",), "SEA665", "nobody may launch the product", hint)
    for team, principals in product.team_principals.items():
        if product.parameters.teams is not None and team not in product.parameters.teams:
            hint = f"known: {', '.join(product.parameters.teams)}"
            yield document.problem(("team_principals", team), "SEA666", f"parameters.teams has no {team}", hint)
        for index, principal in enumerate(principals):
            for other in product.principals:
                if _overlap(principal, other):
                    message = f"{principal} and {other} of principals share roles, which may launch for every team"
                    yield document.problem(
                        ("team_principals", team, index), "SEA667", message, "take it out of principals"
                    )


def _overlap(one: str, other: str) -> bool:
    """Return whether some principal matches both of two patterns."""
    if ":iam:::" in one + other:  # a pattern has no account: `arn:aws:iam:::role/NAME*`
        one, other = (re.sub(r":iam::[0-9]*:", ":iam:::", each) for each in (one, other))
    # Pairs of places: both patterns match a text as far as there. No recursion: a principal has up to 1000 signs.
    todo, seen = [(0, 0)], set[tuple[int, int]]()
    while todo:
        i, j = pair = todo.pop()
        if pair in seen:
            continue
        seen.add(pair)
        left, right = one[i : i + 1], other[j : j + 1]
        if not left and not right:
            return True
        if "*" in (left, right):
            todo += [(i + 1, j)] * len(left) + [(i, j + 1)] * len(right)
        elif left and right and (left == right or "?" in (left, right)):
            todo.append((i + 1, j + 1))
    return False


_ANYBODY = re.compile(r".*:(?P<kind>role|user|group)/[*?/]+")


def principal_warnings(product: ProductSpec, document: Document) -> Iterator[Finding]:
    """Yield each principal that is everybody: what they launch is made with the rights of the launch role."""
    teams = product.team_principals.items()
    placed: list[tuple[FieldPath, str]] = [(("principals", i), each) for i, each in enumerate(product.principals)]
    placed += [(("team_principals", team, i), each) for team, listed in teams for i, each in enumerate(listed)]
    for path, principal in placed:
        if (match := _ANYBODY.fullmatch(principal)) is not None:
            message = f"{principal} is every {match['kind']} of the account, and each launches with the launch role"
            hint = "name the roles, or a part of their names: arn:aws:iam:::role/team-*"
            yield document.problem(path, "SEA486", message, hint)
