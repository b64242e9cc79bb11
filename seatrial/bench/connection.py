"""A non-blocking connection, TCP or TLS, that never makes the event loop wait."""

from __future__ import annotations

import errno
import os
import selectors
import socket
import ssl
from itertools import cycle
from typing import TYPE_CHECKING, Protocol, TypeAlias

from seatrial.errors import BenchError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from seatrial.bench.address import Address, SocketAddress

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
        """Return what arrived, with all that TLS has already decrypted: the selector wouldn't tell of that."""
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
    tls = _trust(environ.get("AWS_CA_BUNDLE") or None, address) if address.tls else None
    turns = cycle(where)
    return lambda: SocketConnection(next(turns), address.host, tls)


def _trust(bundle: str | None, address: Address) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=bundle)
    except OSError as unread:
        message = (
            f"the endpoint {address.authority} can't be used: AWS_CA_BUNDLE, {bundle}: {unread.strerror or unread}"
        )
        hint = "name a file of certificates in PEM, or unset AWS_CA_BUNDLE"
        raise BenchError.of("SEA504", message, hint=hint, field="target.endpoint_url") from unread
