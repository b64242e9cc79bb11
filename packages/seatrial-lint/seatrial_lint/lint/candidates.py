"""What holds in every version that a configuration may be for, when nothing tells the version."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from seatrial_base.catalog.engine_versions import EngineName
    from seatrial_base.findings import Finding

# Versions at which something changed in how each container reads its options: oldest and newest, and one of each era
# (LMI: recommended batcher by LmiConfigRecommender.java; TGI: launcher/src/main.rs; vLLM: sagemaker_entrypoint.sh).
CANDIDATES: Mapping[EngineName, tuple[str, ...]] = MappingProxyType(
    {
        "lmi": ("lmi20", "lmi16", "lmi13", "lmi10"),
        "tgi": ("2.0.4", "2.4.0"),
        "vllm": ("0.11.0", "0.17.1", "0.23.0"),
        "sglang": ("0.5.5",),
    }
)
# Rules about the file, the service or the hub, which no version of a container changes.
_OF_ANY_VERSION = frozenset(
    [
        *("SEA302", "SEA320", "SEA323", "SEA324", "SEA325", "SEA329", "SEA330", "SEA331", "SEA335", "SEA338"),
        *("SEA341", "SEA342", "SEA343", "SEA365"),
    ]
)


def held_by_all(
    findings: list[Finding], engine: EngineName, found_in: Callable[[str], list[Finding]]
) -> tuple[list[Finding], int]:
    """Return the findings that every candidate version has, and how many errors and warnings are left out.

    Args:
        findings: Those of the assumed version.
        engine: The container.
        found_in: Gives the findings of another version.
    """
    open_ones = {_place(one) for one in findings if one.rule not in _OF_ANY_VERSION}
    held = set(open_ones)
    for version in CANDIDATES[engine]:
        if not held:
            break
        held &= {_place(one) for one in found_in(version)}
    kept = [one for one in findings if one.rule in _OF_ANY_VERSION or _place(one) in held]
    left_out = {_place(one) for one in findings if one.severity != "note"} & (open_ones - held)
    return kept, len(left_out)


def _place(finding: Finding) -> tuple[str, int, str]:
    return finding.rule, finding.place.line, finding.field
