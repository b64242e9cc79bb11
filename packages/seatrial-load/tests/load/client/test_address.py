from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

from seatrial_base.errors import BenchError
from seatrial_load.client.connection import Address, address_of, dialer, socket_addresses
from seatrial_load.documents.request import TrialTarget

if TYPE_CHECKING:
    from pathlib import Path

    from seatrial_load.documents.request import PayloadSchema


def target(url: str | None = None, region: str = "eu-west-1") -> TrialTarget:
    return TrialTarget(endpoint_name="chat", inference_component=None, region=region, endpoint_url=url)


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


@pytest.mark.parametrize(
    ("url", "shown", "why"),
    [
        ("localhost:4566", "localhost:4566", "not of the form http(s)://host[:port][/path]"),
        ("ftp://host", "ftp://host", "not of the form http(s)://host[:port][/path]"),
        ("http://", "http://", "not of the form http(s)://host[:port][/path]"),
        ("http://host?x=1", "http://host?x=1", "not of the form http(s)://host[:port][/path]"),
        ("http://me:secret@host", "http://host", "not of the form http(s)://host[:port][/path]"),
        ("http://:secret@host", "http://host", "not of the form http(s)://host[:port][/path]"),
        ("http://host/a b", "http://host/a b", "not of the form http(s)://host[:port][/path]"),
        ("http://höst", "http://höst", "not of the form http(s)://host[:port][/path]"),
        ("http://host:99999", "http://host:99999", "Port out of range 0-65535"),
    ],
)
def test_unusable_urls(url: str, shown: str, why: str) -> None:
    with pytest.raises(BenchError) as caught:
        address_of(target(url), stream=True)
    assert str(caught.value) == (
        f"target.endpoint_url: SEA504: the endpoint {shown} can't be used: {why}\n"
        "  hint: give http(s)://host[:port][/path], such as https://runtime.sagemaker.eu-west-1.amazonaws.com"
    )


def openai(url: str | None) -> TrialTarget:
    return TrialTarget(endpoint_name="mine", inference_component=None, region="", kind="openai", endpoint_url=url)


@pytest.mark.parametrize(
    ("url", "schema", "authority", "path"),
    [
        ("http://localhost:8000/v1", "openai_chat", "localhost:8000", "/v1/chat/completions"),
        ("https://llm.example.com/v1/", "openai_completions", "llm.example.com", "/v1/completions"),
        ("http://127.0.0.1:8000", "openai_chat", "127.0.0.1:8000", "/chat/completions"),
    ],
)
@pytest.mark.parametrize("stream", [True, False])
def test_an_openai_compatible_server(
    url: str, schema: PayloadSchema, authority: str, path: str, *, stream: bool
) -> None:
    """Whether the answer streams stands in the body, not in the path; boto3's variables are none of its business."""
    environ = {"AWS_ENDPOINT_URL": "http://all:1"}
    address = address_of(openai(url), stream=stream, schema=schema, environ=environ)
    assert (address.authority, address.path) == (authority, path)


def test_an_openai_compatible_server_without_a_url() -> None:
    with pytest.raises(BenchError) as caught:
        address_of(openai(None), stream=True)
    assert str(caught.value) == (
        "target.endpoint_url: SEA504: an OpenAI-compatible server has no URL of its own\n"
        "  hint: give the server's base URL, such as http://localhost:8000/v1"
    )


def test_a_name_that_does_not_resolve() -> None:
    with pytest.raises(socket.gaierror) as unresolved:
        socket.getaddrinfo("endpoint.invalid", 443)
    with pytest.raises(BenchError) as caught:
        socket_addresses(Address(tls=True, host="endpoint.invalid", port=443, path="/"))
    assert str(caught.value) == (
        "target.endpoint_url: SEA504: the endpoint endpoint.invalid can't be used: "
        f"the host name endpoint.invalid does not resolve: {unresolved.value.strerror}\n"
        "  hint: check the region and the host's spelling; inside a VPC without a route to the internet, the runtime "
        "API needs an interface endpoint (com.amazonaws.REGION.sagemaker.runtime) with private DNS"
    )


def test_only_the_family_that_answers_is_kept(runtime_url: str) -> None:
    port = int(runtime_url.rpartition(":")[2])
    found = socket_addresses(Address(tls=False, host="localhost", port=port, path="/"))
    assert {address[0] for _, address in found} == {"127.0.0.1"}


def test_a_resolver_that_fails_in_the_middle_of_a_trial_is_passed_over(
    runtime_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = Address(tls=False, host="localhost", port=int(runtime_url.rpartition(":")[2]), path="/")
    found = socket_addresses(address)

    def fails(*_args: object, **_options: object) -> list[object]:
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", fails)
    assert socket_addresses(address) == found


@pytest.mark.parametrize("host", ["a" * 64 + ".example", ".example"])
def test_a_name_that_is_none(host: str) -> None:
    """The resolver's words differ from Python to Python."""
    with pytest.raises(
        BenchError, match=f"SEA504: the endpoint {host} can't be used: the host name {host} does not resolve"
    ):
        socket_addresses(Address(tls=True, host=host, port=443, path="/"))


def test_authorities_that_cannot_be_read(tmp_path: Path) -> None:
    address = Address(tls=True, host="localhost", port=443, path="/")
    with pytest.raises(BenchError) as caught:
        dialer(address, (), {"AWS_CA_BUNDLE": str(tmp_path / "none.pem")})
    assert str(caught.value) == (
        f"target.endpoint_url: SEA504: the endpoint localhost can't be used: AWS_CA_BUNDLE, {tmp_path}/none.pem: "
        "No such file or directory\n"
        "  hint: set AWS_CA_BUNDLE to a PEM file of certificates, or unset it"
    )


def test_a_password_in_an_impossible_url_is_not_repeated() -> None:
    with pytest.raises(BenchError) as caught:
        address_of(target("http://me:secret@host:99999/"), stream=True)
    assert str(caught.value).startswith("target.endpoint_url: SEA504: the endpoint http://host:99999/ can't be used: ")
