"""Every `sh` and `console` block of the documentation: each command in it is one that its program takes."""

from __future__ import annotations

import re
import shlex
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from botocore import xform_name
from botocore.session import Session

from tests.docs.command_of import command_of

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
MAKEFILES = (ROOT / "Makefile", ROOT / "seatrial" / "repository" / "templates" / "common" / "Makefile.j2")
BLOCK = re.compile(r"^(?P<indent> *)```(?P<kind>sh|console)\n(?P<text>.*?)^ *```$", re.DOTALL | re.MULTILINE)
INNER = re.compile(r'"?\$\((.*)\)"?')
"""A command whose output is a word of another one."""
ASSIGNMENT = re.compile(r"[A-Z_]+=\S*")
BEFORE = frozenset({"npx", "uvx"})
"""Programs and words that only run what follows."""
OF_THE_CDK = frozenset({"bootstrap", "deploy", "destroy", "diff", "ls", "synth"})
OF_THE_AWS_CLI = frozenset({("cloudformation", "deploy"), ("s3", "cp")})
"""Commands of the AWS CLI that are no operation of a service."""
OPTIONS_OF_THE_AWS_CLI = frozenset({"region", "query", "output", "profile", "endpoint_url", "notification_endpoint"})
"""Global ones, and the name that `sns subscribe` gives to `Endpoint`."""
NOT_CHECKED = frozenset(
    {".", "cat", "cd", "echo", "eval", "export", "git", "pip", "printf", "python", "rm", "sed", "uv"}
)


def commands(page: str) -> Iterator[list[str]]:
    """Yield the words of every command of a page; in a console block those behind a prompt."""
    for block in BLOCK.finditer(page):
        text = re.sub(r"\\\n\s*", " ", block["text"])
        lines = [line.strip() for line in text.splitlines()]
        if block["kind"] == "console":
            lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
        for line in lines:
            yield from _words(line)


def _words(line: str) -> Iterator[list[str]]:
    if inner := INNER.search(line):
        yield from _words(inner[1])
        line = INNER.sub("OUTPUT", line)
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|;&<>")
    lexer.whitespace_split = True
    words: list[str] = []
    for word in lexer:
        if set(word) <= set("|;&<>"):
            yield from _command(words)
            words = ["cat"] if set(word) & set("<>") else []
        else:
            words.append(word)
    yield from _command(words)


def _command(words: list[str]) -> Iterator[list[str]]:
    while words and (words[0] in BEFORE or ASSIGNMENT.fullmatch(words[0])):
        words = words[1:]
    if words[:1] == ["--from"]:  # of uvx: where the program comes from
        words = words[2:]
    if words:
        yield words


def mistakes(words: list[str]) -> Iterator[str]:
    """Yield what of a command its program would refuse."""
    program, *rest = words
    if program == "seatrial":
        yield from _of_seatrial(rest)
    elif program == "make":
        yield from (f"make has no target {word}" for word in rest if "=" not in word and word not in targets())
    elif program == "cdk":
        yield from () if rest and rest[0] in OF_THE_CDK else (f"cdk has no command {rest[:1]}",)
    elif program == "aws":
        yield from _of_aws(rest)
    elif program not in NOT_CHECKED:
        yield f"no program {program}"


def _of_seatrial(words: list[str]) -> Iterator[str]:
    command, words = command_of(words)
    if command is None:
        yield f"no command {words[0]}"
        return
    try:
        command.make_context("seatrial", list(words))
    except SystemExit:  # --help and --version
        return
    except Exception as error:  # noqa: BLE001 (the framework's own kinds of wrong usage)
        yield f"{type(error).__name__}: {error}"


@cache
def targets() -> frozenset[str]:
    text = "\n".join(file.read_text(encoding="utf-8") for file in MAKEFILES)
    return frozenset(re.findall(r"^([a-z][a-z-]*):", text, re.MULTILINE))


def _of_aws(words: list[str]) -> Iterator[str]:
    service, operation, *rest = words
    if (service, operation) in OF_THE_AWS_CLI:
        return
    model = Session().get_service_model(service)
    names = {xform_name(name): name for name in model.operation_names}
    found = names.get(operation.replace("-", "_"))
    if found is None:
        yield f"{service} has no operation {operation}"
        return
    shape = model.operation_model(found).input_shape
    known = OPTIONS_OF_THE_AWS_CLI | {xform_name(name) for name in (shape.members if shape else ())}
    given = (word.removeprefix("--").replace("-", "_") for word in rest if word.startswith("--"))
    yield from (f"{operation} has no option {name}" for name in given if name not in known)


def test_every_command_of_a_block_is_one_that_its_program_takes(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert [(words, mistake) for words in commands(text) for mistake in mistakes(words)] == []


@pytest.mark.parametrize("name", ["deploy", "gitops", "vend", "promote", "drift", "review-a-pull-request"])
def test_the_commands_of_a_page_are_found(name: str) -> None:
    assert list(commands((ROOT / "docs" / "how-to" / f"{name}.md").read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("seatrial sail", 1),
        ("seatrial diff --format yaml", 1),
        ("seatrial probe endpoints/chat.yaml", 1),
        ("seatrial plan a.yaml -e dev --write  # a comment", 0),
        ('eval "$(seatrial local env --state DIR --no)"', 1),
        ("uvx seatrial diff --base REF > comment.md && make sail ENV=dev", 1),
        ("npx cdk sail", 1),
        ("aws ssm get-parameter --name A --no B", 1),
        ("aws ssm sail", 1),
        ("sail", 1),
    ],
)
def test_a_command_that_its_program_refuses_is_found(line: str, found: int) -> None:
    block = f"1. Text\n\n   ```sh\n   {line}\n   ```\n"
    assert len([mistake for words in commands(block) for mistake in mistakes(words)]) == found
