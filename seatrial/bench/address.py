"""Where the runtime API of an endpoint answers: URL, path, and the socket addresses behind them."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias
from urllib.parse import quote, urlsplit

from seatrial.errors import BenchError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seatrial.bench.request import PayloadSchema, Target

ENDPOINT_URL_VARIABLES = ("AWS_ENDPOINT_URL_SAGEMAKER_RUNTIME", "AWS_ENDPOINT_URL")
PROBE_TIMEOUT_S = 3.0
_DEFAULT_PORTS = {"https": 443, "http": 80}
_URL_HINT = "give http(s)://host[:port][/path], such as https://runtime.sagemaker.eu-west-1.amazonaws.com"
_BASE_HINT = "give the server's base URL, such as http://localhost:8000/v1"
_NAME_HINT = (
    "check the region and the host's spelling; inside a VPC without a route to the internet, the runtime API needs an "
    "interface endpoint (com.amazonaws.REGION.sagemaker.runtime) with private DNS"
)

SocketAddress: TypeAlias = tuple[socket.AddressFamily, tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes]]

_LAST_KNOWN: Final[dict[Address, tuple[SocketAddress, ...]]] = {}


@dataclass(frozen=True, slots=True)
class Address:
    """The parts of the URL that requests of one trial go to."""

    tls: bool
    host: str
    port: int
    path: str

    @property
    def authority(self) -> str:
        """The `Host` header: no port when it is the scheme's own."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _DEFAULT_PORTS["https" if self.tls else "http"] else f"{host}:{self.port}"


def address_of(
    target: Target,
    *,
    stream: bool,
    schema: PayloadSchema = "openai_chat",
    environ: Mapping[str, str] = os.environ,
) -> Address:
    """Work out the address of the requests.

    SageMaker's is the target's own URL, else boto3's endpoint variables, else the region's public one; an
    OpenAI-compatible server's is its base URL and the operation of the schema.

    Raises:
        BenchError: SEA504, the URL isn't `http(s)://host[:port][/path]`.
    """
    url = _url_of(target, environ)
    hint = _BASE_HINT if target.kind == "openai" else _URL_HINT
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as malformed:
        raise _unusable(_without_login(url), str(malformed), hint) from malformed
    odd = parts.query or parts.fragment or "@" in parts.netloc or not _fits_a_request_line(url)
    if parts.scheme not in _DEFAULT_PORTS or not parts.hostname or odd:
        raise _unusable(_without_login(url), "not of the form http(s)://host[:port][/path]", hint)
    return Address(
        tls=parts.scheme == "https",
        host=parts.hostname,
        port=port or _DEFAULT_PORTS[parts.scheme],
        path=f"{parts.path.rstrip('/')}/{_operation(target, schema, stream=stream)}",
    )


def socket_addresses(address: Address) -> tuple[SocketAddress, ...]:
    """Resolve the host; keep the addresses of the first family that answers, so that `localhost` works either way.

    A trial asks before each level. Where the resolver fails in the middle of it, the addresses that it told before
    hold: a name that can't be looked up for a moment is no reason to lose what was measured.

    Raises:
        BenchError: SEA504, the name doesn't resolve.
    """
    try:
        infos = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as unresolved:  # the latter of a label that is empty or too long
        if address in _LAST_KNOWN:
            return _LAST_KNOWN[address]
        told = unresolved.strerror if isinstance(unresolved, OSError) else None
        why = f"the name {address.host} doesn't resolve: {told or unresolved}"
        raise _unusable(address.authority, why, _NAME_HINT) from unresolved
    found: tuple[SocketAddress, ...] = tuple((family, sockaddr) for family, _, _, _, sockaddr in infos)
    answering = next((entry for entry in found if _answers(entry)), found[0])
    _LAST_KNOWN[address] = tuple(entry for entry in found if entry[0] == answering[0])
    return _LAST_KNOWN[address]


def _answers(entry: SocketAddress) -> bool:
    family, sockaddr = entry
    with suppress(OSError), socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.settimeout(PROBE_TIMEOUT_S)
        probe.connect(sockaddr)
        return True
    return False


def _url_of(target: Target, environ: Mapping[str, str]) -> str:
    if target.endpoint_url:
        return target.endpoint_url
    if target.kind == "openai":
        message = "an OpenAI-compatible server has no URL of its own"
        raise BenchError.of("SEA504", message, hint=_BASE_HINT, field="target.endpoint_url")
    variables = (environ[name] for name in ENDPOINT_URL_VARIABLES if environ.get(name))
    return next(variables, None) or _public_url(target.region)


def _operation(target: Target, schema: PayloadSchema, *, stream: bool) -> str:
    if target.kind == "openai":
        return "completions" if schema == "openai_completions" else "chat/completions"
    operation = "invocations-response-stream" if stream else "invocations"
    return f"endpoints/{quote(target.endpoint_name, safe='')}/{operation}"


def _public_url(region: str) -> str:
    suffix = ".cn" if region.startswith("cn-") else ""
    return f"https://runtime.sagemaker.{region}.amazonaws.com{suffix}"


def _fits_a_request_line(url: str) -> bool:
    return url.isascii() and url.isprintable() and " " not in url


def _without_login(url: str) -> str:
    scheme, slashes, rest = url.partition("://")
    return scheme + slashes + rest.rpartition("@")[2]


def _unusable(url: str, why: str, hint: str) -> BenchError:
    return BenchError.of("SEA504", f"the endpoint {url} can't be used: {why}", hint=hint, field="target.endpoint_url")
