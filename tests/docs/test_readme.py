"""README and docs: the example works, links lead somewhere, and every command that is named exists."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from scripts.terminal_recording import DRAWING, RECORDING, drawing
from seatrial.planner.planner import make_plan
from seatrial.specs.load import load_spec
from tests.docs.command_of import command_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.command_line import CommandLine

ROOT = Path(__file__).parents[2]
INDEX = ROOT / "docs" / "README.md"
CODE = re.compile(r"^```\w+\n(.*?)^```$|`([^`\n]+)`", re.DOTALL | re.MULTILINE)
CALL = re.compile(r"(?<![\w./-])seatrial((?:[ ]+[\w./:=@,-]+)+)")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def calls(markdown: str) -> list[list[str]]:
    """Return the words behind each `seatrial` that stands in code."""
    code = [block or inline for block, inline in CODE.findall(markdown)]
    lines = [line.partition("  #")[0] for text in code for line in text.splitlines()]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [match[1].split() for match in CALL.finditer(joined)]


def mistakes(words: list[str]) -> Iterator[str]:
    """Yield what of a call the command line would not know."""
    command, words = command_of(words)
    if command is None:
        yield f"no command {words[0]}"
        return
    known = {"--help", *(option for parameter in command.params for option in parameter.opts)}
    # A lone dash is the standard input in place of a file.
    options = [word for word in words if word.startswith("-") and word != "-"]
    yield from (f"{command.name} has no option {word}" for word in options if word not in known)


def anchors(markdown: str) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in HEADING.findall(markdown))
    return {heading.strip().replace(" ", "-") for heading in plain}


def test_the_example_of_the_readme_validates_and_plans(tmp_path: Path) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.search(r"^```yaml\n# (endpoints/chat\.yaml)\n(.*?)^```$", readme, re.DOTALL | re.MULTILINE)
    assert found is not None
    spec = tmp_path / found[1]
    spec.parent.mkdir()
    spec.write_text(found[2], encoding="utf-8")
    assert make_plan(load_spec(spec, "dev", environments=ROOT / "environments")).endpoint == "chat"


ANSWER = re.compile(r"(<!-- begin answer: .*? -->\n)(.*?)(<!-- end answer -->)", re.DOTALL)
ASKED = (
    "Qwen/Qwen3-32B",
    *("--input", "2000", "--output", "300", "--concurrency", "16", "--ttft-p95", "2500", "--tpot-p95", "60"),
)


def test_the_first_answer_is_what_the_command_shows(tmp_path: Path, command_line: CommandLine) -> None:
    """A model of today and its price, before any file: in an empty folder."""
    done = command_line.run("plan", *ASKED, folder=tmp_path, variables={"COLUMNS": "100", "NO_COLOR": "1"})
    shown = "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines())
    expected = f"\n```console\n$ uvx --from . seatrial plan {' '.join(ASKED)}\n{shown}```\n\n"
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    if os.environ.get("UPDATE_GOLDEN"):
        text = ANSWER.sub(lambda found: found[1] + expected + found[3], readme)
        (ROOT / "README.md").write_text(text, encoding="utf-8")
        return
    found = ANSWER.search(readme)
    assert (done.returncode, None if found is None else found[2]) == (0, expected)


def test_the_recording_of_the_terminal_is_drawn_from_what_was_recorded() -> None:
    assert DRAWING.read_text(encoding="utf-8") == drawing(json.loads(RECORDING.read_text(encoding="utf-8")))


def test_the_overrides_example_merges_as_the_page_says(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "how-to" / "environments.md").read_text(encoding="utf-8")
    found = re.search(r"^```yaml\n(name: chat\n.*?)^```$", page, re.DOTALL | re.MULTILINE)
    assert found is not None
    spec = tmp_path / "chat.yaml"
    spec.write_text(found[1], encoding="utf-8")
    prod, local = (load_spec(spec, name, environments=ROOT / "environments").endpoint for name in ("prod", "local"))
    assert (prod.workload.input_tokens, prod.workload.concurrency) == (256, 96)
    assert prod.serving.instance_types == ("ml.g6.xlarge",)
    assert (prod.model.hub_token_secret, local.model.hub_token_secret) == ("seatrial/hub-token", None)


def test_every_relative_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    broken = []
    for link in LINK.findall(CODE.sub("", page.read_text(encoding="utf-8"))):
        file, _, anchor = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        if re.match(r"[a-z]+:", link):
            continue
        if not target.exists() or (anchor and anchor not in anchors(target.read_text(encoding="utf-8"))):
            broken.append(link)
    assert broken == []


def test_every_page_is_linked_from_the_index() -> None:
    linked = {(INDEX.parent / link).resolve() for link in LINK.findall(INDEX.read_text(encoding="utf-8"))}
    pages = set((ROOT / "docs").rglob("*.md")) - {INDEX}
    assert sorted(page.relative_to(ROOT).as_posix() for page in pages - linked) == []


def test_every_command_and_option_that_is_named_exists(page: Path) -> None:
    assert [(words, mistake) for words in calls(page.read_text(encoding="utf-8")) for mistake in mistakes(words)] == []


def test_the_commands_of_the_readme_are_found() -> None:
    assert ["bench", "endpoints/chat.yaml", "-e", "dev"] in calls((ROOT / "README.md").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("`seatrial sail`", ["no command sail"]),
        ("`seatrial local sink`", ["no command sink"]),
        ("`seatrial plan SPEC --wrote`", ["plan has no option --wrote"]),
        ("`seatrial plan SPEC -e ENV --write`", []),
        ('```console\n$ eval "$(seatrial local up --porto 1)"\n```', ["up has no option --porto"]),
        ("seatrial sail, in prose", []),
    ],
)
def test_a_command_that_does_not_exist_is_found(line: str, found: list[str]) -> None:
    assert [mistake for words in calls(line) for mistake in mistakes(words)] == found
