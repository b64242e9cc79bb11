"""Functions are evaluated as CloudFormation does, as far as a template tells."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial_lint.cloudformation.intrinsic import (
    LONGEST_TEXT,
    Reference,
    TemplateScope,
    evaluate,
    references,
    replace_references,
)

if TYPE_CHECKING:
    from pydantic import JsonValue

SCOPE = TemplateScope(
    {"AWS::Region": "eu-west-1", "AWS::Partition": "aws"}, {"Accounts": {"eu-west-1": {"djl": "763104351884"}}}
)
IF: JsonValue = {"Fn::If": ["Large", 2, 1]}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"Ref": "AWS::Region"}, "eu-west-1"),
        ({"Ref": "Model"}, {"Fn::Sub": "${Model}"}),
        ({"Fn::GetAtt": ["Stack", "Outputs.Name"]}, {"Fn::Sub": "${Stack.Outputs.Name}"}),
        ({"Fn::GetAtt": "Model.ModelName"}, {"Fn::Sub": "${Model.ModelName}"}),
        ({"Fn::Sub": "a-${AWS::Region}-${B}"}, {"Fn::Sub": "a-eu-west-1-${B}"}),
        ({"Fn::Sub": "${!x}"}, "${x}"),
        ({"Fn::Sub": ["${A}-x", {"A": "b"}]}, "b-x"),
        ({"Fn::Sub": ["${A}-${B}", {"A": {"Ref": "C"}}]}, {"Fn::Sub": "${C}-${B}"}),
        ({"Fn::Sub": ["${A}", {"A": "${B}"}]}, "${B}"),
        ({"Fn::Sub": ["${A}", {"A": IF}]}, {"Fn::Sub": ["${A}", {"A": IF}]}),
        ({"Fn::Join": ["-", ["a", {"Ref": "AWS::Region"}, 7]]}, "a-eu-west-1-7"),
        ({"Fn::Join": ["-", ["a", {"Ref": "AWS::NoValue"}, "b"]]}, "a-b"),
        ({"Fn::Join": ["-", [IF]]}, {"Fn::Join": ["-", [IF]]}),
        ({"Fn::Join": [".", {"Fn::Split": ["-", {"Ref": "AWS::Region"}]}]}, "eu.west.1"),
        ({"Fn::Select": ["1", {"Fn::Split": ["-", "a-b"]}]}, "b"),
        ({"Fn::Select": [2, ["a"]]}, {"Fn::Select": [2, ["a"]]}),
        ({"Fn::FindInMap": ["Accounts", {"Ref": "AWS::Region"}, "djl"]}, "763104351884"),
        (
            {"Fn::FindInMap": ["Accounts", {"Ref": "Other"}, "djl"]},
            {"Fn::FindInMap": ["Accounts", {"Fn::Sub": "${Other}"}, "djl"]},
        ),
        ({"A": {"Ref": "AWS::NoValue"}, "B": [{"Ref": "AWS::NoValue"}, 1]}, {"B": [{"Ref": "AWS::NoValue"}, 1]}),
    ],
)
def test_a_function_becomes_what_the_template_tells(value: JsonValue, expected: JsonValue) -> None:
    assert evaluate(value, SCOPE) == expected


def _nested(function: str, depth: int) -> JsonValue:
    value: JsonValue = IF if function == "Fn::FindInMap" else "x" * 100
    for _ in range(depth):
        value = {function: [value, "a", "b"] if function == "Fn::FindInMap" else ["${V}${V}", {"V": value}]}
    return value


@pytest.mark.parametrize(
    "value",
    [_nested("Fn::FindInMap", 30), _nested("Fn::Sub", 21), {"Fn::Sub": "${" * 500_000}, {"Fn::Sub": "${a" * 300_000}],
)
def test_no_value_takes_more_than_its_length_in_time_and_memory(value: JsonValue) -> None:
    assert len(f"{evaluate(value, SCOPE)}") < 3 * LONGEST_TEXT


def test_references_come_in_the_order_of_the_text() -> None:
    value = evaluate({"A": {"Fn::Sub": "${X.Arn}/${!Y}"}, "B": [{"Ref": "Z"}]}, TemplateScope())
    assert list(references(value)) == [Reference("X", "Arn"), Reference("Z", "")]


PARAMETERS = {"AWS::Region": "eu-west-1", "AWS::AccountId": "123456789012", "AWS::StackName": "a-${b}"}
"""Every reference of the values below, so that a template tells all of them."""
TEXTS = st.text("ab-$}{!", max_size=4).filter(lambda text: "${" not in text)
REFERENCES = st.sampled_from(sorted(PARAMETERS))


def _functions(inner: st.SearchStrategy[JsonValue]) -> st.SearchStrategy[JsonValue]:
    def function(name: str, argument: JsonValue) -> JsonValue:
        return {name: argument}

    def literal_after(text: str, name: str) -> JsonValue:
        return f"{text}-${{{name}}}-${{!{name}}}"

    def with_variable(text: str, value: JsonValue) -> JsonValue:
        return [f"{text}-${{V}}", {"V": value}]

    def pair(first: JsonValue, items: list[JsonValue]) -> JsonValue:
        return [first, items]

    return st.one_of(
        st.builds(function, st.just("Ref"), REFERENCES),
        st.builds(function, st.just("Fn::Sub"), st.builds(literal_after, TEXTS, REFERENCES)),
        st.builds(function, st.just("Fn::Sub"), st.builds(with_variable, TEXTS, inner)),
        st.builds(function, st.just("Fn::Join"), st.builds(pair, TEXTS, st.lists(inner, max_size=3))),
        st.builds(function, st.just("Fn::Select"), st.builds(pair, st.just(0), st.lists(inner, min_size=1))),
    )


def _meaning(value: JsonValue) -> str:
    """Return the text of a value, worked out in another way: by splitting texts, never by replacing in them."""
    match value:
        case {"Ref": str(name)}:
            return PARAMETERS[name]
        case {"Fn::Sub": [str(text), {"V": inner}]}:
            return _substituted(text, {"V": _meaning(inner)})
        case {"Fn::Sub": str(text)}:
            return _substituted(text, PARAMETERS)
        case {"Fn::Join": [str(separator), [*parts]]}:
            return separator.join(map(_meaning, parts))
        case {"Fn::Select": [0, [first, *_]]}:
            return _meaning(first)
    return f"{value}"


def _substituted(text: str, values: dict[str, str]) -> str:
    pieces = re.split(r"\$\{([^}]*)\}", text)
    return "".join(
        piece if not number % 2 else f"${{{piece[1:]}}}" if piece.startswith("!") else values[piece]
        for number, piece in enumerate(pieces)
    )


@given(st.recursive(TEXTS, _functions, max_leaves=8))
def test_where_every_reference_is_known_a_value_is_its_text(value: JsonValue) -> None:
    assert evaluate(value, TemplateScope(PARAMETERS)) == _meaning(value)


@given(st.recursive(TEXTS, _functions, max_leaves=8))
def test_it_means_the_same_whether_references_are_known_before_or_replaced_later(value: JsonValue) -> None:
    later = evaluate(value, TemplateScope())
    assert replace_references(later, lambda one: PARAMETERS[one.logical_id]) == _meaning(value)
