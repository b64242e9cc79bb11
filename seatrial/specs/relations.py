"""Relations of the fields of a document: one needs another, excludes it, or is at most as large; a row for each."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from pydantic import BaseModel, TypeAdapter, ValidationError

from seatrial.specs.yaml_source import written_path
from seatrial_base.frozen_model import models_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from seatrial.specs.yaml_source import Document, FieldPath, Yaml
    from seatrial_base.findings import Finding


class UnknownValueError(Exception):
    """The value of a field was requested that did not validate."""


class Fields:
    """The fields of a document: what is written, and the values of those that validated, defaults included.

    `document`: the document as it is written.
    """

    def __init__(self, document: Document, model: type[BaseModel]) -> None:
        self.document = document
        self._model = model
        self._validated: BaseModel | None = None
        self._wrong: tuple[FieldPath, ...] = ()
        try:
            self._validated = model.model_validate_json(json.dumps(document.data), strict=True)
        except ValidationError as error:
            self._wrong = tuple(written_path(detail["loc"]) for detail in error.errors(include_url=False))

    def written(self, path: str) -> Yaml:
        """Return what is written at a dotted path, valid or not; `None` where nothing is."""
        return self.document.value(*path.split("."))

    def value(self, path: str) -> Any:  # noqa: ANN401 (of any field)
        """Return the value at a dotted path; its default where it is not written.

        Raises:
            UnknownValueError: The field, or a mapping that it is in, did not validate.
        """
        parts = tuple(path.split("."))
        if self._validated is not None:
            node: Any = self._validated
            for part in parts:
                node = getattr(node, part, None)  # of an optional mapping that is left out, as `model.shape`
            return node
        if any(wrong[: len(parts)] == parts[: len(wrong)] for wrong in self._wrong):
            raise UnknownValueError(path)
        # Without a model as a whole, what has no error of its own counts: a mistake elsewhere hides no relation.
        model, default = self._model, None
        kind: Any = None
        for depth, part in enumerate(parts, start=1):
            field = model.model_fields[part]
            default = field.get_default(call_default_factory=True)
            if default is None and self.document.value(*parts[:depth]) is None:
                return None
            kind = field.annotation
            model = next(models_in(kind), model)
        written = self.written(path)
        # As of a whole model: a rule that reads attributes would fail on the mapping that is written.
        return default if written is None else TypeAdapter(kind).validate_json(json.dumps(written), strict=True)

    def problem(self, path: str, rule: str, message: str, hint: str = "") -> Finding:
        """Return a problem placed where the user wrote the field at a dotted path."""
        return self.document.problem(tuple(path.split(".")), rule, message, hint)


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on one field.

    Attributes:
        path: The field, dotted.
        holds: Tells whether it is met.
        of_value: Whether by the value, the default included; else by what is written, valid or not.
    """

    path: str
    holds: Callable[[Any], bool]
    of_value: bool = False


def is_written(path: str) -> Condition:
    """Return the condition that a field is written; a path alone stands for it in a relation."""
    return Condition(path, lambda written: written is not None)


def is_left_out(path: str) -> Condition:
    """Return the condition that a field is not written."""
    return Condition(path, lambda written: written is None)


def is_set(path: str) -> Condition:
    """Return the condition that a field is written and neither 0, false nor empty."""
    return Condition(path, bool)


def is_mapping(path: str) -> Condition:
    """Return the condition that a field is written as a mapping."""
    return Condition(path, lambda written: isinstance(written, dict))


def is_value(path: str, *values: object) -> Condition:
    """Return the condition that a field has one of some values."""
    return Condition(path, lambda value: value in values, of_value=True)


def is_other(path: str, value: object) -> Condition:
    """Return the condition that a field has another value than one."""
    return Condition(path, lambda actual: actual != value, of_value=True)


def is_above(path: str, bound: float) -> Condition:
    """Return the condition that a number is known and above a bound."""
    return Condition(path, lambda value: value is not None and value > bound, of_value=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """A relation of fields: broken where all of `when` are met, none of `unless` is, and `ordered` are not in order.

    It has no finding where a value that it compares did not validate: that field has one of its own.

    Attributes:
        place: The field at which a finding is placed, dotted.
        message: What is wrong; `{0}` and `{1}` are the values of `shown`.
        hint: How to correct it, with the same.
        when: Conditions.
        unless: Conditions.
        ordered: Two numbers, the second of which is at least the first; empty for a relation without numbers.
        strictly: Whether it is above the first.
        shown: The fields whose values the texts show.
    """

    rule: str
    place: str
    message: str
    hint: str
    when: tuple[Condition, ...] = ()
    unless: tuple[Condition, ...] = ()
    ordered: tuple[str, ...] = ()
    strictly: bool = False
    shown: tuple[str, ...] = ()

    def __call__(self, fields: Fields) -> Iterator[Finding]:
        """Yield the finding where the relation is broken."""

        def is_met(condition: Condition) -> bool:
            actual = fields.value(condition.path) if condition.of_value else fields.written(condition.path)
            return condition.holds(actual)

        if not all(map(is_met, self.when)) or any(map(is_met, self.unless)):
            return
        numbers = [fields.value(path) for path in self.ordered]
        if numbers and (None in numbers or numbers[0] < numbers[1] or (not self.strictly and numbers[0] == numbers[1])):
            return
        values = [fields.value(path) for path in self.shown]
        yield fields.problem(self.place, self.rule, self.message.format(*values), self.hint.format(*values))


def needs(
    rule: str,
    field: str | Condition,
    *others: str | Condition,
    hint: str,
    message: str = "",
    place: str = "",
    when: tuple[Condition, ...] = (),
    shown: tuple[str, ...] = (),
) -> Relation:
    """Return the relation that a field needs one of some others, placed at the field unless `place` is given."""
    first, *unless = (is_written(each) if isinstance(each, str) else each for each in (field, *others))
    return Relation(
        rule=rule,
        place=place or first.path,
        message=message or f"{_name(first.path)} needs {_name(unless[0].path)}",
        hint=hint,
        when=(first, *when),
        unless=tuple(unless),
        shown=shown,
    )


def excludes(
    rule: str,
    field: str | Condition,
    other: str | Condition,
    *,
    hint: str,
    message: str = "",
    place: str = "",
    when: tuple[Condition, ...] = (),
    shown: tuple[str, ...] = (),
) -> Relation:
    """Return the relation that a field excludes another, placed at the other unless `place` is given."""
    first, second = (is_written(each) if isinstance(each, str) else each for each in (field, other))
    return Relation(
        rule=rule,
        place=place or second.path,
        message=message or f"{_name(first.path)} and {_name(second.path)} exclude each other",
        hint=hint,
        when=(first, second, *when),
        shown=shown,
    )


def at_most(
    rule: str,
    field: str,
    bound: str,
    *,
    hint: str,
    message: str = "",
    place: str = "",
    when: tuple[Condition, ...] = (),
    strictly: bool = False,
) -> Relation:
    """Return the relation that a number is at most another, which holds where one of them is not given.

    A finding is placed at the number unless `place` is given.
    """
    return Relation(
        rule=rule,
        place=place or field,
        message=message or f"{_name(field)} {{0}} exceeds {_name(bound)} {{1}}",
        hint=hint,
        when=when,
        ordered=(field, bound),
        strictly=strictly,
        shown=(field, bound),
    )


def _name(path: str) -> str:
    return path.rpartition(".")[2]


Rule: TypeAlias = "Callable[[Fields], Iterator[Finding]]"
"""A relation, or a function for what is computed."""


def broken_rules(rules: Iterable[Rule], document: Document, model: type[BaseModel]) -> Iterator[Finding]:
    """Yield the findings of rules in their order."""
    # Made once for all rules: it validates the document.
    fields = Fields(document, model)
    for rule in rules:
        # What has a finding of its own is not compared: a second one about it would only repeat the first.
        with suppress(UnknownValueError):
            yield from rule(fields)
