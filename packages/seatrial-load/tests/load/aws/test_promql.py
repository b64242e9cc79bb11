from __future__ import annotations

import json
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

import pytest

from seatrial_load.aws.container_metrics import CloudWatchPromQl, MetricSeries, promql_url, selector
from seatrial_load.aws.credentials import Credentials

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator
    from pathlib import Path

CREDENTIALS = Credentials("AKIDEXAMPLE", "secret", "session")
MATRIX = {
    "status": "success",
    "data": {"resultType": "matrix", "result": [{"metric": {"__name__": "up"}, "values": [[10, "1"], [20.5, "3"]]}]},
}


class FakeCloudWatch(BaseHTTPRequestHandler):
    """Answers every query with the server's answer, and keeps what it was asked."""

    server: FakeServer

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.server.asked.append((self.path, dict(self.headers), body))
        status, answer = self.server.answer
        self.send_response(status)
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the base class's name)
        """Say nothing."""


class FakeServer(HTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), FakeCloudWatch)
        self.asked: list[tuple[str, dict[str, str], str]] = []
        self.answer = 200, json.dumps(MATRIX).encode()


@pytest.fixture(scope="module")
def cloudwatch() -> Iterator[FakeServer]:
    server = FakeServer()
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def ask(server: FakeServer, url: str = "") -> tuple[MetricSeries, ...]:
    url = url or f"http://127.0.0.1:{server.server_port}"
    promql = CloudWatchPromQl(url, "eu-west-1", CREDENTIALS, lambda: datetime(2026, 11, 26, 12, tzinfo=UTC))
    return promql(selector("up", {"a.b": 'c"d'}), start_s=10.0, end_s=70.25, step_s=10.0)


def test_a_query_over_time_is_a_signed_form(cloudwatch: FakeServer) -> None:
    assert ask(cloudwatch) == (MetricSeries({"__name__": "up"}, ((10.0, 1.0), (20.5, 3.0))),)
    path, headers, body = cloudwatch.asked[-1]
    assert path == "/api/v1/query_range"
    assert parse_qs(body) == {
        "query": [r'{"up","a.b"="c\"d"}'],
        "start": ["10.000"],
        "end": ["70.250"],
        "step": ["10"],
    }
    scope = "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20261126/eu-west-1/monitoring/aws4_request"
    signed = "SignedHeaders=content-type;host;x-amz-date;x-amz-security-token"
    assert headers["Authorization"].startswith(f"{scope}, {signed}, Signature=")


@pytest.mark.parametrize(
    ("status", "answer", "message"),
    [
        (403, b"not you", "HTTP 403: not you"),
        (200, b"[]", "the response has no `data.result`"),
        (200, b'{"data": {"result": [{"metric": {}}]}}', "a series of the response has no `metric` or no `values`"),
    ],
)
def test_what_is_no_answer_is_refused(cloudwatch: FakeServer, status: int, answer: bytes, message: str) -> None:
    cloudwatch.answer = status, answer
    with pytest.raises(ValueError, match=r".+") as refused:
        ask(cloudwatch)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("region", "environ", "url"),
    [
        ("eu-west-1", {}, "https://monitoring.eu-west-1.amazonaws.com"),
        ("cn-north-1", {}, "https://monitoring.cn-north-1.amazonaws.com.cn"),
        ("eu-west-1", {"AWS_ENDPOINT_URL": "http://127.0.0.1:4566"}, "http://127.0.0.1:4566"),
        ("eu-west-1", {"AWS_ENDPOINT_URL": "http://a", "AWS_ENDPOINT_URL_CLOUDWATCH": "http://b"}, "http://b"),
    ],
)
def test_the_api_is_at_the_address_of_cloudwatch(region: str, environ: dict[str, str], url: str) -> None:
    assert promql_url(region, environ) == url


def test_an_authority_that_boto3_trusts_is_trusted(
    company: Path, company_tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = FakeServer()
    server.socket = company_tls.wrap_socket(server.socket, server_side=True)
    Thread(target=server.handle_request).start()
    monkeypatch.setenv("AWS_CA_BUNDLE", str(company))
    found = ask(server, f"https://localhost:{server.server_port}")
    server.server_close()
    assert found == (MetricSeries({"__name__": "up"}, ((10.0, 1.0), (20.5, 3.0))),)
