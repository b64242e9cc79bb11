"""A web page of another origin, in real Chromium: it can neither deploy, nor invoke, nor read anything."""

from __future__ import annotations

import base64
import io
import json
import zipfile
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any

import boto3
import pytest

from tests.browser.look import requests_of_a_page

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mypy_boto3_lambda.type_defs import FunctionCodeTypeDef

Laptop = Any  # the fixture's class lives in conftest.py, which nobody can import
ROLE = "arn:aws:iam::000000000000:role/function"
AS_TEXT = {"content-type": "text/plain"}  # a simple request: sent without a preflight


class Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>another origin</title>")

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 (the base class's name)
        """Say nothing."""


@contextmanager
def page() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


def function_that_writes(file: Path) -> bytes:
    code = f"def handler(event, context):\n    open({str(file)!r}, 'w').close()\n    return 'ran'\n"
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr("index.py", code)
    return archive.getvalue()


def asked(name: str, archive: bytes) -> dict[str, object]:
    code = {"ZipFile": base64.b64encode(archive).decode()}
    return {"FunctionName": name, "Runtime": "python3.12", "Role": ROLE, "Handler": "index.handler", "Code": code}


@pytest.mark.parametrize("mode", ["cors", "no-cors"])
def test_a_page_of_another_origin_can_do_nothing(
    laptop: Laptop, host: str, chat: str, tmp_path: Path, mode: str
) -> None:
    ran = tmp_path / "ran"
    boto3.client("iam").create_role(RoleName=f"function-{mode}", AssumeRolePolicyDocument="{}")
    functions, url = boto3.client("lambda"), laptop.local.endpoint_url
    mine = f"mine-{mode}"
    code: FunctionCodeTypeDef = {"ZipFile": function_that_writes(ran)}
    functions.create_function(
        FunctionName=mine, Runtime="python3.12", Role=f"{ROLE}-{mode}", Handler="index.handler", Code=code
    )
    evil = json.dumps(asked("evil", function_that_writes(tmp_path / "evil")))
    (port,) = laptop.ports(chat)
    requests: list[dict[str, object]] = [
        {"url": f"{url}/2015-03-31/functions", "method": "POST", "headers": AS_TEXT, "body": evil},
        {"url": f"{url}/2015-03-31/functions/evil/invocations", "method": "POST", "headers": AS_TEXT, "body": "{}"},
        {"url": f"{url}/2015-03-31/functions/{mine}/invocations", "method": "POST", "headers": AS_TEXT, "body": "{}"},
        {"url": f"{url}/endpoints/{host}/invocations", "method": "POST", "headers": AS_TEXT, "body": "{}"},
        {"url": f"{url}/_seatrial/status", "method": "GET"},
        {"url": f"{url}/_ministack/health", "method": "GET"},
        {"url": f"http://127.0.0.1:{port}/info", "method": "GET"},
        {"url": f"http://127.0.0.1:{port}/invocations", "method": "POST", "headers": AS_TEXT, "body": '{"inputs":"a"}'},
    ]
    with page() as address:
        learned = requests_of_a_page(address, [request | {"mode": mode} for request in requests])
    assert learned == ["TypeError" if mode == "cors" else "opaque 0"] * len(requests)
    assert "evil" not in [each["FunctionName"] for each in functions.list_functions()["Functions"]]
    assert not ran.exists()
    functions.invoke(FunctionName=mine)
    assert ran.exists()
