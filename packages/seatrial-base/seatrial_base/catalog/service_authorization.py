"""Actions of IAM, the resource types that each is on, and the condition keys that its requests carry.

Facts of AWS's service authorization reference, for the services that templates of LLM endpoints touch; of the others
their prefixes are known. `scripts/build_service_authorization.py` writes the table.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import translate
from functools import cache, cached_property, lru_cache
from typing import TYPE_CHECKING, Final

from seatrial_base.catalog.rows import CatalogTable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

FILE = "service_authorization.json"
_REQUIRED = "*"
_PLACEHOLDER = re.compile(r"\\\$\\\{[^}]*\\\}")  # `${TagKey}`, escaped
_STARS = re.compile(r"\*+")
WEB_IDENTITY = "sts:AssumeRoleWithWebIdentity"
_FIELDS = 6
ANY, ANY_ONE, ANY_BUT_SLASH = "*", "?", "\N{SYMBOL FOR NULL}"
_WILD = frozenset({ANY, ANY_ONE, ANY_BUT_SLASH})
_NAMED_PART = re.compile(r"\$\{([^}]*)\}")
# Placeholders that a slash ends: the ARN of a bucket is the beginning of those of its objects.
_WITHOUT_SLASH = frozenset({"BucketName"})


@dataclass(frozen=True, slots=True)
class ResourceType:
    """A type of resource of one service.

    Attributes:
        name: Its name, as `inference-component`.
        arn: Its ARN with placeholders, as `arn:${Partition}:sagemaker:…/${EndpointName}`.
        condition_keys: Keys that a request on such a resource carries, as `aws:ResourceTag/${TagKey}`.
    """

    name: str
    arn: str
    condition_keys: tuple[str, ...]

    def has(self, arn: str) -> bool:
        """Return whether an ARN, or a pattern of ARNs with `*` and `?`, may be of this type."""
        return patterns_overlap(arn, type_pattern(self.arn))


@dataclass(frozen=True, slots=True)
class ActionTarget:
    """A resource type that an action is on.

    Attributes:
        is_required: A statement that allows the action must name such a resource.
        condition_keys: Keys that the action carries on this type, beside those of the type.
    """

    resource_type: ResourceType
    is_required: bool
    condition_keys: tuple[str, ...]


@dataclass(frozen=True)
class ActionFacts:
    """An action.

    Attributes:
        name: Its name, as `sagemaker:CreateEndpoint`.
        targets: The resource types that it is on; without any it has no resource level, and `*` alone matches.
        condition_keys: Keys that it carries on whatever resource, with placeholders.
        dependent_actions: Actions that the caller needs too.
        is_described: The reference describes it; of a younger action only the name is known.
    """

    name: str
    targets: tuple[ActionTarget, ...] = ()
    condition_keys: tuple[str, ...] = ()
    dependent_actions: tuple[str, ...] = ()
    is_described: bool = True

    def targets_of(self, arn: str) -> tuple[ActionTarget, ...]:
        """Return the targets whose type an ARN, or a pattern of ARNs, may be of."""
        return tuple(target for target in self.targets if target.resource_type.has(arn))

    def applies_to(self, arn: str) -> bool:
        """Return whether a statement on an ARN, or a pattern of ARNs, can match a request for the action."""
        return arn == "*" or not self.is_described or bool(self.targets_of(arn))

    def carries(self, key: str, arn: str = "*") -> bool:
        """Return whether a request for the action can carry a condition key.

        Global keys count as carried, whatever the call; the tag keys `aws:ResourceTag`, `aws:RequestTag` and
        `aws:TagKeys` are keys of single actions. Of an action that is not described any key counts.

        Args:
            key: The key, in any case, as `aws:ResourceTag/team`.
            arn: The resource of the request, or a pattern; a resource that is of no type of the action has no keys.
        """
        return carry((self,), self.keys_on(self.targets if arn == "*" else self.targets_of(arn)), key)

    def keys_on(self, targets: Iterable[ActionTarget]) -> frozenset[str]:
        """Return the keys, with placeholders, that a request carries on resources of some of its targets."""
        names = {key for each in targets for key in (*each.condition_keys, *each.resource_type.condition_keys)}
        return frozenset(names.union(self.condition_keys))


@dataclass(frozen=True)
class Service:
    """A service whose actions are known, as the table writes it.

    Attributes:
        prefix: Its prefix, as `sagemaker`.
        resource_types: Rows of resource types: name, ARN, condition keys.
        actions: Rows of actions: name, condition keys by resource type (`*` marks a required one, the empty name those
            of no type), dependent actions.
    """

    prefix: str
    resource_types: tuple[tuple[str, str, list[str]], ...]
    actions: tuple[tuple[str, dict[str, list[str]]] | tuple[str, dict[str, list[str]], list[str]], ...]

    @cached_property
    def types_by_name(self) -> Mapping[str, ResourceType]:
        """Its resource types by name."""
        return {name: ResourceType(name, arn, tuple(keys)) for name, arn, keys in self.resource_types}

    @cached_property
    def actions_by_name(self) -> Mapping[str, ActionFacts]:
        """Its actions by their names in lower case."""
        described = [self._action(*row) for row in self.actions]
        younger = [ActionFacts(name, is_described=False) for name in _names("younger_actions")]
        ours = [facts for facts in younger if facts.name.startswith(f"{self.prefix}:")]
        return {facts.name.lower(): facts for facts in (*described, *ours)}

    def _action(self, name: str, keys: Mapping[str, list[str]], dependent: Iterable[str] = ()) -> ActionFacts:
        targets = tuple(
            ActionTarget(self.types_by_name[target.removesuffix(_REQUIRED)], target.endswith(_REQUIRED), tuple(own))
            for target, own in keys.items()
            if target
        )
        return ActionFacts(f"{self.prefix}:{name}", targets, tuple(keys.get("", ())), tuple(dependent))


SERVICES: Final = CatalogTable(Service, f"{FILE}#services", key="prefix")


@dataclass(frozen=True, slots=True)
class SourcedNames:
    """Names of one kind."""

    source: str
    names: tuple[str, ...]


def action_facts(name: str) -> ActionFacts | None:
    """Return an action by its name, in any case; `None` when it is unknown or its service is not described."""
    service = find_service(name.partition(":")[0])
    return service.actions_by_name.get(name.lower()) if service else None


def carry(actions: Iterable[ActionFacts], keys: frozenset[str], key: str) -> bool:
    """Return whether a request for one of some actions can carry a condition key.

    Args:
        keys: Their keys with placeholders, as `keys_on` returns them.
        key: The key, in any case.
    """
    if is_global_key(key) or _one_of(keys).fullmatch(key) is not None:
        return True
    return any(
        not facts.is_described or (facts.name == WEB_IDENTITY and "." in key.rpartition(":")[0]) for facts in actions
    )


@lru_cache(maxsize=1024)
def matching_actions(pattern: str) -> tuple[ActionFacts, ...]:
    """Return the actions of a described service that a pattern with `*` and `?` names, sorted by name."""
    service, lower = find_service(pattern.partition(":")[0]), pattern.lower()
    if service is None or not {"*", "?"} & {*lower}:
        actions = service and service.actions_by_name.get(lower)
        return (actions,) if actions else ()
    if len(lower) - lower.count("*") > max(map(len, service.actions_by_name)):
        return ()  # more characters than any action has; compiling a megabyte takes seconds
    matches = re.compile(translate(_STARS.sub("*", lower).replace("[", "[[]"))).match
    return tuple(facts for name, facts in service.actions_by_name.items() if matches(name))


def find_service(prefix: str) -> Service | None:
    """Return a service by its prefix, in any case; `None` when its actions are not described."""
    return SERVICES.get(prefix.lower())


@cache
def service_prefixes() -> frozenset[str]:
    """Return the prefix of every service, described or not."""
    return frozenset({*(service.prefix for service in SERVICES.rows), *_names("other_services")})


def is_global_key(key: str) -> bool:
    """Return whether a condition key belongs to every request, as `aws:PrincipalArn`; the tag keys do not."""
    return _one_of(_names("global_keys")).fullmatch(key) is not None


@lru_cache(maxsize=4096)
def _one_of(keys: frozenset[str]) -> re.Pattern[str]:
    """Return the pattern of several condition keys; a placeholder is any text, and case does not matter."""
    return re.compile("|".join(_PLACEHOLDER.sub(".+", re.escape(key)) for key in sorted(keys)) or "(?!)", re.IGNORECASE)


@cache
def _names(part: str) -> frozenset[str]:
    return frozenset(name for each in CatalogTable(SourcedNames, f"{FILE}#{part}").rows for name in each.names)


def type_pattern(arn: str) -> str:
    """Return the pattern of a resource type's ARN: a placeholder as `${Account}` stands for any text."""
    return _NAMED_PART.sub(lambda match: ANY_BUT_SLASH if match[1] in _WITHOUT_SLASH else ANY, arn)


def completed(arn: str) -> str:
    """Return the pattern of a statement's resource; missing fields of an ARN are any (IAM user guide, Resource)."""
    missing = _FIELDS - arn.count(":") - 1
    return arn + ":*" * missing if arn.startswith("arn:") and missing > 0 else arn


@lru_cache(maxsize=2**16)
def patterns_overlap(statement: str, of_type: str) -> bool:
    """Return whether one ARN can match both patterns, in which `*` is any text and `?` any character.

    The fields before the sixth are compared one by one: none of them holds a colon.

    Args:
        statement: A statement's resource.
        of_type: What `type_pattern` returned.
    """
    fields = zip(completed(statement).split(":", _FIELDS - 1), of_type.split(":", _FIELDS - 1), strict=False)
    return all(_texts_overlap(first, second) for first, second in fields)


def _texts_overlap(first: str, second: str) -> bool:
    if ANY in (first, second) or first == second:
        return True
    for one, other in zip(first, second, strict=False):  # as far as both are plain, they must be the same
        if one in _WILD or other in _WILD:
            break
        if one != other:
            return False
    reached = _closed({0}, second)  # positions of `second`, for the part of `first` that was read
    for character in first:
        reached = _closed(_step(reached, character, second), second)
        if not reached:
            return False
    return len(second) in reached


def _step(reached: set[int], character: str, pattern: str) -> set[int]:
    """Return the positions after one more character; after `*` every position that a text of its own leads to."""
    if character == ANY:
        return set(range(min(reached), len(pattern) + 1))
    following = set[int]()
    for at in reached:
        expected = pattern[at] if at < len(pattern) else ""
        if expected == ANY or (expected == ANY_BUT_SLASH and character != "/"):
            following.add(at)
        elif expected and (character in {expected, ANY_ONE} or expected == ANY_ONE):
            following.add(at + 1)
    return following


def _closed(reached: set[int], pattern: str) -> set[int]:
    """Add the positions after placeholders that stand for nothing."""
    closed, waiting = set(reached), list(reached)
    while waiting:
        at = waiting.pop()
        if at < len(pattern) and pattern[at] in {ANY, ANY_BUT_SLASH} and at + 1 not in closed:
            closed.add(at + 1)
            waiting.append(at + 1)
    return closed
