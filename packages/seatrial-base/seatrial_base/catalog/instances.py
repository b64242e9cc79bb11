"""SageMaker hosting instance types: accelerators and what they compute in, links, list prices."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

from seatrial_base.catalog.rows import CatalogTable, Sourced
from seatrial_base.units import usd

Component = Literal["Hosting", "Training", "Studio", "unnamed"]
# How instance hours are bought, as `purchase` of an environment names it.
Purchase = Literal["on_demand", "savings_plan_1y", "savings_plan_3y", "capacity_block"]

# Of vCPUs, for copies. An assumption: the other half stays for the service and for peaks.
SHARE_OF_CPUS = 0.5
# Of the host's memory: ml.g5.xlarge, with 16,384 MiB, accepted 1,024 and refused 4,096 (huggingface/skills, 2026-07).
# What lies between is not known.
SHARE_OF_MEMORY = 1 / 16


@dataclass(frozen=True, slots=True)
class Instance(Sourced):
    """One instance type; what no one published is `None`.

    Attributes:
        instance_type: SageMaker's name, `ml.g5.2xlarge`.
        accelerator_memory_bytes: Memory of one accelerator, as EC2 reports it.
        flops_16bit: Dense 16-bit floating point operations per second of one accelerator.
        flops_8bit: Dense FP8 operations per second; `None` where the accelerator has no FP8.
        link: How the accelerators of one instance are joined.
        nvme_gb: Local disk in GB (10^9 bytes); `None` without one.
        usd_per_hour: On-demand price per hour.
        price_component: What of SageMaker it is the price of: `Hosting`, or else what public data has; `unnamed` where
            the source names no component.
        price_source: Where the price was read.
        estimated_usd_per_hour: What it may cost where SageMaker's price is not public; no plan counts with it.
        estimate_source: How it was estimated.
        reservable: Whether a training plan can reserve it (botocore 1.44.8, ReservedCapacityInstanceType).
        savings_plan_usd_per_hour: Price per hour under a Savings Plan; `None` where no prices file gives one.
        purchase: How the environment buys instance hours of this type.
        purchase_usd_per_hour: Price per hour bought so; `None` on demand, and where no prices file gives it.
        region: The Region that it is planned for; `None` for the catalog's own row.
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
    reservable: bool = False
    savings_plan_usd_per_hour: float | None = None
    estimated_usd_per_hour: float | None = None
    estimate_source: str | None = None
    purchase: Purchase = "on_demand"
    purchase_usd_per_hour: float | None = None
    region: str | None = None

    @property
    def has_other_price(self) -> bool:
        """Whether the price is another Region's, as none is known for this one."""
        return self.usd_per_hour is not None and self.region not in {None, self.price_region}

    @property
    def is_offered(self) -> bool:
        """Whether it is known to be offered for endpoints in its Region; what is not known may be offered too."""
        offer = OFFERS.get(self.instance_type)
        has_price = self.region in {None, self.price_region}
        return has_price or (offer is not None and self.region in offer.regions)

    @property
    def estimate(self) -> str:
        """What it may cost where its price is not known, with how that was estimated, after a blank; else empty."""
        if self.usd_per_hour is not None or self.estimated_usd_per_hour is None:
            return ""
        return f" Estimated: {usd(self.estimated_usd_per_hour)} per hour for an instance ({self.estimate_source})."

    @property
    def unknown_there(self) -> str:
        """What is not known of price and offer, as sentences with a blank before each; empty where all is known."""
        price = self.estimate
        if self.has_other_price:
            price = f" Its price in {self.region} is not known, {self.price_region}'s counts."
        return price if self.is_offered else f"{price} It is not known to be offered in {self.region}."

    @property
    def dtype(self) -> Literal["bf16", "fp16"]:
        """What engines compute 16 bits in, where nothing else is written."""
        return "bf16" if self.has_bf16 else "fp16"


# Sorted by name.
INSTANCES: Final = CatalogTable(Instance, "instances.json", key="instance_type")


@dataclass(frozen=True, slots=True)
class HostingRegions(Sourced):
    """The Regions where an instance type has a price of Hosting; others may offer it too."""

    instance_type: str
    regions: tuple[str, ...]


OFFERS: Final = CatalogTable(HostingRegions, "regions.json#instance_types", key="instance_type")


def find_instance(instance_type: str) -> Instance | None:
    """Return an instance type's facts, or `None` when the catalog lacks it."""
    return INSTANCES.get(instance_type)


# vLLM documentation, quantization, supported hardware (Turing is the T4): Marlin kernels begin with Ampere, and 4-bit
# floating point weights (mxfp4, nvfp4) and groups of integers in experts have no other ones.
_NO_KERNELS = MappingProxyType({"NVIDIA T4": ("marlin", "exl2", "mxfp4", "nvfp4", "int4")})
_FP4_ARITHMETIC = ("Blackwell", "B200", "B300")


def has_kernels(instance: Instance, quantization: str) -> bool:
    """Return whether an engine can run such weights on an instance type, be it in 16-bit arithmetic."""
    return quantization not in _NO_KERNELS.get(instance.accelerator, ())


def computes_in(instance: Instance, quantization: str) -> bool:
    """Return whether the accelerator multiplies in the arithmetic of a quantization: `fp8`, `nvfp4`; else False."""
    if quantization == "nvfp4":
        return any(name in instance.accelerator for name in _FP4_ARITHMETIC)
    return quantization == "fp8" and (instance.flops_8bit is not None or "Blackwell" in instance.accelerator)


@dataclass(frozen=True, slots=True)
class Accelerator(Sourced):
    """One GPU, or one NeuronCore.

    Attributes:
        multiprocessors: Streaming multiprocessors (SMs); 1 for a NeuronCore.
        compute_capability: CUDA's, times ten, as engines compare it: 90 for Hopper; `None` for a NeuronCore.
        flops_4bit: Dense operations per second with 4-bit operands; `None` where it has no such arithmetic.
    """

    name: str
    multiprocessors: int
    compute_capability: int | None
    flops_4bit: int | None


ACCELERATORS: Final = CatalogTable(Accelerator, "accelerators.json", key="name")


def multiprocessors(name: str) -> int:
    """Return the streaming multiprocessors of an accelerator.

    Raises:
        KeyError: When the catalog lacks it; a test keeps every accelerator of the instances in it.
    """
    return ACCELERATORS[name].multiprocessors


def flops_4bit(name: str) -> int | None:
    """Return the operations per second with 4-bit operands; `None` without such arithmetic."""
    return ACCELERATORS[name].flops_4bit
