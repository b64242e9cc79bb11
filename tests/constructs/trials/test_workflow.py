"""The course of a trial from its order to CloudFormation's answer, by the state machine's own definition."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from seatrial_base.errors import BenchError
from seatrial_cdk.trials.runtime.handler import dispatch
from seatrial_cdk.trials.runtime.load_phase import CutLevel
from seatrial_cdk.trials.runtime.ownership import CANCELLED
from seatrial_cdk.trials.runtime.steps import SOONEST_LOOK_S
from seatrial_cdk.trials.runtime.store import UnavailableError
from seatrial_cdk.trials.trial_service import DEAD, MOST_SHARES, definition
from seatrial_load.documents.request import Expected, TrialTarget
from seatrial_load.documents.result import TrialResult
from seatrial_load.documents.stop import Stop, StopReason
from seatrial_load.search import NextLevel
from tests.constructs.trials.conftest import (
    BEFORE,
    COMPONENT,
    LATEST,
    ORDERED_S,
    PASSED,
    PROGRESS,
    RELEASED,
    STOPPED,
    TRIAL,
    URI,
)
from tests.constructs.trials.machine import DiedError
from tests.constructs.trials.written_course import ALL_MEASURED, NEXT

if TYPE_CHECKING:
    from seatrial_cdk.trials.runtime.handler import ExecutionEvent
    from seatrial_cdk.trials.runtime.load_phase import FunctionShare
    from seatrial_cdk.trials.runtime.order import CustomResourceEvent
    from tests.constructs.trials.conftest import World
    from tests.constructs.trials.written_course import Begun

COURSE = ["Begin", "Choose", "Load", "Absorb", "Choose", "Conclude", "Settle", "Answer"]


class Dies:
    """Kills the function of a state a number of times."""

    def __init__(self, state: str, times: int, error: str = "Runtime.ExitError") -> None:
        self.state, self.times, self.error = state, times, error

    def __call__(self, state: str) -> None:
        if state == self.state and self.times:
            self.times -= 1
            raise DiedError(self.error)


class TestATrialThatPasses:
    def test_goes_level_by_level_and_answers(self, ordered: World, verified: dict[str, str]) -> None:
        machine = ordered.machine()
        machine.execute()
        assert machine.entered == COURSE
        report = URI.replace(".json", ".md")
        assert ordered.responses == [
            {
                "Status": "SUCCESS",
                "PhysicalResourceId": "smoke-benchmark-dev-chat",
                "StackId": "arn:aws:cloudformation:us-east-1:123456789012:stack/seatrial-dev-chat/1",
                "RequestId": "request-1",
                "LogicalResourceId": "TrialResource",
                "Data": {**verified, "ResultUri": URI, "ReportUri": report, "ResultsBucket": "results"},
            }
        ]

    def test_knows_what_must_be_live(self, ordered: World, passed: TrialResult) -> None:
        ordered.machine().execute()
        (begun,) = ordered.course.begun
        expected = Expected(endpoint_config_name="config-2", model_name="model-2")
        assert begun.request == replace(passed.request, expected=expected), "names prove it: no model is described"
        assert begun.request.target == TrialTarget(
            endpoint_name="dev-chat", inference_component="dev-chat-model", region="us-east-1"
        )
        assert begun.tools.may_scale

    def test_leaves_trial_latest_passed_and_released_each_with_its_report(
        self, ordered: World, passed: TrialResult
    ) -> None:
        ordered.machine().execute()
        keys = (TRIAL, LATEST, PASSED, RELEASED)
        (kept,) = {ordered.store.read(key) for key in keys}
        result = TrialResult.from_json(f"{kept}")
        assert (result.seal is None, replace(result, seal=None)) == (False, passed)
        assert len({ordered.store.read(key.replace(".json", ".md")) for key in keys}) == 1

    def test_is_compared_with_what_is_released(self, ordered: World, passed: TrialResult) -> None:
        before = replace(passed, request=replace(passed.request, plan_digest="a"))
        ordered.store.write(RELEASED, before.to_json())
        ordered.machine().execute()
        assert ordered.course.baselines == [(before, "s3://results/passed/dev-chat/a/config-2/model-2.json")]

    def test_says_so_on_the_event_bus(self, ordered: World) -> None:
        ordered.machine().execute()
        assert ordered.events.details == [
            {
                "endpoint": "chat",
                "environment": "dev",
                "endpointName": "dev-chat",
                "planDigest": "b",
                "verdict": "pass",
                "because": "objective met",
                "kneeConcurrencyPerCopy": 16,
                "resultUri": URI,
                "reportUri": URI.replace(".json", ".md"),
            }
        ]

    def test_leaves_its_evidence_and_its_metrics_in_the_log(
        self, ordered: World, capsys: pytest.CaptureFixture[str]
    ) -> None:
        ordered.machine().execute()
        lines = capsys.readouterr().out.splitlines()
        assert (
            "level 16 per copy: 48 of 48 requests succeeded, 410.5 tok/s, TTFT p95 812.2 ms, TPOT p95 45.5 ms" in lines
        )
        (metrics,) = (json.loads(line) for line in lines if line.startswith('{"_aws"'))
        assert metrics["Passed"] == 1

    def test_is_seen_by_whoever_watches_after_each_level(self, ordered: World) -> None:
        ordered.course.steps = [NextLevel(concurrency=8, because="first"), NEXT, ALL_MEASURED]
        seen: list[object] = []

        def glance(_: FunctionShare) -> None:
            levels = json.loads(ordered.store.texts[PROGRESS])["levels"]
            loading = json.loads(ordered.store.texts["runs/dev-chat/request-1/level.json"])["concurrency"]
            seen.append(([level["concurrency"] for level in levels], loading))

        ordered.load.acting = glance
        ordered.machine().execute()
        assert seen == [([], 8), ([8], 16)]

    def test_is_started_once_however_often_its_request_comes(self, ordered: World, create: CustomResourceEvent) -> None:
        ordered.clock.wait(5.0)
        assert ordered.ask(create) is None
        assert ordered.workflow.started == [("dev-chat", "request-1")]


class TestAComponentThatSleeps:
    def test_is_waited_for_without_a_function_that_sleeps(self, ordered: World) -> None:
        def asleep(begun: Begun) -> None:
            if len(ordered.course.begun) < 3:
                begun.tools.sleep(15.0)

        ordered.course.beginning = asleep
        machine = ordered.machine()
        machine.execute()
        assert machine.entered == ["Begin", "Wait", "Begin", "Wait", *COURSE]
        assert [begun.waited_s for begun in ordered.course.begun] == [0.0, 15.0, 30.0]
        assert ordered.responses[0]["Status"] == "SUCCESS"

    def test_leaves_what_is_left_of_the_budget(self, ordered: World) -> None:
        ordered.clock.wait(300.0)
        ordered.machine().execute()
        assert [begun.request.load.budget_s for begun in ordered.course.begun] == [300.0]

    def test_has_no_budget_left_in_the_end(self, ordered: World) -> None:
        ordered.clock.wait(600.0)
        ordered.machine().execute()
        assert ordered.course.begun == []
        assert ordered.document(TRIAL) == {"error": "SEA507: the budget of 600 s ended before the trial started"}


class TestALevelOfSeveralFunctions:
    def test_is_shared_among_them_from_one_common_start(self, ordered: World) -> None:
        ordered.sockets_per_function = 4
        ordered.machine().execute()
        shares = [load.share for load in ordered.load.loads]
        assert [(share.worker, share.workers, share.streams) for share in shares] == [(n, 4, 4) for n in range(4)]
        assert {share.start_at_epoch_s for share in shares} == {ORDERED_S + 15.0}
        assert [each.counts.requests for each in ordered.course.absorbed] == [48]

    def test_of_one_function_waits_for_nobody(self, ordered: World) -> None:
        ordered.machine().execute()
        assert [load.share.start_at_epoch_s for load in ordered.load.loads] == [ORDERED_S]

    def test_that_some_were_too_late_for_is_loaded_again_with_twice_the_time(self, ordered: World) -> None:
        ordered.sockets_per_function = 4

        def late(load: FunctionShare) -> None:
            if load.share.worker == 0 and load.share.start_at_epoch_s == ORDERED_S + 15.0:
                raise _late()

        ordered.load.acting = late
        machine = ordered.machine()
        machine.execute()
        assert machine.entered == ["Begin", "Choose", "Load", "Absorb", *COURSE[1:]]
        again = ordered.load.loads[-1]
        assert again.share.start_at_epoch_s == ORDERED_S + 30.0
        assert again.progress.sent == 2 + 48, "no prompt comes twice"

    def test_that_some_are_always_too_late_for_ends_the_trial(self, ordered: World) -> None:
        ordered.sockets_per_function = 4

        def late(_: FunctionShare) -> None:
            raise _late()

        ordered.load.acting = late
        ordered.machine().execute()
        assert "4 of 4 workers failed" in str(ordered.document(TRIAL)["error"])


def _late() -> Exception:
    from seatrial_load.trial.steps import LateStartError  # noqa: PLC0415 (only here)

    return LateStartError.of("SEA507", "worker 0 of 4 started 5.0 s late")


class TestAFunctionThatDies:
    @pytest.mark.parametrize("state", ["Begin", "Choose", "Absorb", "Conclude", "Settle", "Answer"])
    @pytest.mark.parametrize("error", ["Runtime.ExitError", "Sandbox.Timedout", "Lambda.Unknown"])
    def test_in_a_step_is_called_again(self, ordered: World, state: str, error: str) -> None:
        ordered.machine(Dies(state, 3, error)).execute()
        assert [response["Status"] for response in ordered.responses] == ["SUCCESS"]

    def test_too_often_in_a_step_ends_the_trial(self, ordered: World) -> None:
        machine = ordered.machine(Dies("Choose", 4))
        machine.execute()
        assert machine.entered == ["Begin", "Choose", "Abandon", "Settle", "Answer"]
        assert ordered.responses[0]["Reason"] == (
            f"The sea trial of dev-chat failed to run: Runtime.ExitError: the function ended (result: {URI})"
        )

    @pytest.mark.parametrize("times", [1, 2])
    def test_while_it_loads_has_its_level_loaded_again(self, ordered: World, times: int) -> None:
        machine = ordered.machine(Dies("Share", times))
        machine.execute()
        assert machine.entered == ["Begin", *("Choose", "Load", "Absorb") * times, *COURSE[1:]]
        assert [response["Status"] for response in ordered.responses] == ["SUCCESS"]

    def test_while_it_loads_a_third_time_ends_the_trial_by_name(self, ordered: World) -> None:
        ordered.scaling.states[COMPONENT] = BEFORE
        ordered.machine(Dies("Share", 3)).execute()
        assert ordered.responses[0]["Reason"] == (
            "The sea trial of dev-chat failed to run: concurrency 16 per copy failed 3 times: worker 0 of 1 ended "
            f"without a result; Runtime.ExitError: the function ended (result: {URI})"
        )
        assert ordered.scaling.states == {COMPONENT: BEFORE}

    def test_after_it_loaded_loads_nothing_twice(self, ordered: World) -> None:
        ordered.machine(Dies("Absorb", 1)).execute()
        assert len(ordered.load.loads) == 1

    def test_that_a_call_of_aws_fails_is_tried_again(self, ordered: World) -> None:
        failures = [1, 2]

        def throttled() -> None:
            if failures:
                failures.pop()
                raise UnavailableError("reading: SlowDown")

        ordered.course.ending = throttled
        ordered.machine().execute()
        assert ordered.responses[0]["Status"] == "SUCCESS"

    def test_is_never_asked_again_for_an_error_of_the_trial_itself(self) -> None:
        assert not {"States.ALL", "BenchError", "States.TaskFailed"} & set(DEAD)


class TestWhateverGoesWrong:
    @pytest.mark.parametrize(
        ("error", "message"),
        [
            (BenchError.of("SEA504", "the endpoint can't be reached"), "SEA504: the endpoint can't be reached"),
            (ZeroDivisionError("division by zero"), "division by zero"),
        ],
    )
    def test_is_written_down_announced_and_answered(self, ordered: World, error: Exception, message: str) -> None:
        def failing(_: Begun) -> None:
            raise error

        ordered.course.beginning = failing
        machine = ordered.machine()
        machine.execute()
        assert machine.entered == ["Begin", "Abandon", "Settle", "Answer"]
        assert [ordered.store.read(key) for key in (TRIAL, LATEST, PASSED)] == [
            json.dumps({"error": message}),
            None,
            None,
        ]
        (detail,) = ordered.events.details
        assert (detail["endpoint"], detail["verdict"], detail["because"]) == ("chat", "error", message)
        assert ordered.responses[0]["Reason"] == (f"The sea trial of dev-chat failed to run: {message} (result: {URI})")

    def test_a_malformed_request_is_written_down(self, world: World, create: CustomResourceEvent) -> None:
        create["ResourceProperties"]["Request"] = "{}"
        world.ask(create)
        world.machine().execute()
        assert "trial request: endpoint: SEA501: missing" in str(world.document(TRIAL)["error"]).splitlines()

    def test_an_event_that_is_not_taken_is_a_line_of_the_log(
        self, ordered: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        def refused(_: object) -> None:
            raise UnavailableError("putting pass: throttled")

        monkeypatch.setattr(ordered.events, "put", refused)
        ordered.machine().execute()
        assert ordered.responses[0]["Status"] == "SUCCESS"
        assert "no event: putting pass: throttled" in capsys.readouterr().out.splitlines()

    def test_a_trial_that_takes_longer_than_its_budget_and_margin_ends(self, ordered: World) -> None:
        ordered.load.acting = lambda _: ordered.clock.wait(841.0)
        ordered.machine().execute()
        assert ordered.document(TRIAL) == {"error": "not finished after 841 s; the budget was 600 s"}

    def test_a_level_that_was_cut_ends_the_measurement_and_not_the_trial(self, ordered: World) -> None:
        because = "a function's 885 s are too short for concurrency 16 per copy"
        cut = CutLevel(sent=26, stopped=Stop(reason=StopReason.RUN_TOO_SHORT, because=because), seen=None)
        ordered.load.acting = lambda _: cut
        ordered.machine().execute()
        (progress,) = ordered.course.concluded
        assert (progress.stopped, progress.sent) == (cut.stopped, 2 + 26)
        assert ordered.responses[0]["Status"] == "SUCCESS"

    def test_a_share_that_could_not_be_loaded_ends_the_trial(self, ordered: World) -> None:
        def failing(_: FunctionShare) -> None:
            raise BenchError.of("SEA503", "no credentials")

        ordered.load.acting = failing
        ordered.machine().execute()
        assert ordered.document(TRIAL) == {"error": "1 of 1 workers failed: worker 0: SEA503: no credentials"}


class TestTheRequestThatFollows:
    @pytest.mark.parametrize("kind", ["Update", "Delete"])
    def test_stops_the_load_within_10_s_and_the_result_never_counts(
        self, ordered: World, update: CustomResourceEvent, kind: str
    ) -> None:
        ordered.scaling.states[COMPONENT] = BEFORE
        following: CustomResourceEvent = {**update, "RequestId": "next", "OldResourceProperties": {}}
        if kind == "Update":
            following["OldResourceProperties"] = update["ResourceProperties"]  # nothing is due: answered at once
        said: list[Stop | None] = []

        def act(load: FunctionShare) -> None:
            ordered.clock.wait(1.0)
            ordered.status = "UPDATE_ROLLBACK_IN_PROGRESS" if kind == "Update" else "DELETE_IN_PROGRESS"
            _follow(ordered, following, kind)
            for pause_s in (0.0, 4.0, 5.0):
                ordered.clock.wait(pause_s)
                said.append(load.should_stop())

        ordered.load.acting = act
        ordered.machine().execute()
        assert said == [None, None, CANCELLED]
        documents = [ordered.store.read(key) for key in (TRIAL, LATEST, PASSED, RELEASED)]
        assert documents == [json.dumps({"error": STOPPED}), None, None, None]
        assert ordered.scaling.states == {COMPONENT: BEFORE}
        assert ordered.events.details == []

    def test_before_the_trial_began_lets_nothing_be_measured(self, ordered: World, update: CustomResourceEvent) -> None:
        ordered.clock.wait(1.0)
        _follow(ordered, {**update, "RequestId": "next"}, "Delete")
        ordered.machine().execute()
        assert ordered.course.begun == []

    def test_stops_the_beginning(self, ordered: World, update: CustomResourceEvent) -> None:
        told: list[Stop | None] = []

        def cancelled(begun: Begun) -> None:
            _follow(ordered, {**update, "RequestId": "next"}, "Delete")
            ordered.clock.wait(11.0)
            told.append(begun.should_stop())

        ordered.course.beginning = cancelled
        machine = ordered.machine()
        machine.execute()
        assert told == [CANCELLED]
        assert machine.entered == ["Begin", "Settle", "Answer"]

    def test_leaves_nobody_who_must_take_the_answer_of_the_one_before(
        self, ordered: World, update: CustomResourceEvent, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refused(*_: object) -> None:
            raise UnavailableError("answering CloudFormation: HTTP 403")

        monkeypatch.setattr(ordered, "respond", refused)
        ordered.load.acting = lambda _: _follow(ordered, {**update, "RequestId": "next"}, "Update")
        ordered.machine().execute()
        assert ordered.document(TRIAL) == {"error": STOPPED}

    def test_waits_with_its_own_trial_until_the_load_has_ended(
        self, ordered: World, update: CustomResourceEvent
    ) -> None:
        ordered.clock.wait(30.0)
        assert ordered.ask({**update, "RequestId": "next"}) is None
        machine = ordered.machine()

        def ended(seconds: float) -> None:
            ordered.clock.wait(seconds)
            if ordered.clock.now_s >= ORDERED_S + 40.0:
                ordered.store.write(TRIAL, json.dumps({"error": STOPPED}))

        machine.wait = ended
        machine.execute(request_id="next")
        assert machine.entered == ["Begin", "Wait", "Begin", "Wait", *COURSE]
        assert ordered.workflow.stopped == []

    def test_waits_a_minute_at_most(self, ordered: World, update: CustomResourceEvent) -> None:
        ordered.clock.wait(30.0)
        ordered.ask({**update, "RequestId": "next"})
        machine = ordered.machine()
        machine.execute(request_id="next")
        assert machine.entered[-len(COURSE) :] == COURSE
        assert machine.entered.count("Wait") == 12
        assert ordered.workflow.stopped == ["request-1"]

    def test_that_cleared_the_documents_lets_nothing_be_written(self, ordered: World) -> None:
        ordered.load.acting = lambda _: ordered.store.clear("dev-chat")
        ordered.machine().execute()
        assert ordered.store.texts == {}
        assert ordered.responses == []

    def test_a_store_that_is_throttled_for_a_while_stops_nothing(
        self, ordered: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        read = ordered.store.read

        def act(load: FunctionShare) -> None:
            with monkeypatch.context() as throttled:
                throttled.setattr(ordered.store, "read", _refused)
                ordered.clock.wait(60.0)
                assert load.should_stop() is None
            assert ordered.store.read == read

        ordered.load.acting = act
        ordered.machine().execute()
        assert ordered.responses[0]["Status"] == "SUCCESS"


def _refused(key: str) -> str:
    raise UnavailableError(f"{key}: SlowDown")


def _follow(world: World, event: CustomResourceEvent, kind: str) -> None:
    """Let another request become the owner, as its own function would."""
    from seatrial_cdk.trials.runtime.ownership import take_ownership  # noqa: PLC0415 (only here)

    assert kind in {"Update", "Delete"}
    take_ownership(world.store, "dev-chat", event["RequestId"], document="", now_s=world.clock.now_s)


class TestAnExecutionThatDied:
    @pytest.fixture
    def dead(self) -> ExecutionEvent:
        told = json.dumps({"EndpointName": "dev-chat", "RequestId": "request-1"})
        return {"detail": {"status": "TIMED_OUT", "input": told, "cause": None}}

    def test_is_answered_all_the_same(self, ordered: World, dead: ExecutionEvent) -> None:
        dispatch(dead, ordered.context)
        assert ordered.responses[0]["Reason"] == (
            "The sea trial of dev-chat failed to run: its workflow ended with TIMED_OUT: no reason given "
            f"(result: {URI})"
        )

    def test_is_answered_in_the_last_half_minute_where_its_candidate_never_goes(
        self, ordered: World, dead: ExecutionEvent, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("seatrial_cdk.trials.runtime.sweep.settle", lambda _trial: {"Next": "pause"})
        context = ordered.context
        dispatch(dead, context)
        assert len(ordered.responses) == 1
        assert context.ends_s - 30.0 <= ordered.clock.now_s < context.ends_s - 30.0 + SOONEST_LOOK_S

    def test_after_its_answer_gets_no_other_one(self, ordered: World, dead: ExecutionEvent) -> None:
        ordered.machine().execute()
        dispatch(dead, ordered.context)
        assert len(ordered.responses) == 1

    def test_whose_documents_were_removed_is_left_alone(self, ordered: World, dead: ExecutionEvent) -> None:
        ordered.store.clear("dev-chat")
        dispatch(dead, ordered.context)
        assert (ordered.responses, ordered.store.texts) == ([], {})


class TestTheDefinition:
    @pytest.fixture
    def states(self) -> dict[str, dict[str, object]]:
        told = definition("function")
        states = told["States"]
        assert isinstance(states, dict)
        return states

    def test_ends_within_cloudformations_hour(self) -> None:
        assert definition("function")["TimeoutSeconds"] == 3480

    def test_catches_whatever_fails(self, states: dict[str, dict[str, object]]) -> None:
        caught = {name for name, state in states.items() if "Catch" in state}
        assert caught == {"Begin", "Choose", "Load", "Absorb", "Conclude"}
        assert [states[name]["Next"] for name in ("Abandon", "Settle", "Pause")] == ["Next", "Next", "Settle"]
        assert states["Answer"]["End"]

    @pytest.mark.parametrize(("state", "at_least_s", "at_most_s"), [("Begin", 180.0, 300.0), ("Share", 45.0, 60.0)])
    def test_waits_for_functions_that_the_account_runs_elsewhere(
        self, states: dict[str, dict[str, object]], state: str, at_least_s: float, at_most_s: float
    ) -> None:
        """A share that comes after its barrier is late, so it is not asked for longer than the longest barrier."""
        load: Any = states["Load"]
        found: Any = load["ItemProcessor"]["States"]["Share"] if state == "Share" else states[state]
        refused = found["Retry"][0]
        assert refused["ErrorEquals"] == ["Lambda.TooManyRequestsException"]
        pauses_s = [
            min(refused["MaxDelaySeconds"], refused["IntervalSeconds"] * refused["BackoffRate"] ** tries)
            for tries in range(refused["MaxAttempts"])
        ]
        assert at_least_s <= sum(pauses_s) <= at_most_s
        assert refused["JitterStrategy"] == "FULL", "several endpoints ask at once"
        others = [error for retry in found["Retry"][1:] for error in retry["ErrorEquals"]]
        assert "Lambda.TooManyRequestsException" not in others, "the first retrier of an error is the one"

    def test_loads_every_share_at_once_and_waits_for_each(self, states: dict[str, dict[str, object]]) -> None:
        load = states["Load"]
        assert (load["MaxConcurrency"], load["ItemsPath"], load["ResultPath"]) == (MOST_SHARES, "$.Shares", "$.Loaded")
        processor = load["ItemProcessor"]
        assert isinstance(processor, dict)
        share = processor["States"]["Share"]
        assert [each["ErrorEquals"] for each in share["Retry"]] == [["Lambda.TooManyRequestsException"]]
        assert share["Catch"] == [{"ErrorEquals": ["States.ALL"], "ResultPath": "$.Failure", "Next": "Died"}]
