"""Whatever is hostile in a file, a server's answer or an argument: no terminal obeys it."""

from __future__ import annotations

import ast
import io
import json
import re
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.table import Table

from seatrial_base import terminal
from seatrial_base.terminal import GuardedStream

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cli.conftest import Seatrial

REPOSITORY = Path(__file__).parents[3]
ANY = st.text(st.characters(codec=None, exclude_categories=()))
STYLE = re.compile(r"\x1b\[[0-9;]*m")
HOSTILE = {
    "title": "\x1b]0;owned\x07",
    "clear": "\x1b[2J\x1b[H",
    "c1": "\x9b2J",
    "bidi": "\u202egnp.\u2066x",
    "link": "\x1b]8;;http://evil.example\x1b\\here\x1b]8;;\x1b\\",
    "markup": "[link=http://evil.example]here[/link]",
}
EVERY = "".join(HOSTILE.values()).replace("/", "")


def obeyed(text: str) -> set[str]:
    """Return the characters that a terminal would obey."""
    return {character for character in text if not character.isprintable() and character not in "\n\t"}


@given(ANY)
def test_the_border_lets_nothing_through_that_a_terminal_obeys(text: str) -> None:
    behind = io.StringIO()
    GuardedStream(behind).write(text)
    assert not obeyed(behind.getvalue())


@given(ANY)
def test_of_a_console_only_its_own_styles_remain(text: str) -> None:
    behind = io.StringIO()
    console = terminal.console()
    console.file = behind
    table = Table(text, title="title")
    table.add_row(text, style="bold red")
    console.print(table)
    console.print(text, style="green")
    assert not obeyed(STYLE.sub("", behind.getvalue()))


def test_markup_in_a_cell_is_text() -> None:
    console = terminal.console()
    with console.capture() as shown:
        console.print("[link=http://evil.example]here[/link] [bold]x :warning:")
    assert shown.get() == "[link=http://evil.example]here[/link] [bold]x :warning:\n"


def test_no_command_makes_a_console_of_its_own() -> None:
    sources = [file for file in (REPOSITORY / "seatrial").rglob("*.py") if file.name != "terminal.py"]
    made = [
        f"{file.name}:{node.lineno}"
        for file in sources
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("Console")
    ]
    assert made == []


@pytest.mark.parametrize(
    "command",
    [
        ["validate", f"{EVERY}.yaml"],
        ["predict", f"{EVERY}.csv"],
        ["lint", EVERY],
        ["report", EVERY],
        ["bench", f"--{EVERY}"],
        ["bench", "--url", f"http://{EVERY}"],
        ["bench", "--url", "http://127.0.0.1:9/v1", "--slo", EVERY],
        [EVERY],
        ["plan", "endpoints/llama-2-7b-chat.yaml", "-e", EVERY],
        ["stage", f"./{EVERY}", "--to", "s3://bucket/model/"],
        ["local", "logs", "--state", EVERY],
    ],
    ids=lambda command: command[0][:9],
)
def test_an_argument_is_told_without_it(seatrial: Seatrial, command: list[str]) -> None:
    done = seatrial(*command)
    assert done.returncode in {1, 2}
    assert "Traceback" not in done.stderr
    assert not obeyed(done.stdout + done.stderr)


@pytest.mark.parametrize(
    "command",
    [
        ["predict", "table.csv"],
        ["lint", "serving.properties"],
        ["lint", "serving.properties", "--format", "json"],
        ["convert", "serving.properties", "--to", "vllm"],
        ["report", "trial.json"],
        ["validate", "endpoints/bad.yaml"],
        ["local", "logs"],
    ],
    ids=" ".join,
)
def test_a_file_is_told_without_it(seatrial: Seatrial, project: Path, command: list[str]) -> None:
    (project / "table.csv").write_text(f"{EVERY},concurrency\n{EVERY},1\n", encoding="utf-8")
    (project / "serving.properties").write_text(f"option.{EVERY}={EVERY}\nengine={EVERY}\n", encoding="utf-8")
    (project / "trial.json").write_text(json.dumps({EVERY: EVERY}))
    (project / "endpoints" / "bad.yaml").write_text(f"name: {json.dumps(EVERY)}\n{json.dumps(EVERY)}: 1\n")
    (project / ".seatrial" / "local").mkdir(parents=True)
    (project / ".seatrial" / "local" / "aws.log").write_text(EVERY, encoding="utf-8")
    done = seatrial(*command)
    assert "Traceback" not in done.stderr
    assert not obeyed(done.stdout + done.stderr)


class Hostile(BaseHTTPRequestHandler):
    """Refuses every request in words that a terminal would obey."""

    def do_POST(self) -> None:
        """Answer one request."""
        self.rfile.read(int(self.headers["Content-Length"]))
        body = json.dumps({"error": {"message": "".join(HOSTILE.values()), "type": HOSTILE["clear"]}}).encode()
        self.send_response(500)
        self.send_header("x-seatrial-engine", HOSTILE["title"])
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Keep standard error clean."""


@contextmanager
def hostile_server() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hostile)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_server_is_told_without_it_and_its_report_too(seatrial: Seatrial, project: Path) -> None:
    with hostile_server() as url:
        done = seatrial("bench", "--url", url, "--model", "m", "--levels", "1", "--requests", "2", "-o", "page")
    assert done.returncode == 1
    assert "HTTP 500" in done.stdout
    assert not obeyed(done.stdout + done.stderr)
    for name in ("report.md", "report.html", "report.json"):
        assert not obeyed((project / "page" / name).read_text().replace("\u2060", "")), name


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_json_says_the_same_without_it(
    monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes], encoding: str
) -> None:
    document = {"text": "é😀" + "".join(HOSTILE.values()) + "\x7f\ud800"}
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding=encoding))
    terminal.show_json(document)
    sys.stdout.flush()
    written = raw.getvalue().decode(encoding)
    assert not obeyed(written)
    assert json.loads(written) == document
    assert ("é😀" in written) == (encoding == "utf-8")
    assert capsysbinary.readouterr().out == b""
