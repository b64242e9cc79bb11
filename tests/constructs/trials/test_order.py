"""What a request orders: its properties as they are read, the trial that is made of them, and where it is kept."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Literal

import pytest

from seatrial_base.tags import candidate_name
from seatrial_cdk.trials.runtime.order import (
    Order,
    ToldCopies,
    configuration_of,
    has_no_room,
    latest_key,
    passed_key,
    physical_id,
    read_copies,
    read_order,
    trial_key,
    write_copies,
)
from seatrial_cdk.trials.runtime.properties import TrialProperties, read_properties
from seatrial_load.documents.request import Expected, TrialTarget
from tests.constructs.conftest import SPECIFICATION

if TYPE_CHECKING:
    from seatrial_cdk.trials.runtime.order import CustomResourceEvent, Manner
    from tests.constructs.conftest import DictStore

CANDIDATE = candidate_name("dev-chat", "request-1")


def test_each_property_is_read(properties: dict[str, str]) -> None:
    told = read_properties(
        {**properties, "Phase": "candidate", "Update": "in_place", "RollbackAlarms": "off", "Replaces": "a,,b"}
    )
    assert told == TrialProperties(
        endpoint_name="dev-chat",
        inference_component_name="dev-chat-model",
        endpoint_config_name="config-2",
        model_name="model-2",
        plan_digest="b",
        request=properties["Request"],
        mode="rollback",
        budget_s=600.0,
        fallback_target=9.6,
        phase="candidate",
        update="in_place",
        specification=json.dumps(SPECIFICATION),
        copy_count=1,
        most_copies=8,
        start_s=1200.0,
        instance_s=900.0,
        accelerators=1,
        alarms=("errors", "latency"),
        rolls_back=False,
        replaces=("a", "b"),
        alias="/seatrial/dev/chat/alias",
        component="policy-1",
    )
    assert (told.environment, told.is_existing) == ("dev", False)


def test_what_an_older_release_did_not_name_is_as_it_was_then(properties: dict[str, str]) -> None:
    needed = ("EndpointName", "InferenceComponentName", "EndpointConfigName", "ModelName", "PlanDigest", "Request")
    old = {name: properties[name] for name in (*needed, "Mode", "BudgetSeconds", "FallbackTarget")}
    told = read_properties(old)
    assert (told.phase, told.update, told.specification, told.alias) == ("deployed", "candidate", "{}", "")
    assert (told.copy_count, told.most_copies, told.accelerators) == (1, 1_000_000, 0)
    assert (told.start_s, told.instance_s, told.alarms, told.replaces, told.rolls_back) == (0.0, 0.0, (), (), True)
    assert read_properties({**old, "Request": "{}"}).environment == ""


@pytest.mark.parametrize(
    ("written", "update"),
    [("in_place", "in_place"), ("verify_only", "verify_only"), ("candidate", "candidate"), ("other", "candidate")],
)
def test_how_an_update_is_tried_is_one_of_three(properties: dict[str, str], written: str, update: str) -> None:
    assert read_properties({**properties, "Update": written}).update == update


@pytest.mark.parametrize(
    ("manner", "component", "config", "copies", "tells_manner"),
    [
        ("load", "dev-chat-model", "config-2", 3, "load"),
        ("candidate", CANDIDATE, "config-1", 1, "load"),
        ("scheduled", CANDIDATE, "config-1", 1, "load"),
        ("in_place", "dev-chat-model", "config-2", 3, "in_place"),
        ("verify", "dev-chat-model", "config-2", 3, "verify"),
    ],
)
def test_the_trial_is_of_what_is_loaded(
    create: CustomResourceEvent, manner: Manner, component: str, config: str, copies: int, tells_manner: str
) -> None:
    """A candidate is one copy, on the configuration that the endpoint has while it runs."""
    planned = {**json.loads(create["ResourceProperties"]["Request"]), "copy_count": 3}
    create["ResourceProperties"] = {**create["ResourceProperties"], "Request": json.dumps(planned)}
    order = Order(create, 1000.0, manner, "config-1")
    request = order.trial_request("eu-west-1")
    assert request.target == TrialTarget(endpoint_name="dev-chat", inference_component=component, region="eu-west-1")
    assert request.expected == Expected(endpoint_config_name=config, model_name="model-2")
    assert (request.copy_count, request.manner) == (copies, tells_manner)
    assert request.alarms == (() if tells_manner == "load" else ("errors", "latency"))
    assert order.is_scheduled is (manner == "scheduled")
    assert order.has_candidate is (component == CANDIDATE)


def test_what_something_else_made_is_expected_to_be_nothing_of_ours(create: CustomResourceEvent) -> None:
    create["ResourceProperties"] = {**create["ResourceProperties"], "EndpointConfigName": ""}
    order = Order(create, 1000.0, "verify")
    assert order.properties.is_existing
    assert order.trial_request("eu-west-1").expected is None


def test_an_order_is_read_back_as_it_was_written(create: CustomResourceEvent, store: DictStore) -> None:
    assert read_order(store, "dev-chat", "request-1") is None
    written = {"event": create, "started_at_s": 5.0, "manner": "candidate", "live_config": "config-1"}
    store.write("runs/dev-chat/request-1/request.json", json.dumps(written))
    assert read_order(store, "dev-chat", "request-1") == Order(create, 5.0, "candidate", "config-1")


@pytest.mark.parametrize(
    ("kind", "fields", "identity"),
    [
        ("Create", {}, "smoke-benchmark-dev-chat"),
        ("Update", {}, "smoke-benchmark-dev-chat"),
        ("Create", {"Phase": "candidate"}, "candidate-trial-dev-chat"),
        ("Create", {"EndpointName": None}, "smoke-benchmark-unknown"),
        ("Delete", {"EndpointName": "renamed"}, "as it was"),
    ],
)
def test_a_resource_is_that_of_its_endpoint_and_one_that_goes_stays_who_it_was(
    create: CustomResourceEvent,
    kind: Literal["Create", "Update", "Delete"],
    fields: dict[str, str | None],
    identity: str,
) -> None:
    properties = {**create["ResourceProperties"], **fields}
    told = {name: value for name, value in properties.items() if value is not None}
    event: CustomResourceEvent = {**create, "RequestType": kind, "ResourceProperties": told}
    assert physical_id({**event, "PhysicalResourceId": "as it was"}) == identity
    assert kind != "Delete" or physical_id(event) == "request-1"


def test_documents_lie_below_the_endpoint_and_the_configuration(properties: dict[str, str]) -> None:
    told = read_properties(properties)
    assert trial_key(told, "request-1") == "trials/dev-chat/b/request-1.json"
    assert trial_key(told, "scheduled-1") == "trials/dev-chat/scheduled/scheduled-1.json"
    assert latest_key(told) == "latest/dev-chat/b/config-2/model-2.json"
    assert passed_key(told) == "passed/dev-chat/b/config-2/model-2.json"


def test_no_room_is_that_of_one_configuration(properties: dict[str, str], store: DictStore) -> None:
    told = read_properties(properties)
    assert configuration_of(told) == {"plan_digest": "b", "model_name": "model-2"}
    assert not has_no_room(store, told)
    store.write("state/dev-chat/no-room.json", json.dumps({"plan_digest": "b", "model_name": "model-2"}))
    assert has_no_room(store, told)
    assert not has_no_room(store, read_properties({**properties, "PlanDigest": "c"}))


def test_copies_that_were_told_are_read_back_an_older_releases_too(store: DictStore) -> None:
    assert read_copies(store, "dev-chat") is None
    told = ToldCopies(
        copies=3, is_new=True, previous=2, is_certain=False, request_id="request-1", previous_is_certain=False
    )
    write_copies(store, "dev-chat", told)
    assert read_copies(store, "dev-chat") == told
    store.write("state/dev-chat/copies.json", '{"copies": 3, "is_new": false, "previous": 2}')
    assert read_copies(store, "dev-chat") == ToldCopies(
        copies=3, is_new=False, previous=2, is_certain=True, request_id="", previous_is_certain=True
    )
