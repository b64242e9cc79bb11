"""The copies of a variant with a model of its own: one on each of its instances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial_laptop.aws.control_plane.containers import model_container
from seatrial_laptop.aws.control_plane.instance_pools import pool_with_capacity, pools_of
from seatrial_laptop.aws.runtime.copy_process import CopyFailed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seatrial_laptop.aws.control_plane.cloud import Cloud
    from seatrial_laptop.aws.control_plane.containers import ContainerSpec
    from seatrial_laptop.aws.control_plane.instance_pools import InstancePool
    from seatrial_laptop.aws.json_document import Document
    from seatrial_laptop.aws.runtime.copy_process import CopyProcess
    from seatrial_laptop.aws.runtime.running_copies import CopyPlace


@dataclass(frozen=True, slots=True)
class WantedVariant:
    """What a variant runs: a container for each of its instance pools, and how many copies."""

    containers: Mapping[InstancePool, ContainerSpec]
    copies: int
    document: Document


def wanted_variant(cloud: Cloud, variant: Document, copies: int) -> WantedVariant:
    """Return what a variant with a model runs.

    Raises:
        ApiError: ValidationException, there is no such model.
    """
    containers = {pool: model_container(cloud.store, pool.model_name, variant) for pool in pools_of(variant)}
    return WantedVariant(containers, copies, variant)


def launch_variant(cloud: Cloud, place: CopyPlace, wanted: WantedVariant, count: int) -> tuple[CopyProcess, ...]:
    """Start so many instances of a variant with their copies; they don't serve yet.

    Raises:
        CopyFailed: There is no capacity, or a copy didn't come into service; none is left.
    """
    if count <= 0:
        return ()
    pool = pool_with_capacity(tuple(wanted.containers), cloud.faults.settings)
    if start_s := cloud.faults.settings().instance_start_s:
        cloud.clock.wait(start_s)
    copies = cloud.running.launch(place, wanted.containers[pool], count)
    for copy in copies:
        copy.instance_type = pool.instance_type
    return copies


def check_capacity(cloud: Cloud, count: int) -> None:
    """Refuse more instances than the `capacity_limit` of the control interface allows.

    Raises:
        CopyFailed: InsufficientInstanceCapacity.
    """
    limit = cloud.faults.settings().capacity_limit
    if limit is not None and count > limit:
        raise CopyFailed(f"InsufficientInstanceCapacity: {count} instances were asked for, and {limit} can be had.")
