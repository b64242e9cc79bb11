"""The variants of an endpoint as they are now: UpdateEndpointWeightsAndCapacities and scaling change them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from seatrial_laptop.aws.control_plane.records import Kind, production_variants
from seatrial_laptop.aws.json_document import Document, child, children, number, text_member, whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial_laptop.aws.control_plane.records import Record, Store


DESIRED: Final = "DesiredWeightsAndCapacities"
"""The member of an endpoint's request that keeps the changes since its configuration was deployed."""
SHADOWS: Final = "ShadowProductionVariants"
COUNT: Final = "DesiredInstanceCount"
WEIGHT: Final = "DesiredWeight"


@dataclass(frozen=True, slots=True)
class EmulatedVariant:
    """One variant of an endpoint.

    Attributes:
        document: What the endpoint configuration says about it.
        weight: Its share of the traffic, relative to the other variants.
        instances: How many instances it should have.
        is_shadow: Whether it gets copies of requests only.
    """

    name: str
    document: Document
    weight: float
    instances: int
    is_shadow: bool = False

    @property
    def has_model(self) -> bool:
        """Whether its instances run a model, not inference components."""
        return has_model(self.document)


def has_model(variant: Document) -> bool:
    """Return whether the instances of a variant run a model, not inference components."""
    pools = children(variant, "InstancePools")
    return "ModelName" in variant or any("ModelNameOverride" in pool for pool in pools)


def live_variants(store: Store, endpoint: Record) -> list[EmulatedVariant]:
    """Return the variants of an endpoint, its shadow variants last; none when its configuration was deleted."""
    config = store.find(Kind.ENDPOINT_CONFIG, text_member(endpoint.request, "EndpointConfigName"))
    return configured_variants(config, children(endpoint.request, DESIRED)) if config else []


def configured_variants(config: Record, desired: Sequence[Document] = ()) -> list[EmulatedVariant]:
    """Return the variants of an endpoint configuration, with weights and counts that were changed since."""
    changes = {text_member(each, "VariantName"): each for each in desired}
    shadows = children(config.request, SHADOWS)
    both = [(variant, False) for variant in production_variants(config)] + [(variant, True) for variant in shadows]
    return [_live(variant, changes, is_shadow=is_shadow) for variant, is_shadow in both]


def merged_changes(old: Sequence[Document], new: Sequence[Document]) -> list[Document]:
    """Return what is desired after one more request; a later value replaces an earlier one."""
    merged: dict[str, Document] = {}
    for change in (*old, *new):
        name = text_member(change, "VariantName")
        merged[name] = {**merged.get(name, {}), **change}
    return list(merged.values())


def _live(variant: Document, changes: dict[str, Document], *, is_shadow: bool) -> EmulatedVariant:
    name = text_member(variant, "VariantName")
    change = changes.get(name, {})
    initial = number(variant, "InitialVariantWeight") if "InitialVariantWeight" in variant else 1.0
    return EmulatedVariant(
        name=name,
        document=variant,
        weight=number(change, WEIGHT) if WEIGHT in change else initial,
        instances=whole(change, COUNT, whole(variant, "InitialInstanceCount", 1)),
        is_shadow=is_shadow,
    )


def async_config(store: Store, endpoint: Record) -> Document:
    """Return the AsyncInferenceConfig of an endpoint; empty for a real-time one."""
    return _member(store, endpoint, "AsyncInferenceConfig")


def is_asynchronous(store: Store, endpoint: Record) -> bool:
    """Return whether an endpoint takes asynchronous requests only."""
    return bool(async_config(store, endpoint))


def data_capture_config(store: Store, endpoint: Record) -> Document:
    """Return the DataCaptureConfig of an endpoint; empty for none."""
    return _member(store, endpoint, "DataCaptureConfig")


def metrics_config(store: Store, endpoint: Record) -> Document:
    """Return the MetricsConfig of an endpoint; empty for none."""
    return _member(store, endpoint, "MetricsConfig")


def _member(store: Store, endpoint: Record, key: str) -> Document:
    config = store.find(Kind.ENDPOINT_CONFIG, text_member(endpoint.request, "EndpointConfigName"))
    return child(config.request, key) if config else {}
