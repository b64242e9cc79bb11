"""The embedded AWS answers its user alone: what a signature must be, and whom no signature helps."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import boto3
import pytest
from botocore.auth import S3SigV4Auth, S3SigV4QueryAuth, SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials
from botocore.exceptions import ClientError
from ministack.services.cloudformation import custom_resource

from seatrial_laptop.aws.gateway.access_control import (
    LONGEST_UNPROVEN_BYTES,
    AccessControl,
    claim_of_either,
    is_awaited_response,
    received_of,
)
from seatrial_laptop.aws.gateway.signature import UNSIGNED, Claim, Received, Refusal, read_claim
from seatrial_laptop.loopback import NAMES, foreign_request_reason
from seatrial_laptop.state import LocalAws

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mypy_boto3_sts.type_defs import CredentialsTypeDef

    from seatrial_laptop.aws.gateway.asgi import Message

Laptop = Any  # the fixture's class lives in conftest.py, which nobody can import
Roles = Any
PROCESS = LocalAws(pid=2, port=4566, access_key_id="AKIAOFTHISSTART", secret_access_key="the-secret")
LIST = json.dumps({}).encode()


def signed(
    *,
    service: str = "sagemaker",
    method: str = "POST",
    path: str = "/",
    body: bytes = LIST,
    key: tuple[str, str] = (PROCESS.access_key_id, PROCESS.secret_access_key),
    token: str | None = None,
    port: int = PROCESS.port,
    **headers: str,
) -> dict[str, str]:
    """Return the headers of a request that botocore signed now."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    request = AWSRequest(method, f"http://127.0.0.1:{port}{path}", headers=named, data=body)
    signer = (S3SigV4Auth if service == "s3" else SigV4Auth)(Credentials(*key, token), service, "us-east-1")
    signer.add_auth(request)
    return {"host": f"127.0.0.1:{port}", **{name.lower(): value for name, value in request.headers.items()}}


def received(headers: Mapping[str, str], *, method: str = "POST", target: str = "/") -> Received:
    path, _, query = target.partition("?")
    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    return received_of(
        {"method": method, "path": path, "raw_path": path.encode(), "query_string": query.encode(), "headers": pairs}
    )


def verdict(request: Received, body: bytes = LIST, *, later: timedelta = timedelta()) -> str:
    """Return `signed`, or the code of the refusal in the form of services that speak JSON."""
    claim = read_claim(request, PROCESS, datetime.now(UTC) + later)
    refused = claim if isinstance(claim, Refusal) else claim.refusal(body)
    return refused.json if refused else "signed"


def test_a_request_of_botocore_is_its_users() -> None:
    assert verdict(received(signed())) == "signed"


def test_a_path_with_signs_that_are_encoded_is_its_users() -> None:
    path = "/endpoints/a%20b%2Fc/invocations?x=1%202&tagging"
    assert verdict(received(signed(path=path), target=path)) == "signed"


def test_an_object_of_s3_with_an_encoded_key_is_its_users() -> None:
    path = "/bucket/a%20b/%C3%A9?tagging"
    assert verdict(received(signed(service="s3", path=path), target=path)) == "signed"


@pytest.mark.parametrize("value", ["UNSIGNED-PAYLOAD", "STREAMING-UNSIGNED-PAYLOAD-TRAILER"])
def test_a_body_that_is_not_signed_on_purpose_may_be_any(value: str) -> None:
    headers = signed(service="s3", method="PUT", path="/bucket/key", X_Amz_Content_SHA256=value)
    claim = read_claim(received(headers, method="PUT", target="/bucket/key"), PROCESS, datetime.now(UTC))
    assert isinstance(claim, Claim)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"authorization": None}, "MissingAuthenticationTokenException"),
        ({"authorization": "Bearer abc"}, "IncompleteSignatureException"),
        ({"authorization": "AWS4-HMAC-SHA256 Credential=x"}, "IncompleteSignatureException"),
        ({"authorization": "AWS AKIAOFTHISSTART:signature"}, "IncompleteSignatureException"),
        ({"x-amz-date": "yesterday"}, "IncompleteSignatureException"),
        ({"x-amz-target": "SageMaker.DeleteEndpoint"}, "InvalidSignatureException"),
        ({"x-amz-security-token": "a-token"}, "InvalidSignatureException"),
        ({"host": "localhost:4566"}, "InvalidSignatureException"),
    ],
)
def test_a_head_that_was_not_signed_so_is_refused(change: dict[str, str | None], code: str) -> None:
    headers = {**signed(x_amz_target="SageMaker.ListEndpoints"), **change}
    kept = {name: value for name, value in headers.items() if value is not None}
    assert verdict(received(kept)) == code


@pytest.mark.parametrize(
    ("key", "code"),
    [
        (("AKIAOFTHISSTART", "another-secret"), "InvalidSignatureException"),
        (("AKIAOFANOTHERSTART", "the-secret"), "UnrecognizedClientException"),
        (("test", "test"), "UnrecognizedClientException"),
        (("test", "the-secret"), "UnrecognizedClientException"),
        (("123456789012", "the-secret"), "UnrecognizedClientException"),
        (("000000000000", "test"), "UnrecognizedClientException"),
        (("000000000000", "the-secret"), "UnrecognizedClientException"),
    ],
)
def test_a_key_is_the_one_of_this_start_or_of_its_functions(key: tuple[str, str], code: str) -> None:
    assert verdict(received(signed(key=key))) == code


def test_a_key_of_this_start_has_no_session() -> None:
    assert verdict(received(signed(token="a-token"))) == "UnrecognizedClientException"


def test_another_body_is_refused() -> None:
    assert verdict(received(signed()), b'{"NameContains": "x"}') == "InvalidSignatureException"


def test_a_body_that_differs_from_its_signed_hash_is_refused() -> None:
    headers = signed(service="s3", method="PUT", path="/bucket/key", body=b"a zip")
    request = received(headers, method="PUT", target="/bucket/key")
    claim = read_claim(request, PROCESS, datetime.now(UTC))
    assert isinstance(claim, Claim)
    assert claim.refusal(b"a zip") is None
    refused = claim.refusal(b"another zip")
    assert refused
    assert refused.s3 == "XAmzContentSHA256Mismatch"


def test_another_path_query_or_method_is_refused() -> None:
    headers = signed(path="/a?b=c")
    assert verdict(received(headers, target="/a?b=c")) == "signed"
    others = [received(headers, target="/x?b=c"), received(headers, target="/a?b=x")]
    others.append(received(headers, method="PUT", target="/a?b=c"))
    assert {verdict(other) for other in others} == {"InvalidSignatureException"}


@pytest.mark.parametrize(("minutes", "code"), [(4, "signed"), (6, "InvalidSignatureException")])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_signature_is_of_now(minutes: int, sign: int, code: str) -> None:
    assert verdict(received(signed()), later=sign * timedelta(minutes=minutes)) == code


@pytest.mark.parametrize(("minutes", "is_let_in"), [((30, 0), True), ((0, 30), True), ((30, 30), False)])
def test_a_signature_is_of_the_real_date_or_of_that_of_aws(minutes: tuple[int, int], is_let_in: bool) -> None:  # noqa: FBT001 (a case)
    real, of_aws = (datetime.now(UTC) - timedelta(minutes=each) for each in minutes)
    claim = claim_of_either(received(signed()), PROCESS, (real, of_aws))
    assert isinstance(claim, Claim) is is_let_in


def presigned(expires_s: int, *, key: tuple[str, str] = ("AKIAOFTHISSTART", "the-secret")) -> str:
    request = AWSRequest("GET", f"http://127.0.0.1:{PROCESS.port}/bucket/key")
    S3SigV4QueryAuth(Credentials(*key), "s3", "us-east-1", expires=expires_s).add_auth(request)
    parts = urlsplit(str(request.url))
    return f"{parts.path}?{parts.query}"


@pytest.mark.parametrize(
    ("change", "later_s", "code"),
    [
        (("", ""), 0, "signed"),
        (("", ""), 50, "signed"),
        (("", ""), 70, "InvalidSignatureException"),
        (("", ""), -1000, "InvalidSignatureException"),
        (("X-Amz-Expires=60", "X-Amz-Expires=6000"), 0, "InvalidSignatureException"),
        (("X-Amz-Expires=60", "X-Amz-Expires=9999999"), 0, "IncompleteSignatureException"),
        (("X-Amz-Expires=60", "X-Amz-Expires=soon"), 0, "IncompleteSignatureException"),
        (("X-Amz-Expires=60", f"X-Amz-Expires={60:09}"), 0, "InvalidSignatureException"),
        (("X-Amz-Expires=60", f"X-Amz-Expires=000000001{'9' * 40}"), 0, "IncompleteSignatureException"),
        (("X-Amz-Expires=60", f"X-Amz-Expires={'9' * 5_000}"), 0, "IncompleteSignatureException"),
        (("/bucket/key", "/bucket/another"), 0, "InvalidSignatureException"),
        (("AWS4-HMAC-SHA256", "AWS4-ECDSA-P256-SHA256"), 0, "IncompleteSignatureException"),
    ],
)
def test_a_presigned_url_is_what_it_was_and_ends(change: tuple[str, str], later_s: int, code: str) -> None:
    request = received({"host": "127.0.0.1:4566"}, method="GET", target=presigned(60).replace(*change))
    assert verdict(request, b"", later=timedelta(seconds=later_s)) == code


def test_a_presigned_url_of_another_secret_is_refused() -> None:
    target = presigned(60, key=("AKIAOFTHISSTART", "another"))
    assert (
        verdict(received({"host": "127.0.0.1:4566"}, method="GET", target=target), b"") == "InvalidSignatureException"
    )


def test_only_a_response_that_is_waited_for_needs_no_signature() -> None:
    token = "0f0e0d0c-0000-4000-8000-000000000000"
    target = f"/_ministack/cfn-response/{token}"
    custom_resource.register_token(token)
    try:
        assert is_awaited_response(received({}, method="PUT", target=target))
        assert not is_awaited_response(received({}, method="POST", target=target))
        assert not is_awaited_response(received({}, method="PUT", target=f"{target}x"))
        assert not is_awaited_response(received({}, method="PUT", target=f"/{token}"))
    finally:
        custom_resource.reset()


def test_a_websocket_is_refused() -> None:
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "websocket.connect"}

    async def send(message: Message) -> None:
        sent.append(message)

    async def behind(*_: object) -> None:
        raise AssertionError("it was let in")

    asyncio.run(
        AccessControl(PROCESS, lambda _: [], behind)({"type": "websocket", "path": "/", "headers": []}, receive, send)
    )
    assert sent == [{"type": "websocket.close", "code": 1008}]


def refused_before(most_bytes: int, headers: Mapping[str, str], *, method: str = "POST", path: str = "/") -> int:
    """Return the status with which a sender is refused whose body never ends, of which at most so much was read."""
    read = 0
    sent: list[Message] = []

    async def receive() -> Message:
        nonlocal read
        read += 2**20
        assert read <= most_bytes + 2**20
        return {"type": "http.request", "body": bytes(2**20), "more_body": True}

    async def send(message: Message) -> None:
        sent.append(message)

    async def behind(*_: object) -> None:
        raise AssertionError("nobody is proven")

    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": method, "path": path, "raw_path": path.encode(), "headers": pairs}
    asyncio.run(AccessControl(PROCESS, lambda _: [], behind)(scope, receive, send))
    status = sent[0]["status"]
    assert isinstance(status, int)
    return status


@pytest.mark.parametrize(
    "origin", ["null", "", "http://127.0.0.1:4566", "https://a.example", "file://", "moz-extension://x"]
)
def test_whatever_origin_a_page_has_it_is_refused(origin: str) -> None:
    """A frame in a sandbox, or a page of a file, has the origin `null`."""
    reason = "Requests of web pages (with an Origin header) are refused."
    assert foreign_request_reason({"host": "127.0.0.1:4566", "origin": origin}, 4566) == reason


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:4566", "127.0.0.1", "127.0.0.1:1", "a.localhost:4566", ""]
)
def test_a_page_whose_name_was_rebound_to_this_machine_is_refused(host: str) -> None:
    assert foreign_request_reason({"host": host}, 4566) == "Host must be 127.0.0.1:4566 or localhost:4566."


def test_a_request_without_origin_for_this_port_is_none_of_a_page() -> None:
    assert [foreign_request_reason({"host": f"{name}:4566"}, 4566) for name in NAMES] == [None, None]


class TestBodies:
    """The id of a key is no secret: whoever knows it alone can't make the embedded AWS hold what he sends."""

    KEY = (PROCESS.access_key_id, "another-secret")

    def test_of_a_body_whose_hash_is_stated_nothing_is_read_before_the_signature_is_right(self) -> None:
        headers = signed(service="s3", method="PUT", path="/bucket/key", key=self.KEY)
        assert refused_before(0, headers, method="PUT", path="/bucket/key") == 403

    @pytest.mark.parametrize("stated", UNSIGNED[:2])
    def test_nor_of_one_that_is_not_signed(self, stated: str) -> None:
        headers = signed(service="s3", method="PUT", path="/b/k", key=self.KEY, X_Amz_Content_SHA256=stated)
        assert refused_before(0, headers, method="PUT", path="/b/k") == 403

    @pytest.mark.parametrize("stated", ["", *UNSIGNED[2:]])
    def test_of_a_body_that_the_signature_needs_a_bounded_part_is_held(self, stated: str) -> None:
        headers = signed(key=self.KEY, X_Amz_Content_SHA256=stated) if stated else signed(key=self.KEY)
        assert refused_before(LONGEST_UNPROVEN_BYTES, headers) == 413


@pytest.mark.parametrize("body", [b"{", b"[]", b"1", b"\xff", b"[" * 100_000, b'{"a":' * 100_000])
def test_a_signed_body_that_is_no_object_is_refused_as_aws_refuses_it(body: bytes, laptop: Laptop) -> None:
    headers = signed_for(laptop, body=body, x_amz_target="SageMaker.ListEndpoints")
    assert TestOnTheWire.ask(laptop, "POST", "/", body, **headers)[:2] == (400, "SerializationException")


class TestRoutes:
    """What a request does is told by where it goes; the service that its sender signed for changes nothing."""

    @pytest.fixture
    def bucket_user(self, roles: Roles) -> CredentialsTypeDef:
        role = roles.role({"Effect": "Allow", "Action": "s3:*", "Resource": "*"})
        return boto3.client("sts").assume_role(RoleArn=role, RoleSessionName="test")["Credentials"]

    @pytest.mark.parametrize("service", ["s3", "sagemaker", "execute-api"])
    @pytest.mark.parametrize(
        ("method", "path"),
        [
            ("POST", "/endpoints/x/invocations"),
            ("POST", "/endpoints/x/%69nvocations"),
            ("POST", "/endpoints/x/invocations-response-stream"),
            ("POST", "/endpoints/x/async-invocations"),
            ("GET", "/_seatrial/status"),
            ("PUT", "/_seatrial/control"),
            ("PUT", "/%5Fseatrial/control"),
            ("DELETE", "/_seatrial/control"),
            ("POST", "/_ministack/reset"),
            ("POST", "/%5fministack/%72eset"),
            ("GET", "/_ministack/config"),
            ("GET", "/_localstack/health"),
            ("GET", "/health"),
        ],
    )
    def test_who_may_use_s3_alone_may_do_nothing_else(
        self, laptop: Laptop, bucket_user: CredentialsTypeDef, method: str, path: str, service: str
    ) -> None:
        key = (bucket_user["AccessKeyId"], bucket_user["SecretAccessKey"])
        headers = signed(
            service=service, method=method, path=path, key=key, token=bucket_user["SessionToken"], port=port_of(laptop)
        )
        assert TestOnTheWire.ask(laptop, method, path, LIST, **headers)[:2] == (403, "AccessDeniedException")

    @pytest.mark.parametrize("path", ["/_seatrial/status", "/_seatrial/control"])
    def test_the_key_of_this_start_reads_what_runs(self, laptop: Laptop, path: str) -> None:
        headers = signed_for(laptop, method="GET", path=path, body=b"")
        assert TestOnTheWire.ask(laptop, "GET", path, b"", **headers)[0] == 200


class TestOnTheWire:
    """The running embedded AWS, asked through plain sockets."""

    @staticmethod
    def ask(laptop: Laptop, method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, str, list[str]]:
        """Return the status, the error's type and the names of the headers of an answer."""
        connection = http.client.HTTPConnection("127.0.0.1", port_of(laptop))
        connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        answer.read()
        connection.close()
        names = [name.lower() for name, _ in answer.getheaders()]
        return answer.status, answer.getheader("x-amzn-errortype", ""), names

    @pytest.mark.parametrize(
        ("method", "path"),
        [
            ("POST", "/2015-03-31/functions"),
            ("POST", "/2015-03-31/functions/any/invocations"),
            ("POST", "/endpoints/any/invocations"),
            ("POST", "/endpoints/any/invocations-response-stream"),
            ("GET", "/_seatrial/status"),
            ("POST", "/_seatrial/status"),
            ("GET", "/_ministack/health"),
            ("GET", "/_localstack/health"),
            ("GET", "/health"),
            ("POST", "/_ministack/reset"),
            ("POST", "/_ministack/config"),
            ("PUT", "/_ministack/cfn-response/0f0e0d0c-0000-4000-8000-000000000000"),
            ("GET", "/"),
            ("PUT", "/bucket"),
            ("OPTIONS", "/2015-03-31/functions"),
        ],
    )
    def test_nothing_unsigned_is_answered(self, laptop: Laptop, method: str, path: str) -> None:
        status, error, _ = self.ask(laptop, method, path, b"{}")
        assert (status, error) == (403, "MissingAuthenticationTokenException")

    @pytest.mark.parametrize(
        "path", ["/v1/chat/completions", "/v1/completions", "/v1/models", "//v1//chat/completions"]
    )
    @pytest.mark.parametrize("key", ["", "Bearer EMPTY"])
    def test_no_mock_of_a_model_answers_openais_paths(self, laptop: Laptop, path: str, key: str) -> None:
        """MiniStack's own mock answered, and `seatrial bench --url` measured 2,983 tok/s."""
        answer = self.answered(laptop, path, {"Authorization": key} if key else {})
        assert (answer[0], answer[1]["error"]["code"]) == (501, 501)
        assert "/endpoints/NAME/openai/v1" in answer[1]["error"]["message"]

    def test_no_mock_of_a_model_answers_a_signed_request(self, laptop: Laptop) -> None:
        headers = signed_for(laptop, method="POST", path="/v1/chat/completions", body=b"{}")
        assert self.answered(laptop, "/v1/chat/completions", headers)[0] == 501
        bedrock = boto3.client(
            "bedrock-runtime",
            aws_access_key_id=laptop.local.access_key_id,
            aws_secret_access_key=laptop.local.secret_access_key,
            config=Config(retries={"total_max_attempts": 1}),
        )
        with pytest.raises(ClientError, match="has no Amazon Bedrock"):
            bedrock.converse(modelId="any.model", messages=[{"role": "user", "content": [{"text": "hello"}]}])

    def answered(self, laptop: Laptop, path: str, headers: dict[str, str]) -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", port_of(laptop))
        connection.request("POST", path, b"{}", headers)
        answer = connection.getresponse()
        said = json.loads(answer.read())
        connection.close()
        return answer.status, said

    @pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS"])
    def test_a_page_is_refused_though_its_request_is_signed(self, laptop: Laptop, method: str) -> None:
        headers = signed_for(laptop, method=method, path="/_seatrial/status")
        status, error, names = self.ask(
            laptop, method, "/_seatrial/status", LIST, **{**headers, "Origin": "http://127.0.0.1:1"}
        )
        assert (status, error) == (403, "AccessDeniedException")
        assert [name for name in names if name.startswith("access-control-")] == []

    @pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1.evil.example", "bucket.localhost"])
    def test_another_host_is_refused(self, laptop: Laptop, host: str) -> None:
        for name in (host, f"{host}:{port_of(laptop)}"):
            if name != f"127.0.0.1:{port_of(laptop)}":
                status, error, _ = self.ask(laptop, "GET", "/_seatrial/status", Host=name)
                assert (status, error) == (403, "AccessDeniedException")

    def test_no_answer_invites_a_page(self, laptop: Laptop) -> None:
        headers = signed_for(laptop, method="GET", service="s3", body=b"")
        status, _, names = self.ask(laptop, "GET", "/", b"", **headers)
        assert status == 200
        assert [name for name in names if name.startswith("access-control-")] == []

    def test_a_websocket_does_not_open(self, laptop: Laptop) -> None:
        with socket.create_connection(("127.0.0.1", port_of(laptop))) as plug:
            plug.sendall(
                f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{port_of(laptop)}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n".encode()
            )
            assert plug.recv(1024).startswith(b"HTTP/1.1 403")

    def test_each_service_refuses_in_its_own_words(self, laptop: Laptop) -> None:
        codes = {}
        for service in ("sagemaker", "s3", "cloudformation", "lambda", "sts"):
            client = boto3.client(service, aws_secret_access_key="wrong", aws_access_key_id=laptop.local.access_key_id)
            asked = {"sagemaker": "list_endpoints", "s3": "list_buckets", "cloudformation": "list_stacks"}
            with pytest.raises(ClientError) as refused:
                getattr(
                    client, asked.get(service, "list_functions" if service == "lambda" else "get_caller_identity")
                )()
            codes[service] = refused.value.response["Error"]["Code"]
        assert codes == {
            "sagemaker": "InvalidSignatureException",
            "s3": "SignatureDoesNotMatch",
            "cloudformation": "SignatureDoesNotMatch",
            "lambda": "InvalidSignatureException",
            "sts": "SignatureDoesNotMatch",
        }

    def test_the_temporary_credentials_of_a_role_are_accepted_and_no_others(self, roles: Roles) -> None:
        role = roles.role({"Effect": "Allow", "Action": "s3:ListAllMyBuckets", "Resource": "*"})
        made = boto3.client("sts").assume_role(RoleArn=role, RoleSessionName="test")["Credentials"]
        once = Config(retries={"total_max_attempts": 1})
        key, secret, token = made["AccessKeyId"], made["SecretAccessKey"], made["SessionToken"]
        with_token = boto3.Session(key, secret, token).client("s3", config=once)
        assert with_token.list_buckets()["ResponseMetadata"]["HTTPStatusCode"] == 200
        for wrong in (boto3.Session(key, secret, "another"), boto3.Session(key, "wrong", token)):
            with pytest.raises(ClientError) as refused:
                wrong.client("s3", config=once).list_buckets()
            assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 403

    def test_a_presigned_url_works_without_headers(self, laptop: Laptop) -> None:
        laptop.s3.create_bucket(Bucket="presigned")
        laptop.s3.put_object(Bucket="presigned", Key="a key/é", Body=b"content")
        s3 = boto3.client("s3", config=Config(signature_version="s3v4"))  # botocore's default is SigV2, which AWS left
        url = s3.generate_presigned_url("get_object", Params={"Bucket": "presigned", "Key": "a key/é"})
        parts = urlsplit(url)
        assert self.ask(laptop, "GET", f"{parts.path}?{parts.query}")[0] == 200
        assert self.ask(laptop, "GET", f"{parts.path}?{parts.query}0")[0] == 403


def port_of(laptop: Laptop) -> int:
    return int(laptop.local.endpoint_url.rpartition(":")[2])


def signed_for(
    laptop: Laptop,
    *,
    method: str = "POST",
    path: str = "/",
    service: str = "sagemaker",
    body: bytes = LIST,
    **headers: str,
) -> dict[str, str]:
    key = (laptop.local.access_key_id, laptop.local.secret_access_key)
    return signed(service=service, method=method, path=path, body=body, key=key, port=port_of(laptop), **headers)
