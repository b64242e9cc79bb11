"""Whom an engine answers: the embedded AWS that started it, and no web page."""

from __future__ import annotations

import http.client
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping

Laptop = Any  # the fixture's class lives in conftest.py, which nobody can import


def ask(port: int, method: str, path: str, headers: Mapping[str, str]) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request(method, path, b'{"inputs":"a","parameters":{"max_new_tokens":1}}', dict(headers))
    status = connection.getresponse().status
    connection.close()
    return status


@pytest.mark.parametrize("path", ["/ping", "/info", "/invocations"])
@pytest.mark.parametrize(
    "headers", [{"Origin": "https://evil.example"}, {"Host": "evil.example"}, {"Host": "localhost:1"}]
)
def test_a_page_and_another_host_are_refused(laptop: Laptop, chat: str, path: str, headers: dict[str, str]) -> None:
    (port,) = laptop.ports(chat)
    assert ask(port, "POST" if path == "/invocations" else "GET", path, headers) == 403


@pytest.mark.parametrize("headers", [{}, {"x-seatrial-engine-token": "guessed"}])
def test_an_invocation_that_does_not_come_from_the_embedded_aws_is_refused(
    laptop: Laptop, chat: str, headers: dict[str, str]
) -> None:
    (port,) = laptop.ports(chat)
    assert ask(port, "POST", "/invocations", headers) == 403
    assert ask(port, "GET", "/ping", headers) == 200
