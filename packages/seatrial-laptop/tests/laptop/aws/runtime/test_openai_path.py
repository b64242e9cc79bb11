"""The OpenAI path with OpenAI's own client, which is told a base URL and a token and nothing else."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from base64 import b64decode, b64encode
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.both_paths.run import Round, measured, table
from seatrial_load.aws.credentials import Credentials
from seatrial_load.aws.sigv4 import PREFIX, bearer_token

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from openai import AsyncOpenAI, OpenAI
    from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolParam

    from seatrial_load.documents.request import Api

Laptop = Any  # the fixture's class lives in conftest.py, which nobody can import
Roles = Any
VLLM = "763104351884.dkr.ecr.us-east-1.amazonaws.com/vllm:0.26.0-gpu-py312-cu130-ubuntu22.04-sagemaker"
TGI = "763104351884.dkr.ecr.us-east-1.amazonaws.com/huggingface-pytorch-tgi-inference:2.7.0-tgi3.3.6-gpu-py311"
MESSAGES: list[ChatCompletionMessageParam] = [{"role": "user", "content": "hello"}]
CITY = {
    "type": "object",
    "properties": {"city": {"enum": ["Oslo", "Rome"]}},
    "required": ["city"],
    "additionalProperties": False,
}
TOOLS: list[ChatCompletionToolParam] = [{"type": "function", "function": {"name": "weather", "parameters": CITY}}]
PATHS: tuple[Api, ...] = ("invoke", "openai")
INVOKE = {"Effect": "Allow", "Action": "sagemaker:InvokeEndpoint", "Resource": "*"}
BEARER = {"Effect": "Allow", "Action": "sagemaker:CallWithBearerToken", "Resource": "*"}


@pytest.fixture(scope="module")
def component(laptop: Laptop, host: str) -> Iterator[str]:
    """Return a component of vLLM's own container, with two slots."""
    model = laptop.model(image=VLLM, SM_VLLM_MAX_NUM_SEQS="2", SM_VLLM_MAX_MODEL_LEN="2048")
    name: str = laptop.component(host, model)
    yield name
    laptop.sagemaker.delete_inference_component(InferenceComponentName=name)


def root_token(
    laptop: Laptop, *, expires_s: int = 3600, later: timedelta = timedelta(), region: str = "us-east-1"
) -> str:
    root = Credentials(laptop.local.access_key_id, laptop.local.secret_access_key)
    return bearer_token(root, region, datetime.now(UTC) + later, expires_s=expires_s)


def base_url(laptop: Laptop, endpoint: str, component: str = "") -> str:
    within = f"/inference-components/{component}" if component else ""
    return f"{laptop.local.endpoint_url}/endpoints/{endpoint}{within}/openai/v1"


@pytest.fixture(scope="module")
def client(laptop: Laptop, host: str, component: str) -> OpenAI:
    return client_of(base_url(laptop, host, component), root_token(laptop))


def client_of(url: str, token: str | Callable[[], str]) -> OpenAI:
    import openai  # noqa: PLC0415 (it takes a second)

    return openai.OpenAI(base_url=url, api_key=token, max_retries=0)


def test_a_whole_answer(client: OpenAI) -> None:
    answer = client.chat.completions.create(model="", messages=MESSAGES, max_tokens=3)
    assert answer.object == "chat.completion"
    assert answer.choices[0].finish_reason == "length"
    assert answer.choices[0].message.content
    assert answer.usage
    assert answer.usage.completion_tokens == 3


def test_a_stream_ends_with_the_usage_that_was_asked_for(client: OpenAI) -> None:
    stream = client.chat.completions.create(
        model="", messages=MESSAGES, max_tokens=5, stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    assert [len(chunk.choices) for chunk in chunks] == [1, 1, 1, 1, 1, 0]
    assert chunks[-1].usage
    assert chunks[-1].usage.completion_tokens == 5


def test_a_stream_is_passed_on_token_by_token(client: OpenAI) -> None:
    """The first chunk is read while the generation goes on: it is left then, and its slot is given back."""
    for _ in range(3):  # two slots
        with client.chat.completions.create(model="", messages=MESSAGES, max_tokens=2000, stream=True) as stream:
            assert next(iter(stream)).choices[0].delta.role == "assistant"


def test_the_asynchronous_client(laptop: Laptop, host: str, component: str) -> None:
    async def asked() -> tuple[str, int]:
        import openai  # noqa: PLC0415 (it takes a second)

        url = base_url(laptop, host, component)
        client: AsyncOpenAI
        async with openai.AsyncOpenAI(base_url=url, api_key=root_token(laptop), max_retries=0) as client:
            stream = await client.chat.completions.create(model="", messages=MESSAGES, max_tokens=3, stream=True)
            streamed = [chunk async for chunk in stream]
            whole = await client.chat.completions.create(model="", messages=MESSAGES, max_tokens=3)
            return whole.choices[0].message.content or "", len(streamed)

    text, chunks = asyncio.run(asked())
    assert (bool(text), chunks) == (True, 3)


@pytest.mark.parametrize(("choice", "reason"), [("required", "tool_calls"), ("named", "stop")])
def test_a_tool_that_must_be_called_is_called_with_its_parameters(client: OpenAI, choice: str, reason: str) -> None:
    named: Any = {"type": "function", "function": {"name": "weather"}} if choice == "named" else "required"
    asked: dict[str, Any] = {"model": "", "messages": MESSAGES, "tools": TOOLS, "tool_choice": named, "max_tokens": 64}
    (whole,) = client.chat.completions.create(**asked).choices
    (call,) = whole.message.tool_calls or []
    assert call.function.name == "weather"
    assert json.loads(call.function.arguments)["city"] in {"Oslo", "Rome"}
    assert whole.finish_reason == reason
    parts = [part for chunk in client.chat.completions.create(**asked, stream=True) for part in chunk.choices]
    calls = [call for part in parts for call in part.delta.tool_calls or []]
    assert calls[0].function.name == "weather"
    assert json.loads("".join(call.function.arguments for call in calls))["city"] in {"Oslo", "Rome"}


def test_tools_that_the_model_may_choose_need_the_engines_parser(client: OpenAI) -> None:
    message, status = refused(client, tools=TOOLS)
    assert status == 400
    assert "requires --enable-auto-tool-choice and --tool-call-parser" in message
    assert message.startswith('Received client error (400) from primary with message "{"error"')


def refused(client: OpenAI, **asked: Any) -> tuple[str, int]:  # noqa: ANN401 (arguments of OpenAI's client)
    """Return the message and the status with which a request is refused."""
    import openai  # noqa: PLC0415 (it takes a second)

    with pytest.raises(openai.APIStatusError) as caught:
        client.chat.completions.create(**{"model": "", "messages": MESSAGES, "max_tokens": 1, **asked})
    answer = caught.value.response.json()["error"]
    assert set(answer) == {"message", "type", "code"}
    return answer["message"], caught.value.status_code


def test_a_stream_that_breaks_has_no_end(laptop: Laptop, host: str, processes: Callable[[str], list[int]]) -> None:
    """The engine dies while it answers: the client sees a broken stream, not a short answer."""
    import openai  # noqa: PLC0415 (it takes a second)

    name = laptop.component(host, laptop.model(image=VLLM, SM_VLLM_MAX_NUM_SEQS="1", SM_VLLM_MAX_MODEL_LEN="32768"))
    client = client_of(base_url(laptop, host, name), root_token(laptop))
    stream = iter(client.chat.completions.create(model="", messages=MESSAGES, max_tokens=30_000, stream=True))
    next(stream)
    (port,) = laptop.ports(name)
    (engine,) = processes(f"--port {port} ")
    os.kill(engine, signal.SIGKILL)
    with pytest.raises(openai.APIConnectionError):
        list(stream)
    laptop.sagemaker.delete_inference_component(InferenceComponentName=name)


def test_another_model_is_refused_by_vllm_and_no_name_is_taken(client: OpenAI) -> None:
    message, status = refused(client, model="gpt-4o")
    assert (status, "The model `gpt-4o` does not exist." in message) == (404, True)
    assert client.chat.completions.create(model="org/model", messages=MESSAGES, max_tokens=1).model == "org/model"


def test_a_component_is_named_by_the_path_alone(laptop: Laptop, host: str, component: str) -> None:
    of_host = client_of(base_url(laptop, host), root_token(laptop))
    message, status = refused(of_host)
    assert (status, message.startswith("Inference Component Name header is required")) == (400, True)
    header = {"X-Amzn-SageMaker-Inference-Component": component}
    assert refused(of_host, extra_headers=header)[1] == 400


def test_an_endpoint_with_a_model_needs_no_component(laptop: Laptop) -> None:
    """The messages of TGI come as server-sent events too."""
    limits = {"MAX_INPUT_TOKENS": "200", "MAX_TOTAL_TOKENS": "300", "MAX_CONCURRENT_REQUESTS": "2"}
    endpoint = laptop.endpoint(model=laptop.model(image=TGI, **limits))
    client = client_of(base_url(laptop, endpoint), root_token(laptop))
    chunks = list(client.chat.completions.create(model="tgi", messages=MESSAGES, max_tokens=3, stream=True))
    assert [chunk.choices[0].finish_reason for chunk in chunks] == [None, None, "length"]
    laptop.sagemaker.delete_endpoint(EndpointName=endpoint)


def test_lmi_streams_json_lines_which_no_openai_client_reads(laptop: Laptop, host: str, chat: str) -> None:
    client = client_of(base_url(laptop, host, chat), root_token(laptop))
    assert client.chat.completions.create(model="", messages=MESSAGES, max_tokens=3).usage
    raw = client.chat.completions.with_raw_response.create(model="", messages=MESSAGES, max_tokens=3, stream=True)
    assert raw.headers["content-type"] == "application/jsonlines"
    assert list(raw.parse()) == []


def test_an_endpoint_that_is_not_there_is_refused_as_sagemaker_words_it(laptop: Laptop) -> None:
    client = client_of(base_url(laptop, "nowhere"), root_token(laptop))
    assert refused(client) == ("Endpoint nowhere of account 000000000000 not found.", 400)


def test_what_is_no_chat_completion_is_not_routed(laptop: Laptop, host: str, component: str) -> None:
    import openai  # noqa: PLC0415 (it takes a second)

    client = client_of(base_url(laptop, host, component), root_token(laptop))
    with pytest.raises(openai.NotFoundError):
        client.models.list()
    with pytest.raises(openai.NotFoundError):
        client.completions.create(model="", prompt="hello")


def test_a_token_is_asked_for_with_each_request(laptop: Laptop, host: str, component: str) -> None:
    asked: list[str] = []

    def token() -> str:
        asked.append(root_token(laptop))
        return asked[-1]

    client = client_of(base_url(laptop, host, component), token)
    for _ in range(2):
        client.chat.completions.create(model="", messages=MESSAGES, max_tokens=1)
    assert len(asked) == 2


class TestBearers:
    """Whose token is taken."""

    @pytest.mark.parametrize(
        ("expires_s", "later_s", "region", "why"),
        [
            (60, -61, "us-east-1", "expired"),
            (60, 3600, "us-east-1", "expired"),
            (60, 0, "eu-west-1", "eu-west-1"),
        ],
    )
    def test_a_token_is_of_now_and_of_this_region(
        self, laptop: Laptop, host: str, expires_s: int, later_s: int, region: str, why: str
    ) -> None:
        token = root_token(laptop, expires_s=expires_s, later=timedelta(seconds=later_s), region=region)
        message, status = refused(client_of(base_url(laptop, host), token))
        assert (status, why in message) == (403, True)

    @pytest.mark.parametrize(
        ("before", "after"),
        [
            ("X-Amz-Expires=60", "X-Amz-Expires=61"),
            ("X-Amz-Expires=60", "X-Amz-Expires=43201"),
            ("CallWithBearerToken", "ListEndpoints"),
            ("sagemaker.amazonaws.com/", "bedrock.amazonaws.com/"),
            ("&Version=1", ""),
            ("&Version=1", "&Version=2"),
        ],
    )
    def test_a_token_is_what_was_signed(self, laptop: Laptop, host: str, before: str, after: str) -> None:
        decoded = b64decode(root_token(laptop, expires_s=60).removeprefix(PREFIX)).decode()
        assert before in decoded
        token = PREFIX + b64encode(decoded.replace(before, after).encode()).decode()
        assert refused(client_of(base_url(laptop, host), token))[1] == 403

    @pytest.mark.parametrize("token", ["EMPTY", "sk-1234", PREFIX, f"{PREFIX}!", f"{PREFIX}{'A' * 20_000}"])
    def test_no_other_key_is_taken(self, laptop: Laptop, host: str, token: str) -> None:
        assert refused(client_of(base_url(laptop, host), token))[1] == 403

    def test_a_signed_request_without_a_token_is_refused(self, laptop: Laptop, host: str, component: str) -> None:
        from botocore.auth import SigV4Auth  # noqa: PLC0415 (for one test)
        from botocore.awsrequest import AWSRequest  # noqa: PLC0415 (for one test)
        from botocore.credentials import Credentials as Theirs  # noqa: PLC0415 (for one test)
        from botocore.httpsession import URLLib3Session  # noqa: PLC0415 (for one test)

        url = f"{base_url(laptop, host, component)}/chat/completions"
        asked = AWSRequest("POST", url, headers={"content-type": "application/json"}, data=b'{"messages": []}')
        key = Theirs(laptop.local.access_key_id, laptop.local.secret_access_key)
        SigV4Auth(key, "sagemaker", "us-east-1").add_auth(asked)
        answer = URLLib3Session().send(asked.prepare())
        assert (answer.status_code, "bearer token alone" in answer.text) == (403, True)

    @pytest.mark.parametrize(
        ("allowed", "missing"),
        [([BEARER], "sagemaker:InvokeEndpoint"), ([INVOKE], "sagemaker:CallWithBearerToken"), ([BEARER, INVOKE], "")],
    )
    def test_a_role_needs_both_rights(
        self, laptop: Laptop, host: str, component: str, roles: Roles, allowed: list[object], missing: str
    ) -> None:
        client = client_of(base_url(laptop, host, component), session_token(roles, *allowed))
        if missing:
            message, status = refused(client)
            assert (status, f"is not authorized to perform: {missing}" in message) == (403, True)
        else:
            assert client.chat.completions.create(model="", messages=MESSAGES, max_tokens=1).choices

    def test_the_right_is_to_the_component_too(
        self, laptop: Laptop, host: str, component: str, chat: str, roles: Roles
    ) -> None:
        arns = [f"arn:aws:sagemaker:us-east-1:000000000000:{kind}" for kind in (f"endpoint/{host}", f"*/{component}")]
        token = session_token(roles, BEARER, {**INVOKE, "Resource": arns})
        client = client_of(base_url(laptop, host, component), token)
        assert client.chat.completions.create(model="", messages=MESSAGES, max_tokens=1).choices
        message, status = refused(client_of(base_url(laptop, host, chat), token))
        assert (status, f"inference-component/{chat}" in message) == (403, True)


def session_token(roles: Roles, *statements: object) -> str:
    """Return a token of a new role's session."""
    made = roles.session(roles.role(*statements)).get_credentials().get_frozen_credentials()
    return bearer_token(
        Credentials(made.access_key, made.secret_key, made.token), "us-east-1", datetime.now(UTC), expires_s=3600
    )


def test_both_paths_are_measured_side_by_side(laptop: Laptop, host: str, component: str) -> None:
    """The benchmark of docs/how-to/bench.md, once and small."""
    assert laptop.local
    rounds: dict[str, list[Round]] = {api: [measured(host, component, api, requests=4)] for api in PATHS}
    told = table(rounds).splitlines()
    assert [line.split()[0] for line in told] == ["way", "invoke", "openai"]
    assert all(each.output_tok_s > 0 < each.ttft_p50_ms for (each,) in rounds.values())
