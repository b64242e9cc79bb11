"""`seatrial preflight` as a user runs it, against a server that stands for AWS."""

from __future__ import annotations

import json
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import TYPE_CHECKING

import pytest

from tests.cli.conftest import SPECS
from tests.cli.test_images import NOBODY

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cli.conftest import Seatrial

SPEC = SPECS[1]
IDENTITY = (
    "<GetCallerIdentityResponse><GetCallerIdentityResult><Account>123456789012</Account></GetCallerIdentityResult>"
    "</GetCallerIdentityResponse>"
)


@contextmanager
def account(answers: dict[str, dict[str, object]]) -> Iterator[dict[str, str]]:
    """Stand for an account: it knows the caller and these operations, and denies every other one."""

    class Answer(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            target = self.headers.get("X-Amz-Target")
            if target is None:
                self.send(200, IDENTITY)
                return
            answer = answers.get(target.rpartition(".")[2], {"__type": "AccessDeniedException", "message": "no"})
            self.send(400 if "__type" in answer else 200, json.dumps(answer))

        def send(self, status: int, text: str) -> None:
            self.send_response(status)
            self.send_header("Content-Length", f"{len(text)}")
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_arguments: object) -> None:
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        try:
            keys = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_MAX_ATTEMPTS": "1"}
            yield NOBODY | keys | {"AWS_ENDPOINT_URL": url}
        finally:
            server.shutdown()


def test_what_could_not_be_asked_is_told_and_no_failure(seatrial: Seatrial) -> None:
    with account({}) as variables:
        done = seatrial("preflight", SPEC, "-e", "dev", env=variables)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "1 ok, 0 with a problem, 5 could not be read"


def test_a_problem_fails_and_is_told_with_its_rule(seatrial: Seatrial) -> None:
    answers: dict[str, dict[str, object]] = {
        "GetParameter": {"__type": "ParameterNotFound"},
        "ListServiceQuotas": {"Quotas": []},
        "ListAWSDefaultServiceQuotas": {
            "Quotas": [{"QuotaName": "ml.g6e.2xlarge for endpoint usage", "QuotaCode": "L-1", "Value": 1.0}]
        },
        "ListEndpoints": {"Endpoints": []},
        "DescribeSecret": {"Name": "seatrial/hub-token"},
    }
    with account(answers) as variables:
        done = seatrial("preflight", SPEC, "-e", "dev", "--format", "json", env=variables)
    assert (done.returncode, done.stderr) == (1, "")
    document = json.loads(done.stdout)
    assert [(one["rule"], one["severity"]) for one in document["findings"]] == [
        ("SEA460", "error"),
        ("SEA466", "error"),
        ("SEA436", "note"),  # alarms
        ("SEA436", "note"),  # functions
    ]
    assert [one["status"] for one in document["checks"]].count("ok") == 2


@pytest.mark.parametrize("words", [("preflight", SPEC), ("deploy", SPEC), ("deploy", SPEC, "--yes")])
def test_no_credentials(seatrial: Seatrial, project: Path, words: tuple[str, ...]) -> None:
    nothing = NOBODY | {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "HOME": "/nonexistent"}
    (project / "cdk.json").write_text('{"app": "false"}')
    done = seatrial(*words, "-e", "dev", env=nothing)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("dev: SEA503: there are no AWS credentials: ")


@pytest.mark.parametrize("arguments", [("none.yaml", "-e", "dev"), (SPEC, "-e", "nowhere")])
def test_what_can_not_be_loaded(seatrial: Seatrial, arguments: tuple[str, ...]) -> None:
    assert seatrial("preflight", *arguments).returncode == 2
