"""Patterns of ARNs: whether some ARN is of two of them, as a statement's resource and a resource type."""

from __future__ import annotations

import re
from functools import lru_cache

_FIELDS = 6
ANY, ANY_ONE, ANY_BUT_SLASH = "*", "?", "\N{SYMBOL FOR NULL}"
_WILD = frozenset({ANY, ANY_ONE, ANY_BUT_SLASH})
_PLACEHOLDER = re.compile(r"\$\{([^}]*)\}")
_WITHOUT_SLASH = frozenset({"BucketName"})
"""Placeholders that a slash ends: the ARN of a bucket is the beginning of those of its objects."""


def type_pattern(arn: str) -> str:
    """Return the pattern of a resource type's ARN: a placeholder as `${Account}` stands for any text."""
    return _PLACEHOLDER.sub(lambda found: ANY_BUT_SLASH if found[1] in _WITHOUT_SLASH else ANY, arn)


def completed(arn: str) -> str:
    """Return the pattern of a statement's resource; missing fields of an ARN are any (IAM user guide, Resource)."""
    missing = _FIELDS - arn.count(":") - 1
    return arn + ":*" * missing if arn.startswith("arn:") and missing > 0 else arn


@lru_cache(maxsize=2**16)
def patterns_overlap(statement: str, of_type: str) -> bool:
    """Return whether one ARN can match both patterns, in which `*` is any text and `?` any character.

    The fields before the sixth are compared one by one: none of them holds a colon.

    Args:
        statement: A statement's resource.
        of_type: What `type_pattern` returned.
    """
    fields = zip(completed(statement).split(":", _FIELDS - 1), of_type.split(":", _FIELDS - 1), strict=False)
    return all(_texts_overlap(first, second) for first, second in fields)


def _texts_overlap(first: str, second: str) -> bool:
    if ANY in (first, second) or first == second:
        return True
    for one, other in zip(first, second, strict=False):  # as far as both are plain, they must be the same
        if one in _WILD or other in _WILD:
            break
        if one != other:
            return False
    reached = _closed({0}, second)  # positions of `second`, for the part of `first` that was read
    for character in first:
        reached = _closed(_step(reached, character, second), second)
        if not reached:
            return False
    return len(second) in reached


def _step(reached: set[int], character: str, pattern: str) -> set[int]:
    """Return the positions after one more character; after `*` every position that a text of its own leads to."""
    if character == ANY:
        return set(range(min(reached), len(pattern) + 1))
    found = set[int]()
    for at in reached:
        expected = pattern[at] if at < len(pattern) else ""
        if expected == ANY or (expected == ANY_BUT_SLASH and character != "/"):
            found.add(at)
        elif expected and (character in {expected, ANY_ONE} or expected == ANY_ONE):
            found.add(at + 1)
    return found


def _closed(reached: set[int], pattern: str) -> set[int]:
    """Add the positions after placeholders that stand for nothing."""
    found, waiting = set(reached), list(reached)
    while waiting:
        at = waiting.pop()
        if at < len(pattern) and pattern[at] in {ANY, ANY_BUT_SLASH} and at + 1 not in found:
            found.add(at + 1)
            waiting.append(at + 1)
    return found
