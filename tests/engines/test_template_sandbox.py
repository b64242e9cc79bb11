"""Templates are data: who writes them can't run code, read files, or take more than a machine has."""

from __future__ import annotations

import json
import subprocess
import sys
from bisect import bisect_left
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from seatrial_base.catalog.engine_options import TOPICS
from seatrial_base.errors import RenderError
from seatrial_lint.engines.neutral import EXTRA
from seatrial_lint.engines.properties import escape_key, escape_property
from seatrial_lint.engines.sandbox import FILTERS, MOST_WORK, TESTS, TemplateSandbox
from seatrial_lint.engines.templates import TemplateVariables, WrittenOption, render_template, render_variables
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
