from __future__ import annotations

import json

import pytest

from seatrial_load.decode.failure import MAX_DETAIL_CHARACTERS, Failure, failure_of_response, masked


def of_sagemaker(code: str, message: str) -> dict[str, object]:
    """Return an error of SageMaker's OpenAI path."""
    return {"error": {"message": message, "type": "server_error", "code": code}}


@pytest.mark.parametrize(
    ("status", "name", "document", "error", "detail"),
    [
        (
            429,
            "ThrottlingException",
            {"message": "Rate exceeded"},
            "throttled",
            "HTTP 429 ThrottlingException: Rate exceeded",
        ),
        (
            400,
            "ThrottlingException",
            {"message": "Rate exceeded"},
            "throttled",
            "HTTP 400 ThrottlingException: Rate exceeded",
        ),
        (
            429,
            "ModelNotReadyException",
            {"Message": "warming"},
            "not_ready",
            "HTTP 429 ModelNotReadyException: warming",
        ),
        (400, "ValidationError", {"Message": "no capacity"}, "not_ready", "HTTP 400 ValidationError: no capacity"),
        (400, "ValidationError", {"Message": "no such"}, "validation", "HTTP 400 ValidationError: no such"),
        (403, "AccessDeniedException", {"Message": "no"}, "auth", "HTTP 403 AccessDeniedException: no"),
        (503, "ServiceUnavailable", {"Message": "busy"}, "server", "HTTP 503 ServiceUnavailable: busy"),
        (500, "InternalFailure", {}, "server", "HTTP 500 InternalFailure: {}"),
        (530, "InternalDependencyException", {"Message": "x"}, "server", "HTTP 530 InternalDependencyException: x"),
        (
            424,
            "ModelError",
            {"OriginalStatusCode": 500, "OriginalMessage": "OOM"},
            "model_error",
            "HTTP 424 ModelError: OOM",
        ),
        (
            424,
            "ModelError",
            {"OriginalStatusCode": 424, "OriginalMessage": "x"},
            "model_error",
            "HTTP 424 ModelError: x",
        ),
        (
            424,
            "ModelError",
            {"OriginalStatusCode": 429, "OriginalMessage": "full"},
            "throttled",
            "HTTP 424 ModelError: full",
        ),
        (
            424,
            "ModelError",
            {"OriginalStatusCode": 503, "OriginalMessage": "full"},
            "throttled",
            "HTTP 424 ModelError: full",
        ),
        (
            424,
            "ModelError",
            {"OriginalStatusCode": 422, "OriginalMessage": "long"},
            "validation",
            "HTTP 424 ModelError: long",
        ),
        (400, "", of_sagemaker("model_error", "too long"), "validation", "HTTP 400 server_error: too long"),
        (500, "", of_sagemaker("model_error", "died"), "model_error", "HTTP 500 server_error: died"),
        (503, "", of_sagemaker("model_error", "full"), "throttled", "HTTP 503 server_error: full"),
        (400, "", of_sagemaker("validation_error", "no capacity"), "not_ready", "HTTP 400 server_error: no capacity"),
        (403, "", of_sagemaker("access_denied_exception", "no"), "auth", "HTTP 403 server_error: no"),
        (422, "", {"error": "too long", "error_type": "validation"}, "validation", "HTTP 422 validation: too long"),
        (429, "", {"error": "overloaded", "error_type": "overloaded"}, "throttled", "HTTP 429 overloaded: overloaded"),
        (503, "", {}, "throttled", "HTTP 503: {}"),
        (502, "", {}, "server", "HTTP 502: {}"),
    ],
)
def test_answers_that_are_not_200(status: int, name: str, document: dict[str, object], error: str, detail: str) -> None:
    headers = {"x-amzn-errortype": f"{name}:http://internal.amazon.com/"} if name else {}
    failure = failure_of_response(status, headers, json.dumps(document).encode())
    assert (failure.error, failure.detail) == (error, detail)


@pytest.mark.parametrize(
    "name",
    [
        "AccessDeniedException",
        "ExpiredToken",
        "ExpiredTokenException",
        "IncompleteSignature",
        "InvalidClientTokenId",
        "InvalidSignatureException",
        "MissingAuthenticationToken",
        "MissingAuthenticationTokenException",
        "RequestExpired",
        "RequestTimeTooSkewed",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
    ],
)
@pytest.mark.parametrize("status", [400, 403])
def test_a_sender_that_is_refused_is_of_class_auth_in_the_services_own_words(status: int, name: str) -> None:
    body = b'{"message":"The security token included in the request is expired"}'
    assert failure_of_response(status, {"x-amzn-errortype": name}, body) == Failure(
        "auth", f"HTTP {status} {name}: The security token included in the request is expired"
    )


def test_the_error_object_of_an_openai_compatible_server() -> None:
    document = {"error": {"message": "Incorrect API key provided", "type": "invalid_request_error", "code": 401}}
    assert failure_of_response(401, {}, json.dumps(document).encode()) == Failure(
        "auth", "HTTP 401 invalid_request_error: Incorrect API key provided"
    )


def test_a_container_that_refuses_the_sender_is_of_class_auth() -> None:
    body = b'{"OriginalStatusCode":401,"OriginalMessage":"no key"}'
    assert failure_of_response(424, {"x-amzn-errortype": "ModelError"}, body).error == "auth"


def test_a_namespace_before_the_type_is_dropped() -> None:
    body = b'{"__type":"com.amazonaws#ModelNotReadyException"}'
    assert failure_of_response(429, {}, body).error == "not_ready"


def test_a_body_that_is_not_json_is_quoted_on_one_short_line() -> None:
    failure = failure_of_response(502, {}, b"<html>\n bad\xff gateway " + b"x" * 1000)
    assert failure.detail.startswith("HTTP 502: <html> bad� gateway xxx")
    assert len(failure.detail) == MAX_DETAIL_CHARACTERS


def test_nothing_in_the_body() -> None:
    assert failure_of_response(500, {}, b"") == Failure("server", "HTTP 500: empty answer")


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("no key sk-0123456789 here", "no key [hidden] here"),
        ("cut within sk-01234567…", "cut within [hidden]…"),
        ("Authorization: Bearer other.key-1 refused", "Authorization: Bearer [hidden] refused"),
        ("x-amz-security-token:IQoJ== host:x", "x-amz-security-token:[hidden] host:x"),
        ("nothing to hide", "nothing to hide"),
        ("proxy https://user:hunter2@proxy:8080 refused", "proxy https://user:…@proxy:8080 refused"),
    ],
)
def test_what_proves_the_sender_is_hidden(text: str, hidden: str) -> None:
    assert masked(text, "sk-0123456789") == hidden


def test_a_credential_that_the_end_of_a_message_would_cut_is_masked_before() -> None:
    key = "nvapi-" + "aB3dE5fG7hJ9kL1mN2pQ4rS6"
    detail = failure_of_response(500, {}, b"x" * (MAX_DETAIL_CHARACTERS - 24) + f" {key}".encode()).detail
    assert detail.endswith("x nva…")


def test_a_key_that_is_a_common_word_is_no_secret() -> None:
    assert masked("the queue is EMPTY", "EMPTY") == "the queue is EMPTY"
