"""An endpoint by its alias: read when it is due, followed at once when what it named is gone."""

from __future__ import annotations

import json
import random
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import pytest
from botocore.exceptions import ClientError

from seatrial.client import Alias, InvocationError, Schema, Target, generate, invoke_many
from seatrial.client.alias import at_target
from seatrial.deployment.alias import AliasValue
from seatrial_load.decode.failure import Failure
from tests.client.test_invocation import ANSWER, Server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from mypy_boto3_ssm import SSMClient

GONE = Failure("validation", "Endpoint dev-chat of account 111122223333 not found.")
NOT_FOUND = (400, {"x-amzn-errortype": "ValidationError"}, json.dumps({"message": GONE.detail}))


@dataclass
class Parameters:
    """Parameters in memory, that count how often they are read."""

    values: dict[str, str] = field(default_factory=dict)
    reads: int = 0
    refused: bool = False

    def get_parameter(self, *, Name: str) -> Mapping[str, Mapping[str, object]]:  # noqa: N803 (the service's word)
        self.reads += 1
        if self.refused or Name not in self.values:
            code = "ThrottlingException" if self.refused else "ParameterNotFound"
            raise ClientError({"Error": {"Code": code, "Message": code}}, "GetParameter")
        return {"Parameter": {"Value": self.values[Name]}}

    def point(self, endpoint_name: str) -> None:
        names = {"endpoint_name": endpoint_name, "inference_component_name": f"{endpoint_name}-model", "later": 1}
        self.values["/seatrial/dev/chat/alias"] = json.dumps(names)


@dataclass
class Clock:
    now_s: float = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def parameters() -> Parameters:
    found = Parameters()
    found.point("dev-chat")
    return found


@pytest.fixture
def clock() -> Clock:
    return Clock()


def alias_of(parameters: Parameters, clock: Clock, fraction: Callable[[], float] = random.random) -> Alias:
    return Alias(cast("SSMClient", parameters), "dev", "chat", Schema.TGI, clock=clock, fraction=fraction)


@pytest.fixture
def alias(parameters: Parameters, clock: Clock) -> Alias:
    return alias_of(parameters, clock)


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


OLD = Target("dev-chat", Schema.TGI, inference_component="dev-chat-model")
NEW = Target("dev-chat-2", Schema.TGI, inference_component="dev-chat-2-model")


def test_it_names_endpoint_and_component(alias: Alias) -> None:
    assert alias.target() == OLD


def test_it_is_read_again_after_30_seconds(alias: Alias, parameters: Parameters, clock: Clock) -> None:
    alias.target()
    parameters.point("dev-chat-2")
    clock.now_s = 29.9
    assert (alias.target(), parameters.reads) == (OLD, 1)
    clock.now_s = 30.0
    assert (alias.target(), parameters.reads) == (NEW, 2)


def test_while_it_cannot_be_read_the_last_answer_holds(alias: Alias, parameters: Parameters, clock: Clock) -> None:
    alias.target()
    parameters.refused, clock.now_s = True, 100.0
    assert alias.target() == OLD
    parameters.refused = False
    parameters.point("dev-chat-2")
    assert alias.target() == NEW


def test_an_endpoint_with_the_model_in_its_variant_has_no_component(alias: Alias, parameters: Parameters) -> None:
    names = {"endpoint_name": "dev-chat", "inference_component_name": None}
    parameters.values["/seatrial/dev/chat/alias"] = json.dumps(names)
    assert alias.target() == Target("dev-chat", Schema.TGI)


@pytest.mark.parametrize("value", [None, "", "dev-chat", "[]", "{}", '{"endpoint_name": "x"}', "null"])
def test_an_alias_that_is_none_is_a_failed_request(value: str | None, clock: Clock) -> None:
    parameters = Parameters({} if value is None else {"/seatrial/dev/chat/alias": value})
    with pytest.raises(InvocationError, match="SEA372") as caught:
        alias_of(parameters, clock).target()
    assert caught.value.problems[0].where == "/seatrial/dev/chat/alias"


def test_a_request_to_what_is_gone_is_sent_again_to_what_took_its_place(alias: Alias, parameters: Parameters) -> None:
    sent: list[Target] = []

    def send(target: Target) -> str:
        sent.append(target)
        parameters.point("dev-chat-2")
        if target == OLD:
            raise InvocationError.because(GONE, where=target.where)
        return "ahoy"

    assert at_target(alias, send) == "ahoy"
    assert sent == [OLD, NEW]


@pytest.mark.parametrize(
    ("failure", "reads"),
    [(GONE, 2), (Failure("throttled", "not found"), 1), (Failure("validation", "max_tokens is too large"), 1)],
)
def test_what_has_not_moved_or_is_not_gone_fails_as_it_did(
    alias: Alias, parameters: Parameters, failure: Failure, reads: int
) -> None:
    sent: list[Target] = []

    def send(target: Target) -> str:
        sent.append(target)
        raise InvocationError.because(failure, where=target.where)

    with pytest.raises(InvocationError) as caught:
        at_target(alias, send)
    assert (caught.value.failure, sent, parameters.reads) == (failure, [OLD], reads)


def test_what_is_gone_fails_as_it_did_while_the_alias_cannot_be_read(alias: Alias, parameters: Parameters) -> None:
    def send(target: Target) -> str:
        parameters.refused = True
        raise InvocationError.because(GONE, where=target.where)

    with pytest.raises(InvocationError) as caught:
        at_target(alias, send)
    assert caught.value.failure == GONE


def test_generate_follows_the_alias_on_the_wire(alias: Alias, parameters: Parameters, server: Server) -> None:
    alias.target()
    parameters.point("dev-chat-2")
    server.answers = [NOT_FOUND, (200, {}, ANSWER)]
    assert generate(server.client(), alias, "hello").text == "ahoy"
    paths = [(path, headers["X-Amzn-SageMaker-Inference-Component"]) for path, headers, _ in server.requests]
    assert paths == [
        ("/endpoints/dev-chat/invocations", "dev-chat-model"),
        ("/endpoints/dev-chat-2/invocations", "dev-chat-2-model"),
    ]


def test_many_threads_share_an_alias_and_read_it_once(alias: Alias, parameters: Parameters, server: Server) -> None:
    outcomes = invoke_many(server.client(concurrency=4), alias, [b"{}"] * 20, concurrency=4)
    assert [outcome.failure for outcome in outcomes] == [None] * 20
    assert parameters.reads == 1


class TestWeights:
    """Requests of an alias with weights are split over the components of its endpoint."""

    VALUE = AliasValue(endpoint_name="dev-chat", inference_component_name="a", weights={"a": 3, "b": 1, "off": 0})

    def split(self, parameters: Parameters, fractions: list[float]) -> Alias:
        parameters.values["/seatrial/dev/chat/alias"] = self.VALUE.to_json()
        return alias_of(parameters, Clock(), iter(fractions).__next__)

    def test_by_the_fraction_of_each_request(self, parameters: Parameters) -> None:
        alias = self.split(parameters, [0.0, 0.74, 0.76, 0.999])
        assert [alias.target().inference_component for _ in range(4)] == ["a", "a", "b", "b"]
        assert parameters.reads == 1

    def test_a_session_stays_at_one_component(self, parameters: Parameters) -> None:
        alias = self.split(parameters, [])
        sessions = [alias.of_session(f"user-{number}") for number in range(400)]
        chosen = [session.target().inference_component for session in sessions]
        assert chosen == [session.target().inference_component for session in sessions]
        assert set(chosen) == {"a", "b"}
        assert 250 < chosen.count("a") < 350
        assert parameters.reads == 1

    def test_a_component_that_is_gone_and_still_named_has_not_moved(self, parameters: Parameters) -> None:
        alias = self.split(parameters, [0.9, 0.1])
        gone = alias.target()
        assert gone.inference_component == "b"
        assert alias.moved(gone) is None
        parameters.point("dev-chat")
        assert alias.moved(gone) == OLD

    @pytest.mark.parametrize("weights", ['{"a": 0}', '{"a": -1}', '{"a": true}', "[]", '{"a": "1"}', '{"a": NaN}'])
    def test_wrong_weights_are_no_alias(self, weights: str) -> None:
        names = '"endpoint_name": "e", "inference_component_name": "c"'
        with pytest.raises(ValueError, match="not an alias"):
            AliasValue.from_json(f'{{{names}, "weights": {weights}}}')

    def test_a_value_of_an_earlier_release_is_read_and_written_as_it_was(self) -> None:
        text = '{"endpoint_name": "e", "inference_component_name": "c"}'
        assert AliasValue.from_json(text).to_json() == text
