from __future__ import annotations

import pytest

from seatrial.bench.address import Address, address_of, socket_addresses
from seatrial.bench.request import Target
from seatrial.errors import BenchError


def target(url: str | None = None, region: str = "eu-west-1") -> Target:
    return Target(endpoint_name="chat", inference_component=None, region=region, endpoint_url=url)


@pytest.mark.parametrize(
    ("region", "host"),
    [
        ("eu-west-1", "runtime.sagemaker.eu-west-1.amazonaws.com"),
        ("cn-north-1", "runtime.sagemaker.cn-north-1.amazonaws.com.cn"),
    ],
)
def test_public_address(region: str, host: str) -> None:
    path = "/endpoints/chat/invocations-response-stream"
    assert address_of(target(region=region), stream=True, environ={}) == Address(
        tls=True, host=host, port=443, path=path
    )


def test_whole_answers_have_their_own_operation() -> None:
    assert address_of(target(), stream=False, environ={}).path == "/endpoints/chat/invocations"


def test_boto3s_variables_are_honoured_the_services_own_first() -> None:
    environ = {"AWS_ENDPOINT_URL": "http://all:1", "AWS_ENDPOINT_URL_SAGEMAKER_RUNTIME": "http://runtime:2"}
    assert address_of(target(), stream=True, environ=environ).authority == "runtime:2"
    assert address_of(target("http://mine:3"), stream=True, environ=environ).authority == "mine:3"


@pytest.mark.parametrize(
    ("url", "authority", "path"),
    [
        ("http://localhost:4566", "localhost:4566", "/endpoints/chat/invocations"),
        ("http://localhost", "localhost", "/endpoints/chat/invocations"),
        ("https://[::1]:8443/base/", "[::1]:8443", "/base/endpoints/chat/invocations"),
        ("https://vpce-1.example.com:443", "vpce-1.example.com", "/endpoints/chat/invocations"),
    ],
)
def test_own_url(url: str, authority: str, path: str) -> None:
    address = address_of(target(url), stream=False)
    assert (address.authority, address.path) == (authority, path)


@pytest.mark.parametrize("url", ["localhost:4566", "ftp://host", "http://", "http://host?x=1", "http://host:99999"])
def test_unusable_urls(url: str) -> None:
    with pytest.raises(BenchError, match=r"^target.endpoint_url: SEA504: the runtime endpoint .* can't be used: "):
        address_of(target(url), stream=True)


def test_a_name_that_does_not_resolve() -> None:
    with pytest.raises(BenchError, match=r"SEA504: .*endpoint.invalid.* the name doesn't resolve"):
        socket_addresses(Address(tls=True, host="endpoint.invalid", port=443, path="/"))


def test_only_the_family_that_answers_is_kept(runtime_url: str) -> None:
    port = int(runtime_url.rpartition(":")[2])
    found = socket_addresses(Address(tls=False, host="localhost", port=port, path="/"))
    assert {address[0] for _, address in found} == {"127.0.0.1"}
