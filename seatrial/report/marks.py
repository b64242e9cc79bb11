"""The gate and the knees, where they stand in every chart, and the place of a level on the axis of the load."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.report.chart.panel import Label, Mark

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from seatrial.bench.result import LevelResult, TrialResult

LONGEST = 27  # letters of a mark's label: from the middle of a narrow panel it fits to one side


def is_open(result: TrialResult) -> bool:
    """Return whether every level is of an open loop: then a level is named by the rate that it offered."""
    return bool(result.levels) and all(level.offered_requests_per_s is not None for level in result.levels)


def place_of(level: LevelResult, result: TrialResult) -> float:
    """Return where a level stands: its concurrency per copy, or the requests per second that an open loop offered."""
    offered = level.offered_requests_per_s
    return offered if is_open(result) and offered is not None else level.concurrency


def marks_of(result: TrialResult) -> tuple[Mark, ...]:
    """Return the gate and the knees by load: one mark for all that share a place, more where names are long."""
    gate = _gate(result)
    detectors: dict[float, list[str]] = {gate: [], **_detectors(result)}
    unit = "/s" if is_open(result) else ""
    return tuple(
        mark
        for at, found in sorted(detectors.items())
        for mark in _marks(at, f"{_named(at)}{unit}", found, is_gate=at == gate)
    )


def point_name(result: TrialResult, level: LevelResult) -> str:
    """Name a level in a chart over throughput: its load, and whether it is the gate or a knee."""
    at = place_of(level, result)
    found = _detectors(result).get(at, [])
    gate = ("gate",) if at == _gate(result) else ()
    knee = (f"knee ({', '.join(found)})",) if found else ()
    return " · ".join((f"{_named(at)}{'/s' if is_open(result) else ''}", *gate, *knee))


def point_label(result: TrialResult, level: LevelResult, place: tuple[float, float]) -> Label:
    """Return a level's name beside its point."""
    at = place_of(level, result)
    name = point_name(result, level)
    if at in _detectors(result):
        return Label(*place, name, "knee")
    return Label(*place, name, "gate" if at == _gate(result) else "plain")


def _named(at: float) -> str:
    return f"{round(at, 1):g}"


def _gate(result: TrialResult) -> float:
    """Return where the SLO must hold: of an open loop, at the highest rate offered."""
    return place_of(result.levels[-1], result) if is_open(result) else result.request.gate_concurrency


def _detectors(result: TrialResult) -> Mapping[float, list[str]]:
    """Return the detectors by the place of their knee; in an open loop, that of the level with this concurrency."""
    places: dict[float, float] = {level.concurrency: place_of(level, result) for level in reversed(result.levels)}
    detectors: dict[float, list[str]] = {}
    for knee in result.knees:
        at = None if knee.concurrency is None else places.get(knee.concurrency, knee.concurrency)
        if at is not None and (knee.concurrency in places or not is_open(result)):
            detectors.setdefault(at, []).append(knee.detector)
    return detectors


def _marks(at: float, name: str, detectors: list[str], *, is_gate: bool) -> Iterator[Mark]:
    preface = "gate and " if is_gate and detectors and _fits("gate and ", detectors[:1], name) else ""
    if is_gate and not preface:
        yield Mark(at, f"gate at {name}", "gate")
    while detectors:
        counts = range(1, len(detectors) + 1)
        taken = max(count for count in counts if count == 1 or _fits(preface, detectors[:count], name))
        yield Mark(at, _knee(preface, detectors[:taken], name), "knee")
        detectors, preface = detectors[taken:], ""


def _fits(preface: str, detectors: list[str], name: str) -> bool:
    return len(_knee(preface, detectors, name)) <= LONGEST


def _knee(preface: str, detectors: list[str], name: str) -> str:
    return f"{preface}knee ({', '.join(detectors)}) at {name}"
