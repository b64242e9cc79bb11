"""What an update means, family by family; the whole texts are in golden files, UPDATE_GOLDEN=1 writes them anew."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from markdown_it import MarkdownIt

from seatrial.documents.live import ROLLBACK_ALARM, ROLLBACK_ALARMS_OFF, RaisedAlarm
from seatrial.operations.consequences import Consequences, consequences
from seatrial.operations.effect import TITLES, PlannedSize
from seatrial.operations.review.writers import consequences_document, consequences_markdown, consequences_text
from seatrial.operations.template_diff import diff_templates
from seatrial_lint.cloudformation.template import EMPTY
from tests.operations.sample_stack import IMAGE, SIZE, Document, changed, properties, same
from tests.sample_plan import sample_plan

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial_lint.cloudformation.template import Template

GOLDEN = Path(__file__).parent / "golden"
REQUEST = json.dumps({"objectives": [{"metric": "ttft_ms", "bound": 1500.0}]})
NEW_IMAGE = IMAGE.replace("lmi27.0.0", "lmi28.0.0")


def another_image(one: Document) -> None:
    properties(one, "Model")["PrimaryContainer"]["Image"] = NEW_IMAGE


def another_variable(one: Document) -> None:
    properties(one, "Model")["PrimaryContainer"]["Environment"]["MAX_BATCH"] = "64"


def another_slo(one: Document) -> None:
    for name in ("Candidate", "Trial"):
        properties(one, name).update(Request=REQUEST, PlanDigest="159ecdd7")
    properties(one, "Errors")["Threshold"] = 3


def more_scaling(one: Document) -> None:
    properties(one, "Scaling")["MaxCapacity"] = 6
    properties(one, "Policy")["TargetTrackingScalingPolicyConfiguration"]["ScaleInCooldown"] = 600


def another_instance_type(one: Document) -> None:
    properties(one, "Config")["ProductionVariants"][0]["InstanceType"] = "ml.g6.2xlarge"


def another_size_beside(one: Document) -> None:
    """As a plan makes it: what serves has other logical IDs, so that the old one stays until the new one is tried."""
    another_instance_type(one)
    resources = one["Resources"]
    for name in ("Config", "Endpoint", "Component"):
        resources[f"{name}2"] = resources.pop(name)
    properties(one, "Endpoint2").update(
        EndpointName="dev-chat-2", EndpointConfigName={"Fn::GetAtt": ["Config2", "EndpointConfigName"]}
    )
    properties(one, "Component2").update(
        EndpointName={"Fn::GetAtt": ["Endpoint2", "EndpointName"]}, InferenceComponentName="dev-chat-2-model"
    )
    properties(one, "Alias")["Value"] = {"Fn::GetAtt": ["Endpoint2", "EndpointName"]}


FAMILIES: dict[str, tuple[Template, Template]] = {
    "model": (same(), changed(another_image)),
    "variable": (same(), changed(another_variable)),
    "slo": (same(), changed(another_slo)),
    "scaling": (same(), changed(more_scaling)),
    "instance-type": (same(), changed(another_instance_type)),
    "sibling": (same(), changed(another_size_beside)),
    "first": (EMPTY, same()),
    "nothing": (same(), same()),
}


def found(change: Callable[[Document], object], size: PlannedSize = SIZE) -> Consequences:
    return consequences(diff_templates(same(), changed(change)), size)


def kinds(found: Consequences) -> dict[str, list[str]]:
    return {row.change.logical_id: [one.kind for one in row.effects] for row in found.rows if row.effects}


@pytest.mark.parametrize("family", FAMILIES)
def test_the_whole_text(family: str) -> None:
    told = consequences(diff_templates(*FAMILIES[family]), SIZE)
    title = f"seatrial-dev-chat: {family}"
    problems = "".join(f"{problem}\n" for problem in told.refused)
    document = json.dumps(consequences_document(told, stack="seatrial-dev-chat", old="old", new="new"), indent=2) + "\n"
    for suffix, text in (
        ("txt", consequences_text(told, title=title) + problems),
        ("md", consequences_markdown(told, title=title)),
        ("json", document),
    ):
        file = GOLDEN / f"{family}.{suffix}"
        if os.environ.get("UPDATE_GOLDEN"):
            file.parent.mkdir(exist_ok=True)
            file.write_text(text)
        assert text == file.read_text()


def test_another_model_is_tried_and_rolled_out() -> None:
    told = found(another_image)
    assert kinds(told) == {
        "Model": ["none"],
        "Candidate": ["candidate"],
        "Component": ["rolling_update", "download"],
        "Policy": ["none"],
        "Trial": ["trial"],
    }
    assert (told.touches_copies, told.instances, told.most_instances, told.refused) == (True, 1, 1, ())


def test_without_a_rolling_update_all_copies_are_replaced() -> None:
    def bare(one: Document) -> None:
        another_image(one)
        del properties(one, "Component")["DeploymentConfig"]

    told = found(bare)
    assert kinds(told)["Component"] == ["all_at_once", "download"]
    assert (told.instances, told.most_instances) == (2, 4)


@pytest.mark.parametrize(
    ("batch", "instances", "most"),
    [
        ({"Type": "COPY_COUNT", "Value": 1}, 1, 1),
        ({"Type": "COPY_COUNT", "Value": 9}, 2, 4),
        ({"Type": "CAPACITY_PERCENT", "Value": 50}, 1, 2),
        ({"Type": "CAPACITY_PERCENT", "Value": 5}, 1, 1),
    ],
)
def test_a_batch_needs_room_beside_the_old_copies(batch: Document, instances: int, most: int) -> None:
    def batched(one: Document) -> None:
        another_image(one)
        properties(one, "Component")["DeploymentConfig"]["RollingUpdatePolicy"]["MaximumBatchSize"] = batch
        del one["Resources"]["Candidate"]

    told = found(batched)
    assert (told.instances, told.most_instances) == (instances, most)


@pytest.mark.parametrize(("change", "instances"), [(another_slo, 1), (more_scaling, 0)])
def test_slo_alarms_and_scaling_touch_no_copy_that_serves(change: Callable[[Document], object], instances: int) -> None:
    """Another SLO is tried by one more copy, which serves nobody."""
    told = found(change)
    assert (told.touches_copies, told.instances, told.refused) == (False, instances, ())
    assert "No copy that serves is started, stopped or moved." in consequences_text(told, title="t")


@pytest.mark.parametrize(
    ("update", "candidate", "trial"),
    [
        ("candidate", "candidate", "It proves what is live"),
        ("in_place", "none", "Load is added to the users' requests"),
        ("verify_only", "none", "It proves what is live"),
    ],
)
def test_what_is_tried_is_what_the_spec_says(update: str, candidate: str, trial: str) -> None:
    def chosen(one: Document) -> None:
        another_image(one)
        for name in ("Candidate", "Trial"):
            properties(one, name).update(Update=update, PlanDigest="159ecdd7")

    told = found(chosen)
    assert kinds(told)["Candidate"] == [candidate]
    (row,) = (row for row in told.rows if row.change.logical_id == "Trial")
    assert row.effects[0].because.startswith(trial)


def test_a_trial_that_only_reports_holds_nothing_back() -> None:
    def reports(one: Document) -> None:
        another_image(one)
        for name in ("Candidate", "Trial"):
            properties(one, name).update(Mode="report", PlanDigest="159ecdd7")

    tried = consequences_text(found(reports), title="t")
    assert "changes nothing that serves" not in tried
    assert "trial.mode is report: whatever its verdict, the update goes on." in tried
    created = consequences(diff_templates(EMPTY, changed(reports)), SIZE)
    assert "trial.mode is report: whatever its verdict, the deployment goes on." in consequences_text(
        created, title="t"
    )


def test_another_way_to_try_is_no_reason_for_a_trial() -> None:
    def changed_mode(one: Document) -> None:
        for name in ("Candidate", "Trial"):
            properties(one, name).update(Update="in_place")

    told = found(changed_mode)
    assert (kinds(told)["Candidate"], kinds(told)["Trial"]) == (["none"], ["none"])


def test_higher_and_lower_bounds_start_and_stop_copies() -> None:
    assert kinds(found(lambda one: properties(one, "Scaling").update(MinCapacity=3)))["Scaling"] == ["copies"]
    assert kinds(found(lambda one: properties(one, "Scaling").update(MaxCapacity=3)))["Scaling"] == ["copies"]


def test_a_written_number_of_copies_overrides_autoscaling() -> None:
    told = found(lambda one: properties(one, "Component")["RuntimeConfig"].update(CopyCount=2))
    assert kinds(told)["Component"] == ["copies"]


@pytest.mark.parametrize(
    ("before", "after"),
    [({}, {"AutoRollbackConfiguration": {"Alarms": [{"AlarmName": {"Ref": "Errors"}}]}}), ({"Retained": 1}, {})],
)
def test_another_deployment_config_alone_is_an_update_with_the_same_configuration(
    before: Document, after: Document
) -> None:
    """As an upgrade from a release whose set of alarms followed the SLO; CloudFormation calls UpdateEndpoint."""
    old, new = (
        changed(lambda one, config=config: properties(one, "Endpoint").update(DeploymentConfig=config))  # type: ignore[misc] # bound at once
        for config in (before, after)
    )
    told = consequences(diff_templates(old, new), SIZE)
    assert kinds(told)["Endpoint"] == ["doubled", "download"]
    assert "DeploymentConfig changes alone" in consequences_text(told, title="t")


def off(one: Document) -> None:
    another_image(one)
    properties(one, "Errors").update(Threshold=1e15, AlarmDescription=f"{ROLLBACK_ALARM}: {ROLLBACK_ALARMS_OFF}")


def test_a_deployment_that_no_alarm_rolls_back_says_so_and_touches_no_endpoint() -> None:
    told = found(off)
    assert [each.rule for each in told.warned] == ["SEA770"]
    assert "Endpoint" not in kinds(told)
    assert "SEA770: rollback by alarms is off for this deployment" in consequences_text(told, title="t")
    restored = consequences(diff_templates(changed(off), changed(another_image)), SIZE)
    assert (kinds(restored), restored.warned) == ({"Errors": ["none"]}, ())


@pytest.mark.parametrize(
    ("change", "rules"), [(another_image, ["SEA771"]), (another_slo, []), (more_scaling, []), (off, ["SEA770"])]
)
def test_a_raised_alarm_is_told_where_it_would_roll_the_update_back(
    change: Callable[[Document], object], rules: list[str]
) -> None:
    raised = [RaisedAlarm("errors", "7 errors", rolls_back=True), RaisedAlarm("people", "7 errors")]
    told = consequences(diff_templates(same(), changed(change)), SIZE, raised)
    assert [each.rule for each in told.warned] == rules


def test_another_configuration_doubles_the_fleet() -> None:
    told = found(lambda one: properties(one, "Config")["ProductionVariants"][0].update(InitialInstanceCount=3))
    assert kinds(told)["Endpoint"] == ["doubled", "download"]
    assert (told.instances, told.most_instances, told.refused) == (2, 4, ())


def test_a_rolling_update_of_the_endpoint_needs_one_batch() -> None:
    def rolling(one: Document) -> None:
        properties(one, "Config")["ProductionVariants"][0]["InitialInstanceCount"] = 3
        size = {"Type": "INSTANCE_COUNT", "Value": 1}
        properties(one, "Endpoint")["DeploymentConfig"] = {"RollingUpdatePolicy": {"MaximumBatchSize": size}}

    told = found(rolling)
    assert kinds(told)["Endpoint"] == ["rolling_update", "download"]
    assert (told.instances, told.most_instances) == (1, 1)


def test_rights_that_are_taken_from_copies_that_serve() -> None:
    def narrower(one: Document) -> None:
        statement = properties(one, "Role")["Policies"][0]["PolicyDocument"]["Statement"][0]
        statement["Resource"] = "arn:aws:s3:::weights/other/*"

    def wider(one: Document) -> None:
        statements = properties(one, "Role")["Policies"][0]["PolicyDocument"]["Statement"]
        statements.append({"Effect": "Allow", "Action": "s3:ListBucket", "Resource": "arn:aws:s3:::weights"})

    assert kinds(found(narrower))["Role"] == ["rights"]
    assert kinds(found(wider))["Role"] == ["none"]


def in_place(name: str, value: object) -> Callable[[Document], object]:
    return lambda one: properties(one, "Config")["ProductionVariants"][0].update({name: value})


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (in_place("InstanceType", "ml.g6.2xlarge"), "InstanceType"),
        (in_place("InferenceAmiVersion", "al2"), "InferenceAmiVersion"),
        (in_place("VolumeSizeInGB", 100), "VolumeSizeInGB"),
        (lambda one: properties(one, "Config").update(KmsKeyId="key"), "KmsKeyId"),
        (
            lambda one: properties(one, "Component")["Specification"]["ComputeResourceRequirements"].update(
                NumberOfAcceleratorDevicesRequired=2
            ),
            "NumberOfAcceleratorDevicesRequired",
        ),
    ],
)
def test_another_size_under_the_same_name_is_refused(change: Callable[[Document], object], field: str) -> None:
    told = found(change)
    assert [(one.rule, one.field) for one in told.refused] == [("SEA453", field)]
    assert "seatrial plan" in told.refused[0].hint


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (in_place("ModelName", "model"), "ModelName"),
        (
            lambda one: properties(one, "Config").update(AsyncInferenceConfig={"OutputConfig": {}}),
            "AsyncInferenceConfig",
        ),
    ],
)
def test_another_kind_under_the_same_name_is_refused(change: Callable[[Document], object], field: str) -> None:
    told = found(change)
    assert [(one.rule, one.field) for one in told.refused] == [("SEA453", field)]


def test_pools_that_begin_with_the_same_type_are_not_refused() -> None:
    def pooled(one: Document) -> None:
        variant = properties(one, "Config")["ProductionVariants"][0]
        types = (variant.pop("InstanceType"), "ml.g6.2xlarge")
        variant["InstancePools"] = [{"InstanceType": name, "Priority": row} for row, name in enumerate(types, 1)]

    assert found(pooled).refused == ()


def test_another_size_beside_the_first_is_not_refused() -> None:
    told = found(another_size_beside)
    assert told.refused == ()
    assert kinds(told)["Endpoint2"] == ["second_endpoint"]
    assert kinds(told)["Component2"] == ["second_endpoint", "download"]
    assert kinds(told)["Alias"] == ["alias"]
    assert (told.instances, told.most_instances) == (2, 4)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda one: properties(one, "Trial").update(ServiceToken="arn:other"), "ServiceToken"),
        (lambda one: properties(one, "Component").update(InferenceComponentName="b"), "InferenceComponentName"),
        (lambda one: one["Resources"]["Alias"].update(Type="AWS::SNS::Topic"), "Type"),
    ],
)
def test_what_can_not_be_changed_is_refused(change: Callable[[Document], object], field: str) -> None:
    assert [(one.rule, one.field) for one in found(change).refused] == [("SEA454", field)]


def test_a_replacement_under_a_name_that_is_taken_is_refused() -> None:
    named = changed(lambda one: properties(one, "Model").update(ModelName="llama"))

    def renamed(name: str) -> Consequences:
        def change(one: Document) -> None:
            properties(one, "Model")["ModelName"] = name
            another_image(one)

        return consequences(diff_templates(named, changed(change)), SIZE)

    assert [(one.place.resource, one.field, one.rule) for one in renamed("llama").refused] == [
        ("Model", "ModelName", "SEA454")
    ]
    assert renamed("llama-2").refused == ()


def test_a_component_is_not_moved_by_another_name() -> None:
    """A second endpoint under the logical IDs of the first: CloudFormation replaces it, but not its component."""

    def renamed(one: Document) -> None:
        properties(one, "Endpoint")["EndpointName"] = "dev-chat-2"
        component = properties(one, "Component")
        component["InferenceComponentName"] = "dev-chat-2-model"
        component["Specification"]["ComputeResourceRequirements"]["NumberOfAcceleratorDevicesRequired"] = 2

    told = found(renamed)
    assert [(one.place.resource, one.rule) for one in told.refused] == [("Component", "SEA454")]
    assert told.refused[0].message.startswith("EndpointName, InferenceComponentName can't be changed")


def test_many_values_are_cut_in_text_and_whole_in_the_document() -> None:
    request = json.dumps({f"field_{number}": number for number in range(20)})
    told = found(lambda one: properties(one, "Trial").update(Request=request))
    assert "and 13 more values: --format json lists them" in consequences_text(told, title="t")
    assert "and 13 more values |" in consequences_markdown(told, title="t")
    document = json.loads(json.dumps(consequences_document(told, stack="s", old="o", new="n")))
    assert {len(one["properties"]) for one in document["resources"] if one["logical_id"] == "Trial"} == {21}


def test_an_endpoint_that_goes_is_told() -> None:
    told = consequences(diff_templates(same(), EMPTY), SIZE)
    assert kinds(told)["Endpoint"] == kinds(told)["Component"] == ["removed"]


def test_an_unknown_type_may_do_anything() -> None:
    told = found(lambda one: one["Resources"].update(Queue={"Type": "AWS::SQS::Queue"}))
    assert (kinds(told)["Queue"], told.touches_copies) == (["unknown"], True)


def test_the_metadata_of_the_cdk_is_nothing() -> None:
    told = found(lambda one: one["Resources"].update(Cdk={"Type": "AWS::CDK::Metadata"}))
    assert (kinds(told)["Cdk"], told.touches_copies) == (["none"], False)


def test_the_size_of_a_plan() -> None:
    plan = sample_plan()
    size = PlannedSize.of(plan)
    assert size.weights_bytes == plan.memory.weights_bytes * plan.tensor_parallel_degree.value
    assert plan.cost.usd_per_hour == pytest.approx(size.hourly(plan.instance_count.value))


def test_a_price_that_nobody_knows_is_no_zero() -> None:
    size = PlannedSize(
        instance_type="ml.g5.2xlarge",
        instance_count=1,
        max_instances=1,
        copies_per_instance=1,
        copy_count=1,
        max_copies=1,
        weights_bytes=1,
        usd_per_hour=None,
    )
    told = found(another_image, size)
    assert "1 × ml.g5.2xlarge, at an unknown price" in consequences_text(told, title="t")
    document = json.loads(json.dumps(consequences_document(told, stack="s", old="o", new="n")))
    assert document["needs"]["usd_per_hour"] is None


def test_every_kind_has_a_title() -> None:
    assert len(set(TITLES.values())) == len(TITLES)


def test_what_a_template_holds_is_no_markup_in_a_comment() -> None:
    name = "@everyone` [x](http://e) `"

    def hostile(one: Document) -> None:
        properties(one, "Model")["PrimaryContainer"]["Environment"][name] = "<script>"
        one["Resources"][name] = {"Type": "Custom::@everyone", "Properties": {"Name": "a|b"}}

    tokens = MarkdownIt("commonmark").enable("table").parse(consequences_markdown(found(hostile), title="@team"))
    inline = [child for token in tokens for child in token.children or ()]
    assert {child.type for child in inline} <= {"text", "code_inline", "html_inline", "strong_open", "strong_close"}
    assert {child.content for child in inline if child.type == "html_inline"} == {"<br>"}
    assert not [child.content for child in inline if child.type == "text" and re.search(r"@\w", child.content)]
