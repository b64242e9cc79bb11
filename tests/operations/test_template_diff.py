"""What CloudFormation does to each resource, followed through the references."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.operations.template_diff import TemplateDiff, diff_templates
from seatrial_base.catalog import resource_types as replacement
from seatrial_base.catalog.resource_types import all_replacement_rules
from seatrial_base.errors import SpecError
from seatrial_lint.cloudformation.intrinsic import TemplateScope, evaluate
from seatrial_lint.cloudformation.template import EMPTY, Template, TemplateResource, read_template
from tests.operations.sample_stack import Document, changed, properties, read, same, sample_document

if TYPE_CHECKING:
    import random

    from pydantic import JsonValue


def actions(diff: TemplateDiff) -> dict[str, str]:
    return {change.logical_id: change.action for change in diff.changes if change.action != "unchanged"}


def test_another_image_replaces_the_model_and_moves_what_refers_to_it() -> None:
    diff = diff_templates(same(), changed(lambda one: properties(one, "Model")["PrimaryContainer"].update(Image="b")))
    assert actions(diff) == {
        "Model": "replaced",
        "Candidate": "updated",
        "Component": "updated",
        "Policy": "updated",
        "Trial": "updated",
    }
    component = diff.of("Component")
    assert component is not None
    assert {change.path: change.follows for change in component.properties} == {
        "Specification.ModelName": "Model",
        "RuntimeConfig.CopyCount": "Candidate",
    }


def test_another_name_of_the_endpoint_replaces_it_and_moves_the_alias() -> None:
    diff = diff_templates(same(), changed(lambda one: properties(one, "Endpoint").update(EndpointName="dev-chat-2")))
    assert actions(diff) == {"Endpoint": "replaced", "Alias": "updated", "Component": "updated"}


def test_another_resource_of_scaling_replaces_target_and_policy() -> None:
    diff = diff_templates(same(), changed(lambda one: properties(one, "Scaling").update(ResourceId="other")))
    assert actions(diff) == {"Scaling": "replaced", "Policy": "replaced"}


def test_a_request_is_compared_value_by_value() -> None:
    request = json.dumps({"objectives": [{"metric": "ttft_ms", "bound": 1500.0}]})
    diff = diff_templates(same(), changed(lambda one: properties(one, "Trial").update(Request=request)))
    trial = diff.of("Trial")
    assert trial is not None
    assert [(one.path, one.old, one.new) for one in trial.properties] == [
        ("Request.objectives[0].bound", 2000.0, 1500.0)
    ]


def test_another_type_under_one_logical_id_is_a_replacement() -> None:
    diff = diff_templates(same(), changed(lambda one: one["Resources"]["Alias"].update(Type="AWS::SNS::Topic")))
    alias = diff.of("Alias")
    assert alias is not None
    assert (alias.action, alias.replaced_by) == ("replaced", ("Type",))


def test_what_is_kept_is_told() -> None:
    kept = changed(lambda one: one["Resources"]["Alias"].update(DeletionPolicy="Retain"))
    alias = diff_templates(kept, read({"Resources": {}})).of("Alias")
    assert alias is not None
    assert (alias.action, alias.is_retained) == ("deleted", True)


def test_outputs_alone_are_a_change() -> None:
    diff = diff_templates(same(), changed(lambda one: one["Outputs"]["PlanDigest"].update(Value="other")))
    assert (actions(diff), diff.outputs, diff.is_empty) == ({}, ("PlanDigest",), False)


def test_the_order_of_tags_and_metadata_mean_nothing() -> None:
    def reorder(one: Document) -> None:
        properties(one, "Model")["Tags"].reverse()
        one["Resources"]["Model"]["Metadata"] = {"aws:cdk:path": "a/b"}
        one["Resources"]["Model"]["DependsOn"] = ["Role"]

    assert diff_templates(same(), changed(reorder)).is_empty


@pytest.mark.parametrize(
    "value",
    [
        {"Fn::Join": ["", ["arn:", {"Ref": "AWS::Partition"}, ":s3:::", {"Fn::Sub": "b-${AWS::Region}"}]]},
        {"Fn::Sub": "arn:${AWS::Partition}:s3:::b-${AWS::Region}"},
        "arn:aws:s3:::b-us-east-1",
    ],
)
def test_references_that_resolve_to_the_same_are_the_same(value: JsonValue) -> None:
    scope = TemplateScope({"AWS::Partition": "aws", "AWS::Region": "us-east-1"})
    assert evaluate(value, scope) == "arn:aws:s3:::b-us-east-1"


def test_another_hash_of_the_artifact_is_a_real_change() -> None:
    def with_artifact(number: int) -> Template:
        url = {"Fn::Join": ["", ["s3://", {"Fn::Sub": "assets-${AWS::AccountId}"}, f"/{number}.tar.gz"]]}
        return changed(lambda one: properties(one, "Model")["PrimaryContainer"].update(ModelDataUrl=url))

    assert diff_templates(with_artifact(1), with_artifact(1)).is_empty
    assert actions(diff_templates(with_artifact(1), with_artifact(2)))["Model"] == "replaced"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{Resources", "Expecting property name"),
        ("[]", "it is no mapping"),
        ("{}", "no Resources"),
        ('{"Resources": {"A": 1}}', "the resource A has no Type"),
        ('{"Resources": {"A": {}}}', "the resource A has no Type"),
        ("[" * 100_000, "nested deeper than 64"),
    ],
)
def test_what_is_no_template_is_told(text: str, why: str) -> None:
    with pytest.raises(SpecError) as caught:
        read_template(text, name="old.json")
    (problem,) = caught.value.problems
    assert (problem.rule, problem.where) == ("SEA451", "old.json")
    assert why in problem.message


SCHEMAS = Path(__import__("cfnlint").__file__ or "").parent / "data" / "schemas"


@pytest.mark.parametrize("rule", all_replacement_rules(), ids=lambda rule: rule.resource_type)
def test_the_rules_are_those_of_the_registry(rule: replacement.ReplacementRule) -> None:
    digests = json.loads((SCHEMAS / "providers" / "us-east-1.json").read_text())
    schema = json.loads((SCHEMAS / "resources" / f"{digests[rule.resource_type]}.json").read_text())
    listed = (schema.get(key) or () for key in ("createOnlyProperties", "conditionalCreateOnlyProperties"))
    create_only = {pointer.removeprefix("/properties/").replace("/", ".") for each in listed for pointer in each}
    assert create_only <= {*rule.replaced_by, *rule.unchangeable}
    assert set(rule.replaced_by) <= create_only
    if rule.resource_type != replacement.CUSTOM:
        names = {path.partition(".")[0] for path in (*rule.replaced_by, *rule.named_by, *rule.unchangeable)}
        assert names <= set(schema["properties"])


def test_another_subscriber_of_a_budget_needs_another_name() -> None:
    """AWS Budgets changes notifications by replacement alone, and CloudFormation creates before it deletes."""

    def budget(address: str) -> Template:
        notification: JsonValue = {"Notification": {}, "Subscribers": [{"Address": address}]}
        properties: dict[str, JsonValue] = {
            "Budget": {"BudgetName": "seatrial-dev"},
            "NotificationsWithSubscribers": [notification],
        }
        return Template({"Budget": TemplateResource("Budget", "AWS::Budgets::Budget", properties)})

    change = diff_templates(budget("a@b.c"), budget("d@b.c")).of("Budget")
    assert change is not None
    assert (change.action, change.replaced_by) == ("replaced", ("NotificationsWithSubscribers",))
    assert not change.changes("Budget.BudgetName")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text("ab${}", max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["A", "B", "Ref", "Fn::Sub"]), inner, max_size=3)
        | st.builds(lambda name: {"Ref": name}, st.sampled_from(["A", "B", "C"]))
    ),
    max_leaves=8,
)
TYPES = st.sampled_from(
    ["AWS::SageMaker::Model", "AWS::SageMaker::Endpoint", "Custom::Candidate", "AWS::IAM::Role", "AWS::Other::Thing"]
)
RESOURCES = st.builds(
    TemplateResource,
    st.just("A"),
    TYPES,
    st.dictionaries(st.sampled_from(["EndpointName", "Tags", "PrimaryContainer", "X"]), VALUES, max_size=4),
)
TEMPLATES = st.builds(Template, st.dictionaries(st.sampled_from("ABCD"), RESOURCES, max_size=4))


@given(TEMPLATES)
def test_a_template_against_itself_has_no_change(template: Template) -> None:
    assert diff_templates(template, template).is_empty


@given(TEMPLATES, TEMPLATES)
def test_every_resource_is_listed_once(old: Template, new: Template) -> None:
    names = [change.logical_id for change in diff_templates(old, new).changes]
    assert sorted(names) == sorted(old.resources.keys() | new.resources.keys())
    for change in diff_templates(old, new).changes:
        paths = [one.path for one in change.properties]
        assert len(paths) == len(set(paths))


@given(TEMPLATES)
def test_what_is_new_is_created_and_what_is_gone_is_deleted(template: Template) -> None:
    assert {change.action for change in diff_templates(EMPTY, template).changes} <= {"created"}
    assert {change.action for change in diff_templates(template, EMPTY).changes} <= {"deleted"}


def shuffled(value: JsonValue, seed: random.Random) -> JsonValue:
    if isinstance(value, dict):
        names = list(value)
        seed.shuffle(names)
        return {name: shuffled(value[name], seed) for name in names}
    return [shuffled(one, seed) for one in value] if isinstance(value, list) else value


@given(st.randoms(use_true_random=False))
def test_the_order_of_keys_means_nothing(seed: random.Random) -> None:
    document = shuffled(sample_document(), seed)
    assert isinstance(document, dict)
    assert diff_templates(same(), read(document)).is_empty
    new = changed(lambda one: properties(one, "Model")["PrimaryContainer"].update(Image="b"))
    assert diff_templates(read(document), new).changes == diff_templates(same(), new).changes
