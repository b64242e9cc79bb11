"""IAM policies: actions and condition keys that exist, resources of their types, sizes, the rights of a rollback.

The size of a policy counts a reference with the shortest text that it can be, so that what is refused here is refused
by AWS.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from seatrial_base.catalog.rows import nearest_names
from seatrial_base.catalog.service_authorization import (
    carry,
    find_service,
    matching_actions,
    service_prefixes,
)
from seatrial_base.printer import MOST_LISTED
from seatrial_lint.cloudformation.intrinsic import is_function, is_no_value, replace_references
from seatrial_lint.template_rules.hosting import (
    STEPS_OF_A_PATTERN,
    finding_at,
    listed_names,
    rule,
)
from seatrial_lint.template_rules.policy_documents import (
    BUCKET_POLICY,
    GROUP,
    MANAGED_POLICY,
    ROLE,
    USER,
    arn_pattern,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pydantic import JsonValue

    from seatrial_base.catalog.service_authorization import ActionFacts, ResourceType
    from seatrial_base.findings import Finding, Severity
    from seatrial_lint.cloudformation.template import TemplateValue
    from seatrial_lint.template_rules.hosting import Hosting
    from seatrial_lint.template_rules.policy_documents import PolicyCondition, PolicyDocument, PolicyStatement

PASSING = "iam:PassRole"
_WILD = ("*", "?")
MANAGED_CHARACTERS: Final = 6_144
TRUST_CHARACTERS: Final = 2_048
INLINE_CHARACTERS: Final[Mapping[str, int]] = {ROLE: 10_240, USER: 2_048, GROUP: 5_120}
"""Of all inline policies of one holder together."""
RESOURCE_CHARACTERS: Final[Mapping[str, int]] = {
    BUCKET_POLICY: 20 * 1024,
    "AWS::KMS::Key": 32 * 1024,
    "AWS::KMS::ReplicaKey": 32 * 1024,
}
SHORTEST: Final[Mapping[str, int]] = {
    "AWS::AccountId": 12,
    "AWS::Region": len("us-east-1"),
    "AWS::Partition": len("aws"),
    "AWS::URLSuffix": len("amazonaws.com"),
}
"""The shortest text of a pseudo parameter."""
SHORTEST_ARN: Final = len("arn:aws:s3:::abc")


@rule("SEA780")
def unknown_actions(hosting: Hosting) -> Iterator[Finding]:
    """An action that IAM does not have, or a wildcard that names none."""
    near = _Nearest()
    for statement in hosting.statements:
        for action in (*statement.actions, *statement.excepted_actions):
            prefix, colon, _ = (action.text or "*").partition(":")
            if action.text is None or action.text == "*" or any(wild in prefix for wild in _WILD):
                continue
            if not colon:
                message = f"{action.text} is no action: the service is missing"
                yield _policy_finding(
                    statement, action, "SEA780", message, "write SERVICE:ACTION, as sagemaker:CreateEndpoint"
                )
            elif prefix.lower() not in service_prefixes():
                hint = near.hint(prefix, service_prefixes()) or "use the service's prefix of IAM"
                message = f"{prefix} is no service of IAM ({action.text})"
                yield _policy_finding(statement, action, "SEA780", message, hint, severity="warning")
            elif find_service(prefix) and not matching_actions(action.text):
                yield _unknown_action(statement, action, action.text, near)


def _unknown_action(statement: PolicyStatement, action: TemplateValue, name: str, near: _Nearest) -> Finding:
    service = find_service(name.partition(":")[0])
    names = (facts.name for facts in (service.actions_by_name.values() if service else ()))
    if any(wild in name for wild in _WILD):
        return _policy_finding(statement, action, "SEA780", f"{name} matches no action", "name actions that exist")
    hint = near.hint(name, names) or "use an action of the service authorization reference"
    return _policy_finding(statement, action, "SEA780", f"{name} is no action of IAM", hint)


class _Nearest:
    """Hints of known names; only as many as are listed get one, since each takes a comparison with every known name."""

    def __init__(self) -> None:
        self._left = MOST_LISTED

    def hint(self, name: str, known: Iterable[str]) -> str:
        self._left -= 1
        near = nearest_names(name, known) if self._left >= 0 else ()
        return f"did you mean {', '.join(near)}?" if near else ""


@dataclass(frozen=True, slots=True)
class _Rights:
    """What the actions of a statement are on.

    Attributes:
        actions: What each action names, for those that are described.
        on: Of these, what is on a resource of the statement.
        keys: The condition keys, with placeholders, of what is on them.
        patterns: The patterns of the resources; `None` for what is not known.
    """

    actions: Mapping[str, tuple[ActionFacts, ...]]
    on: Mapping[str, tuple[ActionFacts, ...]]
    keys: Mapping[str, frozenset[str]]
    patterns: tuple[str | None, ...]

    def types_of(self, action: str) -> list[str]:
        """Return the names of the resource types that an action is on, sorted."""
        return sorted({target.resource_type.name for fact in self.actions[action] for target in fact.targets})


def _rights(hosting: Hosting, statement: PolicyStatement) -> _Rights | None:
    """Return what a statement's actions are on; `None` where that takes more comparisons than are left."""
    named = {action.text: matching_actions(action.text) for action in statement.actions if action.text}
    actions = {name: facts for name, facts in named.items() if facts}
    patterns = tuple(arn_pattern(hosting.resources, statement.template, resource) for resource in statement.resources)
    compared = {*patterns} if actions and not {None, "*"} & {*patterns} else set()
    of_types = _types_of(hosting, statement, actions, compared)
    if of_types is None:
        return None
    on: dict[str, tuple[ActionFacts, ...]] = {}
    keys: dict[str, frozenset[str]] = {}
    for name, facts in actions.items():
        reached = [(fact, [target for target in fact.targets if target.resource_type in of_types]) for fact in facts]
        kept = [(fact, targets) for fact, targets in reached if not compared or targets or not fact.is_described]
        on[name] = tuple(fact for fact, _ in kept)
        keys[name] = frozenset[str]().union(*(fact.keys_on(targets) for fact, targets in kept))
    return _Rights(actions, on, keys, patterns)


def _types_of(
    hosting: Hosting,
    statement: PolicyStatement,
    actions: Mapping[str, tuple[ActionFacts, ...]],
    patterns: set[str | None],
) -> set[ResourceType] | None:
    """Return the resource types of actions that a pattern is of, every one without patterns; `None` as `_rights`.

    They are found once for all actions: an action for each resource, and each condition for both, would be their
    product.
    """
    types = {target.resource_type for facts in actions.values() for fact in facts for target in fact.targets}
    steps = sum(len(fact.targets) + 1 for facts in actions.values() for fact in facts)
    if not hosting.resources.takes(steps + STEPS_OF_A_PATTERN * len(types) * len(patterns), of=statement.template):
        return None
    return {each for each in types if not patterns or any(each.has(pattern) for pattern in patterns if pattern)}


@rule("SEA781")
def uncarried_keys(hosting: Hosting) -> Iterator[Finding]:
    """A condition on a key that no request for the action carries."""
    for statement in hosting.statements:
        conditions = [each for each in statement.conditions if not each.asks_for_absence]
        rights = _rights(hosting, statement) if conditions else None
        if rights is None or not rights.actions:
            continue
        steps = len(conditions) * len(rights.actions)
        if not hosting.resources.takes(steps, of=statement.template):
            continue
        count = len({action.text for action in statement.actions})
        for condition in conditions:
            without = [
                name
                for name, facts in rights.on.items()
                # Not on them: SEA782 says so.
                if facts and not carry(facts, rights.keys[name], condition.key)
            ]
            if len(without) == count:
                yield _uncarried(statement, condition, without)
            elif without and _is_judged_one_by_one(statement) and not condition.holds_without_key:
                yield _never_allowed(statement, condition, without)


def _uncarried(statement: PolicyStatement, condition: PolicyCondition, actions: list[str]) -> Finding:
    always = condition.holds_without_key
    effect = {
        (True, False): "the statement never allows anything",
        (True, True): "the statement always allows",
        (False, False): "the statement never denies anything",
        (False, True): "the statement always denies",
    }[statement.is_allow, always]
    message = f"{condition.key} is no condition key of {listed_names(actions)}: {effect}"
    is_lost = statement.is_allow and not always
    severity: Severity = "error" if is_lost or _is_refused_by_s3(statement) else "warning"
    hint = "use a key that the action carries, or leave the condition out"
    return _policy_finding(statement, condition.value, "SEA781", message, hint, severity=severity)


def _is_judged_one_by_one(statement: PolicyStatement) -> bool:
    """Return whether each action has a request of its own; a role is assumed and its session tagged by one."""
    return statement.is_allow and statement.policy.kind != "trust"


def _never_allowed(statement: PolicyStatement, condition: PolicyCondition, actions: list[str]) -> Finding:
    message = (
        f"{condition.key} is no condition key of {listed_names(actions)}, which the statement therefore never allows"
    )
    hint = f"allow {listed_names(actions)} in a statement without this condition"
    severity: Severity = "error" if _is_refused_by_s3(statement) else "warning"
    return _policy_finding(statement, condition.value, "SEA781", message, hint, severity=severity)


@rule("SEA782", "SEA783")
def foreign_resources(hosting: Hosting) -> Iterator[Finding]:
    """An action on resources of other types, or a resource that no action of the statement is on."""
    for statement in hosting.statements:
        rights = _rights(hosting, statement)
        if rights is None or not rights.patterns or {None, "*"} & {*rights.patterns}:
            continue
        lost = {name for name, facts in rights.on.items() if not facts}
        effect = "allow" if statement.is_allow else "deny"
        for action in statement.actions:
            if action.text not in lost:
                continue
            rule_id = "SEA783"
            if types := rights.types_of(action.text):
                rule_id, named = "SEA782", listed_names(types)
                message = f"{action.text} is on {named}, not on these resources: the statement does not {effect} it"
                hint = f"name a resource of type {named}"
            else:
                message = f"{action.text} has no resource level: the statement does not {effect} it"
                hint = f"{effect} it in a statement with Resource *"
            severity: Severity | None = "error" if _is_refused_by_s3(statement) else None
            yield _policy_finding(statement, action, rule_id, message, hint, severity=severity)
        if len(rights.actions) == len({each.text for each in statement.actions}) and not lost.issuperset(rights.on):
            yield from _lost_resources(statement, rights)


def _lost_resources(statement: PolicyStatement, rights: _Rights) -> Iterator[Finding]:
    if any(not fact.is_described for facts in rights.actions.values() for fact in facts):
        return
    types = {target.resource_type for facts in rights.actions.values() for fact in facts for target in fact.targets}
    for resource, pattern in zip(statement.resources, rights.patterns, strict=True):
        if pattern is not None and not any(each.has(pattern) for each in types):
            message = f"no action of the statement is on a resource as {pattern}"
            hint = "remove it, or add the action that is on it"
            yield _policy_finding(statement, resource, "SEA782", message, hint, severity="note")


def _is_refused_by_s3(statement: PolicyStatement) -> bool:
    """Return whether S3 refuses such a statement: "Action does not apply to any resource(s) in statement"."""
    return statement.policy.resource.resource_type == BUCKET_POLICY


@rule("SEA785")
def passed_roles(hosting: Hosting) -> Iterator[Finding]:
    """A right to pass roles to whatever service."""
    for statement in hosting.statements:
        passing = [action for action in statement.actions if (action.text or "").lower() == PASSING.lower()]
        is_bound = any(condition.key.lower() == "iam:passedtoservice" for condition in statement.conditions)
        condition = statement.value.at("Condition")
        if not passing or not statement.is_allow or is_bound or not (condition.is_known or condition.is_absent):
            continue
        message = "iam:PassRole without iam:PassedToService: the role may be passed to any service"
        hint = "add the condition StringEquals: iam:PassedToService, as sagemaker.amazonaws.com"
        yield _policy_finding(statement, passing[0], "SEA785", message, hint)


def _policy_finding(
    statement: PolicyStatement,
    value: TemplateValue,
    rule: str,
    message: str,
    hint: str,
    *,
    severity: Severity | None = None,
) -> Finding:
    finding = finding_at(statement.policy.resource, value, rule, message, hint)
    return replace(finding, severity=severity) if severity else finding


@rule("SEA784")
def policy_sizes(hosting: Hosting) -> Iterator[Finding]:
    """A managed policy, a trust policy or a policy of a resource that is too large."""
    for policy in hosting.policies:
        most, kind = _limit(policy)
        size = least_characters(policy.value.raw)
        if most and size > most:
            message = f"{kind} has at least {size:,} characters, more than {most:,}"
            hint = "split it, or name resources by a common prefix with a wildcard"
            yield finding_at(policy.resource, policy.value, "SEA784", message, hint)


@rule("SEA784")
def inline_sizes(hosting: Hosting) -> Iterator[Finding]:
    """Inline policies of a role, user or group that are too large together."""
    # One may have many holders.
    least = {id(policy): least_characters(policy.value.raw) for policy in hosting.policies}
    for holder_type, most in INLINE_CHARACTERS.items():
        for holder in hosting.resources.of(holder_type):
            sizes: dict[str, int] = {}
            for policy in hosting.inline_policies(holder):
                own = policy.value.path.removeprefix("Properties.")
                sizes[own if policy.resource.key == holder.key else policy.resource.logical_id] = least[id(policy)]
            if sum(sizes.values()) > most:
                parts = listed_names([f"{name} {size:,}" for name, size in sizes.items()])
                message = f"the inline policies have at least {sum(sizes.values()):,} characters, more than {most:,}"
                hint = f"move statements into a managed policy ({parts})"
                yield finding_at(holder, holder.at("Policies"), "SEA784", message, hint)


def _limit(policy: PolicyDocument) -> tuple[int, str]:
    """Return the most characters of a policy, and what it is called; 0 where it counts with others or none is known."""
    if policy.kind == "trust":
        return TRUST_CHARACTERS, "the trust policy"
    if policy.resource.resource_type == MANAGED_POLICY:
        return MANAGED_CHARACTERS, "the managed policy"
    return RESOURCE_CHARACTERS.get(policy.resource.resource_type, 0), "the policy"


def least_characters(value: JsonValue) -> int:
    """Return how many characters a document has at least when CloudFormation has evaluated it, without white space."""
    text = replace_references(
        value,
        lambda of: "x" * (SHORTEST_ARN if of.attribute.endswith("Arn") else SHORTEST.get(of.logical_id, 1)),
    )
    if text is not None:
        return len("".join(json.dumps(text, ensure_ascii=False).split()))
    if is_function(value):
        match value:
            case {"Fn::If": [_, first, second]}:
                return min(0 if is_no_value(one) else least_characters(one) for one in (first, second))
        return 0
    if isinstance(value, dict):
        sizes = [least_characters(name) + 1 + least_characters(below) for name, below in value.items()]
    elif isinstance(value, list):
        sizes = [least_characters(below) for below in value if not is_no_value(below)]
    else:
        return len(json.dumps(value))
    return sum(sizes) + max(len(sizes) - 1, 0) + len("{}")
