"""What the configuration of an endpoint says about all of its variants."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial_laptop.aws.control_plane.records import Kind
from seatrial_laptop.aws.json_document import Document, child, text

if TYPE_CHECKING:
    from seatrial_laptop.aws.control_plane.records import Record, Store


def async_config(store: Store, endpoint: Record) -> Document:
    """Return the AsyncInferenceConfig of an endpoint; empty for a real-time one."""
    return _member(store, endpoint, "AsyncInferenceConfig")


def is_asynchronous(store: Store, endpoint: Record) -> bool:
    """Return whether an endpoint takes asynchronous requests only."""
    return bool(async_config(store, endpoint))


def data_capture_config(store: Store, endpoint: Record) -> Document:
    """Return the DataCaptureConfig of an endpoint; empty for none."""
    return _member(store, endpoint, "DataCaptureConfig")


def _member(store: Store, endpoint: Record, key: str) -> Document:
    config = store.find(Kind.ENDPOINT_CONFIG, text(endpoint.request, "EndpointConfigName"))
    return child(config.request, key) if config else {}
