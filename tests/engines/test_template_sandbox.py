"""Templates are data: who writes them can't run code, read files, or take more than a machine has."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from bisect import bisect_left
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template, Undefined
from jinja2.exceptions import SecurityError
from jinja2.runtime import LoopContext

from seatrial_base.catalog.engine_options import TOPICS
from seatrial_base.errors import RenderError
from seatrial_lint.engines.neutral import EXTRA
from seatrial_lint.engines.properties import escape_key, escape_property
from seatrial_lint.engines.templates import (
    FILTERS,
    LOOP,
    METHODS,
    MOST_FILES,
    MOST_NESTED,
    MOST_SOURCE,
    MOST_WORK,
    STATEMENTS,
    TESTS,
    TemplateLimitError,
    TemplateSandbox,
    TemplateVariables,
    WrittenOption,
    check_template,
    render_template,
    render_variables,
)
from tests.engines.hostile_templates import BOMBS, ESCAPES, TEMPLATE

ROOT = Path(__file__).parents[2]
SHIPPED = ROOT / "serving_templates"
MOST_CPU_S = 2.0
"""Of one rendering; the slowest takes 0.5 s on a machine of 2.2 GHz."""
MOST_MEMORY_MIB = 200
"""Of the process; with nothing rendered it has 45."""
Outcomes = dict[str, dict[str, Any] | None]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    command = [sys.executable, "-m", "tests.engines.hostile_templates", str(tmp_path_factory.mktemp("templates"))]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found: Outcomes = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("name", [*ESCAPES, *BOMBS])
def test_a_hostile_template_ends_in_a_finding(name: str, outcomes: Outcomes) -> None:
    outcome = outcomes[name]
    assert outcome is not None
    assert {rule for rule, *_ in outcome["findings"]} & {"SEA301", "SEA311"}
    assert all(line or "characters" in text for _, line, _, text in outcome["findings"])
    assert outcome["cpu_s"] < MOST_CPU_S
    assert outcome["memory_mib"] < MOST_MEMORY_MIB
    assert not outcome["ran_code"]
    assert "a secret" not in f"{outcome['findings']}"


HARD = ("a=b # c", " leading", "ä\u2028\U0001f600", '{"k": [1, "<x>"]}', "line\nline\ttab\\", "{{ x }}", "")
OPTIONS = {
    topic: [WrittenOption(f"OPTION_{topic.upper()}_{number}", f"{text}", topic) for number, text in enumerate(HARD)]
    for topic in TOPICS
} | {EXTRA: [WrittenOption("KEY WITH=BLANK", "x"), WrittenOption("max_x", "8")]}
VARIABLES = TemplateVariables("for people", OPTIONS)


@pytest.mark.parametrize("name", sorted(path.relative_to(SHIPPED).as_posix() for path in SHIPPED.glob("*/*.j2")))
def test_no_template_of_ours_is_rendered_otherwise_than_jinja_does(name: str) -> None:
    plain = Environment(  # noqa: S701 (no HTML)
        loader=FileSystemLoader(SHIPPED),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    plain.filters |= {"properties": escape_property, "property_key": escape_key}
    expected = plain.get_template(name).render(header=VARIABLES.header, options=VARIABLES.options)
    assert render_template(name, VARIABLES) == expected
    assert len(expected) > 100 * len(TOPICS)


def own_template(folder: Path, text: str, **files: str) -> Path:
    (folder / "vllm").mkdir(exist_ok=True)
    (folder / TEMPLATE).write_text(text, encoding="utf-8")
    for name, content in files.items():
        (folder / name).write_text(content, encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("{% for o in options.extra if o.name == 'max_x' %}{{ o.name | upper }}={{ o.value }}{% endfor %}", "MAX_X=8"),
        ("{{ 'max_x' in options.extra | map(attribute='name') }}", "True"),
        ("{% if options.extra | length > 1 and not false %}a{% elif true %}b{% else %}c{% endif %}", "a"),
        ("{% for o in options.extra %}{{ loop.index }}{{ ',' if not loop.last }}{% endfor %}", "1,2"),
        ("{% set team %}a-{{ header }}{% endset %}{{ team | replace(' ', '_') | trim }}", "a-for_people"),
        ("{{ {'b': [1, true, none], 'a': 'ä'} | tojson }}", '{"a": "\\u00e4", "b": [1, true, null]}'),
        ("{{ team | default('x') ~ '=' ~ ('7' | int) ~ -1 }}", "x=7-1"),
        (
            "{% macro line(o, end='') %}{{ o.name }}{{ end }}{% endmacro %}{{ line(options.extra[1], end=';') }}",
            "max_x;",
        ),
        ("{% macro m() %}x{% endmacro %}" + "{{ m() }}" * 2 * MOST_NESTED, "x" * 2 * MOST_NESTED),
        ("{% import '_team' as team %}{{ team.name('a') }}{% include '_text' %}", "team-a plain"),
        ("{% include '_none' ignore missing %}{% from '_team' import name as n %}{{ n('b') }}", "team-b"),
        ("{% for name, value in {'b': 1, 'a': 2}.items() %}{{ name }}{{ value }}{% endfor %}", "b1a2"),
        ("{{ ['b', 'A'] | sort | join('+') }}{{ 'a b'.split() | first }}{{ [] | first | default('!') }}", "A+ba!"),
        ("{% with x = header %}{{ x.startswith('for') and x is string and x != 'y' }}{% endwith %}", "True"),
        (
            "{{ options.get('none') is none }}{{ options['extra'][0].value }}{% raw %}{{ y }}{% endraw %}",
            "Truex{{ y }}",
        ),
        (
            "{% for all in options.values() %}{% for o in all if 0 %}{{ o }}{% endfor %}{% endfor %}",
            "",
        ),
    ],
)
def test_what_fills_a_template_stays(tmp_path: Path, text: str, result: str) -> None:
    own = own_template(tmp_path, text, _team="{% macro name(of) %}team-{{ of }}{% endmacro %}", _text=" plain")
    assert render_template(TEMPLATE, VARIABLES, own=own) == result


def problems(own: Path) -> list[tuple[str, str]]:
    with pytest.raises(RenderError) as refused:
        render_template(TEMPLATE, VARIABLES, own=own)
    return [(one.rule, one.where.removeprefix(f"{own.as_posix()}/")) for one in refused.value.problems]


def test_every_problem_of_every_file_is_told_at_once(tmp_path: Path) -> None:
    text = "{{ header + 1 }}\n{{ header | attr('x') }}{{ header is odd }}\n{% include '_team' %}\n{% include '_none' %}"
    own = own_template(tmp_path, text, _team="\n{{ ''.__class__ }}\n{% for %}", _unread="{{ 1 + 1 }}")
    assert problems(own) == [
        ("SEA311", f"{TEMPLATE}:1"),
        ("SEA311", f"{TEMPLATE}:2"),
        ("SEA311", f"{TEMPLATE}:2"),
        ("SEA301", "_team:3"),
        ("SEA301", f"{TEMPLATE}:4"),
    ]


@pytest.mark.parametrize(("text", "rule"), [("{{ none_of_it }}", "SEA301"), ("{{ 'x'.format(1) }}", "SEA311")])
def test_what_breaks_in_a_file_that_is_included_is_told_there(tmp_path: Path, text: str, rule: str) -> None:
    own = own_template(
        tmp_path, "a\n{% from '_team' import m %}\n{{ m() }}", _team=f"{{% macro m() %}}\n\n{text}{{% endmacro %}}"
    )
    assert problems(own) == [(rule, "_team:3")]


def test_the_limit_is_a_count_that_is_the_same_in_every_thread(tmp_path: Path) -> None:
    own = own_template(tmp_path, "{% for i in [1, 2] %}{{ header }}{% endfor %}")

    def is_refused(length: int) -> bool:
        try:
            return len(render_template(TEMPLATE, TemplateVariables("x" * length, {}), own=own)) != 2 * length
        except RenderError as error:
            return [one.rule for one in error.problems] == ["SEA311"]

    longest = bisect_left(range(MOST_WORK), x=1, key=is_refused) - 1
    assert MOST_WORK / 2 - 50 < longest < MOST_WORK / 2
    with ThreadPoolExecutor(4) as pool:
        assert [*pool.map(is_refused, [longest, longest + 1] * 8)] == [False, True] * 8


def test_nothing_of_jinja_is_there_but_what_is_listed() -> None:
    sandbox = TemplateSandbox({})
    assert not sandbox.globals
    assert not sandbox.extensions
    assert {name for name in sandbox.filters if " " not in name} == set(FILTERS)
    assert set(sandbox.tests) == set(TESTS)


def test_lines_that_are_none_are_told_up_to_a_hundred(tmp_path: Path) -> None:
    own = own_template(tmp_path, "{% for i in '" + "x" * 2000 + "' %}" + "-" * 300 + "\n{% endfor %}")
    with pytest.raises(RenderError) as refused:
        render_variables(TEMPLATE, VARIABLES, own=own)
    assert len(refused.value.problems) == 101
    assert "1,900 more lines" in refused.value.problems[-1].message
    assert max(len(one.message) for one in refused.value.problems) < 120


@pytest.mark.parametrize("text", ["\n{% include 'TEMPLATE' %}", "\n{% import '_team' as team %}"])
def test_a_file_that_includes_itself_is_told_where_it_does(tmp_path: Path, text: str) -> None:
    own = own_template(tmp_path, text.replace("TEMPLATE", TEMPLATE), _team=f"{{% include '{TEMPLATE}' %}}")
    assert problems(own) == [("SEA311", "_team:1" if "_team" in text else f"{TEMPLATE}:2")]


def test_a_template_has_so_many_files_and_characters_with_what_it_includes(tmp_path: Path) -> None:
    texts = {f"_{number}": "x" for number in range(MOST_FILES)}
    lines = [f"{{% include '{name}' %}}" for name in texts]
    own = own_template(tmp_path, "".join(lines[1:]), **texts)
    assert render_template(TEMPLATE, VARIABLES, own=own) == "x" * (MOST_FILES - 1)
    own_template(tmp_path, "".join(lines))
    assert problems(own) == [("SEA311", f"_{MOST_FILES - 1}")]
    used = len(lines[0])
    own_template(tmp_path, lines[0], _0="x" * (MOST_SOURCE - used))
    assert len(render_template(TEMPLATE, VARIABLES, own=own)) == MOST_SOURCE - used
    own_template(tmp_path, lines[0], _0="x" * (MOST_SOURCE - used + 1))
    assert problems(own) == [("SEA311", "_0")]


def test_the_page_lists_what_there_is() -> None:
    page = (ROOT / "docs/how-to/serving-templates.md").read_text(encoding="utf-8")

    def listed(row: str) -> tuple[str, ...]:
        (line,) = (line for line in page.splitlines() if line.startswith(f"| {row} |"))
        return tuple(re.findall(r"`([^`]+)`", line.split("|", 2)[2]))

    assert listed("statements") == tuple(dict.fromkeys(STATEMENTS.values()))
    assert listed("filters") == FILTERS
    assert listed("tests") == TESTS
    assert listed("methods of a text") == METHODS[str]
    assert listed("methods of a mapping") == METHODS[Mapping]
    assert listed("in a loop") == tuple(f"loop.{name}" for name in LOOP)
    for limit in (f"{MOST_SOURCE:,} characters, {MOST_FILES} files", f"{MOST_WORK:,} steps", f"{MOST_NESTED} levels"):
        assert limit in page


SAMPLES: dict[str, tuple[object, tuple[str, ...]]] = {
    "a text": ("x", METHODS[str]),
    "a mapping": ({"a": 1}, METHODS[Mapping]),
    "an option": (WrittenOption("a", "b"), ("name", "option", "value")),
    "a loop": (LoopContext([1], StrictUndefined), LOOP),
    "a macro": (Template("{% macro m() %}{% endmacro %}").module.m, ()),
    "a module": (Template("{% macro m() %}{% endmacro %}").module, ("m",)),
    "a list": ([1], ()),
    "a number": (1, ()),
    "a method": ("x".lower, ()),
    "a class": (str, ()),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_no_attribute_is_read_but_those_of_the_lists(name: str) -> None:
    value, expected = SAMPLES[name]
    sandbox = TemplateSandbox({})
    readable = [one for one in dir(value) if not isinstance(sandbox.getattr(value, one), Undefined)]
    assert sorted(readable) == sorted(expected)


@pytest.mark.parametrize(
    "text",
    [
        "{{ self }}",
        "{% macro m() %}{{ varargs }}{{ kwargs }}{{ caller }}{% endmacro %}",
        "{{ header.split(*['a']) }}",
        "{{ header.split(**{'sep': 'a'}) }}",
        "{{ header | join(*['a']) }}",
        "{% for i in [] recursive %}{% endfor %}",
        "{% include header %}",
        "{% include ['_team', '_text'] %}",
        "{% extends '_team' %}",
        "{% block a %}{% endblock %}",
        "{% call m() %}{% endcall %}",
        "{% filter upper %}{% endfilter %}",
        "{% autoescape true %}{% endautoescape %}",
        "{% set n.a = 1 %}",
        "{{ header[1:2] }}",
        "{{ header | attr('a') }}",
        "{{ header is sameas header }}",
        *(f"{{{{ 2 {operator} 1 }}}}" for operator in ("+", "-", "*", "/", "//", "%", "**")),
        "{{ +1 }}",
        "{{ header.__class__ }}",
        "{{ header['_a'] }}",
        "{{ 9223372036854775808 }}",
        "{{ " + "(" * (MOST_NESTED + 1) + "1" + ")" * (MOST_NESTED + 1) + " }}",
        "{% if 1 %}" * MOST_NESTED + "{% endif %}" * MOST_NESTED,
    ],
)
def test_what_a_template_may_not_say_is_found_by_its_syntax(text: str) -> None:
    checked = check_template(f"\n{text}", TEMPLATE, TEMPLATE)
    assert {(one.rule, one.where, bool(one.hint)) for one in checked.problems} == {("SEA311", f"{TEMPLATE}:2", True)}
    assert checked.code is None


def test_what_nests_less_is_rendered(tmp_path: Path) -> None:
    depth = MOST_NESTED - 2
    text = "{% for i in [1] if i %}" * (depth - 1) + "{{ " + "(" * MOST_NESTED + "1" + ")" * MOST_NESTED + " }}"
    own = own_template(tmp_path, text + "{% endfor %}" * (depth - 1))
    assert render_template(TEMPLATE, VARIABLES, own=own) == "1"


@pytest.mark.parametrize(
    "text",
    [
        "{{ header }}",
        "{% set a = header ~ '' %}",
        "{% set a = [header] %}",
        "{% set a = (header, 1) %}",
        "{% set a = {header: 1} %}",
        "{% set a = {'a': header} %}",
        "{% set a = header == 'x' %}",
        "{% set a = 'x' in header %}",
        "{% for i in header if false %}{% endfor %}",
        "{% for i in options.values() if false %}{% endfor %}",
        "{% set a = header | length %}",
        "{% set a = 'x' | default(header) %}",
        "{% set a = options.model | length %}",
        "{% set a = header is string %}",
        "{% set a = 'x' is eq(header) %}",
        "{% set a = header.startswith('x') %}",
        "{% set a = 'x'.startswith(header) %}",
        "{% set a = options.get(header) %}",
    ],
)
def test_what_a_template_has_in_hand_counts_by_its_size(text: str) -> None:
    code = check_template(text, TEMPLATE, TEMPLATE).code

    def is_refused(length: int) -> bool:
        options = {"model": [WrittenOption("a", "x" * length)]}
        try:
            TemplateSandbox({TEMPLATE: code}).get_template(TEMPLATE).render(header="x" * length, options=options)
        except TemplateLimitError:
            return True
        return False

    assert not is_refused(100_000)
    assert is_refused(MOST_WORK)


@pytest.mark.parametrize(
    ("text", "more"),
    [
        ("{% macro m0() %}x{% endmacro %}", "{% macro mNEXT() %}{{ mNOW() }}{% endmacro %}"),
        ("{% set m0 = 'x' %}", "{% set mNEXT = [mNOW] %}"),
    ],
)
def test_macros_and_lists_nest_so_far(tmp_path: Path, text: str, more: str) -> None:
    for now in range(MOST_NESTED):
        text += more.replace("NEXT", f"{now + 1}").replace("NOW", f"{now}")
    last = "{{ mN() | trim }}" if "macro" in text else "{% set a = mN | length %}"
    own = own_template(tmp_path, text + last.replace("N", f"{MOST_NESTED - 1}"))
    assert render_template(TEMPLATE, VARIABLES, own=own) in ("x", "")
    own_template(tmp_path, text + last.replace("N", f"{MOST_NESTED}"))
    assert problems(own) == [("SEA311", f"{TEMPLATE}:1")]


@pytest.mark.parametrize("function", ["x".format, [].append, len, print, TemplateSandbox])
def test_nothing_is_called_but_macros_and_methods_of_the_list(function: object) -> None:
    code = check_template("{{ header('a') }}", TEMPLATE, TEMPLATE).code
    with pytest.raises(SecurityError, match="can't be called"):
        TemplateSandbox({TEMPLATE: code}).get_template(TEMPLATE).render(header=function)
