"""The client against the local engine, through boto3, in every schema."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from seatrial.client import (
    FinishReason,
    InvocationError,
    Options,
    RequestError,
    Schema,
    Target,
    confidence,
    continue_until_stop,
    generate,
    generate_rounds,
    generate_stream,
    invoke_many,
    read_answer,
    request_body,
    stream_lines,
)

if TYPE_CHECKING:
    from mypy_boto3_sagemaker_runtime import SageMakerRuntimeClient

TOLD_REASON: dict[Schema, FinishReason] = {
    schema: FinishReason.LENGTH for schema in Schema if schema is not Schema.LMI_ASYNC
}
GREEDY = Options(max_tokens=6, temperature=0)


def test_a_whole_answer(runtime: SageMakerRuntimeClient, target: Target) -> None:
    completion = generate(runtime, target, "Where does the boat go?", GREEDY)
    assert completion.text
    assert completion.usage.output_tokens == 6
    assert completion.finish_reason is TOLD_REASON.get(target.schema)


def test_a_stream_says_the_same_piece_by_piece(runtime: SageMakerRuntimeClient, target: Target) -> None:
    with generate_stream(runtime, target, "Where does the boat go?", GREEDY) as stream:
        pieces = [piece.text for piece in stream]
    completion = stream.completion
    assert len(pieces) >= 5
    assert completion.text == "".join(pieces) == generate(runtime, target, "Where does the boat go?", GREEDY).text
    assert (completion.finish_reason, completion.usage.output_tokens) == (FinishReason.LENGTH, 6)


def test_the_generate_schemas_tell_how_sure_the_model_was(runtime: SageMakerRuntimeClient, target: Target) -> None:
    sure = confidence(generate(runtime, target, "hello", GREEDY))
    if target.schema in {Schema.OPENAI_CHAT, Schema.OPENAI_COMPLETIONS}:
        assert sure is None  # the local engine leaves the log-probabilities of OpenAI's schemas out
    else:
        assert sure is not None
        assert sure.tokens == 6
        assert 0 < sure.lowest <= sure.per_token <= 1


def test_a_cut_answer_goes_on_until_the_rounds_are_used_up(runtime: SageMakerRuntimeClient, target: Target) -> None:
    rounds = list(generate_rounds(runtime, target, "hello", GREEDY, max_rounds=3))
    whole = continue_until_stop(runtime, target, "hello", GREEDY, max_rounds=3)
    assert len(rounds) == 3
    assert whole.text == "".join(completion.text for completion in rounds)
    assert (whole.usage.output_tokens, whole.usage.input_tokens) == (18, rounds[0].usage.input_tokens)


def test_a_cut_answer_goes_on_until_its_stop_sequence(runtime: SageMakerRuntimeClient, target: Target) -> None:
    if target.schema is Schema.OPENAI_CHAT:
        pytest.skip("the local engine knows no continue_final_message")
    rounds = list(generate_rounds(runtime, target, "hello", GREEDY, max_rounds=3))
    text, middle = "".join(completion.text for completion in rounds), len(rounds[2].text) // 2
    stop = rounds[2].text[middle - 2 : middle + 1]
    assert text.count(stop) == 1
    options = Options(max_tokens=6, temperature=0, stop=(stop,))
    rounds = list(generate_rounds(runtime, target, "hello", options, max_rounds=20))
    assert [completion.usage.output_tokens == 6 for completion in rounds] == [True, True, False]
    whole = continue_until_stop(runtime, target, "hello", options, max_rounds=20)
    assert text.startswith(whole.text.removesuffix(stop))
    assert whole.finish_reason is not FinishReason.LENGTH


def test_many_payloads_come_back_in_order(runtime: SageMakerRuntimeClient) -> None:
    target = Target("chat", Schema.LMI_ASYNC, inference_component="chat-copy")
    prompts = ["word " * (index + 1) for index in range(24)]
    outcomes = invoke_many(
        runtime, target, (request_body(target.schema, text, GREEDY) for text in prompts), concurrency=4
    )
    assert [outcome.index for outcome in outcomes] == list(range(24))
    lengths = [read_answer(target.schema, outcome.body or b"").usage.input_tokens for outcome in outcomes]
    assert lengths == sorted(lengths, key=lambda count: count or 0)
    assert len(set(lengths)) == 24


def test_what_a_full_container_refuses_is_data(runtime: SageMakerRuntimeClient) -> None:
    target = Target("chat", Schema.TGI, inference_component="tgi")
    body = request_body(target.schema, "hello", Options(max_tokens=300, temperature=0))
    outcomes = invoke_many(runtime, target, [body] * 8, concurrency=4)
    failures = [outcome.failure for outcome in outcomes if outcome.failure]
    assert failures
    assert {failure.error for failure in failures} == {"throttled"}
    assert all((outcome.body is None) != (outcome.failure is None) for outcome in outcomes)
    assert failures[0].detail.startswith("HTTP 424 ModelError: ")


def test_a_request_that_is_too_long_is_told_in_the_containers_words(
    runtime: SageMakerRuntimeClient, target: Target
) -> None:
    with pytest.raises(InvocationError) as refused:
        generate(runtime, target, "hello", Options(max_tokens=4096))
    assert refused.value.failure.error == "validation"
    assert str(refused.value).startswith(
        f"chat/{target.inference_component}: SEA372: validation: HTTP 424 ModelError: "
    )
    with pytest.raises(InvocationError):
        generate_stream(runtime, target, "hello", Options(max_tokens=4096))


def test_a_full_context_ends_the_continuation(runtime: SageMakerRuntimeClient) -> None:
    target = Target("chat", Schema.LMI_ASYNC, inference_component="chat-copy")
    whole = continue_until_stop(runtime, target, "hello", Options(max_tokens=1000, temperature=0))
    assert whole.usage.output_tokens in {1000, 2000}


def test_lines_of_a_users_own_request(runtime: SageMakerRuntimeClient, target: Target) -> None:
    answer = runtime.invoke_endpoint_with_response_stream(
        EndpointName="chat",
        InferenceComponentName=target.inference_component or "",
        ContentType="application/json",
        Body=request_body(target.schema, "hello", GREEDY, stream=True),
    )
    lines = list(stream_lines(answer["Body"]))
    assert len(lines) >= 6
    assert all(line.startswith(b"{") and line.endswith(b"}") for line in lines)


def test_a_stream_can_be_left(runtime: SageMakerRuntimeClient) -> None:
    target = Target("chat", Schema.LMI_ASYNC, inference_component="chat-copy")
    with generate_stream(runtime, target, "hello", Options(max_tokens=1500)) as stream:
        first = next(iter(stream))
    assert (first.text, stream.completion.finished) == (stream.completion.text, False)


def test_a_stream_opens_no_session(runtime: SageMakerRuntimeClient) -> None:
    target = Target("chat", Schema.LMI_ASYNC, inference_component="chat-copy", session_id="NEW_SESSION")
    with pytest.raises(RequestError) as refused:
        generate_stream(runtime, target, "hello")
    message = "chat/chat-copy: session_id: SEA370: a stream can't open a session: open it without streaming"
    assert str(refused.value) == message


def test_an_unknown_endpoint(runtime: SageMakerRuntimeClient) -> None:
    with pytest.raises(InvocationError) as refused:
        generate(runtime, Target("none", Schema.TGI), "hello")
    assert refused.value.failure.error == "validation"
    assert "Endpoint none of account" in str(refused.value)
