"""What passes the app in front of the embedded AWS, and with which answer: within this process, no AWS runs."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING

import botocore.auth
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from ministack.core import iam_evaluator
from ministack.services.cloudformation import custom_resource

from seatrial_laptop.aws.gateway import access_control, signature
from seatrial_laptop.aws.gateway.access_control import RESPONSE_PATH, AccessControl
from seatrial_laptop.state import LocalAws

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from seatrial_laptop.aws.gateway.asgi import Message, Receive, Scope, Send

PROCESS = LocalAws(pid=2, port=4566, access_key_id="AKIAOFTHISSTART", secret_access_key="the-secret")
USER = ("AKIAOFAUSER", "a-users-secret")
HOST = f"127.0.0.1:{PROCESS.port}"
PAGE = {"access-control-allow-origin": "*", "Access-Control-Allow-Headers": "*", "etag": '"1"'}
TOKEN = "a-token-of-one-use"


class Behind:
    """The embedded AWS, which answers everything and notes what reached it."""

    def __init__(self) -> None:
        self.bodies: dict[str, bytes] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = b""
        while True:
            message = await receive()
            part = message.get("body")
            body += part if isinstance(part, bytes) else b""
            if not message.get("more_body"):
                break
        self.bodies[str(scope["path"])] = body
        headers = [(name.encode(), value.encode()) for name, value in PAGE.items()]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"answered", "more_body": False})


@pytest.fixture
def behind() -> Behind:
    return Behind()


@pytest.fixture
def user(monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """A user of IAM who may do everything."""
    everything = {"Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}
    found = iam_evaluator.PrincipalInfo(
        arn="arn:aws:iam::000000000000:user/team",
        type="User",
        account="000000000000",
        policies=[iam_evaluator.parse_policy_document(everything)],
    )
    monkeypatch.setattr(iam_evaluator, "resolve_principal", lambda *_: found)
    monkeypatch.setattr(signature, "resolve_credential", lambda *_: SimpleNamespace(secret_access_key=USER[1]))
    return USER


def signed(path: str, method: str, body: bytes, key: tuple[str, str]) -> dict[str, str]:
    request = AWSRequest(method, f"http://{HOST}{path}", data=body)
    SigV4Auth(Credentials(*key), "sagemaker", "us-east-1").add_auth(request)
    return {"host": HOST, **{name.lower(): value for name, value in request.headers.items()}}


def answer(
    behind: Behind,
    raw_path: str,
    *,
    path: str = "",
    method: str = "POST",
    parts: Sequence[bytes] = (b"{}",),
    headers: Mapping[str, str] | None = None,
    key: tuple[str, str] = (PROCESS.access_key_id, PROCESS.secret_access_key),
    aws_date_s: Callable[[], float] = time.time,
) -> tuple[int, dict[str, str], int]:
    """Return status and headers of what a request is answered, and how many parts of its body were read."""
    sent: list[Message] = []
    waiting = [
        {"type": "http.request", "body": part, "more_body": number < len(parts)} for number, part in enumerate(parts, 1)
    ]
    head = signed(raw_path, method, b"".join(parts), key) if headers is None else headers

    async def receive() -> Message:
        return waiting.pop(0)

    async def send(message: Message) -> None:
        sent.append(message)

    pairs = [(name.encode(), value.encode()) for name, value in head.items()]
    scope = {
        "type": "http",
        "method": method,
        "path": path or raw_path,
        "raw_path": raw_path.encode(),
        "headers": pairs,
    }
    control = AccessControl(PROCESS, lambda _: [], behind, aws_date_s)
    asyncio.run(control({**scope, "query_string": b""}, receive, send))
    status, told = sent[0]["status"], sent[0]["headers"]
    assert isinstance(status, int)
    assert isinstance(told, list)
    return status, {name.decode(): value.decode() for name, value in told}, len(parts) - len(waiting)


def test_what_its_user_signed_reaches_the_embedded_aws_whole(behind: Behind) -> None:
    status, _, _ = answer(behind, "/", parts=(b'{"a"', b": 1}"))
    assert status == 200
    assert behind.bodies == {"/": b'{"a": 1}'}


def test_a_request_is_signed_by_the_real_date_or_by_that_of_aws(
    behind: Behind, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert answer(behind, "/", aws_date_s=lambda: 0.0)[0] == 200
    of_aws = datetime(2020, 1, 1, tzinfo=UTC)
    monkeypatch.setattr(botocore.auth, "get_current_datetime", lambda: of_aws)
    assert answer(behind, "/", aws_date_s=of_aws.timestamp)[0] == 200
    assert answer(behind, "/")[0] == 403


def test_an_answer_invites_no_page(behind: Behind) -> None:
    _, headers, _ = answer(behind, "/")
    assert headers == {"etag": '"1"'}


@pytest.mark.parametrize("foreign", [{"origin": "null"}, {"origin": f"http://{HOST}"}, {"host": "evil.example:4566"}])
def test_a_page_is_refused_though_the_request_is_signed(foreign: dict[str, str], behind: Behind) -> None:
    headers = {**signed("/", "POST", b"{}", (PROCESS.access_key_id, PROCESS.secret_access_key)), **foreign}
    status, _, read = answer(behind, "/", headers=headers)
    assert (status, read) == (403, 0)
    assert behind.bodies == {}


@pytest.mark.parametrize(
    ("path", "raw_path"),
    [
        ("/_ministack/reset", "/_ministack/reset"),
        ("/_seatrial/control", "/_seatrial/control"),
        ("/health", "/health"),
        ("/_ministack/reset", "/%5Fministack/reset"),
        ("/health", "/%68ealth"),
    ],
)
def test_the_control_interface_is_for_the_key_of_this_start(
    path: str, raw_path: str, user: tuple[str, str], behind: Behind
) -> None:
    assert answer(behind, raw_path, path=path, key=user)[0] == 403
    assert behind.bodies == {}
    assert answer(behind, raw_path, path=path)[0] == 200
    assert answer(behind, "/", key=user)[0] == 200


def test_of_a_sender_who_is_not_proven_a_bounded_body_is_read(monkeypatch: pytest.MonkeyPatch, behind: Behind) -> None:
    monkeypatch.setattr(access_control, "LONGEST_UNPROVEN_BYTES", 8)
    assert answer(behind, "/", parts=(b"12345678",))[0] == 200
    status, _, read = answer(behind, "/", parts=(b"12345678", b"9", b"never read"))
    assert (status, read) == (413, 2)


def test_the_response_of_a_custom_resource_is_put_once_without_a_signature(
    monkeypatch: pytest.MonkeyPatch, behind: Behind
) -> None:
    path = f"{RESPONSE_PATH}{TOKEN}"
    monkeypatch.setattr(custom_resource, "_pending", {TOKEN: None})
    unsigned = {"host": HOST}
    assert answer(behind, path, method="PUT", headers=unsigned, parts=(b"done",))[0] == 200
    assert behind.bodies == {path: b"done"}
    for method in ("GET", "POST", "DELETE"):
        assert answer(behind, path, method=method, headers=unsigned)[0] == 403
    assert answer(behind, f"{path}x", method="PUT", headers=unsigned)[0] == 403
