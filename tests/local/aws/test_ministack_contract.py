"""The private names of MiniStack that the embedded AWS uses; they hold for the pinned version only."""

from __future__ import annotations

import inspect
from importlib.metadata import version

from ministack.services import cloudwatch
from ministack.services.cloudformation import provisioners, stacks

ORDERED = ["create", "delete", "update"]


def test_the_contract_was_checked_with_the_pinned_version() -> None:
    assert version("ministack") == "1.5.33"


def test_the_table_of_types_holds_functions_by_verb() -> None:
    bucket = provisioners._RESOURCE_HANDLERS["AWS::S3::Bucket"]  # noqa: SLF001 (the contract)
    assert [verb for verb in ORDERED if callable(bucket[verb])] == ORDERED
    assert list(inspect.signature(bucket["create"]).parameters) == ["logical_id", "props", "stack_name"]


def test_an_update_takes_the_logical_id_when_its_type_says_so() -> None:
    types = provisioners._RESOURCE_HANDLERS.values()  # noqa: SLF001 (the contract)
    updates = [each["update"] for each in types if each.get("update_with_logical_id")]
    assert {len(inspect.signature(update).parameters) for update in updates} >= {5}


def test_a_physical_name_is_made_from_the_stack_and_the_logical_id() -> None:
    name = provisioners._physical_name("stack", "Logical", max_len=63)  # noqa: SLF001 (the contract)
    assert name.startswith("stack-Logical-")
    assert name == provisioners._physical_name("stack", "Logical", max_len=63)  # noqa: SLF001 (the contract)


def test_a_predicate_tells_which_types_wait() -> None:
    assert stacks._runs_on_worker_thread("Custom::Trial") is True  # noqa: SLF001 (the contract)
    assert stacks._runs_on_worker_thread("AWS::S3::Bucket") is False  # noqa: SLF001 (the contract)


def test_alarms_are_kept_by_name_and_evaluated_by_one_function() -> None:
    for callers in (cloudwatch._put_metric_alarm, cloudwatch._evaluate_all_alarms):  # noqa: SLF001 (the contract)
        assert "_evaluate_alarm(alarm)" in inspect.getsource(callers)
    assert list(inspect.signature(cloudwatch._evaluate_alarm).parameters) == ["alarm"]  # noqa: SLF001 (the contract)
    for kept in (cloudwatch._alarms, cloudwatch._composite_alarms):  # noqa: SLF001 (the contract)
        assert list(kept.items()) == []
        assert kept.get("none") is None
