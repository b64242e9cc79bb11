"""Where the runtime API of an endpoint answers: URL, path, and the socket addresses behind them."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import quote, urlsplit

from seatrial.errors import BenchError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seatrial.bench.request import Target

ENDPOINT_URL_VARIABLES = ("AWS_ENDPOINT_URL_SAGEMAKER_RUNTIME", "AWS_ENDPOINT_URL")
PROBE_TIMEOUT_S = 3.0
_DEFAULT_PORTS = {"https": 443, "http": 80}

SocketAddress: TypeAlias = tuple[socket.AddressFamily, tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes]]


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


def address_of(target: Target, *, stream: bool, environ: Mapping[str, str] = os.environ) -> Address:
    """Work out the address: the target's own URL, else boto3's endpoint variables, else the region's public one.

    Raises:
        BenchError: SEA504, the URL isn't `http(s)://host[:port][/path]`.
    """
    variables = (environ[name] for name in ENDPOINT_URL_VARIABLES if environ.get(name))
    url = target.endpoint_url or next(variables, None) or _public_url(target.region)
    parts = urlsplit(url)
    port = _port(url)
    if parts.scheme not in _DEFAULT_PORTS or not parts.hostname or parts.query or parts.fragment:
        raise _unusable(url, "not of the form http(s)://host[:port][/path]")
    operation = "invocations-response-stream" if stream else "invocations"
    return Address(
        tls=parts.scheme == "https",
        host=parts.hostname,
        port=port or _DEFAULT_PORTS[parts.scheme],
        path=f"{parts.path.rstrip('/')}/endpoints/{quote(target.endpoint_name, safe='')}/{operation}",
    )


def socket_addresses(address: Address) -> tuple[SocketAddress, ...]:
    """Resolve the host; keep the addresses of the first family that answers, so that `localhost` works either way.

    Raises:
        BenchError: SEA504, the name doesn't resolve.
    """
    try:
        infos = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    except OSError as unresolved:
        raise _unusable(address.authority, f"the name doesn't resolve: {unresolved}") from unresolved
    found: tuple[SocketAddress, ...] = tuple((family, sockaddr) for family, _, _, _, sockaddr in infos)
    answering = next((entry for entry in found if _answers(entry)), found[0])
    return tuple(entry for entry in found if entry[0] == answering[0])


def _answers(entry: SocketAddress) -> bool:
    family, sockaddr = entry
    with suppress(OSError), socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.settimeout(PROBE_TIMEOUT_S)
        probe.connect(sockaddr)
        return True
    return False


def _public_url(region: str) -> str:
    suffix = ".cn" if region.startswith("cn-") else ""
    return f"https://runtime.sagemaker.{region}.amazonaws.com{suffix}"


def _port(url: str) -> int | None:
    try:
        return urlsplit(url).port
    except ValueError as malformed:
        raise _unusable(url, str(malformed)) from malformed


def _unusable(url: str, why: str) -> BenchError:
    return BenchError.of("SEA504", f"the runtime endpoint {url} can't be used: {why}", field="target.endpoint_url")
