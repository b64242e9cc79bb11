from __future__ import annotations

import json
import re
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial_base.errors import SpecError
from seatrial_base.findings import RULES, Finding, Format, Place, is_wrong, lint_rules, template_rules
from seatrial_base.printer import LONGEST_SHOWN, Judgement, formatted, tally

FORMATS: tuple[Format, ...] = get_args(Format)
TOKEN = f"hf_{'a1B2' * 9}"
HOSTILE = f"<script> [x](http://e) @everyone `a`|b ::error::x % , : \x1b[31m\u202e\n##[group]{TOKEN}"
FOUND = (
    Finding("SEA433", Place(resource="endpoint other"), "nobody knows it", severity="note"),
    Finding("SEA313", Place("a/serving b.properties", 4, field="option.dtype"), "unknown", "leave it out", "warning"),
    Finding("SEA730", Place("cdk.out/a.json", resource="Component", field="Properties.CopyCount"), "is 0", "set 1"),
)


def printed(output_format: Format, *findings: Finding) -> str:
    return formatted(Judgement(command="check", findings=findings), output_format)


def test_text_has_errors_first_with_place_rule_severity_and_hint() -> None:
    assert printed("text", *FOUND).splitlines() == [
        "cdk.out/a.json: Component: Properties.CopyCount: SEA730: error: is 0",
        "  hint: set 1",
        "a/serving b.properties:4: option.dtype: SEA313: warning: unknown",
        "  hint: leave it out",
        "endpoint other: SEA433: note: nobody knows it",
    ]


def test_json_has_the_findings_the_counts_and_the_facts_of_the_command() -> None:
    text = formatted(Judgement(command="check", findings=FOUND, facts={"region": "eu-west-1"}), "json")
    document = json.loads(text)
    assert {name: document[name] for name in ("schema_version", "command", "region", "counts")} == {
        "schema_version": "2",
        "command": "check",
        "region": "eu-west-1",
        "counts": {"error": 1, "warning": 1, "note": 1},
    }
    assert document["findings"][1] == {
        "rule": "SEA313",
        "title": RULES["SEA313"].title,
        "severity": "warning",
        "file": "a/serving b.properties",
        "line": 4,
        "resource": "",
        "field": "option.dtype",
        "construct": "",
        "message": "unknown",
        "hint": "leave it out",
        "source": RULES["SEA313"].source,
        "evidence": "",
    }


def test_sarif_places_what_has_a_file_and_names_what_has_none() -> None:
    (run,) = json.loads(printed("sarif", *FOUND))["runs"]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["SEA313", "SEA433", "SEA730"]
    assert [(result["ruleId"], result["ruleIndex"], result["level"]) for result in run["results"]] == [
        ("SEA730", 2, "error"),
        ("SEA313", 0, "warning"),
        ("SEA433", 1, "note"),
    ]
    assert [result["locations"] for result in run["results"]] == [
        [
            {
                "physicalLocation": {"artifactLocation": {"uri": "cdk.out/a.json"}},
                "logicalLocations": [{"fullyQualifiedName": "Component"}],
            }
        ],
        [{"physicalLocation": {"artifactLocation": {"uri": "a/serving%20b.properties"}, "region": {"startLine": 4}}}],
        [{"logicalLocations": [{"fullyQualifiedName": "endpoint other"}]}],
    ]


def test_github_annotates_the_line() -> None:
    assert printed("github", *FOUND).splitlines() == [
        "::error file=cdk.out/a.json,title=SEA730::Component: Properties.CopyCount: is 0%0Ahint: set 1",
        "::warning file=a/serving b.properties,line=4,title=SEA313::option.dtype: unknown%0Ahint: leave it out",
        "::notice title=SEA433::endpoint other: nobody knows it",
    ]


def test_markdown_is_a_table_under_its_counts() -> None:
    lines = printed("markdown", *FOUND).splitlines()
    assert lines[0] == "### Seatrial check: 1 error, 1 warning, 1 note"
    assert len(lines) == 4 + len(FOUND)
    assert printed("markdown") == "### Seatrial check: nothing wrong\n"


def test_an_error_and_a_warning_are_wrong_and_a_note_is_not() -> None:
    assert [is_wrong(finding) for finding in FOUND] == [False, True, True]
    assert tally(FOUND) == "1 error, 1 warning, 1 note"


def test_a_place_is_read_as_it_is_written() -> None:
    assert Place.at("endpoints/chat.yaml:12", "slo") == Place("endpoints/chat.yaml", 12, field="slo")
    assert Place.at("arn:aws:x") == Place("arn:aws:x")
    error = SpecError.of("SEA107", "is 0", where="endpoints/chat.yaml:12", field="slo", hint="set 1")
    assert str(error) == "endpoints/chat.yaml:12: slo: SEA107: is 0\n  hint: set 1"


def test_a_finding_has_the_severity_of_its_rule_unless_it_is_given() -> None:
    place = Place("a.properties")
    rows = {rule.id: rule.severity for rule in RULES.rows}
    assert set(rows.values()) == {"error", "warning", "note"}
    assert {rule: Finding(rule, place, "m").severity for rule in rows} == rows
    assert Finding("SEA313", place, "m", severity="note").severity == "note"
    assert Finding("", place, "m").severity == "error"


@given(st.text(), st.text())
def test_a_place_reads_as_it_was_given(where: str, field: str) -> None:
    assert str(Place.at(where, field)) == ": ".join(part for part in (where, field) if part)


def test_the_table_has_a_severity_and_title_for_each_rule() -> None:
    assert all(rule.title for rule in RULES.rows)
    assert all(rule.source for rule in (*lint_rules(), *template_rules()))


pieces = st.sampled_from(["a", "1", "w.x", *HOSTILE.replace(TOKEN, ""), TOKEN, "\r\n", "\u2028", "\x00", "\ud800"])
hostile = st.lists(pieces, max_size=20).map(" ".join)
places = st.builds(Place, hostile, st.integers(0, 9), hostile, hostile, hostile)
findings = st.builds(Finding, st.sampled_from(["", "SEA101", "SEA313"]), places, hostile, hostile)
EXACT = Finding("SEA101", Place(HOSTILE, 1, HOSTILE, HOSTILE, HOSTILE), HOSTILE, HOSTILE)


def _check(output_format: Format, finding: Finding) -> None:
    text = printed(output_format, finding).replace("\N{WORD JOINER}", "")
    assert TOKEN not in text
    assert all(character.isprintable() or character == "\n" for character in text)
    if output_format == "github":
        assert len(text.splitlines()) == 1
        assert re.fullmatch(r"::(error|warning) (file=[^,:]*)?(,?line=\d)?(,?title=SEA\d+)?::[^\n]*\n", text)
    if output_format == "markdown":
        row = text.splitlines()[4]
        prose = re.sub(r"(?<![\\`])(`+)(?!`).*?(?<!`)\1(?!`)", "", row)  # a backtick after a backslash opens nothing
        assert len(text.splitlines()) == 5
        assert len(re.findall(r"(?<!\\)\|", prose)) == 6
        assert not re.search(r"(?<!\\)<(?!/?code>)|(?<!\\)\[", prose)
    if output_format in {"json", "sarif"}:
        json.loads(text)


@pytest.mark.parametrize("output_format", FORMATS)
def test_hostile_text_is_escaped_and_secrets_are_redacted(output_format: Format) -> None:
    _check(output_format, EXACT)


@pytest.mark.parametrize("output_format", FORMATS)
@given(finding=findings)
def test_no_text_leaves_its_format(output_format: Format, finding: Finding) -> None:
    _check(output_format, finding)


@pytest.mark.parametrize("output_format", FORMATS)
def test_a_text_of_any_length_is_quoted_in_part(output_format: Format) -> None:
    long = f"no such action: {'s3:Get' * 200_000}"
    told = printed(output_format, Finding("SEA101", Place("a.json", 1, "Role"), long, long))
    assert "no such action: s3:Gets3:Get" in told
    assert f"… ({len(long):,} characters)" in told
    assert len(told) < 4 * LONGEST_SHOWN


@pytest.mark.parametrize("output_format", FORMATS)
def test_a_credential_at_the_end_of_what_is_quoted_is_masked_first(output_format: Format) -> None:
    text = f"{'- ' * (LONGEST_SHOWN // 2 - 4)}{TOKEN}{'- ' * LONGEST_SHOWN}"
    assert TOKEN[3:12] not in printed(output_format, Finding("SEA101", Place("a.json", 1), text))
