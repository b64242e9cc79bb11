"""ARNs of S3 objects that have to fit into a policy: where there are too many, the longest prefixes that fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_QUOTES_AND_COMMA = 3


def fitting_prefixes(arns: Iterable[str], most_characters: int) -> tuple[str, ...]:
    """Return ARNs of objects, shortened to fewer folders until all of them fit; at last to their buckets.

    Args:
        arns: ARNs of objects, as `arn:aws:s3:::weights/llama/7b/*`.
        most_characters: Characters of the list in a policy.
    """
    given = sorted(set(arns))
    deepest = max((arn.count("/") for arn in given), default=1)
    for depth in range(deepest, 1, -1):
        prefixes = _shortened(given, depth)
        if sum(len(prefix) + _QUOTES_AND_COMMA for prefix in prefixes) <= most_characters:
            return prefixes
    return _shortened(given, 1)


def _shortened(arns: Iterable[str], depth: int) -> tuple[str, ...]:
    """Return ARNs with the bucket and at most some folders less one; what another of them covers is left out."""
    prefixes = {arn if arn.count("/") <= depth else f"{'/'.join(arn.split('/')[:depth])}/*" for arn in arns}
    wild = {prefix[:-1] for prefix in prefixes if prefix.endswith("/*")}
    return tuple(sorted(arn for arn in prefixes if not any(_covers(folder, arn) for folder in wild)))


def _covers(folder: str, arn: str) -> bool:
    return arn.startswith(folder) and arn != f"{folder}*"
