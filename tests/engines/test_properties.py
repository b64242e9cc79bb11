from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial_base.errors import RenderError
from seatrial_lint.engines.properties import (
    PropertyLine,
    escape_key,
    escape_property,
    parse_properties,
    read_env_lines,
    read_properties,
    write_env,
)
from seatrial_lint.engines.templates import TemplateVariables, render_template

KEYS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
NAMES = st.from_regex(r"[A-Z][A-Z0-9_]{0,10}", fullmatch=True)
VALUES = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


@given(KEYS, VALUES)
def test_every_key_reads_back(key: str, value: str) -> None:
    assert parse_properties(f"{escape_key(key)}={escape_property(value)}\n") == {key: value}


def test_an_entry_begins_on_the_line_of_its_key() -> None:
    assert [(line.key, line.number) for line in read_properties("# c\na=1\\\n  2\n\nb=3\n")] == [("a", 2), ("b", 5)]
    assert [(line.key, line.number) for line in read_env_lines("# c\n\nA=1\n")] == [("A", 3)]


def test_only_line_ends_end_a_variable() -> None:
    assert read_env_lines("A=x\u2028y\x0cz\nB=1\n") == (
        PropertyLine("A", "x\u2028y\x0cz", 1),
        PropertyLine("B", "1", 2),
    )


@given(VALUES)
def test_every_value_reads_back(value: str) -> None:
    assert parse_properties(f"option.x={escape_property(value)}\n") == {"option.x": value}


@given(st.dictionaries(NAMES, st.text(st.characters(categories=["L", "N", "P", "Zs"]), max_size=20)))
def test_every_environment_reads_back(env: dict[str, str]) -> None:
    assert {line.key: line.value for line in read_env_lines(write_env(env))} == env


@given(st.text(max_size=200))
def test_any_text_is_read(text: str) -> None:
    assert isinstance(parse_properties(text), dict)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1\na=2\n", {"a": "2"}),
        ("# c\n! d\n\n a = b c \n", {"a": "b c "}),
        ("a=b\\\n   c\n", {"a": "bc"}),
        ("a=\\u00e9\\\\\n", {"a": "é\\"}),
        ("a\n", {"a": ""}),
        ("a:1\nb 2\nc\t=\t3\n", {"a": "1", "b": "2", "c": "3"}),
        ("a\\ b\\=c=1\n", {"a b=c": "1"}),
        ("a\\\\=1\n", {"a\\": "1"}),
        ("a==1\n", {"a": "=1"}),
        ("\\\n\na=1\n", {"a": "1"}),
        ("a=1\\\n#b=2\n", {"a": "1#b=2"}),
    ],
)
def test_java_s_rules(text: str, expected: dict[str, str]) -> None:
    assert parse_properties(text) == expected


def test_an_undefined_name_is_an_error_and_not_nothing() -> None:
    with pytest.raises(RenderError, match="SEA301: UndefinedError: "):
        render_template("lmi/serving.properties.j2", TemplateVariables("", {}))


def test_an_unknown_template_is_named() -> None:
    with pytest.raises(RenderError, match="serving_templates/none: SEA301: TemplateNotFound: "):
        render_template("none", TemplateVariables("", {}))
