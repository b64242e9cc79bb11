"""Statements of IAM policies: actions and condition keys that exist, on resources of their types."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from seatrial_base.catalog.rows import nearest_names
from seatrial_base.catalog.service_authorization import find_service, matching_actions, service_prefixes
from seatrial_lint.template_rules.hosting import finding_at
from seatrial_lint.template_rules.policy_documents import BUCKET_POLICY, arn_pattern

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from seatrial_base.catalog.service_authorization import ActionFacts
    from seatrial_base.findings import Finding, Severity
    from seatrial_lint.cloudformation.template_value import TemplateValue
    from seatrial_lint.template_rules.hosting import Hosting
    from seatrial_lint.template_rules.policy_documents import PolicyCondition, PolicyStatement

PASSING = "iam:PassRole"
PASSED_TO = "iam:passedtoservice"
_WILD = ("*", "?")


def unknown_actions(hosting: Hosting) -> Iterator[Finding]:
    """SEA780: an action that IAM does not have, or a wildcard that names none."""
    for statement in hosting.statements:
        for action in (*statement.actions, *statement.excepted_actions):
            prefix, colon, _ = (action.text or "*").partition(":")
            if action.text is None or action.text == "*" or any(wild in prefix for wild in _WILD):
                continue
            if not colon:
                message = f"{action.text} is no action: the service is missing"
                yield _found(statement, action, "SEA780", message, "write SERVICE:ACTION, as sagemaker:CreateEndpoint")
            elif prefix.lower() not in service_prefixes():
                hint = _nearest(prefix, service_prefixes()) or "use the service's prefix of IAM"
                message = f"{prefix} is no service of IAM ({action.text})"
                yield _found(statement, action, "SEA780", message, hint, severity="warning")
            elif find_service(prefix) and not matching_actions(action.text):
                yield _unknown_action(statement, action, action.text)


def _unknown_action(statement: PolicyStatement, action: TemplateValue, name: str) -> Finding:
    service = find_service(name.partition(":")[0])
    names = [facts.name for facts in service.actions_by_name.values()] if service else []
    if any(wild in name for wild in _WILD):
        return _found(statement, action, "SEA780", f"{name} matches no action", "name actions that exist")
    hint = _nearest(name, names) or "use an action of the service authorization reference"
    return _found(statement, action, "SEA780", f"{name} is no action of IAM", hint)


def _nearest(name: str, known: Iterable[str]) -> str:
    near = nearest_names(name, known)
    return f"did you mean {', '.join(near)}?" if near else ""


def uncarried_keys(hosting: Hosting) -> Iterator[Finding]:
    """SEA781: a condition on a key that no request for the action carries."""
    for statement in hosting.statements:
        actions = _known_actions(statement)
        patterns = _patterns(hosting, statement)
        for condition in statement.conditions if actions else ():
            if condition.asks_for_absence:
                continue
            without = [name for name, facts in actions.items() if not _carry(facts, condition.key, patterns)]
            if len(without) == len({each.text for each in statement.actions}):
                yield _uncarried(statement, condition, without)
            elif without and _is_judged_one_by_one(statement) and not condition.holds_without_key:
                yield _never_allowed(statement, condition, without)


def _is_judged_one_by_one(statement: PolicyStatement) -> bool:
    """Tell whether each action has a request of its own; a role is assumed and its session tagged by one."""
    return statement.is_allow and statement.policy.kind != "trust"


def _carry(actions: tuple[ActionFacts, ...], key: str, patterns: list[str]) -> bool:
    on = [(facts, pattern) for facts in actions for pattern in patterns if facts.applies_to(pattern)]
    return not on or any(facts.carries(key, pattern) for facts, pattern in on)  # not on them: SEA782 says so


def _uncarried(statement: PolicyStatement, condition: PolicyCondition, actions: list[str]) -> Finding:
    always = condition.holds_without_key
    effect = {
        (True, False): "the statement never allows anything",
        (True, True): "the statement always allows",
        (False, False): "the statement never denies anything",
        (False, True): "the statement always denies",
    }[statement.is_allow, always]
    message = f"{condition.key} is no condition key of {_listed(actions)}: {effect}"
    is_lost = statement.is_allow and not always
    severity: Severity = "error" if is_lost or _is_refused_by_s3(statement) else "warning"
    hint = "use a key that the action carries, or leave the condition out"
    return _found(statement, condition.value, "SEA781", message, hint, severity=severity)


def _never_allowed(statement: PolicyStatement, condition: PolicyCondition, actions: list[str]) -> Finding:
    message = f"{condition.key} is no condition key of {_listed(actions)}, which the statement therefore never allows"
    hint = f"allow {_listed(actions)} in a statement without this condition"
    severity: Severity = "error" if _is_refused_by_s3(statement) else "warning"
    return _found(statement, condition.value, "SEA781", message, hint, severity=severity)


def foreign_resources(hosting: Hosting) -> Iterator[Finding]:
    """SEA782: an action on resources of other types, or a resource that no action of the statement is on."""
    for statement in hosting.statements:
        patterns = [arn_pattern(hosting.resources, statement.template, each) for each in statement.resources]
        if not patterns or None in patterns or "*" in patterns:
            continue
        known = [pattern for pattern in patterns if pattern]
        actions = _known_actions(statement)
        lost = {name for name, facts in actions.items() if not _apply(facts, known)}
        yield from _lost_actions(statement, actions, lost)
        if len(actions) == len({each.text for each in statement.actions}) and not lost.issuperset(actions):
            yield from _lost_resources(statement, actions, known)


def _apply(actions: tuple[ActionFacts, ...], patterns: list[str]) -> bool:
    return any(facts.applies_to(pattern) for facts in actions for pattern in patterns)


def _lost_actions(
    statement: PolicyStatement, actions: Mapping[str, tuple[ActionFacts, ...]], lost: set[str]
) -> Iterator[Finding]:
    effect = "allow" if statement.is_allow else "deny"
    for action in statement.actions:
        if action.text not in lost:
            continue
        types = sorted({each.resource_type.name for facts in actions[action.text] for each in facts.targets})
        if types:
            message = (
                f"{action.text} is on {_listed(types)}, not on these resources: the statement does not {effect} it"
            )
            hint = f"name a resource of type {_listed(types)}"
        else:
            message = f"{action.text} has no resource level: the statement does not {effect} it"
            hint = f"{effect} it in a statement with Resource *"
        severity: Severity | None = "error" if _is_refused_by_s3(statement) else None
        yield _found(statement, action, "SEA782" if types else "SEA783", message, hint, severity=severity)


def _lost_resources(
    statement: PolicyStatement, actions: Mapping[str, tuple[ActionFacts, ...]], patterns: list[str]
) -> Iterator[Finding]:
    for resource, pattern in zip(statement.resources, patterns, strict=True):
        if not any(_apply(facts, [pattern]) for facts in actions.values()):
            message = f"no action of the statement is on a resource as {pattern}"
            hint = "remove it, or add the action that is on it"
            yield _found(statement, resource, "SEA782", message, hint, severity="note")


def _is_refused_by_s3(statement: PolicyStatement) -> bool:
    """Tell whether S3 refuses such a statement: "Action does not apply to any resource(s) in statement"."""
    return statement.policy.resource.resource_type == BUCKET_POLICY


def passed_roles(hosting: Hosting) -> Iterator[Finding]:
    """SEA785: a right to pass roles to whatever service."""
    for statement in hosting.statements:
        passing = [each for each in statement.actions if (each.text or "").lower() == PASSING.lower()]
        is_bound = any(condition.key.lower() == PASSED_TO for condition in statement.conditions)
        condition = statement.value.at("Condition")
        if not passing or not statement.is_allow or is_bound or not (condition.is_known or condition.is_absent):
            continue
        message = "iam:PassRole without iam:PassedToService: the role may be passed to any service"
        hint = "add the condition StringEquals: iam:PassedToService, as sagemaker.amazonaws.com"
        yield _found(statement, passing[0], "SEA785", message, hint)


def _known_actions(statement: PolicyStatement) -> dict[str, tuple[ActionFacts, ...]]:
    """Return what each action of a statement names, for those that are described."""
    named = {each.text: matching_actions(each.text) for each in statement.actions if each.text}
    return {name: facts for name, facts in named.items() if facts}


def _patterns(hosting: Hosting, statement: PolicyStatement) -> list[str]:
    """Return the patterns of a statement's resources; `*` for what is not known."""
    patterns = [arn_pattern(hosting.resources, statement.template, each) for each in statement.resources]
    return [pattern or "*" for pattern in patterns] or ["*"]


def _listed(names: list[str]) -> str:
    most = 5
    shown = ", ".join(names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown


def _found(
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
