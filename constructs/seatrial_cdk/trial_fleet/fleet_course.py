"""The course of a trial by a fleet, as states of a machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Duration
from aws_cdk import aws_stepfunctions as sfn
from aws_cdk import aws_stepfunctions_tasks as tasks
from constructs import Construct

from seatrial_cdk.smoke_benchmark.runtime.fleet_size import MOST_WORKERS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from aws_cdk import aws_lambda as lambda_

NOT_STARTED = ("Lambda.TooManyRequestsException",)
"""Refusals after which nothing has run: the only ones that a share of the load may be asked for again."""

NOT_ANSWERED = (*NOT_STARTED, "Lambda.ServiceException", "Lambda.AWSLambdaException", "Lambda.SdkClientException")


class FleetCourse(Construct):
    """Begin, then choose a level, load it together and absorb what was measured, again and again, then conclude.

    What the steps tell each other lies in the results bucket; the states carry keys. Whatever fails leads to
    `Abandon`, which writes why, so that whoever waits for the trial's document gets one.

    Args:
        steps: The function of every step but the load.
        worker: The function that loads one share.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, steps: lambda_.IFunction, worker: lambda_.IFunction
    ) -> None:
        super().__init__(scope, construct_id)
        self._steps = steps
        self._abandon = self._task("Abandon", {"Failure": sfn.JsonPath.object_at("$.Failure")})
        self._abandon.next(sfn.Fail(self, "Abandoned", state_name="Abandoned", cause="The trial's document says why."))
        choose, conclude = self._step("Choose"), self._step("Conclude")
        self.definition = self._task("Begin", {}, repeated_after=NOT_STARTED)
        _caught(self.definition, self._abandon)
        following = sfn.Choice(self, "Next", state_name="Next")
        self.definition.next(following)
        load = self._load(worker)
        load.next(self._step("Absorb")).next(choose).next(following)
        done = sfn.Succeed(self, "Done", state_name="Done")
        for what, state in (("choose", choose), ("load", load), ("conclude", conclude)):
            following.when(sfn.Condition.string_equals("$.Next", what), state)
        following.otherwise(done)
        conclude.next(done)

    def _step(self, name: str) -> sfn.TaskStateBase:
        return _caught(self._task(name, {"Position": sfn.JsonPath.object_at("$")}), self._abandon)

    def _task(
        self, name: str, told: Mapping[str, object], *, repeated_after: Sequence[str] = NOT_ANSWERED
    ) -> sfn.TaskStateBase:
        """Define a step, which is asked for again after some refusals: what it writes follows from what it reads."""
        order = sfn.JsonPath.object_at("$$.Execution.Input")
        task = tasks.LambdaInvoke(
            self,
            name,
            state_name=name,
            lambda_function=self._steps,
            payload=sfn.TaskInput.from_object({"Step": name.lower(), **told, "Order": order}),
            payload_response_only=True,
            retry_on_service_exceptions=False,
        )
        return task.add_retry(errors=list(repeated_after), interval=Duration.seconds(1), max_attempts=2)

    def _load(self, worker: lambda_.IFunction) -> sfn.DistributedMap:
        """Define the load: every share at once, each in a child execution; one that is lost fails the level."""
        load = sfn.DistributedMap(
            self,
            "Load",
            state_name="Load",
            label="Load",
            items_path="$.Shares",
            item_selector={
                "Order": sfn.JsonPath.object_at("$$.Execution.Input"),
                "Share": sfn.JsonPath.object_at("$$.Map.Item.Value"),
            },
            max_concurrency=MOST_WORKERS,
            map_execution_type=sfn.StateMachineType.STANDARD,
            result_path=sfn.JsonPath.DISCARD,
        )
        share = tasks.LambdaInvoke(
            self,
            "Share",
            state_name="Share",
            lambda_function=worker,
            payload_response_only=True,
            retry_on_service_exceptions=False,
        )
        share.add_retry(errors=list(NOT_STARTED), interval=Duration.seconds(1), max_attempts=2, backoff_rate=1)
        load.item_processor(share)
        load.add_catch(self._abandon, result_path="$.Failure")
        return load


def _caught(task: sfn.TaskStateBase, abandon: sfn.TaskStateBase) -> sfn.TaskStateBase:
    return task.add_catch(abandon, result_path="$.Failure")
