"""The control interface of a running embedded AWS: its clock, and the faults that it is to have."""

from __future__ import annotations

import http.client
import json
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from seatrial_base.errors import LocalError
from seatrial_laptop.lifecycle import running
from seatrial_laptop.loopback import HOST
from seatrial_laptop.running import CONTROL_PATH, silence_hint
from seatrial_laptop.state import REGION

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from seatrial_laptop.state import LocalAws


TIMEOUT_S: Final = 10.0
Settings = dict[str, object]
"""Every setting of the embedded AWS by its name."""


def settings_of(words: Sequence[str]) -> Settings:
    """Return the settings of `KEY=VALUE` words; a value that is no JSON is text.

    Raises:
        LocalError: SEA608, a word has no `=` or no key, or a key is there twice.
    """
    settings: Settings = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key or key in settings:
            fault = "is there twice" if key in settings else "is not of the form KEY=VALUE"
            raise LocalError.of("SEA608", f"{word!r} {fault}")
        try:
            settings[key] = json.loads(value)
        except ValueError:
            settings[key] = value
    return settings


def read_control(state_dir: Path) -> Settings:
    """Return the settings in force.

    Raises:
        LocalError: SEA602, none runs; SEA607, its state can't be read.
    """
    return _ask(running(state_dir), "GET")


def change_control(state_dir: Path, changes: Mapping[str, object]) -> Settings:
    """Change the given settings and return all of them.

    Raises:
        LocalError: SEA602, none runs; SEA607, its state can't be read; SEA608, a key is unknown or a value is wrong.
    """
    return _ask(running(state_dir), "PUT", json.dumps(changes).encode())


def reset_control(state_dir: Path) -> Settings:
    """Return every setting to its default and return all of them."""
    return _ask(running(state_dir), "DELETE")


def _ask(local: LocalAws, method: str, body: bytes = b"") -> Settings:
    from botocore.auth import SigV4Auth  # noqa: PLC0415 (heavy)
    from botocore.awsrequest import AWSRequest  # noqa: PLC0415 (heavy)
    from botocore.credentials import Credentials  # noqa: PLC0415 (heavy)

    request = AWSRequest(method, f"{local.endpoint_url}{CONTROL_PATH}", data=body)
    SigV4Auth(Credentials(local.access_key_id, local.secret_access_key), "sagemaker", REGION).add_auth(request)
    headers = {name: str(value) for name, value in request.headers.items()}
    connection = http.client.HTTPConnection(HOST, local.port, timeout=TIMEOUT_S)
    try:
        connection.request(method, CONTROL_PATH, body=body or None, headers=headers)
        response = connection.getresponse()
        document: Settings = json.loads(response.read())
    except (OSError, http.client.HTTPException, ValueError, RecursionError) as error:
        message, hint = f"the embedded AWS does not answer: {error}", silence_hint(local.pid)
        raise LocalError.of("SEA602", message, hint=hint) from error
    finally:
        connection.close()
    if response.status != HTTPStatus.OK:
        raise LocalError.of("SEA608", str(document.get("message", response.reason)))
    return document
