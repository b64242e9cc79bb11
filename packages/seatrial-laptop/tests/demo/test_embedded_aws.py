"""The clients of the demo reach the embedded AWS, whatever the user's environment says of proxies and profiles."""

from __future__ import annotations

import os
import socket
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING

import pytest

from seatrial_laptop import lifecycle
from seatrial_laptop.demo.embedded_aws import EmbeddedAws

if TYPE_CHECKING:
    from collections.abc import Iterator

BUCKETS = b"<ListAllMyBucketsResult><Buckets><Bucket><Name>results</Name></Bucket></Buckets></ListAllMyBucketsResult>"


class Buckets(BaseHTTPRequestHandler):
    """Answers every request with one bucket."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(BUCKETS)))
        self.end_headers()
        self.wfile.write(BUCKETS)

    def log_message(self, *_: object) -> None:
        """Write nothing."""


@pytest.fixture
def cloud() -> Iterator[EmbeddedAws]:
    """Return the client side of something on the loopback that answers as S3 does."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Buckets)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield EmbeddedAws(lifecycle.LocalAws(1, server.server_port, "AKIAOFTHISSTART", "the-secret"))
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def closed_port() -> int:
    """Return a port of the loopback that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def bucket_names(cloud: EmbeddedAws) -> list[str | None]:
    return [bucket.get("Name") for bucket in cloud.client("s3").list_buckets()["Buckets"]]


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"])
def test_no_proxy_is_used(cloud: EmbeddedAws, closed_port: int, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    for other in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(other, raising=False)
    monkeypatch.setenv(name, f"http://127.0.0.1:{closed_port}")
    assert bucket_names(cloud) == ["results"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("AWS_PROFILE", "unknown"),
        ("AWS_DEFAULT_PROFILE", "unknown"),
        ("AWS_CONFIG_FILE", "/nonexistent/config"),
        ("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:1"),
        ("AWS_RETRY_MODE", "bogus"),
        ("AWS_MAX_ATTEMPTS", "many"),
        ("AWS_DEFAULTS_MODE", "bogus"),
        ("AWS_USE_FIPS_ENDPOINT", "true"),
        ("AWS_USE_DUALSTACK_ENDPOINT", "true"),
        ("AWS_CA_BUNDLE", "/nonexistent/bundle"),
        ("AWS_SESSION_TOKEN", "planted"),
    ],
)
def test_no_variable_of_the_user_is_read(
    cloud: EmbeddedAws, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    assert bucket_names(cloud) == ["results"]


def test_the_users_environment_is_as_it_was(cloud: EmbeddedAws, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "unknown")
    before = dict(os.environ)
    cloud.client("s3")
    assert dict(os.environ) == before
