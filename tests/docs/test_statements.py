"""What the prose of a page states of options, rules, fields and numbers is so.

`statements.json` names the source of each number with a unit, and the options of other programs that prose names. A
source is a constant (`module:CONSTANT unit`), a file of ours that has the number, what the section says of it
(`measured`, `simulated`, or an `example`, which claims nothing), or somebody else's fact (`source WHO, WHERE`).
"""

from __future__ import annotations

import json
import re
from importlib import import_module
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, Final

import typer.core

from seatrial.specs.endpoint import EndpointSpec
from seatrial.specs.environment import EnvironmentSpec
from seatrial.specs.load import validated
from seatrial.specs.product import ProductSpec
from seatrial.specs.yaml_source import merge_environment, parse_source
from seatrial_base.findings import RULES
from tests.docs.command_of import every_command
from tests.docs.conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from typer._click.core import Command

BLOCK = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
MADE = re.compile(r"<!-- begin .*?<!-- end [^>]*-->", re.DOTALL)
DATA: Final = json.loads((Path(__file__).parent / "statements.json").read_text(encoding="utf-8"))
UNITS: Final[dict[str, float]] = DATA["units"]
NUMBER = re.compile(rf"(?<![\w.,])\d+(?:,\d{{3}})*(?:\.\d+)? (?:{'|'.join(UNITS)})\b(?!/)")


def options(command: Command) -> Iterator[str]:
    for parameter in command.params:
        yield from (*parameter.opts, *parameter.secondary_opts)
    for inner in command.commands.values() if isinstance(command, typer.core.TyperGroup) else ():
        yield from options(inner)


def wrong_in(block: str) -> list[str]:
    """Return what no file of ours takes of a YAML block; a block may leave fields out."""
    source, models = parse_source(dedent(block), "block"), (EndpointSpec, EnvironmentSpec, ProductSpec)
    ours = [model for model in models if source.data.keys() & {*model.model_fields, "environments"}]
    named = source.data.get("environments")
    wrong = [str(each) for each in source.problems]
    for environment in (None, *(named if isinstance(named, dict) else ())):
        document = merge_environment(source, environment)
        problems = [[str(each) for each in validated(one, document)[1] if each.rule != "SEA106"] for one in ours]
        wrong += [each for nearest in sorted(problems, key=len)[:1] for each in nearest]
    return wrong


def test_a_field_that_no_file_has_is_noticed() -> None:
    assert wrong_in("environments: {dev: {slo: {ttft: {p95: 1}}}}")
    assert wrong_in("slo: {error_rate: 0.1}") == []


def test_options_rules_and_fields_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert {rule for rule in re.findall(r"SEA\d{3}\b", text) if RULES.get(rule) is None} == set()
    if page.name in {"CHANGELOG.md", "cli.md", "laptop.md"}:  # of all releases; generated; run as it stands
        return
    spans = re.findall(r"(?<!`)`([^`\n]+)`", BLOCK.sub("", text))
    named = {option for span in spans for option in re.findall(r"(?<!\S)--[a-z][a-z0-9-]+", span)}
    assert named - {*options(every_command())} <= {*DATA["options of others"]}
    assert [wrong_in(block) for kind, block in BLOCK.findall(text) if kind == "yaml" and wrong_in(block)] == []


def test_numbers_are_those_of_their_source(page: Path) -> None:
    if page.name in {"CHANGELOG.md", "accuracy.md"} or "reference" in page.parts:  # of all releases; measured; made
        return
    prose = MADE.sub("", BLOCK.sub("", page.read_text(encoding="utf-8")))
    sources: dict[str, str] = DATA["numbers"].get(page.relative_to(ROOT).as_posix(), {})
    assert {*NUMBER.findall(prose)} == {*sources}, "give each new number its source in statements.json"
    for number, source in sources.items():
        value, _, own = number.partition(" ")
        said = [section for section in re.split(r"(?m)^#+ ", prose) if number in section]
        if source in {"measured", "simulated"}:
            words = (
                r"measured|medians? of|takes?\b|took|accepted|installed"
                if source == "measured"
                else "simulat|engine whose"
            )
            assert any(re.search(words, section, re.IGNORECASE) for section in said), (number, source)
        elif "/" in source and not source.startswith("source "):
            digits = rf"(?<![\w.]){re.escape(value.replace(',', ''))}(?!\d|\.\d*[1-9])"
            assert re.search(digits, (ROOT / source).read_text(encoding="utf-8").replace(",", "").replace("_", "")), (
                number
            )
        elif source != "example" and not re.match(r"source \w", source):
            module, _, constant = source.partition(":")
            name, _, unit = constant.partition(" ")
            exact = getattr(import_module(module), name) * UNITS.get(unit, 1)
            assert exact == float(value.replace(",", "")) * UNITS[own], number
