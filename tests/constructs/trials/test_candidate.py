"""A new configuration is tried beside the live one; whatever happens, no candidate and no suspension is left."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Literal

import pytest

from seatrial_base.tags import candidate_name, candidate_tags
from seatrial_cdk.trials.runtime.candidate import keep_first_start, read_start
from seatrial_cdk.trials.runtime.components import VariantCapacity
from seatrial_cdk.trials.runtime.handler import dispatch
from seatrial_cdk.trials.runtime.order import CarriedCopies, Order, read_copies, write_copies
from seatrial_cdk.trials.runtime.scaling import read_held
from seatrial_cdk.trials.runtime.store import UnavailableError
from seatrial_load.documents.result import TrialResult
from tests.constructs.conftest import OLD, SPECIFICATION, component
from tests.constructs.trials.conftest import COMPONENT, ROLLBACKS, UNREADABLE

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial_cdk.trials.runtime.order import CustomResourceEvent
    from tests.constructs.trials.conftest import Response, World

CANDIDATE = candidate_name("dev-chat", "request-1")
TAGS = candidate_tags("dev", "dev-chat", "request-1")
OF_A_STACK = {"seatrial:environment": "dev", "team": "hr"}
COURSE = ["Begin", "Wait", "Begin", "Choose", "Load", "Absorb", "Choose", "Conclude", "Settle"]
SUSPENDED = {"DynamicScalingInSuspended": True}


@pytest.fixture
def before(update: CustomResourceEvent) -> CustomResourceEvent:
    """Return the request that comes before the component is updated."""
    for name in ("ResourceProperties", "OldResourceProperties"):
        update[name] = {**update[name], "Phase": "candidate"}
    update["OldResourceProperties"] |= {"ModelName": "model-1", "Specification": json.dumps(OLD)}
    update["PhysicalResourceId"] = "candidate-trial-dev-chat"
    return update


@pytest.fixture
def scaled(world: World) -> World:
    """Return a world whose component was planned with one copy, and has three."""
    world.components.found[COMPONENT] = component(current_copies=3, desired_copies=3)
    world.scaling.states[COMPONENT] = {}
    return world


def data(response: Response | None) -> dict[str, str]:
    assert response is not None
    assert response["Status"] == "SUCCESS", response
    told = response["Data"]
    assert isinstance(told, dict)
    return told


def run(world: World, event: CustomResourceEvent) -> Response:
    assert world.ask(event) is None
    world.machine().execute(request_id=event["RequestId"])
    return world.responses[-1]


class TestAnUpdate:
    def test_tries_the_new_model_in_one_copy_and_carries_the_live_copies(
        self, scaled: World, before: CustomResourceEvent
    ) -> None:
        assert scaled.ask(before) is None
        machine = scaled.machine()
        machine.execute()
        assert machine.entered == [*COURSE, "Pause", "Settle", "Answer"]
        told = data(scaled.responses[0])
        assert (told["CopyCount"], told["Verdict"]) == ("3", "pass")
        assert scaled.components.created == [(CANDIDATE, SPECIFICATION, TAGS)]
        request = scaled.course.begun[0].request
        assert request.expected is not None
        assert request.copy_count == 1
        assert request.target.inference_component == CANDIDATE
        assert (request.expected.model_name, request.expected.image) == ("model-2", None)
        assert request.expected.endpoint_config_name == "config-of-dev-chat", "of the endpoint as it is"

    def test_is_tried_in_one_copy_and_judged_by_it_however_many_are_planned(
        self, scaled: World, before: CustomResourceEvent
    ) -> None:
        planned = {**json.loads(before["ResourceProperties"]["Request"]), "copy_count": 3}
        before["ResourceProperties"] |= {"Request": json.dumps(planned), "CopyCount": "3"}
        run(scaled, before)
        assert scaled.course.begun[0].request.copy_count == 1

    def test_leaves_no_candidate_and_scale_in_suspended_for_the_rolling_update(
        self, scaled: World, before: CustomResourceEvent
    ) -> None:
        run(scaled, before)
        assert scaled.components.deleted == [CANDIDATE]
        held = read_held(scaled.store, "dev-chat")
        assert held is not None
        assert (held.copies, held.before, scaled.scaling.states) == (3, {}, {COMPONENT: SUSPENDED})

    def test_releases_nothing_before_it_is_live(self, scaled: World, before: CustomResourceEvent) -> None:
        run(scaled, before)
        assert scaled.store.read("released/dev-chat/result.json") is None
        assert scaled.store.read("passed/dev-chat/b/config-2/model-2.json") is not None

    def test_whose_component_is_gone_when_the_candidate_shall_be_made_fails_and_says_so(
        self, scaled: World, before: CustomResourceEvent
    ) -> None:
        assert scaled.ask(before) is None
        del scaled.components.found[COMPONENT]
        scaled.machine().execute(request_id=before["RequestId"])
        assert scaled.responses[-1]["Status"] == "FAILED"
        assert f"the component {COMPONENT} is gone" in scaled.responses[-1]["Reason"]
        assert scaled.components.created == []

    def test_that_fails_its_trial_touches_nothing_that_serves(
        self,
        scaled: World,
        before: CustomResourceEvent,
        missed: Callable[[Literal["fail", "inconclusive"]], TrialResult],
    ) -> None:
        scaled.course.result = missed("fail")
        answer = run(scaled, before)
        assert answer["Status"] == "FAILED"
        assert "; what serves was not changed (result: s3://results/trials/dev-chat/b/request-1.json)" in str(
            answer["Reason"]
        )
        assert (scaled.components.deleted, scaled.scaling.states) == ([CANDIDATE], {COMPONENT: {}})
        assert read_copies(scaled.store, "dev-chat") is None, "CloudFormation was told nothing"

    def test_that_only_reports_goes_on_after_a_failed_trial(
        self,
        scaled: World,
        before: CustomResourceEvent,
        missed: Callable[[Literal["fail", "inconclusive"]], TrialResult],
    ) -> None:
        before["ResourceProperties"]["Mode"] = "report"
        scaled.course.result = missed("fail")
        told = data(run(scaled, before))
        assert (told["CopyCount"], told["Verdict"]) == ("3", "fail")

    def test_waits_for_a_scaling_action_and_carries_what_it_ends_with(
        self, scaled: World, before: CustomResourceEvent
    ) -> None:
        scaled.components.found[COMPONENT] = component(status="Updating", current_copies=3, desired_copies=4)
        due_s = scaled.clock.now_s + 40.0

        def act() -> None:
            if scaled.clock.now_s >= due_s:
                scaled.components.found[COMPONENT] = component(current_copies=4, desired_copies=4)

        scaled.clock.acts.append(act)
        assert data(run(scaled, before))["CopyCount"] == "4"
        assert scaled.clock.now_s >= due_s

    def test_that_a_scaling_action_outlasts_is_answered_with_the_last_copies_that_were_read(
        self, scaled: World, before: CustomResourceEvent
    ) -> None:
        scaled.components.found[COMPONENT] = component(status="Updating", current_copies=3, desired_copies=4)
        more_s = scaled.clock.now_s + 1800.0

        def act() -> None:
            if scaled.clock.now_s >= more_s:
                scaled.components.found[COMPONENT] = component(status="Updating", current_copies=4, desired_copies=5)

        scaled.clock.acts.append(act)
        began_s = scaled.clock.now_s
        assert data(run(scaled, before))["CopyCount"] == "5"
        assert 3300.0 < scaled.clock.now_s - began_s < 3330.0
        told = read_copies(scaled.store, "dev-chat")
        assert told is not None
        assert (told.copies, told.previous_is_certain, told.request_id) == (5, False, "request-1")

    def test_whose_candidate_is_never_gone_is_answered_with_the_live_copies(
        self, scaled: World, before: CustomResourceEvent, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refused(name: str) -> None:
            raise UnavailableError(f"deleting component {name}: throttled")

        monkeypatch.setattr(scaled.components, "delete", refused)
        assert data(run(scaled, before))["CopyCount"] == "3"
        assert scaled.components.like_candidates() == [CANDIDATE], "the sweep removes it"

    @pytest.mark.parametrize("mode", ["rollback", "report"])
    @pytest.mark.parametrize(
        "earlier", [None, CarriedCopies(copies=1, is_new=False, previous=1, request_id="request-0")]
    )
    def test_whose_live_copies_cannot_be_read_fails_instead_of_taking_copies_away(
        self,
        scaled: World,
        before: CustomResourceEvent,
        monkeypatch: pytest.MonkeyPatch,
        mode: str,
        earlier: CarriedCopies | None,
    ) -> None:
        """What an earlier request was told is no number for this one: two copies came since."""
        if earlier is not None:
            write_copies(scaled.store, "dev-chat", earlier)
        before["ResourceProperties"]["Mode"] = mode
        describe = scaled.components.describe

        def throttled(name: str) -> object:
            if name == COMPONENT and scaled.course.concluded:
                raise UnavailableError(f"describing component {name}: throttled")
            return describe(name)

        monkeypatch.setattr(scaled.components, "describe", throttled)
        answer = run(scaled, before)
        assert (answer["Status"], scaled.components.deleted) == ("FAILED", [CANDIDATE])
        assert "dev-chat was stopped: the live copies could not be read" in str(answer["Reason"])

    def test_whose_store_does_not_take_the_copies_tries_again(
        self, scaled: World, before: CustomResourceEvent, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write, refusals = scaled.store.write, [1, 2, 3]

        def refused(key: str, text: str) -> None:
            if key.endswith("copies.json") and refusals:
                refusals.pop()
                raise UnavailableError(f"writing {key}: SlowDown")
            write(key, text)

        monkeypatch.setattr(scaled.store, "write", refused)
        assert data(run(scaled, before))["CopyCount"] == "3"

    def test_after_a_rollback_tells_the_live_copies_of_each_look_until_the_last(
        self, scaled: World, before: CustomResourceEvent
    ) -> None:
        """CloudFormation may have either of two numbers in mind: neither is told again."""
        told = CarriedCopies(copies=2, is_new=False, previous=1, is_certain=False, request_id="back")
        write_copies(scaled.store, "dev-chat", told)
        live = component(specification=SPECIFICATION, status="Updating", current_copies=3, desired_copies=3)
        scaled.components.found[COMPONENT] = live
        due_s = scaled.clock.now_s + 60.0

        def act() -> None:
            if scaled.clock.now_s >= due_s:
                scaled.components.found[COMPONENT] = replace(
                    live, status="InService", current_copies=4, desired_copies=4
                )

        scaled.clock.acts.append(act)
        before["OldResourceProperties"] = {**before["ResourceProperties"], "PlanDigest": "a"}
        assert data(run(scaled, before))["CopyCount"] == "4"
        kept = read_copies(scaled.store, "dev-chat")
        assert kept is not None
        assert (kept.previous, kept.is_certain) == (2, True)

    @pytest.mark.parametrize("verdict", ["pass", "fail"])
    def test_whose_candidate_cannot_be_deleted_yet_waits_and_tries_again(
        self,
        scaled: World,
        before: CustomResourceEvent,
        missed: Callable[[Literal["fail", "inconclusive"]], TrialResult],
        monkeypatch: pytest.MonkeyPatch,
        verdict: str,
    ) -> None:
        if verdict == "fail":
            scaled.course.result = missed("fail")
        delete, refusals = scaled.components.delete, [1, 2, 3]

        def refused(name: str) -> None:
            if refusals:
                refusals.pop()
                raise UnavailableError("Cannot delete: UPDATE_RC_IN_PROGRESS")
            delete(name)

        monkeypatch.setattr(scaled.components, "delete", refused)
        run(scaled, before)
        assert scaled.components.like_candidates() == []

    def test_of_nothing_but_the_slo_tells_the_same_copies_again(
        self, scaled: World, before: CustomResourceEvent
    ) -> None:
        """The same number leaves the component alone, however many copies it has by now."""
        run(scaled, before)
        scaled.components.found[COMPONENT] = component(specification=SPECIFICATION, current_copies=5, desired_copies=5)
        slo = {**before["ResourceProperties"], "PlanDigest": "c"}
        follows: CustomResourceEvent = {
            **before,
            "RequestId": "request-2",
            "ResourceProperties": slo,
            "OldResourceProperties": before["ResourceProperties"],
        }
        scaled.clock.wait(600.0)
        told = data(run(scaled, follows))
        assert (told["CopyCount"], told["Verdict"]) == ("3", "pass")

    @pytest.mark.parametrize("manner", ["in_place", "verify_only"])
    def test_without_a_candidate_still_carries_the_live_copies(
        self, scaled: World, before: CustomResourceEvent, manner: str
    ) -> None:
        before["ResourceProperties"]["Update"] = manner
        told = data(run(scaled, before))
        assert (told["CopyCount"], told["Verdict"]) == ("3", "not tried")
        assert (scaled.components.created, scaled.course.begun) == ([], [])
        assert scaled.scaling.states == {COMPONENT: SUSPENDED}

    def test_of_a_configuration_that_has_passed_is_not_tried_twice(
        self, scaled: World, before: CustomResourceEvent, passed: TrialResult
    ) -> None:
        scaled.store.write("passed/dev-chat/b/config-2/model-2.json", passed.to_json())
        assert data(run(scaled, before))["CopyCount"] == "3"
        assert scaled.components.created == []

    def test_of_the_rolling_policy_or_of_tags_alone_carries_the_live_copies_without_a_trial(
        self, scaled: World, before: CustomResourceEvent, update: CustomResourceEvent
    ) -> None:
        """CloudFormation sends the copy count with every update of the component."""
        before["OldResourceProperties"] = {**before["ResourceProperties"], "Component": "policy-0"}
        scaled.components.found[COMPONENT] = component(specification=SPECIFICATION, current_copies=3, desired_copies=3)
        told = data(run(scaled, before))
        assert (told["CopyCount"], told["Verdict"], scaled.components.created) == ("3", "not tried", [])
        assert scaled.scaling.states == {COMPONENT: SUSPENDED}
        after: CustomResourceEvent = {**update, "RequestId": "after"}
        for name in ("ResourceProperties", "OldResourceProperties"):
            after[name] = {**before[name], "Phase": "deployed"}
        scaled.clock.wait(60.0)
        data(scaled.ask(after))
        assert scaled.scaling.states == {COMPONENT: {}}

    def test_of_the_rolling_policy_alone_carries_the_live_copies_though_others_were_told_last(
        self, scaled: World, before: CustomResourceEvent
    ) -> None:
        write_copies(scaled.store, "dev-chat", CarriedCopies(copies=2, is_new=False, previous=2))
        before["OldResourceProperties"] = {**before["ResourceProperties"], "Component": "policy-0"}
        scaled.components.found[COMPONENT] = component(specification=SPECIFICATION, current_copies=3, desired_copies=3)
        assert data(run(scaled, before))["CopyCount"] == "3"

    def test_that_deploys_nothing_else_is_answered_at_once(self, scaled: World, before: CustomResourceEvent) -> None:
        write_copies(scaled.store, "dev-chat", CarriedCopies(copies=2, is_new=False, previous=2))
        before["OldResourceProperties"] = before["ResourceProperties"]
        assert data(scaled.ask(before))["CopyCount"] == "2"
        assert scaled.workflow.started == []

    def test_of_which_nothing_is_known_carries_the_live_copies(
        self, scaled: World, before: CustomResourceEvent
    ) -> None:
        """CloudFormation has a number in mind that nobody knows: whatever it is, no copy is taken away."""
        scaled.components.found[COMPONENT] = component(specification=SPECIFICATION, current_copies=6, desired_copies=6)
        before["OldResourceProperties"] = {**before["ResourceProperties"], "Mode": "report"}
        told = data(run(scaled, before))
        assert (told["CopyCount"], told["Verdict"], scaled.components.created) == ("6", "not tried", [])
        assert scaled.scaling.states == {COMPONENT: SUSPENDED}, "until the update is over"

    def test_is_told_what_an_older_release_kept(self, scaled: World, before: CustomResourceEvent) -> None:
        write_copies(scaled.store, "dev-chat", CarriedCopies(copies=6, is_new=False, previous=6))
        scaled.store.texts["runs/dev-chat/copies.json"] = scaled.store.texts.pop("state/dev-chat/copies.json")
        before["OldResourceProperties"] = {**before["ResourceProperties"], "Mode": "report"}
        assert data(scaled.ask(before))["CopyCount"] == "6"
        assert "state/dev-chat/copies.json" in scaled.store.texts


class TestTheStartOfACopy:
    @pytest.mark.parametrize(("instances", "added"), [(4, 0), (3, 1)], ids=["free", "new instance"])
    def test_of_a_candidate_is_measured_until_it_is_seen_in_service(
        self, scaled: World, before: CustomResourceEvent, instances: int, added: int
    ) -> None:
        scaled.components.born = {"status": "Creating", "current_copies": 0}
        scaled.components.instances = VariantCapacity(instances, 4)
        began_s = scaled.clock.now_s

        def act() -> None:
            if scaled.clock.now_s == began_s + 400.0:
                scaled.components.instances = VariantCapacity(4, 4)
                scaled.components.found[CANDIDATE] = component(CANDIDATE, specification=SPECIFICATION)

        scaled.clock.acts.append(act)
        scaled.course.result = replace(scaled.course.result, engine_note="simulated")
        run(scaled, before)
        start = TrialResult.from_json(scaled.store.texts["trials/dev-chat/b/request-1.json"]).start
        assert start is not None
        assert 400.0 <= start.seconds <= 415.0
        assert (start.instances_added, start.simulated) == (added, True)
        assert "start of the copy: simulated, 4" in scaled.store.texts["trials/dev-chat/b/request-1.md"]

    @pytest.mark.parametrize(
        ("before_s", "took_s", "kind", "known"),
        [
            (30, 420, "Create", True),
            (30, 420, "Update", False),
            (9e4, 420, "Create", False),
            (30, 9e4, "Create", False),
        ],
    )
    def test_of_a_first_component_is_told_by_times_that_are_those_of_a_start(
        self, world: World, create: CustomResourceEvent, before_s: float, took_s: float, kind: str, *, known: bool
    ) -> None:
        changed = datetime.fromtimestamp(world.clock.now_s - before_s, UTC)
        created = changed - timedelta(seconds=took_s)
        world.components.found[COMPONENT] = component(created=created, changed=changed)
        order = Order({**create, "RequestType": kind}, world.clock.now_s)  # type: ignore[typeddict-item] # of three texts
        keep_first_start(order, world.context)
        start = read_start(order, world.context)
        assert (start and start.seconds) == (took_s if known else None)


class TestAnOldSdk:
    @pytest.mark.parametrize("mode", ["rollback", "report"])
    def test_that_cannot_send_the_specification_fails_the_update_at_once_with_its_remedy(
        self, scaled: World, before: CustomResourceEvent, mode: str
    ) -> None:
        before["ResourceProperties"] |= {"Mode": mode, "Specification": json.dumps({**SPECIFICATION, "NewMember": {}})}
        scaled.components.unknown = ("NewMember",)
        answer = scaled.ask(before)
        assert answer is not None
        assert answer["Status"] == "FAILED"
        assert "boto3 of the trial function does not know Specification.NewMember" in str(answer["Reason"])
        assert "deploy the trial service of this release (seatrial-dev-trials)" in str(answer["Reason"])
        assert scaled.workflow.started == []

    def test_does_not_matter_where_no_candidate_is_made(self, scaled: World, before: CustomResourceEvent) -> None:
        before["ResourceProperties"]["Update"] = "in_place"
        scaled.components.unknown = ("ModelName",)
        assert data(run(scaled, before))["CopyCount"] == "3"

    def test_does_not_hold_a_rollback(self, scaled: World, before: CustomResourceEvent) -> None:
        scaled.components.unknown = ("ModelName",)
        scaled.status = "UPDATE_ROLLBACK_IN_PROGRESS"
        data(scaled.ask(before))


class TestAWorkflowThatCannotBeStarted:
    def test_takes_no_copies_away_where_the_trial_only_reports(
        self, scaled: World, before: CustomResourceEvent, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refused(*_: object) -> None:
            raise UnavailableError("starting the trial's workflow: throttled")

        monkeypatch.setattr(scaled.workflow, "start", refused)
        before["ResourceProperties"]["Mode"] = "report"
        answer = scaled.ask(before)
        assert answer is not None
        assert answer["Status"] == "FAILED"


class TestWithoutRoom:
    @pytest.mark.parametrize(
        "reason",
        [
            "InsufficientInstanceCapacity: 1 copies of x need 3 instances",
            "CapacityError: Unable to provision requested ML compute capacity. Please retry using a different type.",
            "There is not enough hardware resources on the instances of the endpoint",
        ],
    )
    def test_the_update_goes_on_and_is_tried_in_place(
        self, scaled: World, before: CustomResourceEvent, update: CustomResourceEvent, reason: str
    ) -> None:
        scaled.components.born = {"status": "Failed", "current_copies": 0, "failure_reason": reason}
        told = data(run(scaled, before))
        assert (told["CopyCount"], told["Verdict"]) == ("3", "not tried")
        assert scaled.components.like_candidates() == []
        after: CustomResourceEvent = {**update, "RequestId": "after"}
        after["ResourceProperties"] = {**update["ResourceProperties"], "Phase": "deployed"}
        scaled.clock.wait(60.0)
        assert scaled.ask(after) is None
        assert scaled.document("runs/dev-chat/after/request.json")["manner"] == "in_place"

    @pytest.mark.parametrize(
        ("refusal", "status", "reason"),
        [
            ("ValidationException: Endpoint is Updating", "SUCCESS", ""),
            ("ResourceLimitExceeded: endpoint usage of ml.g5.2xlarge", "SUCCESS", ""),
            ("AccessDeniedException: not authorized", "FAILED", "AccessDeniedException: not authorized"),
        ],
    )
    def test_a_refused_creation_is_asked_for_again_or_told(
        self,
        scaled: World,
        before: CustomResourceEvent,
        monkeypatch: pytest.MonkeyPatch,
        refusal: str,
        status: str,
        reason: str,
    ) -> None:
        create, until_s = scaled.components.create, scaled.clock.now_s + 60.0

        def refused(*told: object) -> None:
            if scaled.clock.now_s < until_s or not refusal.startswith("Validation"):
                raise UnavailableError(refusal)
            create(*told)  # type: ignore[arg-type] # what it was called with

        monkeypatch.setattr(scaled.components, "create", refused)
        answer = run(scaled, before)
        assert (answer["Status"], reason in str(answer.get("Reason", ""))) == (status, True)
        assert (scaled.store.read("state/dev-chat/no-room.json") is not None) is refusal.startswith("Resource")

    def test_a_component_without_copies_is_updated_with_one(self, scaled: World, before: CustomResourceEvent) -> None:
        scaled.components.found[COMPONENT] = component(current_copies=0, desired_copies=0)
        assert data(run(scaled, before))["CopyCount"] == "1"

    def test_a_candidate_without_a_copy_is_not_loaded(self, scaled: World, before: CustomResourceEvent) -> None:
        before["ResourceProperties"] |= {"StartSeconds": "30", "InstanceSeconds": "0"}
        scaled.components.born = {"status": "InService", "current_copies": 0}
        data(run(scaled, before))
        assert scaled.course.begun == []
        assert scaled.store.read("state/dev-chat/no-room.json") is not None

    @pytest.mark.parametrize("status", ROLLBACKS)
    def test_whose_trial_goes_back_lets_scaling_go_on(
        self, scaled: World, before: CustomResourceEvent, status: str
    ) -> None:
        run(scaled, before)
        assert scaled.scaling.states == {COMPONENT: SUSPENDED}
        scaled.status = status
        properties = {**before["ResourceProperties"], "Phase": "endpoint"}
        old = {**properties, "PlanDigest": "other"}
        scaled.ask({**before, "RequestId": "request-2", "ResourceProperties": properties, "OldResourceProperties": old})
        assert scaled.scaling.states == {COMPONENT: {}}
        assert read_held(scaled.store, "dev-chat") is None

    def test_a_candidate_that_fails_to_start_fails_the_update(self, scaled: World, before: CustomResourceEvent) -> None:
        scaled.components.born = {"status": "Failed", "failure_reason": "The container ended with status 1"}
        answer = run(scaled, before)
        assert answer["Status"] == "FAILED"
        assert f"the candidate component {CANDIDATE} failed: The container ended with status 1" in str(answer["Reason"])
        assert (scaled.components.like_candidates(), scaled.scaling.states) == ([], {COMPONENT: {}})

    def test_a_candidate_that_never_serves_is_given_up_after_its_time(
        self, scaled: World, before: CustomResourceEvent
    ) -> None:
        """An instance came for it, so that it is not for lack of room. Nobody can delete it: the sweep does, later."""
        before["ResourceProperties"] |= {"StartSeconds": "30", "InstanceSeconds": "0"}
        scaled.components.born = {"status": "Creating"}
        scaled.components.instances = VariantCapacity(3, 4)
        began_s = scaled.clock.now_s

        def act() -> None:
            scaled.components.instances = VariantCapacity(4, 4)

        scaled.clock.acts.append(act)
        answer = run(scaled, before)
        assert "was not in service after 38 s" in str(answer["Reason"])
        assert scaled.clock.now_s - began_s < 60.0, "answered at once"
        assert (scaled.components.like_candidates(), scaled.scaling.states) == ([CANDIDATE], {COMPONENT: {}})
        scaled.components.found[CANDIDATE] = replace(scaled.components.found[CANDIDATE], status="Failed")
        dispatch({"Sweep": True}, scaled.context)
        assert scaled.components.like_candidates() == []

    @pytest.mark.parametrize(("instances", "longest_s"), [(4, 1200.0), (3, 2100.0)], ids=["free", "a new instance"])
    def test_a_candidate_has_time_for_its_instance_unless_accelerators_are_free(
        self, scaled: World, before: CustomResourceEvent, instances: int, longest_s: float
    ) -> None:
        scaled.components.born = {"status": "Creating"}
        scaled.components.instances = VariantCapacity(instances, 4)
        began_s = scaled.clock.now_s
        run(scaled, before)
        assert longest_s < scaled.clock.now_s - began_s < longest_s + 30.0

    def test_a_candidate_starts_within_the_hour_that_the_trial_needs_too(
        self, scaled: World, before: CustomResourceEvent
    ) -> None:
        before["ResourceProperties"] |= {"StartSeconds": "3600", "BudgetSeconds": "1800"}
        scaled.components.born = {"status": "Creating"}
        scaled.components.instances = VariantCapacity(3, 4)
        began_s = scaled.clock.now_s
        run(scaled, before)
        assert 1500.0 < scaled.clock.now_s - began_s < 1530.0

    def test_one_for_which_no_instance_comes_has_no_room_whatever_aws_says(
        self, scaled: World, before: CustomResourceEvent, update: CustomResourceEvent
    ) -> None:
        scaled.components.born = {"status": "Creating"}
        scaled.components.instances = VariantCapacity(3, 4)
        told = data(run(scaled, before))
        assert (told["CopyCount"], told["Verdict"]) == ("3", "not tried")
        assert scaled.components.like_candidates() == [CANDIDATE], "the sweep removes it once AWS lets it"
        after: CustomResourceEvent = {**update, "RequestId": "after"}
        after["ResourceProperties"] = {**update["ResourceProperties"], "Phase": "deployed"}
        scaled.clock.wait(60.0)
        assert scaled.ask(after) is None
        assert scaled.document("runs/dev-chat/after/request.json")["manner"] == "in_place"

    def test_one_that_surely_has_no_room_is_not_created(self, scaled: World, before: CustomResourceEvent) -> None:
        scaled.components.instances = VariantCapacity(3, 3)
        began_s = scaled.clock.now_s
        told = data(run(scaled, before))
        assert (told["CopyCount"], told["Verdict"], scaled.components.created) == ("3", "not tried", [])
        assert scaled.clock.now_s - began_s < 10.0

    def test_one_that_is_stuck_does_not_hold_a_rollback(self, scaled: World, before: CustomResourceEvent) -> None:
        scaled.components.born = {"status": "Creating"}
        assert scaled.ask(before) is None
        scaled.components.create(CANDIDATE, scaled.components.found[COMPONENT], SPECIFICATION, {})
        scaled.store.write("trials/dev-chat/b/request-1.json", json.dumps({"error": "cancelled"}))
        scaled.clock.wait(60.0)
        scaled.status = "UPDATE_ROLLBACK_IN_PROGRESS"
        began_s = scaled.clock.now_s
        data(scaled.ask(_back(before)))
        assert scaled.clock.now_s - began_s < 10.0

    def test_a_deletion_waits_for_one_that_is_stuck_as_long_as_a_function_may_run(
        self, scaled: World, create: CustomResourceEvent
    ) -> None:
        """With a component on it no endpoint can be deleted."""
        scaled.components.found[CANDIDATE] = component(CANDIDATE, status="Creating")
        deletion: CustomResourceEvent = {**create, "RequestType": "Delete", "RequestId": "delete"}
        began_s, ends_s = scaled.clock.now_s, scaled.clock.now_s + 300.0

        def act() -> None:
            if scaled.clock.now_s >= ends_s and CANDIDATE in scaled.components.found:
                scaled.components.found[CANDIDATE] = component(CANDIDATE, status="Failed")

        scaled.clock.acts.append(act)
        assert scaled.ask(deletion) is not None
        assert (scaled.components.like_candidates(), scaled.clock.now_s - began_s < 310.0) == ([], True)

    def test_the_wait_for_its_tags_is_not_of_the_trials_budget(
        self, scaled: World, before: CustomResourceEvent
    ) -> None:
        """IAM denies requests to it until it sees them: a good configuration must not fail for that."""
        scaled.components.unseen = {CANDIDATE}
        assert scaled.ask(before) is None
        seen_s = scaled.clock.now_s + 120.0

        def act() -> None:
            if scaled.clock.now_s >= seen_s:
                scaled.components.unseen.clear()

        scaled.clock.acts.append(act)
        scaled.machine().execute()
        assert scaled.clock.now_s >= seen_s
        assert scaled.course.begun[0].request.load.budget_s == 600.0
        assert scaled.components.like_candidates() == []

    def test_tags_that_never_come_end_as_a_denied_request_does(
        self, scaled: World, before: CustomResourceEvent
    ) -> None:
        scaled.components.unseen = {CANDIDATE}
        assert scaled.ask(before) is None
        began_s, at_s = scaled.clock.now_s, list[float]()
        scaled.course.beginning = lambda _: at_s.append(scaled.clock.now_s)
        scaled.machine().execute()
        assert 300.0 <= at_s[0] - began_s < 330.0
        assert scaled.components.deleted == [], "its tags are unseen: the sweep deletes it"

    def test_its_start_is_not_of_the_trials_budget(self, scaled: World, before: CustomResourceEvent) -> None:
        scaled.components.born = {"status": "Creating"}
        assert scaled.ask(before) is None
        born_s = scaled.clock.now_s

        def act() -> None:
            found = scaled.components.found.get(CANDIDATE)
            if found is not None and found.status == "Creating" and scaled.clock.now_s > born_s + 100.0:
                scaled.components.found[CANDIDATE] = replace(found, status="InService")

        scaled.clock.acts.append(act)
        scaled.machine().execute()
        assert scaled.course.begun[0].request.load.budget_s == 600.0


class TestWhereNothingServesYet:
    def test_a_creation_tells_the_planned_copies(self, world: World, create: CustomResourceEvent) -> None:
        world.components.found = {}
        create["ResourceProperties"] |= {"Phase": "candidate", "CopyCount": "2"}
        response = world.ask(create)
        assert data(response)["CopyCount"] == "2"
        assert response is not None
        assert response["PhysicalResourceId"] == "candidate-trial-dev-chat"
        assert world.workflow.started == []

    def test_the_component_itself_is_loaded_then(self, world: World, create: CustomResourceEvent) -> None:
        world.components.found = {}
        first: CustomResourceEvent = {**create, "RequestId": "first"}
        first["ResourceProperties"] = {**create["ResourceProperties"], "Phase": "candidate"}
        world.ask(first)
        world.components.found[COMPONENT] = component(specification=SPECIFICATION)
        assert world.ask(create) is None
        assert world.document("runs/dev-chat/request-1/request.json")["manner"] == "load"

    def test_a_trial_that_is_added_to_a_serving_endpoint_loads_no_user(
        self, scaled: World, create: CustomResourceEvent
    ) -> None:
        first: CustomResourceEvent = {**create, "RequestId": "first"}
        first["ResourceProperties"] = {**create["ResourceProperties"], "Phase": "candidate"}
        assert data(run(scaled, first))["CopyCount"] == "3"
        scaled.clock.wait(60.0)
        assert scaled.ask(create) is None
        assert scaled.document("runs/dev-chat/request-1/request.json")["manner"] == "verify"

    def test_another_endpoint_gets_no_fewer_copies_than_its_users_have(
        self, scaled: World, before: CustomResourceEvent
    ) -> None:
        renamed = {"EndpointName": "dev-chat-2", "InferenceComponentName": "dev-chat-2-model"}
        before["ResourceProperties"] |= renamed
        before["OldResourceProperties"] |= {"EndpointName": "dev-chat", "InferenceComponentName": COMPONENT}
        response = scaled.ask(before)
        assert data(response)["CopyCount"] == "3"
        assert response is not None
        assert response["PhysicalResourceId"] == "candidate-trial-dev-chat-2"

    @pytest.mark.parametrize(("most", "copies"), [("8", "3"), ("2", "2")])
    def test_a_later_generation_gets_no_fewer_copies_than_the_one_that_serves_as_far_as_there_is_room(
        self, scaled: World, create: CustomResourceEvent, most: str, copies: str
    ) -> None:
        create["ResourceProperties"] |= {
            "Phase": "candidate",
            "EndpointName": "dev-chat-3",
            "InferenceComponentName": "dev-chat-3-model",
            "Replaces": f"dev-chat-2-model,{COMPONENT}",
            "MostCopies": most,
        }
        assert data(scaled.ask(create))["CopyCount"] == copies


class WorkflowDiedError(BaseException):
    """No step follows, and nothing catches it."""


class TestARollback:
    @pytest.mark.parametrize("status", ROLLBACKS)
    def test_of_a_cancelled_trial_removes_the_candidate_and_restores_scaling(
        self, scaled: World, before: CustomResourceEvent, status: str
    ) -> None:
        assert scaled.ask(before) is None

        def cancel(state: str) -> None:
            if state == "Share":
                back = _back(before)
                scaled.clock.wait(5.0)
                scaled.status = status
                data(scaled.ask(back))

        machine = scaled.machine(cancel_once(cancel))
        machine.execute()
        assert (scaled.components.like_candidates(), scaled.scaling.states) == ([], {COMPONENT: {}})
        assert scaled.components.found[COMPONENT].copies == 3

    def test_removes_the_candidate_and_restores_scaling_though_the_workflow_is_dead(
        self, scaled: World, before: CustomResourceEvent
    ) -> None:
        assert scaled.ask(before) is None

        def die(state: str) -> None:
            if state == "Share":
                raise WorkflowDiedError

        with pytest.raises(WorkflowDiedError):
            scaled.machine(die).execute()
        assert (len(scaled.components.like_candidates()), scaled.scaling.states) == (1, {COMPONENT: SUSPENDED})
        scaled.clock.wait(5.0)
        scaled.status = "UPDATE_ROLLBACK_IN_PROGRESS"
        data(scaled.ask(_back(before)))
        assert (scaled.components.like_candidates(), scaled.scaling.states) == ([], {COMPONENT: {}})

    def test_of_a_component_that_moved_carries_the_live_copies_back(
        self, scaled: World, before: CustomResourceEvent
    ) -> None:
        run(scaled, before)
        scaled.components.found[COMPONENT] = component(specification=SPECIFICATION, current_copies=4, desired_copies=4)
        scaled.clock.wait(60.0)
        scaled.status = "UPDATE_ROLLBACK_IN_PROGRESS"
        assert data(scaled.ask(_back(before)))["CopyCount"] == "4"
        assert scaled.scaling.states == {COMPONENT: SUSPENDED}, "until the component has moved back"

    def test_leaves_open_which_number_cloudformation_has_in_mind_and_the_next_update_carries_the_live_one(
        self, scaled: World, before: CustomResourceEvent
    ) -> None:
        run(scaled, before)
        scaled.clock.wait(60.0)
        scaled.status = "UPDATE_ROLLBACK_IN_PROGRESS"
        data(scaled.ask(_back(before)))
        scaled.components.found[COMPONENT] = component(current_copies=5, desired_copies=5)
        scaled.clock.wait(60.0)
        scaled.status = "UPDATE_IN_PROGRESS"
        slo = {**before["OldResourceProperties"], "PlanDigest": "c"}
        again: CustomResourceEvent = {
            **before,
            "RequestId": "again",
            "ResourceProperties": slo,
            "OldResourceProperties": before["OldResourceProperties"],
        }
        assert data(run(scaled, again))["CopyCount"] == "5"

    def test_goes_on_though_nothing_can_be_described(
        self, scaled: World, before: CustomResourceEvent, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def throttled(name: str) -> None:
            raise UnavailableError(f"describing component {name}: throttled")

        run(scaled, before)
        scaled.clock.wait(60.0)
        monkeypatch.setattr(scaled.components, "describe", throttled)
        scaled.status = "UPDATE_ROLLBACK_IN_PROGRESS"
        assert data(scaled.ask(_back(before)))["CopyCount"] == "3"
        scaled.status = "UPDATE_IN_PROGRESS"
        scaled.clock.wait(60.0)
        answer = scaled.ask({**before, "RequestId": "again"})
        assert answer is not None
        assert answer["Status"] == "FAILED"

    def test_without_a_status_nothing_moves_or_the_update_fails(
        self, scaled: World, before: CustomResourceEvent
    ) -> None:
        scaled.status = UNREADABLE
        answer = scaled.ask(before)
        assert answer is not None
        assert answer["Status"] == "FAILED"
        scaled.clock.wait(60.0)
        data(scaled.ask(_back(before)))


class TestTheSweep:
    def test_leaves_what_a_running_trial_uses(self, scaled: World, before: CustomResourceEvent) -> None:
        assert scaled.ask(before) is None
        seen: list[list[str]] = []

        def act(_: object) -> None:
            dispatch({"Sweep": True}, scaled.context)
            seen.append(scaled.components.like_candidates())

        scaled.load.acting = act
        scaled.machine().execute()
        assert seen == [[CANDIDATE]]

    def test_removes_and_restores_what_dead_functions_left(self, scaled: World, before: CustomResourceEvent) -> None:
        assert scaled.ask(before) is None
        scaled.load.acting = _die
        with pytest.raises(SystemExit):
            scaled.machine().execute()
        assert scaled.components.like_candidates() == [CANDIDATE]
        scaled.clock.wait(4000.0)
        scaled.status = "UPDATE_ROLLBACK_COMPLETE"
        dispatch({"Sweep": True}, scaled.context)
        assert (scaled.components.like_candidates(), scaled.scaling.states) == ([], {COMPONENT: {}})
        dispatch({"Sweep": True}, scaled.context)
        assert read_held(scaled.store, "dev-chat") is None

    def test_answers_for_an_execution_of_which_every_function_died(
        self, scaled: World, before: CustomResourceEvent
    ) -> None:
        assert scaled.ask(before) is None
        scaled.load.acting = _die
        with pytest.raises(SystemExit):
            scaled.machine().execute()
        told = json.dumps({"EndpointName": "dev-chat", "RequestId": "request-1"})
        scaled.workflow.died = [{"status": "FAILED", "input": told, "cause": "Worker process died"}]
        scaled.clock.wait(60.0)
        dispatch({"Sweep": True}, scaled.context)
        (answer,) = scaled.responses
        assert "its workflow ended with FAILED: Worker process died" in str(answer["Reason"])
        assert (scaled.components.like_candidates(), scaled.scaling.states) == ([], {COMPONENT: {}})
        dispatch({"Sweep": True}, scaled.context)
        assert len(scaled.responses) == 1

    def test_restores_nothing_while_the_stack_is_updated(self, scaled: World, before: CustomResourceEvent) -> None:
        run(scaled, before)
        dispatch({"Sweep": True}, scaled.context)
        assert scaled.scaling.states == {COMPONENT: SUSPENDED}
        scaled.status = "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS"
        dispatch({"Sweep": True}, scaled.context)
        assert scaled.scaling.states == {COMPONENT: {}}

    @pytest.mark.parametrize(
        ("status", "given_back"), [("InService", [4]), ("Updating", [])], ids=["scaled out", "being replaced"]
    )
    def test_gives_back_the_copies_that_scaling_started_while_the_endpoint_was_updated(
        self, scaled: World, before: CustomResourceEvent, status: str, given_back: list[int]
    ) -> None:
        """Between the answer of `Candidate` and the component's update lies that of the endpoint, of hours."""
        carried = int(data(run(scaled, before))["CopyCount"])
        scaled.components.found[COMPONENT] = component(status=status, current_copies=4, desired_copies=4)
        dispatch({"Sweep": True}, scaled.context)
        # CloudFormation then writes the number of the answer.
        scaled.components.found[COMPONENT] = component(current_copies=carried, desired_copies=carried)
        dispatch({"Sweep": True}, scaled.context)
        scaled.status = "UPDATE_COMPLETE"
        dispatch({"Sweep": True}, scaled.context)
        live = scaled.components.found[COMPONENT]
        assert [live.desired_copies] == (given_back or [carried])

    def test_removes_what_nobody_ordered_of_this_environment_alone(self, world: World) -> None:
        ours, of_another = candidate_name("dev-chat", "1"), candidate_name("dev-chat", "2")
        world.components.found |= {name: component(name) for name in (ours, of_another)}
        world.components.tagged[ours] = candidate_tags("dev", "dev-chat", "1")
        world.components.tagged[of_another] = candidate_tags("prod", "dev-chat", "2")
        dispatch({"Sweep": True}, world.context)
        assert world.components.like_candidates() == [of_another]

    @pytest.mark.parametrize(
        ("name", "endpoint", "tags"),
        [
            ("dev-hr-candidate-ranker-model", "dev-hr-candidate-ranker", OF_A_STACK),
            ("dev-chat-adapter-candidate-0a1b2c3d", "dev-chat", OF_A_STACK),
            ("dev-chat-candidate-0a1b2c3d", "dev-chat-candidate-0a1b2c3d", OF_A_STACK),
            (CANDIDATE, "dev-chat", {**OF_A_STACK, "seatrial:owner": "somebody"}),
            (CANDIDATE, "dev-chat", candidate_tags("dev", "dev-chat", "request-2")),
            (CANDIDATE, "dev-chat", candidate_tags("dev", "dev-chatter", "request-1")),
            (CANDIDATE, "dev-chat", {key: value for key, value in TAGS.items() if key != "seatrial:owner"}),
        ],
    )
    def test_deletes_no_live_component_for_its_name(
        self, world: World, name: str, endpoint: str, tags: dict[str, str]
    ) -> None:
        world.components.found = {name: component(name, endpoint_name=endpoint)}
        world.components.tagged[name], world.components.in_stack = tags, {name}
        dispatch({"Sweep": True}, world.context)
        assert world.components.deleted == []

    def test_deletes_what_an_older_release_left_unless_a_stack_has_it(self, world: World) -> None:
        endpoint = "dev-customer-support-assistant-of-the-whole-company"
        left, kept = f"{endpoint[:44]}-candidate-0a1b2c3d", f"{endpoint[:44]}-candidate-0a1b2c3e"
        world.components.found = {name: component(name, endpoint_name=endpoint) for name in (left, kept)}
        world.components.in_stack = {kept}
        dispatch({"Sweep": True}, world.context)
        assert world.components.deleted == [left]

    def test_waits_for_the_tags_of_what_is_young(self, world: World) -> None:
        world.components.found = {CANDIDATE: component(CANDIDATE)}
        world.components.tagged[CANDIDATE], world.components.unseen = TAGS, {CANDIDATE}
        dispatch({"Sweep": True}, world.context)
        assert world.components.deleted == []
        world.components.unseen = set()
        dispatch({"Sweep": True}, world.context)
        assert world.components.deleted == [CANDIDATE]


def test_a_deletion_waits_for_the_tags_of_a_candidate(scaled: World, create: CustomResourceEvent) -> None:
    scaled.components.found[CANDIDATE] = component(CANDIDATE)
    scaled.components.tagged[CANDIDATE], scaled.components.unseen = TAGS, {CANDIDATE}
    seen_s = scaled.clock.now_s + 30.0

    def act() -> None:
        if scaled.clock.now_s >= seen_s:
            scaled.components.unseen.clear()

    scaled.clock.acts.append(act)
    assert scaled.ask({**create, "RequestType": "Delete", "RequestId": "delete"}) is not None
    assert (scaled.components.deleted, scaled.clock.now_s >= seen_s) == ([CANDIDATE], True)


def test_a_deletion_leaves_what_is_named_like_a_candidate_and_its_logs(
    scaled: World, create: CustomResourceEvent
) -> None:
    """A stack has it: no trial made it."""
    scaled.components.found[CANDIDATE] = component(CANDIDATE)
    scaled.components.in_stack = {CANDIDATE}
    assert scaled.ask({**create, "RequestType": "Delete", "RequestId": "delete"}) is not None
    assert scaled.components.deleted == []
    assert scaled.logs.limited == set()


def test_a_deletion_leaves_the_candidates_of_other_endpoints(scaled: World, create: CustomResourceEvent) -> None:
    other = candidate_name("dev-chat-candidate-ranker", "1")
    scaled.components.found[other] = component(other, endpoint_name="dev-chat-candidate-ranker")
    scaled.components.tagged[other] = candidate_tags("dev", "dev-chat-candidate-ranker", "1")
    scaled.ask({**create, "RequestType": "Delete", "RequestId": "delete"})
    assert scaled.components.deleted == []


def _die(_: object) -> None:
    raise SystemExit


def _back(before: CustomResourceEvent) -> CustomResourceEvent:
    return {
        **before,
        "RequestId": "back",
        "ResourceProperties": before["OldResourceProperties"],
        "OldResourceProperties": before["ResourceProperties"],
    }


def cancel_once(act: Callable[[str], None]) -> Callable[[str], None]:
    """Return what acts at the first share only."""
    done: list[str] = []

    def once(state: str) -> None:
        if state == "Share" and not done:
            done.append(state)
            act(state)

    return once
