"""Our resource types in MiniStack's CloudFormation engine and its tagging API, through four private names of them.

Each type is a table of functions, as MiniStack keeps them; `tests/laptop` holds the contract on the private names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ministack.services import tagging
from ministack.services.cloudformation import provisioners, stacks

from seatrial_laptop.aws.cloudformation.autoscaling_types import autoscaling_types
from seatrial_laptop.aws.cloudformation.bucket_type import BUCKET, BUDGET, bucket_type, budget_type
from seatrial_laptop.aws.cloudformation.cancelled_stacks import delete_what_is_still_created, end_waits_on_cancel
from seatrial_laptop.aws.cloudformation.deployer import remember_deployers
from seatrial_laptop.aws.cloudformation.dynamic_references import resolve_with_rights
from seatrial_laptop.aws.cloudformation.failed_updates import send_back_failed_updates
from seatrial_laptop.aws.cloudformation.guarded_resources import guard_resources
from seatrial_laptop.aws.cloudformation.joined_conditions import join_in_conditions
from seatrial_laptop.aws.cloudformation.resources_in_progress import list_resources_in_progress
from seatrial_laptop.aws.cloudformation.sagemaker_types import sagemaker_types
from seatrial_laptop.aws.cloudformation.service_catalog_types import service_catalog_types

if TYPE_CHECKING:
    from seatrial_laptop.aws.autoscaling.scalable_targets import Scaling
    from seatrial_laptop.aws.control_plane.cloud import Cloud
    from seatrial_laptop.aws.service_catalog.catalog import Catalog


OURS: Final = ("AWS::SageMaker::", "AWS::ApplicationAutoScaling::", "AWS::ServiceCatalog::", "AWS::Budgets::")


def register_types(cloud: Cloud, scaling: Scaling, catalog: Catalog) -> None:
    """Teach MiniStack our types, and let their handlers run on worker threads: they wait, and call this process.

    The wait for a custom resource ends when its stack's update is cancelled. Tags of SageMaker are found by the tagging
    API.
    """
    types = provisioners._RESOURCE_HANDLERS  # noqa: SLF001 (the contract)
    types.update(sagemaker_types(cloud, provisioners._physical_name))  # noqa: SLF001 (the contract)
    types.update(autoscaling_types(scaling))
    types.update(service_catalog_types(catalog))
    types[BUCKET] = bucket_type(types[BUCKET])
    types[BUDGET] = budget_type()
    join_in_conditions()
    guard_resources()
    resolve_with_rights()
    remember_deployers()
    end_waits_on_cancel(cloud.clock.aws_date_s)
    delete_what_is_still_created()
    send_back_failed_updates(cloud.faults)
    list_resources_in_progress()
    tagging._COLLECTORS["sagemaker"] = cloud.store.tagged  # noqa: SLF001 (the contract)
    theirs = stacks._runs_on_worker_thread  # noqa: SLF001 (the contract)

    def runs_on_worker_thread(resource_type: str) -> bool:
        return resource_type == BUCKET or resource_type.startswith(OURS) or bool(theirs(resource_type))

    stacks._runs_on_worker_thread = runs_on_worker_thread  # noqa: SLF001 (the contract)
