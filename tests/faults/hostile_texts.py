"""Texts on which a pattern that tries again and again never ends, and how much CPU each reader takes for them.

    python -m tests.faults.hostile_texts LENGTH LIMIT_S [READER…] [--few]

A reader is run on each text within this process, as the command line runs it, until `STOPPED_AT` times its limit is
used up. What is counted is CPU time: other processes make it later, and not much longer. What took longer than its
limit is tried again when all others were, in `ROUNDS` rounds at most; on a machine slower than the one that the limits
are written for, they are as much longer. What a reader takes for a text of no length, imports most of all, does not
count. One JSON object comes out: CPU seconds by reader and text; null where no try ended within the limit. With
`--few`, each reader but `secrets` gets only the texts in `FOR_ALL`.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import resource
import signal
import sys
import tempfile
import time
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from typer import Exit

from seatrial_base.errors import SeatrialError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SPEC = """name: chat
model: {hub_id: meta-llama/Llama-2-7b-chat-hf, accept_eula: true}
workload: {input_tokens: 256, output_tokens: 256, concurrency: 4}
serving: {instance_types: [ml.g5.2xlarge], code: ../code}
"""
COPIES = 8
"""Of a text in a template, and nearly as many in a table: these have the length together."""
MOST_MEMORY_BYTES = 3 * 2**30
ROUNDS = 6
MOST_OF_PROGRAMS_S = 1.0
"""What a program may take, whatever its length is: what is followed in it has a bound."""
STOPPED_AT = 8
REFERENCE_S = 0.010
"""CPU seconds of `_reference` on two idle cores of the machine that the limits are written for (Xeon, 2.2 GHz)."""

REPEATED: dict[str, tuple[str, str, str]] = {
    "zeros": ("0", "", "token"),
    "letters": ("a", "", "token"),
    "a letter and digits": ("a0-", "", "token"),
    "filled, but for its end": ("x", "!", "password"),
    "dots, but for their end": (".", "!", "password"),
    "words of a placeholder": ("key-", "!", "password"),
    "words of a path": ("a/", "!", "password"),
    "a path": ("/a", "!", "password"),
    "holes": ("${", "", "password"),
    "holes of a template": ("{a", "", "password"),
    "percent holes": ("%(a", "", "password"),
    "brackets": ("[", "", "password"),
    "digests": ("sha1", "", "token"),
    "names that may say it": ("pat=", "", ""),
    "names that say it": ("password=", "", ""),
    "quoted names": ('password="', "", ""),
    "entities": ("password=&quot;", "", ""),
    "lines": ("password: \n", "", ""),
    "exported names": ("export password=", "", ""),
    "indented names": ("+" * 80 + "password=", "", ""),
    "flags": ("--token ", "", ""),
    "digits before a name": ("1", "key=x", ""),
    "digits in a name": ("1", "!key", ""),
    "values in a name": ("_value1", "", ""),
    "signatures": ("?X-Amz-Signature=", "", ""),
    "users": ("https://a:", "", ""),
    "bearers": ("bearer ", "", ""),
    "headers": ('authorization" ', "", ""),
    "basics": ("basic ", "", ""),
    "keys": ("-----BEGIN PRIVATE KEY-----", "", ""),
    "beginnings of keys": ("-----BEGIN ", "PRIVATE KEY", ""),
    "tokens within tokens": ("-eyJ", "", ""),
    "heads of tokens": ("eyJaaaaaaaa.", "", ""),
    "Hugging Face": ("hf_", "", ""),
    "OpenAI": ("sk-", "", ""),
    "SendGrid": ("SG.", "", ""),
    "Telegram": ("123456789:AA", "", ""),
    "ids of keys": ("AKIAAAAAAAAAAAAAAAAA ", "", ""),
    "Base64 of a token": ("aGZf", "", ""),
    "blanks": (" ", "x", "password"),
    "letters of two in lower case": ("\N{LATIN CAPITAL LETTER I WITH DOT ABOVE}", "password=abc", ""),
}
"""What is repeated, what ends it, and the name of the field whose value it is."""
PREFIXED = {
    "a filled value": ("password=", "x", "!"),
    "a quoted value": ('token="', "0", '"'),
    "backslashes": ('password="', "\\", ""),
    "backslashes in a key": ("-----BEGIN PRIVATE KEY-----", "\\", ""),
    "headers of a key": ("-----BEGIN PRIVATE KEY-----", "Version: ", ""),
    "blanks in a key": ("-----BEGIN PRIVATE KEY-----Version:", " ", ""),
    "a placeholder": ("password=my-", "key-", "!"),
    "blanks behind a name": ("password:", " ", "x"),
    "blanks behind a flag": ("--token", " ", ""),
    "a body of a key": ("-----BEGIN PRIVATE KEY-----", "A", ""),
}
"""What stands before, what is repeated, and what ends it."""
_MODEL = "sm.create_model(PrimaryContainer={'Image':a,'Environment':{'A':a}})\n"
PROGRAMS = {
    "sums": "a='x'\n" + "a=a+a\n" * 60 + _MODEL,
    "texts in texts": "a='x'\n" + "a=f'{a}{a}'\n" * 60 + _MODEL,
    "mappings in mappings": "a={'k':'x'}\n" + "a={**a,**a}\n" * 60 + _MODEL,
    "values of mappings": "a='x'\n" + "a={'x':a,'y':a}\n" * 60 + _MODEL,
    "lists in lists": "a='x'\n" + "a=[a,a]\n" * 60 + _MODEL,
    "updates by itself": "a={'k':'x'}\n" + "a.update(a)\n" * 60 + _MODEL,
    "members that are itself": "a={'k':'x'}\n" + "a['x']=a;a['y']=a\n" * 60 + _MODEL,
    "calls in calls": "a=" + "str(" * 60 + "x" + ")" * 60 + "\n" + _MODEL,
    "arguments": "a={'k':'x'}\na.update(" + "a," * 20_000 + ")\n" + _MODEL,
    "names of functions": "".join(f"a{number}=1\ndef f():0\n" for number in range(8_000)) + _MODEL,
    "fields of a text": "a='x'\na=f'" + "{a}" * 100_000 + "'\n" + _MODEL,
}
"""Programs of some bytes whose values have more characters or members than a machine can hold, or take as long."""


FOR_ALL = (
    *("zeros", "filled, but for its end", "holes", "percent holes", "brackets", "names that may say it", "blanks"),
    *("quoted names", "letters of two in lower case"),
)
"""Texts for a reader's own patterns; the forms of credentials are read by the same functions for all."""


def texts(length: int) -> Iterator[tuple[str, str, str]]:
    """Yield each text of about this length: its name, the text, and the name of its field."""
    for name, (unit, end, field) in REPEATED.items():
        yield name, unit * (length // len(unit)) + end, field
    for name, (start, unit, end) in PREFIXED.items():
        yield name, start + unit * (length // len(unit)) + end, ""


def secrets_reader(length: int) -> Iterator[tuple[str, Callable[[], None]]]:
    from seatrial_base.secrets import redacted  # noqa: PLC0415 (each reader imports its own)

    def read(text: str, field: str) -> Callable[[], None]:
        def run() -> None:
            sys.stdout.write(redacted(text, name=field))

        return run

    for name, text, field in texts(length):
        yield name, read(text, field)


@cache
def _command_line() -> Callable[..., object]:
    from typer.main import get_command  # noqa: PLC0415 (as above)

    from seatrial.cli.app import app  # noqa: PLC0415 (as above)

    return get_command(app).main


def _command(*arguments: str) -> Callable[[], None]:
    def run() -> None:
        try:
            _command_line()([*arguments], standalone_mode=False)
        except (SeatrialError, Exit):
            return  # a refusal is an answer, too

    return run


def lint_reader(length: int) -> Iterator[tuple[str, Callable[[], None]]]:
    for name, text, field in texts(length):
        file = Path(f"{len(name)}{abs(hash(name))}.env")
        file.write_text(f"{(field or 'OPTION_X').upper()}={text}\n", encoding="utf-8")
        yield name, _command("lint", str(file))
    for name, program in PROGRAMS.items():
        file = Path(f"{name.replace(' ', '_')}.py")
        file.write_text(program, encoding="utf-8")
        yield name, _command("lint", str(file))


def convert_reader(length: int) -> Iterator[tuple[str, Callable[[], None]]]:
    for name, text, _ in texts(length):
        file = Path("serving.properties")
        content = f"engine=Python\noption.model_id=m\noption.x={text}\n"
        yield name, _written(file, content, _command("convert", str(file), "--to", "vllm"))


def _written(file: Path, content: str, run: Callable[[], None]) -> Callable[[], None]:
    def both() -> None:
        file.parent.mkdir(exist_ok=True)
        file.write_text(content, encoding="utf-8")
        run()

    return both


def check_reader(length: int) -> Iterator[tuple[str, Callable[[], None]]]:
    for name, text, _ in texts(length // COPIES):
        file = Path("template.json")
        yield name, _written(file, json.dumps(template(text)), _command("check", str(file)))


def template(text: str) -> dict[str, object]:
    """Return a template that has a text wherever a template has one."""
    statement = {"Effect": "Allow", "Action": text, "Resource": text, "Condition": {"StringEquals": {"aws:x": text}}}
    policy = {"PolicyName": "x", "PolicyDocument": {"Version": "2012-10-17", "Statement": [statement]}}
    return {
        "Description": text,
        "Resources": {
            "Role": {"Type": "AWS::IAM::Role", "Properties": {"Policies": [policy], "Description": {"Fn::Sub": text}}},
            "Model": {
                "Type": "AWS::SageMaker::Model",
                "Properties": {
                    "ModelName": text,
                    "PrimaryContainer": {
                        "Image": text,
                        "Environment": {"PASSWORD": text, "OPTION_X": {"Fn::Sub": text}},
                    },
                },
            },
        },
    }


def diff_reader(length: int) -> Iterator[tuple[str, Callable[[], None]]]:
    from seatrial.operations.template_diff import diff_templates  # noqa: PLC0415 (as above)
    from seatrial_lint.cloudformation.template import read_template  # noqa: PLC0415 (as above)

    def compare(text: str) -> Callable[[], None]:
        def run() -> None:
            old = read_template(json.dumps(template("before")), name="old.json")
            diff_templates(old, read_template(json.dumps(template(text)), name="new.json"))

        return run

    for name, text, _ in texts(length // COPIES):
        yield name, compare(text)


def predict_reader(length: int) -> Iterator[tuple[str, Callable[[], None]]]:
    columns = ("model", "instance_type", "input_tokens", "output_tokens", "concurrency", "engine", "quantization")
    for name, text, _ in texts(length // COPIES):
        table = io.StringIO()
        csv.writer(table).writerows((columns, [text] * len(columns)))
        yield name, _written(Path("rows.csv"), table.getvalue(), _command("predict", "rows.csv"))


def render_reader(length: int) -> Iterator[tuple[str, Callable[[], None]]]:
    for folder in ("endpoints", "environments"):
        Path(folder).mkdir()
    Path("environments/dev.yaml").write_text("name: dev\nregion: us-east-1\n", encoding="utf-8")
    Path("endpoints/chat.yaml").write_text(SPEC, encoding="utf-8")
    for name, text, field in texts(length // 2):
        code = f'{field or "x"} = "{text}"\n{text}\n'
        yield name, _written(Path("code/r.py"), code, _command("render", "endpoints/chat.yaml", "-e", "dev"))


def templates_reader(length: int) -> Iterator[tuple[str, Callable[[], None]]]:
    from seatrial_lint.engines.templates import (  # noqa: PLC0415 (as above)
        MOST_SOURCE,
        TemplateVariables,
        render_variables,
    )

    name, variables = "vllm/container.env.j2", TemplateVariables("first line", {})

    def render() -> None:
        try:
            render_variables(name, variables, own=Path("own"))
        except SeatrialError:
            return  # a refusal is an answer, too

    Path("own").mkdir(exist_ok=True)
    for title, text, field in texts(min(length, MOST_SOURCE) // 4):  # three times, as larger ones are not read
        content = f"{field or 'X'}={{{{ '{text}' | replace('a', 'b') }}}}\n{text}\n{{{{ {text} }}}}"
        yield title, _written(Path("own", name), content, render)


READERS = {
    "secrets": secrets_reader,
    "lint": lint_reader,
    "check": check_reader,
    "convert": convert_reader,
    "render": render_reader,
    "templates": templates_reader,
    "diff": diff_reader,
    "predict": predict_reader,
}


class OutOfTimeError(BaseException):
    """The CPU time of one text is used up."""


@contextmanager
def cpu_limit(limit_s: float) -> Iterator[None]:
    """Raise in the middle of what uses more CPU time."""
    signal.setitimer(signal.ITIMER_PROF, limit_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def seconds(run: Callable[[], None], limit_s: float) -> float | None:
    """Return the CPU seconds of a reader; None where it was stopped or is above the limit, on this machine too."""
    before = time.process_time()
    try:
        with cpu_limit(STOPPED_AT * limit_s):
            run()
    except OutOfTimeError:
        return None
    spent_s = time.process_time() - before
    is_within = spent_s <= limit_s or spent_s <= limit_s * _reference() / REFERENCE_S
    return round(spent_s, 4) if is_within else None


def _reference() -> float:
    """Return the CPU seconds of a piece of work that is alike everywhere: half of it calls, half of it patterns."""
    before = time.process_time()
    sum(map(len, map(str, range(30_000))))
    re.findall(r"[a-z]+(?=\d)", "abcdefg 123 " * 8_000)
    return time.process_time() - before


def chosen(reader: str, length: int, *, few: bool) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield a reader's texts, or those of them that are of its own."""
    every = READERS[reader](length)
    return (one for one in every if not few or reader == "secrets" or one[0] in (*FOR_ALL, *PROGRAMS))


def measured(reader: str, length: int, limit_s: float, *, few: bool) -> dict[str, float | None]:
    """Return the CPU seconds of a reader for each text."""
    idle_s = _idle_s(reader)
    runs = dict(chosen(reader, length, few=few))
    found: dict[str, float | None] = dict.fromkeys(runs)
    for _ in range(ROUNDS):
        for name in [name for name, spent_s in found.items() if spent_s is None]:
            own_s = max(limit_s, MOST_OF_PROGRAMS_S) if name in PROGRAMS else limit_s
            spent_s = seconds(runs[name], idle_s + own_s)
            found[name] = None if spent_s is None else max(0.0, round(spent_s - idle_s, 4))
    return found


def _idle_s(reader: str) -> float:
    """Return the CPU seconds that a reader takes for a text of no length, once all is imported."""
    with tempfile.TemporaryDirectory(dir=".") as folder:
        os.chdir(folder)
        _, run = next(READERS[reader](0))
        run()
        least_s = min(filter(None, (seconds(run, 1.0) for _ in range(3))), default=0.0)
        os.chdir("..")
    return least_s


def main(length: int, limit_s: float, readers: list[str], *, few: bool) -> None:
    """Print the CPU seconds of each reader for each text."""

    def stop(*_: object) -> None:
        raise OutOfTimeError

    signal.signal(signal.SIGPROF, stop)
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY_BYTES, MOST_MEMORY_BYTES))
    out = os.dup(1)
    for descriptor in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        found = {reader: measured(reader, length, limit_s, few=few) for reader in readers or list(READERS)}
        os.chdir("/")
    os.write(out, json.dumps(found).encode())


if __name__ == "__main__":
    named = [argument for argument in sys.argv[3:] if argument != "--few"]
    main(int(sys.argv[1]), float(sys.argv[2]), named, few="--few" in sys.argv)
