"""A non-blocking connection, TCP or TLS, that never makes the event loop wait."""

from __future__ import annotations

import errno
import os
import selectors
import socket
import ssl
from contextlib import suppress
from dataclasses import dataclass
from itertools import cycle
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias
from urllib.parse import quote, urlsplit

from seatrial_base.errors import BenchError
from seatrial_load.aws.credentials import trusted_authorities

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from seatrial_load.documents.request import Api, PayloadSchema, TrialTarget


RECEIVE_BYTES = 65_536
_NOT_NOW = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
_UNDER_WAY = (0, errno.EINPROGRESS, errno.EWOULDBLOCK)
OPEN = 0


class Connection(Protocol):
    """What the client needs of a connection; every method but `close` may raise OSError."""

    def fileno(self) -> int:
        """Return the descriptor that a selector watches."""

    def open_step(self) -> int:
        """Go on with connecting; return `OPEN`, or the selector event (read or write) to wait for first."""

    def send(self, data: memoryview) -> int:
        """Send what fits now and return how many bytes that was."""

    def receive(self) -> bytes | None:
        """Return what arrived: None when nothing did, empty bytes when the server closed the connection."""

    def close(self) -> None:
        """Close the connection."""


Dial: TypeAlias = "Callable[[], Connection]"


class SocketConnection:
    """A connection over a socket; connects and shakes hands in steps."""

    __slots__ = ("_connected", "_host", "_pending", "_receive", "_socket", "_tls")

    def __init__(self, where: SocketAddress, host: str, tls: ssl.SSLContext | None) -> None:
        family, address = where
        self._host = host
        self._tls = tls
        self._connected = False
        self._pending: Callable[[], int] | None = None
        self._socket = socket.socket(family, socket.SOCK_STREAM)
        self._receive = self._socket.recv
        self._socket.setblocking(False)  # noqa: FBT003 (the standard library's signature)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        error = self._socket.connect_ex(address)
        if error not in _UNDER_WAY:
            self._socket.close()
            raise OSError(error, os.strerror(error))

    def fileno(self) -> int:
        """Return the socket's descriptor, which stays the same when TLS wraps it."""
        return self._socket.fileno()

    def open_step(self) -> int:
        """Go on with the TCP connection, then the TLS handshake."""
        if not self._connected and not self._has_peer():
            return selectors.EVENT_WRITE
        if self._tls is not None and not isinstance(self._socket, ssl.SSLSocket):
            wrapped = self._tls.wrap_socket(self._socket, server_hostname=self._host, do_handshake_on_connect=False)
            self._socket, self._receive, self._pending = wrapped, wrapped.recv, wrapped.pending
        try:
            if isinstance(self._socket, ssl.SSLSocket):
                self._socket.do_handshake()
        except ssl.SSLWantReadError:
            return selectors.EVENT_READ
        except ssl.SSLWantWriteError:
            return selectors.EVENT_WRITE
        return OPEN

    def send(self, data: memoryview) -> int:
        """Send what fits now; zero when the socket is full."""
        try:
            return self._socket.send(data)
        except _NOT_NOW:
            return 0

    def receive(self) -> bytes | None:
        """Return what arrived, with all that TLS has already decrypted: the selector doesn't report that."""
        try:
            data = self._receive(RECEIVE_BYTES)
            if self._pending is not None:
                while data and self._pending():
                    data += self._receive(RECEIVE_BYTES)
        except _NOT_NOW:
            return None
        return data

    def close(self) -> None:
        """Close the socket without a TLS farewell."""
        self._socket.close()

    def _has_peer(self) -> bool:
        error = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if error:
            raise OSError(error, os.strerror(error))
        try:
            self._socket.getpeername()
        except OSError:
            return False
        self._connected = True
        return True


def dialer(
    address: Address, where: tuple[SocketAddress, ...], environ: Mapping[str, str] = os.environ
) -> Callable[[], SocketConnection]:
    """Return a function that starts a connection, to each of the host's addresses in turn.

    TLS trusts the system's authorities, or those of `AWS_CA_BUNDLE` as boto3 does.

    Raises:
        BenchError: SEA504, that file can't be read.
    """
    try:
        tls = trusted_authorities(environ) if address.tls else None
    except OSError as unread:
        bundle = environ["AWS_CA_BUNDLE"]
        message = (
            f"the endpoint {address.authority} can't be used: AWS_CA_BUNDLE, {bundle}: {unread.strerror or unread}"
        )
        hint = "set AWS_CA_BUNDLE to a PEM file of certificates, or unset it"
        raise BenchError.of("SEA504", message, hint=hint, field="target.endpoint_url") from unread
    turns = cycle(where)
    return lambda: SocketConnection(next(turns), address.host, tls)


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
    target: TrialTarget,
    *,
    stream: bool,
    schema: PayloadSchema = "openai_chat",
    api: Api = "invoke",
    environ: Mapping[str, str] = os.environ,
) -> Address:
    """Work out the address of the requests.

    SageMaker's is the target's own URL, else boto3's endpoint variables, else the region's public one; an
    OpenAI-compatible server's is its base URL and the operation of the schema.

    Raises:
        BenchError: SEA504, the URL isn't `http(s)://host[:port][/path]`.
    """
    hint = _BASE_HINT if target.kind == "openai" else _URL_HINT
    if target.kind == "openai" and not target.endpoint_url:
        message = "an OpenAI-compatible server has no URL of its own"
        raise BenchError.of("SEA504", message, hint=hint, field="target.endpoint_url")
    url = target.endpoint_url or runtime_url(target.region, environ)
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as malformed:
        raise _unusable(_without_login(url), str(malformed), hint) from malformed
    odd = (
        parts.query or parts.fragment or "@" in parts.netloc or " " in url or not (url.isascii() and url.isprintable())
    )
    if parts.scheme not in _DEFAULT_PORTS or not parts.hostname or odd:
        raise _unusable(_without_login(url), "not of the form http(s)://host[:port][/path]", hint)
    return Address(
        tls=parts.scheme == "https",
        host=parts.hostname,
        port=port or _DEFAULT_PORTS[parts.scheme],
        path=f"{parts.path.rstrip('/')}/{_operation(target, schema, api, stream=stream)}",
    )


def socket_addresses(address: Address) -> tuple[SocketAddress, ...]:
    """Resolve the host; keep the addresses of the first family that responds, so that `localhost` works either way.

    A trial resolves before each level. Where the resolver fails in the middle of it, the addresses that it returned
    before hold: a name that can't be looked up for a moment is no reason to lose what was measured.

    Raises:
        BenchError: SEA504, the name doesn't resolve.
    """
    try:
        infos = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as unresolved:  # the latter of a label that is empty or too long
        if address in _LAST_KNOWN:
            return _LAST_KNOWN[address]
        reason = unresolved.strerror if isinstance(unresolved, OSError) else None
        why = f"the host name {address.host} does not resolve: {reason or unresolved}"
        raise _unusable(address.authority, why, _NAME_HINT) from unresolved
    addresses: tuple[SocketAddress, ...] = tuple((info[0], info[4]) for info in infos)
    family, _ = next((entry for entry in addresses if _responds(entry)), addresses[0])
    _LAST_KNOWN[address] = tuple(entry for entry in addresses if entry[0] == family)
    return _LAST_KNOWN[address]


def _responds(entry: SocketAddress) -> bool:
    family, sockaddr = entry
    with suppress(OSError), socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.settimeout(PROBE_TIMEOUT_S)
        probe.connect(sockaddr)
        return True
    return False


def _operation(target: TrialTarget, schema: PayloadSchema, api: Api, *, stream: bool) -> str:
    if target.kind == "openai":
        return "completions" if schema == "openai_completions" else "chat/completions"
    if api == "openai":
        endpoint, component = (
            quote(name or "", safe="") for name in (target.endpoint_name, target.inference_component)
        )
        return f"{openai_path(endpoint, component)}/chat/completions"
    operation = "invocations-response-stream" if stream else "invocations"
    return f"endpoints/{quote(target.endpoint_name, safe='')}/{operation}"


def openai_path(endpoint_name: str, inference_component: str | None) -> str:
    """Return the path of the base URL that OpenAI clients take for an endpoint, or for one of its components."""
    within = f"/inference-components/{inference_component}" if inference_component else ""
    return f"endpoints/{endpoint_name}{within}/openai/v1"


def runtime_url(region: str, environ: Mapping[str, str] = os.environ) -> str:
    """Return the URL of SageMaker's runtime: that of boto3's endpoint variables, else the Region's public one."""
    suffix = ".cn" if region.startswith("cn-") else ""
    return other_runtime_url(environ) or f"https://runtime.sagemaker.{region}.amazonaws.com{suffix}"


def other_runtime_url(environ: Mapping[str, str] = os.environ) -> str:
    """Return the URL of the runtime that boto3's endpoint variables name, without its last slash; empty for none."""
    return next((environ[name].rstrip("/") for name in ENDPOINT_URL_VARIABLES if environ.get(name)), "")


def _without_login(url: str) -> str:
    scheme, slashes, rest = url.partition("://")
    return scheme + slashes + rest.rpartition("@")[2]


def _unusable(url: str, why: str, hint: str) -> BenchError:
    return BenchError.of("SEA504", f"the endpoint {url} can't be used: {why}", hint=hint, field="target.endpoint_url")
