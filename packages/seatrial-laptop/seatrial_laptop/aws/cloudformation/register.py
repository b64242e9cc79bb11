"""Our resource types and rules in MiniStack's CloudFormation engine and its tagging API.

Each type is a table of functions, as MiniStack keeps them. Done through names that are not MiniStack's interface;
`packages/seatrial-laptop/tests/laptop` holds the contract on them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ministack.services import tagging
from ministack.services.cloudformation import changesets, engine, handlers, provisioners, stacks

from seatrial_laptop.aws.cloudformation.deployer import remember_deployers, resolve_with_rights
from seatrial_laptop.aws.cloudformation.guarded_resources import guard_resources
from seatrial_laptop.aws.cloudformation.resource_types import (
    BUCKET,
    BUDGET,
    autoscaling_types,
    bucket_type,
    budget_type,
    sagemaker_types,
    service_catalog_types,
)
from seatrial_laptop.aws.cloudformation.stacks_in_progress import (
    delete_what_is_still_created,
    end_waits_on_cancel,
    list_resources_in_progress,
)
from seatrial_laptop.aws.ministack import wrap

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from seatrial_laptop.aws.autoscaling.scalable_targets import Scaling
    from seatrial_laptop.aws.control_plane.cloud import Cloud
    from seatrial_laptop.aws.faults import Faults
    from seatrial_laptop.aws.json_document import Document
    from seatrial_laptop.aws.service_catalog.catalog import Catalog

    Parameters = Mapping[str, Mapping[str, object]]


OURS: Final = ("AWS::SageMaker::", "AWS::ApplicationAutoScaling::", "AWS::ServiceCatalog::", "AWS::Budgets::")

SENT_BACK: Final = "AWS::SageMaker::InferenceComponent"


def register_types(cloud: Cloud, scaling: Scaling, catalog: Catalog) -> None:
    """Teach MiniStack our types, and let their handlers run on worker threads: they wait, and call this process.

    The wait for a custom resource ends when its stack's update is cancelled. Tags of SageMaker are found by the tagging
    API.
    """
    types = provisioners._RESOURCE_HANDLERS  # noqa: SLF001 (the contract)
    types.update(sagemaker_types(cloud))
    types.update(autoscaling_types(scaling))
    types.update(service_catalog_types(catalog))
    types[BUCKET] = bucket_type(types[BUCKET])
    types[BUDGET] = budget_type()
    wrap("_evaluate_conditions", _with_joins, engine, stacks, changesets, handlers, provisioners)
    guard_resources()
    resolve_with_rights()
    remember_deployers()
    end_waits_on_cancel(cloud.clock.aws_date_s)
    delete_what_is_still_created()
    wrap("_sends_back_failed_update", lambda theirs: _sends_back(theirs, cloud.faults), stacks)
    list_resources_in_progress()
    tagging._COLLECTORS["sagemaker"] = cloud.store.tagged  # noqa: SLF001 (the contract)
    wrap("_runs_on_worker_thread", _waits, stacks)


def _waits(theirs: Callable[[str], object]) -> Callable[[str], bool]:
    # Our handlers call this very process: on the event loop they would wait for a response that nobody sends.
    def runs_on_worker_thread(resource_type: str) -> bool:
        return resource_type == BUCKET or resource_type.startswith(OURS) or bool(theirs(resource_type))

    return runs_on_worker_thread


def _with_joins(theirs: Callable[[Document, Parameters], Document]) -> Callable[[Document, Parameters], Document]:
    # MiniStack compares `Fn::Join` of a condition unresolved. The CDK's bootstrap asks this way whether it was given
    # policies; without an answer its role that deploys has none.
    def evaluate(template: Document, parameters: Parameters) -> Document:
        return theirs({**template, "Conditions": joined(template.get("Conditions", {}), parameters)}, parameters)

    return evaluate


def joined(node: object, parameters: Parameters) -> object:
    """Return a condition with each `Fn::Join` of parameters and texts as its text.

    Args:
        parameters: Each parameter's `Value`, by its name; that of a list is one text with commas.
    """
    if isinstance(node, list):
        return [joined(each, parameters) for each in node]
    if not isinstance(node, dict):
        return node
    if "Fn::Join" in node:
        separator, items = node["Fn::Join"]
        return str(separator).join(_items(items, parameters))
    return {key: joined(value, parameters) for key, value in node.items()}


def _items(items: object, parameters: Parameters) -> list[str]:
    """Return the texts of a list, or of a parameter that is one."""
    if isinstance(items, list):
        return [text for item in items for text in ([item] if isinstance(item, str) else _items(item, parameters))]
    name = items["Ref"] if isinstance(items, dict) else items
    value = parameters.get(str(name), {}).get("Value", "")
    return [part.strip() for part in f"{value}".split(",")]


def _sends_back(theirs: Callable[[str], object], faults: Faults) -> Callable[[str], bool]:
    # MiniStack leaves a resource whose own update failed as it is, since the type's handler changed nothing. That
    # CloudFormation sends it its old properties, and that a raised alarm then ends this update too, is assumed.
    def sends_back(resource_type: str) -> bool:
        ours = resource_type == SENT_BACK and faults.settings().raised_alarms_end_updates
        return ours or bool(theirs(resource_type))

    return sends_back
