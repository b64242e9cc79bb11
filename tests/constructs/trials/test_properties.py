"""The properties of the custom resources: written and read alike, and read as every release wrote them."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial_cdk.trials.endpoint_trial import TrialSettings
from seatrial_cdk.trials.runtime.properties import (
    Phase,
    TrialProperties,
    Update,
    read_properties,
    read_what_is_there,
    write_properties,
)

NAMES = st.lists(st.text("abcdefghijklmnopqrstuvwxyz0123456789-", min_size=1), max_size=3).map(tuple)
NUMBERS = st.floats(0, 1e9, allow_nan=False)
PROPERTIES = st.builds(
    TrialProperties,
    phase=st.sampled_from(get_args(Phase)),
    endpoint_name=st.text(),
    inference_component_name=st.text(),
    endpoint_config_name=st.text(),
    model_name=st.text(),
    specification=st.text(),
    component=st.text(),
    copy_count=st.integers(0, 1000),
    most_copies=st.integers(0, 2_000_000),
    plan_digest=st.text(),
    request=st.text(),
    mode=st.sampled_from(["rollback", "report"]),
    update=st.sampled_from(get_args(Update)),
    budget_s=NUMBERS,
    start_s=NUMBERS,
    instance_s=NUMBERS,
    accelerators=st.integers(0, 16),
    fallback_target=NUMBERS,
    alarms=NAMES,
    replaces=NAMES,
    alias=st.text(),
    removal=st.sampled_from(["destroy", "retain"]),
    release_s=st.integers(0, 3600),
    rolls_back=st.booleans(),
    attributes=NAMES,
)
OLDEST = {
    "EndpointName": "dev-chat",
    "InferenceComponentName": "dev-chat-model",
    "EndpointConfigName": "config-1",
    "ModelName": "model-1",
    "PlanDigest": "a",
    "Request": '{"environment": "dev"}',
    "Mode": "rollback",
    "BudgetSeconds": "600",
    "FallbackTarget": "9.6",
}
"""What the first release named."""


@given(PROPERTIES)
def test_what_is_written_is_read(properties: TrialProperties) -> None:
    written = write_properties(properties)
    assert read_properties(written) == properties
    assert read_what_is_there(json.loads(json.dumps(written))) == properties


def test_names_and_their_order_are_those_of_the_stacks_that_are_there() -> None:
    """Another name is read as an absence, and another order updates every stack."""
    properties = TrialProperties(
        endpoint_name="dev-chat",
        inference_component_name="dev-chat-model",
        endpoint_config_name="config-1",
        model_name="model-1",
        plan_digest="a",
        request="{}",
        mode="rollback",
        budget_s=600,
        fallback_target=9.6,
        rolls_back=False,
        attributes=("Verdict",),
    )
    assert ",".join(write_properties(properties)) == (
        "Phase,EndpointName,InferenceComponentName,EndpointConfigName,ModelName,Specification,Component,CopyCount,"
        "MostCopies,PlanDigest,Request,Mode,Update,BudgetSeconds,StartSeconds,InstanceSeconds,InstanceAccelerators,"
        "FallbackTarget,Alarms,Replaces,Alias,Removal,ReleaseSeconds,RollbackAlarms,Attributes"
    )


def test_a_document_of_the_first_release_is_read() -> None:
    read = read_properties(OLDEST)
    assert (read.phase, read.update, read.specification) == ("deployed", "candidate", "{}")
    assert (read.copy_count, read.most_copies, read.start_s, read.release_s) == (1, 1_000_000, 0.0, 0)
    assert (read.rolls_back, read.alarms, read.removal, read.alias) == (True, (), "retain", "")
    assert read.environment == "dev"


def test_what_a_later_release_names_or_says_is_left_out() -> None:
    later = {**OLDEST, "Phase": "rehearsal", "Update": "canary", "RollbackAlarms": "sometimes", "New": "1"}
    assert read_properties(later) == read_properties(OLDEST)


@pytest.mark.parametrize("name", sorted(OLDEST))
def test_one_that_has_no_default_is_missed_by_its_name(name: str) -> None:
    with pytest.raises(KeyError, match=name):
        read_properties({key: text for key, text in OLDEST.items() if key != name})


def test_of_a_deletion_nothing_is_required() -> None:
    read = read_what_is_there({"EndpointName": "dev-chat", "BudgetSeconds": "soon", "ReleaseSeconds": ["300"]})
    assert (read.endpoint_name, read.plan_digest, read.budget_s, read.release_s) == ("dev-chat", "", 0.0, 0)
    assert (read.phase, read.removal) == ("deployed", "retain")


def test_of_an_endpoint_that_something_else_made_only_what_holds_for_it_is_written() -> None:
    existing = read_properties({**OLDEST, "EndpointConfigName": "", "ModelName": "", "Update": "verify_only"})
    assert write_properties(existing).keys() == {*OLDEST, "Phase", "CopyCount", "Update", "Alarms"}


def test_what_settings_have_and_properties_lack_is_known() -> None:
    """A field that both have is taken by its name: a new one arrives, or is named here."""
    settings, properties = ({each.name for each in fields(kind)} for kind in (TrialSettings, TrialProperties))
    assert settings - properties == {"environment", "trial_request", "budget_minutes", "is_embedded"}
    of_the_endpoint = {"endpoint_name", "inference_component_name", "endpoint_config_name", "model_name", "alias"}
    of_the_component = {"phase", "specification", "component", "attributes", "topics"}
    assert properties - settings == of_the_endpoint | of_the_component | {"request", "budget_s"}
