"""The private names of MiniStack that the embedded AWS uses; they hold for the pinned version only."""

from __future__ import annotations

import importlib
import inspect
from datetime import UTC, datetime
from importlib.metadata import version

from ministack.core import iam_evaluator, lambda_runtime
from ministack.services import cloudwatch, eventbridge, lambda_svc, s3, sns, stepfunctions, tagging
from ministack.services.cloudformation import changesets, custom_resource, engine, handlers, provisioners, stacks

from seatrial_laptop.aws.cloudformation.deployer import OPERATIONS

ENFORCE = ["access_key_id", "iam_action", "service", "region", "resource_arn", "service_context"]
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


def test_the_tagging_api_asks_a_function_for_each_service() -> None:
    assert "sns" in tagging._COLLECTORS  # noqa: SLF001 (the contract)
    assert all(callable(each) for each in tagging._COLLECTORS.values())  # noqa: SLF001 (the contract)


def test_a_physical_name_is_made_from_the_stack_and_the_logical_id() -> None:
    name = provisioners._physical_name("stack", "Logical", max_len=63)  # noqa: SLF001 (the contract)
    assert name.startswith("stack-Logical-")
    assert name == provisioners._physical_name("stack", "Logical", max_len=63)  # noqa: SLF001 (the contract)


def test_a_predicate_tells_which_failed_updates_are_sent_back() -> None:
    assert stacks._sends_back_failed_update("Custom::Trial") is True  # noqa: SLF001 (the contract)
    assert stacks._sends_back_failed_update("AWS::SageMaker::InferenceComponent") is False  # noqa: SLF001 (the contract)
    assert "_sends_back_failed_update(rtype)" in inspect.getsource(stacks._roll_back_operation)  # noqa: SLF001 (the contract)


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


def test_cron_expressions_are_read_and_their_next_time_is_found() -> None:
    fields = eventbridge._parse_cron_fields("cron(0 20 ? * MON-FRI *)")  # noqa: SLF001 (the contract)
    friday = datetime(2026, 11, 20, 20, 0, tzinfo=UTC)
    assert eventbridge._cron_next_fire(fields, friday) == datetime(2026, 11, 23, 20, 0, tzinfo=UTC)  # noqa: SLF001 (the contract)
    assert eventbridge._parse_cron_fields("cron(0 20 * * * *)") is None  # noqa: SLF001 (the contract)


def test_a_custom_resource_waits_for_an_event_that_register_token_made() -> None:
    source = inspect.getsource(custom_resource.invoke_custom_resource)
    assert "event_obj = register_token(token)" in source
    assert "event_obj.wait(timeout=service_timeout)" in source
    assert list(inspect.signature(custom_resource.invoke_custom_resource).parameters)[:4] == [
        "request_type",
        "logical_id",
        "props",
        "stack_name",
    ]
    assert inspect.getsource(provisioners._custom_resource_update).count("_cr.invoke_custom_resource(") == 1  # noqa: SLF001 (the contract)
    event = custom_resource.register_token("a-token")
    assert custom_resource._pending.pop("a-token") == {"event": event, "result": None}  # noqa: SLF001 (the contract)


def test_functions_are_called_through_one_function_each() -> None:
    assert "_execute_function_dispatch(func, config, event, request_id, started)" in inspect.getsource(
        lambda_svc._execute_function  # noqa: SLF001 (the contract)
    )
    for caller in (custom_resource.invoke_custom_resource, sns._deliver_to_lambda):  # noqa: SLF001 (the contract)
        assert "_lambda_svc._execute_function_with_config_scope(exec_record, " in inspect.getsource(caller)
    assert "invoke_async_with_retry(exec_record, event)" in inspect.getsource(lambda_svc._invoke)  # noqa: SLF001 (the contract)
    assert list(inspect.signature(eventbridge._dispatch_to_lambda).parameters) == ["arn", "payload"]  # noqa: SLF001 (the contract)
    assert list(inspect.signature(lambda_svc._route_async_failure).parameters) == [  # noqa: SLF001 (the contract)
        "target_arn",
        "func_name",
        "event",
        "result",
    ]
    assert "spawn_env = {**os.environ, **env_vars}" in inspect.getsource(lambda_runtime.Worker._spawn)  # noqa: SLF001 (the contract)


def test_step_functions_wait_by_one_function() -> None:
    assert list(inspect.signature(stepfunctions._scaled_sleep).parameters) == ["seconds"]  # noqa: SLF001 (the contract)
    assert '_scaled_sleep(state_def["Seconds"])' in inspect.getsource(stepfunctions._execute_wait)  # noqa: SLF001 (the contract)


def test_a_cancelled_update_is_marked_on_its_stack() -> None:
    assert 'stack["_cancel_requested"] = True' in inspect.getsource(handlers._cancel_update_stack)  # noqa: SLF001 (the contract)


def test_what_is_done_around_every_handler_is_called_with_these_parameters() -> None:
    called = {
        stacks._provision_resource: ["resource_type", "logical_id", "props", "stack_name"],  # noqa: SLF001 (the contract)
        stacks._delete_resource: ["resource_type", "physical_id", "props", "stack_name", "logical_id"],  # noqa: SLF001 (the contract)
        provisioners._replacing_change: ["resource_type", "old_props", "new_props"],  # noqa: SLF001 (the contract)
        provisioners._property_recreation: ["resource_type", "name"],  # noqa: SLF001 (the contract)
        engine._resolve_dynamic_reference: ["literal"],  # noqa: SLF001 (the contract)
        engine._evaluate_conditions: ["template", "params"],  # noqa: SLF001 (the contract)
    }
    assert {each: [*inspect.signature(each).parameters] for each in called} == called


def test_the_operations_of_a_stack_are_in_a_table() -> None:
    actions = handlers._ACTION_HANDLERS  # noqa: SLF001 (the contract)
    assert set(OPERATIONS) <= set(actions)
    assert all([*inspect.signature(actions[name]).parameters] == ["params"] for name in OPERATIONS)
    assert [*inspect.signature(changesets._find_change_set).parameters] == ["cs_name", "stack_name"]  # noqa: SLF001 (the contract)


def test_rights_are_evaluated_by_functions_with_these_parameters() -> None:
    evaluated = {
        iam_evaluator.enforce: ENFORCE,
        iam_evaluator.evaluate: ["ctx", "policies", "limits"],
        iam_evaluator.combine_resource_policy: ["identity", "ctx", "policy", "owner_account", "required", "limits"],
        iam_evaluator._gather_role_policies: ["role_name", "account_id"],  # noqa: SLF001 (the contract)
        iam_evaluator._permissions_boundary: ["store", "name", "account_id"],  # noqa: SLF001 (the contract)
        iam_evaluator._resource_policy: ["service", "resource_arn"],  # noqa: SLF001 (the contract)
        s3._bucket_default_sse_headers: ["bucket_name"],  # noqa: SLF001 (the contract)
        stepfunctions._execute_task: ["state_def", "raw_input", "execution", "ctx"],  # noqa: SLF001 (the contract)
        stepfunctions._call_lambda: ["func_ref", "event"],  # noqa: SLF001 (the contract)
        eventbridge._invoke_target: ["target", "event", "rule", "view"],  # noqa: SLF001 (the contract)
    }
    assert {each: [*inspect.signature(each).parameters] for each in evaluated} == evaluated


def test_each_request_is_evaluated_by_the_name_that_is_replaced() -> None:
    """MiniStack imports `enforce` while it answers, so that the replacement is found."""
    app = inspect.getsource(importlib.import_module("ministack.app"))
    assert "        from ministack.core.iam_evaluator import AuthError, enforce, pin_request_caller" in app
    assert "if not app.AUTH:" in inspect.getsource(lambda_runtime.execution_credentials)
