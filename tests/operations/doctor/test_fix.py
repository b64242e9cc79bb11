"""Which steps unstick an endpoint, in which order, and what happens when one fails."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import pytest

from seatrial.operations.doctor.fix import Patience, StepOutcome, carry_out
from seatrial.operations.doctor.steps import FixStep, fix_steps
from seatrial_base.tags import STACK_TAG, candidate_name
from tests.operations.doctor.sample_account import COMPONENT, TARGET, Aws, absent, component, error, target

if TYPE_CHECKING:
    from collections.abc import Mapping

    from botocore.exceptions import ClientError

OLD = candidate_name("dev-chat", "1")
SUSPENDED = {"DynamicScalingInSuspended": True}


def fixed(aws: Aws, waits: list[float] | None = None, *, longest_s: float = 60) -> list[StepOutcome]:
    naps: list[float] = [] if waits is None else waits
    return [*carry_out(fix_steps(aws.examined()), aws, Patience(naps.append, 5, longest_s), lambda _line: None)]


def abandoned() -> Aws:
    """Return an endpoint without a stack that failed."""
    failed = component("Failed", copies=0, reason="odd")
    return Aws(stack="", endpoint={"EndpointStatus": "Failed"}, components={COMPONENT: failed})


def test_nothing_is_done_to_an_endpoint_in_order() -> None:
    assert fix_steps(Aws().examined()) == ()


@pytest.mark.parametrize("stack", ["UPDATE_IN_PROGRESS", "UPDATE_ROLLBACK_IN_PROGRESS", "DELETE_IN_PROGRESS"])
def test_nothing_is_done_while_the_stack_is_at_work(stack: str) -> None:
    broken = Aws(stack=stack, targets=[target(SuspendedState=SUSPENDED), target(f"inference-component/{OLD}")])
    assert fix_steps(broken.examined()) == ()


def test_what_is_left_over_goes_and_what_is_suspended_goes_on() -> None:
    aws = Aws(
        targets=[
            target(SuspendedState=SUSPENDED),
            target(f"inference-component/{candidate_name('dev-chat', '2')}"),
            target("inference-component/dev-chat-candidate-ranker-model"),
        ],
    )
    assert aws.add_candidate("1", component(minutes=500)) == OLD
    assert [each.status for each in fixed(aws)] == ["done", "done", "done"]
    assert [name for name, _ in aws.done] == [
        "deregister_scalable_target",
        "delete_inference_component",
        "register_scalable_target",
    ]
    assert set(aws.components) == {COMPONENT}
    assert aws.rules() == []
    assert fix_steps(aws.examined()) == ()


def test_what_no_stack_manages_is_deleted_in_order() -> None:
    aws = abandoned()
    assert {each.status for each in fixed(aws)} == {"done"}
    assert [name for name, _ in aws.done] == [
        "deregister_scalable_target",
        "delete_inference_component",
        "delete_endpoint",
        "delete_endpoint_config",
        "delete_model",
    ]
    assert aws.examined().is_empty


@pytest.mark.parametrize(
    "kept",
    [
        Aws(stack=""),  # it serves
        Aws(stack="", components={COMPONENT: component(copies=0)}),  # it serves once it is woken
        Aws(stack="", tags={}, endpoint={"EndpointStatus": "Failed"}, components={}, targets=[]),  # another's
        Aws(components={COMPONENT: component("Failed", copies=0)}),  # the next deployment mends it
        Aws(components={COMPONENT: component(), "dev-chat-candidate-ranker": component(minutes=500)}),
        Aws(stack="", tags={STACK_TAG: "Platform"}, endpoint={"EndpointStatus": "Failed"}, targets=[], components={}),
        Aws(
            stack="DELETE_FAILED",
            tags={STACK_TAG: "Platform"},
            endpoint={"EndpointStatus": "Failed"},
            targets=[],
            components={COMPONENT: component("Failed", copies=0)},
        ),
    ],
)
def test_what_serves_or_belongs_to_others_is_left_alone(kept: Aws) -> None:
    assert fix_steps(kept.examined()) == ()


def test_what_could_not_be_asked_is_left_alone() -> None:
    aws = abandoned()
    aws.errors["describe_stacks"] = [error("AccessDenied", "no")]
    assert fix_steps(aws.examined()) == ()


def test_what_a_stack_of_another_name_manages_is_left_alone() -> None:
    aws = abandoned()
    aws.other_stack = "Platform"
    assert fix_steps(aws.examined()) == ()
    aws.errors["describe_stack_resources"] = [error("AccessDenied", "no")]
    assert fix_steps(aws.examined()) == ()


def test_a_failed_rollback_continues_without_the_resources_that_failed() -> None:
    failed = {"LogicalResourceId": "Component", "ResourceStatus": "UPDATE_FAILED"}
    aws = Aws(stack="UPDATE_ROLLBACK_FAILED", resources=[failed, {"LogicalResourceId": "Role"}])
    assert [each.status for each in fixed(aws)] == ["done"]
    asked = {"StackName": "seatrial-dev-chat", "ResourcesToSkip": ["Component"]}
    assert aws.done == [("continue_update_rollback", asked)]


def test_a_stack_that_could_not_be_deleted_is_deleted_after_what_blocks_it() -> None:
    aws = abandoned()
    aws.stack = "DELETE_FAILED"
    assert {each.status for each in fixed(aws)} == {"done"}
    assert [name for name, _ in aws.done] == [
        "deregister_scalable_target",
        "delete_inference_component",
        "delete_stack",
    ]


def test_a_change_at_work_is_waited_for() -> None:
    aws, waits = abandoned(), list[float]()
    busy = error("ValidationException", "Cannot delete inference component in a transient state")
    aws.errors["delete_inference_component"] = [busy, busy, absent()]
    aws.components = {COMPONENT: component("Failed", copies=0)}
    steps = fix_steps(aws.examined())
    del aws.components[COMPONENT]
    outcomes = [*carry_out(steps, aws, Patience(waits.append, 5, 60), lambda _line: None)]
    assert {each.status for each in outcomes} == {"done"}
    assert waits == [5, 5]


def test_a_step_that_fails_stops_what_needs_it_and_nothing_else() -> None:
    aws = abandoned()
    aws.errors["delete_inference_component"] = [error("ValidationException", "odd")]
    outcomes = {each.key: each.status for each in fixed(aws)}
    assert outcomes == {
        f"target {TARGET}": "done",
        f"component {COMPONENT}": "failed",
        "endpoint dev-chat": "left out",
        "endpoint_config config-1": "left out",
        "model model-1": "left out",
    }
    assert aws.endpoint is not None


def test_a_step_that_does_not_end_fails() -> None:
    aws = abandoned()
    aws.errors["delete_inference_component"] = [error("ValidationException", "it is in a transient state")]
    failed = next(each for each in fixed(aws, longest_s=10) if each.status == "failed")
    assert failed.message.startswith("it is not over after 10 s")


def test_every_step_is_told_as_a_command() -> None:
    told: list[str] = []
    aws = Aws(targets=[target(SuspendedState=SUSPENDED)])
    [*carry_out(fix_steps(aws.examined()), aws, Patience(lambda _s: None), told.append)]
    assert told == [
        f"aws application-autoscaling register-scalable-target --service-namespace sagemaker --resource-id {TARGET} "
        "--scalable-dimension sagemaker:inference-component:DesiredCopyCount --suspended-state "
        '\'{"DynamicScalingInSuspended": false, "DynamicScalingOutSuspended": false, '
        '"ScheduledScalingSuspended": false}\''
    ]


@pytest.mark.parametrize("tags", [{}, {"seatrial:environment": "prod"}])
def test_what_lost_its_tag_meanwhile_is_not_deleted(tags: Mapping[str, str]) -> None:
    aws = abandoned()
    steps = fix_steps(aws.examined())
    aws.other_tags[COMPONENT] = {**tags}
    outcomes = {each.key: each for each in carry_out(steps, aws, Patience(lambda _s: None), lambda _line: None)}
    component_of = outcomes[f"component {COMPONENT}"]
    assert (component_of.status, "seatrial:environment=dev" in component_of.message) == ("failed", True)
    assert outcomes["endpoint dev-chat"].status == "left out"
    assert COMPONENT in aws.components


def test_a_model_of_another_environment_stays() -> None:
    aws = abandoned()
    aws.other_tags["model-1"] = {"seatrial:environment": "prod"}
    assert {each.status for each in fixed(aws)} == {"done"}
    assert "delete_model" not in [name for name, _ in aws.done]


def step(
    until: Literal["answered", "gone", "settled"] = "gone", key: str = "stack x", after: tuple[str, ...] = ()
) -> FixStep:
    look = "" if until == "answered" else "describe"
    return FixStep(key=key, why="", service="a", operation="delete", arguments={}, after=after, until=until, look=look)


def outcome_of(
    one: FixStep, *looks: Mapping[str, object] | ClientError, change: tuple[ClientError, ...] = ()
) -> tuple[StepOutcome, list[str], float]:
    """Return what came of a step, what AWS was asked, and how long was waited; what AWS said last it says again."""
    asked, waits, answers, refusals = list[str](), list[float](), list(looks), list(change)

    def calls(_service: str, operation: str, /, **_: object) -> Mapping[str, object]:
        asked.append(operation)
        if operation == "delete":
            if refusals:
                raise refusals.pop(0)
            return {}
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    (outcome,) = carry_out([one], calls, Patience(waits.append, 5, 10), lambda _line: None)
    return outcome, asked, sum(waits)


def stack(status: str) -> Mapping[str, object]:
    return {"Stacks": [{"StackStatus": status}]}


@pytest.mark.parametrize(
    ("until", "looks", "status", "told"),
    [
        ("gone", [absent()], "done", ""),
        ("gone", [stack("DELETE_COMPLETE")], "done", ""),
        ("gone", [stack("DELETE_IN_PROGRESS"), absent()], "done", ""),
        ("gone", [stack("DELETE_FAILED")], "failed", "the stack is DELETE_FAILED"),
        ("gone", [stack("ROLLBACK_COMPLETE")], "failed", "the stack is ROLLBACK_COMPLETE"),
        ("gone", [{"InferenceComponentStatus": "Deleting"}, absent()], "done", ""),
        (
            "gone",
            [{"InferenceComponentStatus": "Failed", "FailureReason": "odd"}],
            "failed",
            "its deletion failed: odd",
        ),
        ("gone", [{"EndpointStatus": "Failed", "FailureReason": "odd"}], "failed", "its deletion failed: odd"),
        ("gone", [{"EndpointStatus": "Deleting"}], "failed", "it is not over after 10 s: it is still there"),
        ("gone", [stack("DELETE_IN_PROGRESS")], "failed", "it is not over after 10 s: DELETE_IN_PROGRESS"),
        ("gone", [error("AccessDenied", "no")], "failed", "AccessDenied"),
        ("settled", [stack("UPDATE_ROLLBACK_COMPLETE")], "done", ""),
        ("settled", [stack("UPDATE_ROLLBACK_IN_PROGRESS"), stack("UPDATE_ROLLBACK_COMPLETE")], "done", ""),
        ("settled", [stack("UPDATE_ROLLBACK_FAILED")], "failed", "the stack is UPDATE_ROLLBACK_FAILED"),
        ("settled", [absent()], "failed", ""),
    ],
)
def test_a_step_is_over_when_what_it_changed_is_as_it_is_to_be(
    until: Literal["gone", "settled"],
    looks: list[Mapping[str, object] | ClientError],
    status: str,
    told: str,
) -> None:
    outcome, asked, waited_s = outcome_of(step(until), *looks)
    assert (outcome.key, outcome.status, told in outcome.message) == ("stack x", status, True)
    assert (outcome.message == "") is (status == "done")
    assert asked[:2] == ["delete", "describe"]
    assert waited_s == (10 if "not over" in told else 5 * (len(looks) - 1))


def test_a_change_that_is_answered_is_over_and_one_that_is_refused_is_tried_again_or_told() -> None:
    busy, odd = error("ValidationException", "UPDATE is in progress"), error("ValidationException", "odd")
    assert outcome_of(step("answered"), {}) == (StepOutcome("stack x", "done"), ["delete"], 0)
    assert outcome_of(step("answered"), {}, change=(absent(),)) == (StepOutcome("stack x", "done"), ["delete"], 0)
    outcome, asked, waited_s = outcome_of(step("answered"), {}, change=(busy, busy))
    assert (outcome.status, asked, waited_s) == ("done", ["delete"] * 3, 10)
    outcome, asked, _ = outcome_of(step(), absent(), change=(odd,))
    assert (outcome.status, "odd" in outcome.message, asked) == ("failed", True, ["delete"])
    outcome, _, waited_s = outcome_of(step(), absent(), change=(busy,) * 4)
    assert (outcome.status, waited_s) == ("failed", 10)


@pytest.mark.parametrize(
    "words",
    [
        "in a Transient state",
        "UPDATE IS IN PROGRESS",
        "Cannot update in-progress endpoint",
        "Cannot delete it",
        "it is Creating",
        "it is Updating",
    ],
)
def test_what_aws_says_of_a_change_at_work_is_waited_out(words: str) -> None:
    outcome, _, waited_s = outcome_of(step("answered"), {}, change=(error("ValidationException", words),))
    assert (outcome.status, waited_s) == ("done", 5)


def test_what_needs_a_step_that_was_left_out_is_left_out_too() -> None:
    def calls(_service: str, operation: str, /, **_: object) -> Mapping[str, object]:
        raise error("ValidationException", operation)

    chain = [step(key="a"), step(key="b", after=("a",)), step(key="c", after=("b", "z")), step(key="d", after=("z",))]
    told: list[str] = []
    outcomes = list(carry_out(chain, calls, Patience(lambda _s: None), told.append))
    assert [(each.key, each.status) for each in outcomes] == [
        ("a", "failed"),
        ("b", "left out"),
        ("c", "left out"),
        ("d", "failed"),
    ]
    assert [each.message for each in outcomes[1:3]] == ["a was not done", "b was not done"]
    assert len(told) == 2, "what is left out is not announced"


@pytest.mark.parametrize("status", ["InService", "Updating", "SystemUpdating", "RollingBack", "UpdateRollbackFailed"])
def test_no_status_by_which_an_endpoint_serves_lets_it_be_deleted(status: str) -> None:
    assert fix_steps(Aws(stack="", endpoint={"EndpointStatus": status}).examined()) == ()
