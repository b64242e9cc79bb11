"""SageMaker hosting instance types: accelerators, links, list prices."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal

from seatrial_base.catalog.rows import read_rows

Component = Literal["Hosting", "Training", "Studio", "unnamed"]

# Of vCPUs, for copies. An assumption: the other half stays for the service and for peaks.
SHARE_OF_CPUS = 0.5


@dataclass(frozen=True, slots=True)
class Instance:
    """One instance type; what nobody published is `None`.

    Attributes:
        instance_type: SageMaker's name, `ml.g5.2xlarge`.
        accelerator: Name of the accelerator.
        accelerator_count: Accelerators of one instance.
        accelerator_memory_bytes: Memory of one accelerator, as EC2 reports it.
        memory_bandwidth_bytes_s: Memory bandwidth of one accelerator.
        flops_16bit: Dense 16-bit floating point operations per second of one accelerator.
        flops_8bit: Dense FP8 operations per second; `None` where the accelerator has no FP8.
        has_bf16: The accelerator computes in bfloat16.
        link: How the accelerators of one instance are joined.
        vcpus: Virtual CPUs.
        memory_mib: Host memory.
        nvme_gb: Local disk in GB (10^9 bytes); `None` without one.
        usd_per_hour: On-demand price per hour.
        price_region: The region that it is the price of.
        price_component: What of SageMaker it is the price of: `Hosting`, or else what public data has; `unnamed` where
            the source names no component.
        price_source: Where the price was read.
        price_date: When it was valid.
        source: Where the other facts were read.
        date: When they were collected.
        savings_plan_usd_per_hour: Price per hour under a Savings Plan; `None` where no prices file gives one.
    """

    instance_type: str
    accelerator: str
    accelerator_count: int
    accelerator_memory_bytes: int
    memory_bandwidth_bytes_s: int | None
    flops_16bit: int | None
    flops_8bit: int | None
    has_bf16: bool
    link: Literal["single", "pcie", "nvlink", "neuron"]
    vcpus: int
    memory_mib: int
    nvme_gb: int | None
    usd_per_hour: float | None
    price_region: str | None
    price_component: Component | None
    price_source: str | None
    price_date: str | None
    source: str
    date: str
    savings_plan_usd_per_hour: float | None = None


@cache
def all_instances() -> tuple[Instance, ...]:
    """Return every instance type of the catalog, sorted by name."""
    return read_rows("instances.json", Instance)


def find_instance(instance_type: str) -> Instance | None:
    """Return an instance type's facts, or `None` when the catalog lacks it."""
    return _by_name().get(instance_type)


@cache
def _by_name() -> dict[str, Instance]:
    return {instance.instance_type: instance for instance in all_instances()}
