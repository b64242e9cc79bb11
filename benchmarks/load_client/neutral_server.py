"""Builds the neutral server, makes its certificate, starts and stops it. Everything lies in a temporary folder."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.request import urlopen

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SOURCES = sorted((Path(__file__).parent / "server").glob("*.c"))
PACKAGES = "apt install gcc libc6-dev libssl-dev openssl"
START_TIMEOUT_S = 10.0


@contextmanager
def neutral_server(folder: Path) -> Iterator[Mapping[str, str]]:
    """Serve until the block ends; give the environment that tells clients where, and whom to trust."""
    program, certificate, key = _build(folder / "server"), folder / "certificate.pem", folder / "key.pem"
    _certify(certificate, key)
    http_port, tls_port = _free_ports(2)
    process = subprocess.Popen([program, str(http_port), str(tls_port), certificate, key])
    try:
        _await(http_port)
        yield {"HTTP_PORT": str(http_port), "TLS_PORT": str(tls_port), "AWS_CA_BUNDLE": str(certificate)}
    finally:
        process.kill()
        process.wait()


def stats(environment: Mapping[str, str]) -> Mapping[str, float]:
    """Ask the server what was asked and sent since the last time."""
    with urlopen(f"http://127.0.0.1:{environment['HTTP_PORT']}/stats", timeout=10) as answer:
        told: dict[str, float] = json.load(answer)
    return told


def _build(program: Path) -> Path:
    compiler = shutil.which("gcc")
    if compiler is None:
        raise SystemExit(
            f"the neutral server is built with gcc, which isn't installed; on Debian and Ubuntu: {PACKAGES}"
        )
    command = [compiler, "-O2", "-Wall", "-o", str(program), *map(str, SOURCES), "-lssl", "-lcrypto"]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    if built.returncode:
        hint = f"; on Debian and Ubuntu: {PACKAGES}" if "openssl/ssl.h" in built.stderr else ""
        raise SystemExit(f"{built.stderr}the neutral server can't be built{hint}")
    return program


def _certify(certificate: Path, key: Path) -> None:
    openssl = shutil.which("openssl")
    if openssl is None:
        raise SystemExit(
            f"the certificate is made with openssl, which isn't installed; on Debian and Ubuntu: {PACKAGES}"
        )
    kind = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    files = ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run([openssl, *kind, *names, *files], check=True, capture_output=True)


def _free_ports(count: int) -> list[int]:
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [listener.getsockname()[1] for listener in held]
    for listener in held:
        listener.close()
    return ports


def _await(port: int) -> None:
    give_up_s = time.monotonic() + START_TIMEOUT_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1.0).close()
        except OSError:
            if time.monotonic() > give_up_s:
                raise
            time.sleep(0.02)
        else:
            return
