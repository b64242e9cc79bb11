"""An engine of the catalog with constants that are being fitted."""

from __future__ import annotations

from seatrial_base.catalog.engines import Engine, Performance


class _Fitting(Engine):
    """Its constants are its own, not the catalog's."""

    __slots__ = ("_constants",)

    def __init__(self, engine: Engine, constants: Performance) -> None:
        super().__init__(**{name: getattr(engine, name) for name in Engine.__dataclass_fields__})
        object.__setattr__(self, "_constants", constants)

    @property
    def performance(self) -> Performance:
        return self._constants  # type: ignore[no-any-return, attr-defined]  # (a slot set by __init__)


def with_constants(engine: Engine, constants: Performance) -> Engine:
    """Return an engine that runs with these constants."""
    return _Fitting(engine, constants)
