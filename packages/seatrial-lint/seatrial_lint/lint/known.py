"""Keys that a container knows, by version: from its sources, its spellings and the bundled vLLM's arguments."""

from __future__ import annotations

import difflib
import heapq
from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal

from seatrial_base.catalog.engine_options import (
    NEURON_PREFIX,
    PREFIXES,
    KnownKey,
    all_known_keys,
    all_known_options,
    find_spellings,
    known_names,
)
from seatrial_base.catalog.engine_versions import DIALECTS, EngineName, Version, read_version, version_text, within
from seatrial_base.errors import RenderError
from seatrial_lint.lint.target import TargetContainer

if TYPE_CHECKING:
    from seatrial_base.catalog.engine_options import SpellingTable
    from seatrial_base.catalog.engine_versions import DialectName

# From LMI 14 on, any argument of vLLM's engine is passed on.
FIRST_PASSED_ON = (14,)
_TEXTS = frozenset(["model", "tokenizer", "hf_token", "api_key", "served_model_name", "enable_reasoning_parser"])
# scripts/build_engine_options.py: nothing is known of older versions.
_OLDEST_READ = {"tgi": "0.9.3", "sglang": "0.5.5"}
# Scopes that are read whatever runs the model.
_OF_NO_BATCHER = ("server", "java", "frontend")
# Above which a known name is suggested.
_NEAR = 0.7
# Share of letters in common above which a variable is taken for a slip.
_ALIKE = 0.85
# Names that are compared letter by letter.
_COMPARED = 5


@dataclass(frozen=True, slots=True)
class KeyVerdict:
    """What a container makes of a key that it doesn't read.

    Attributes:
        kind: Never known, or known elsewhere or at another time.
        because: In words, to follow the key.
        nearest: The known key that is written most like it; empty when none is.
    """

    kind: Literal["unknown", "elsewhere"]
    because: str
    nearest: str = ""


def judge(target: TargetContainer, name: str) -> KeyVerdict | None:
    """Return what is wrong with the name of an option; `None` when it is known, or when nothing tells."""
    return _verdict(target.engine, target.version, target.dialect, target.others, target.is_candidate, name)


@cache
def _verdict(  # noqa: PLR0917 (a key of the cache)
    engine: EngineName,
    version: Version,
    dialect: DialectName,
    others: tuple[DialectName, ...],
    is_candidate: bool,  # noqa: FBT001 (a key of the cache)
    name: str,
) -> KeyVerdict | None:
    target = TargetContainer(
        engine, version, dialect, "", assumed=False, because="", others=others, is_candidate=is_candidate
    )
    if name in _spelled(target.dialect, target.version) or name in known_names("lmi", "java"):
        return None
    if target.engine == "lmi":
        return _judge_lmi(target, name)
    if target.engine == "vllm":
        return _judge_vllm(target, name)
    # Judge a variable of an environment, where everybody may write: only what is named, or nearly, is judged.
    rows = _rows(target.engine, name)
    is_older = target.version < (read_version(target.engine, _OLDEST_READ.get(target.engine, "")) or (0,))
    if is_older or any(within(target.version, row.since, row.until) for row in rows):
        return None
    return KeyVerdict("elsewhere", _when(target, rows[0])) if rows else _near_slip(target, name)


def _judge_lmi(target: TargetContainer, name: str) -> KeyVerdict | None:
    rows, scopes = (
        _rows("lmi", name),
        {scope for dialect in (target.dialect, *target.others) for scope in DIALECTS[dialect].scopes},
    )
    existing = {row.scope for row in rows if within(target.version, row.since, row.until)}
    handed_on = target.dialect == "lmi-trtllm" and any(row.scope == "trtllm" for row in rows)
    if handed_on or existing & scopes:
        # TensorRT-LLM's own code, to which options are handed on, is not public.
        return None
    passes_on = _passes_on(target)
    if passes_on and _is_passed_on(target, name) is not False:
        return None
    if because := _read_elsewhere(target, name, existing - {"common"}, passes_on=passes_on):
        return KeyVerdict("elsewhere", because)
    if rows:
        own = [row for row in rows if row.scope in scopes]
        return KeyVerdict("elsewhere", _when(target, _nearest_row(target, own or list(rows))))
    nearest = "" if target.is_candidate else nearest_in(name, _names(target, passes_on=passes_on), _NEAR)
    return KeyVerdict("unknown", f"is unknown to {target.called}, which ignores it silently", nearest)


def _read_elsewhere(target: TargetContainer, name: str, batchers: set[str], *, passes_on: bool) -> str:
    """Return who else reads a key of LMI: another batcher of this version, or another version's vLLM."""
    if batchers:
        return f"is read by {_batcher(min(batchers))} only, not by {_batcher(target.dialect)}"
    numbers = [row.lmi for row in all_known_options() if passes_on and row.lmi and name in row.options]
    if not numbers:
        return ""
    if min(numbers) > target.version[0]:
        return f"is newer (first seen in LMI {min(numbers)}); {target.called} ignores it silently"
    return f"was removed from vLLM (last seen in LMI {max(numbers)}); {target.called} ignores it silently"


def _batcher(scope: str) -> str:
    return next(row.short_batcher for row in DIALECTS.rows if row.name in (scope, f"lmi-{scope}"))


def _nearest_row(target: TargetContainer, rows: list[KnownKey]) -> KnownKey:
    """Return the row that comes nearest: the one that ends last before the version, else the one that begins first."""
    ended = [row for row in rows if (read_version("lmi", row.since) or (0,)) <= target.version]
    if ended:
        return max(ended, key=lambda row: read_version("lmi", row.until or row.since) or (0,))
    return min(rows, key=lambda row: read_version("lmi", row.since) or (0,))


def _judge_vllm(target: TargetContainer, name: str) -> KeyVerdict | None:
    plain = name.removeprefix("no_")
    known = _between(target.version, _arguments(), plain)
    if plain in known_names("vllm", "frontend") or known:
        return None
    versions = [version for version, names in _arguments() if plain in names]
    if not versions and target.version > max(version for version, _ in _arguments()):
        return _near_slip(target, name)
    nearest = nearest_in(name, _names(target, passes_on=True), _NEAR)
    if not versions:
        return KeyVerdict("unknown", f"is not an argument of {target.called}, which does not start with it", nearest)
    if known is None and max(versions) == max(version for version, _ in _arguments()):
        # The newest that was read has it.
        return None
    last = version_text("vllm", max(versions))
    later = min(versions) > target.version
    first = version_text("vllm", min(versions))
    when = f"is newer (first seen in {first})" if later else f"was removed (last seen in {last})"
    return KeyVerdict("elsewhere", f"{when}: {target.called} does not start with it")


def _near_slip(target: TargetContainer, name: str) -> KeyVerdict | None:
    """Judge a name of which nothing is known: a slip is reported, anything else may be new."""
    nearest = nearest_in(name, _names(target, passes_on=target.engine == "vllm"), _ALIKE)
    return KeyVerdict("unknown", f"is unknown to {target.called}", nearest) if nearest else None


def _when(target: TargetContainer, row: KnownKey) -> str:
    since = read_version(target.engine, row.since)
    # Variables are passed over; SGLang's become arguments, of which it takes no unknown one.
    effect = "does not start with it" if target.engine == "sglang" else "ignores it silently"
    if since is not None and since > target.version:
        return f"is newer (first seen in {version_text(target.engine, since)}); {target.called} {effect}"
    last = read_version(target.engine, row.until or row.since)
    seen = version_text(target.engine, last or target.version)
    return f"was removed (last seen in {seen}); {target.called} {effect}"


def _is_passed_on(target: TargetContainer, name: str) -> bool | None:
    """Return whether the bundled vLLM has an argument; `None` where that build was not read and others differ."""
    return _between(target.version, tuple(((row.lmi,), row.options) for row in all_known_options() if row.lmi), name)


def _between(version: Version, known: tuple[tuple[Version, tuple[str, ...]], ...], name: str) -> bool | None:
    """Return whether a version has a name, from the versions that were read; `None` when they don't tell."""
    below = [names for number, names in known if number <= version]
    above = [names for number, names in known if number >= version]
    sides = [name in names for names in (*below[-1:], *above[:1])]
    if not below or not above:
        return True if any(sides) else None
    return sides[0] if all(side == sides[0] for side in sides) else None


@cache
def _arguments() -> tuple[tuple[Version, tuple[str, ...]], ...]:
    rows = [(read_version("vllm", row.vllm), row.options) for row in all_known_options() if row.vllm]
    return tuple(sorted((version, names) for version, names in rows if version))


def _names(target: TargetContainer, *, passes_on: bool) -> tuple[str, ...]:
    return _names_of(target.engine, target.dialect, target.version, passes_on)


@cache
def _names_of(engine: EngineName, dialect: DialectName, version: Version, passes_on: bool) -> tuple[str, ...]:  # noqa: FBT001 (a key of the cache)
    scopes = DIALECTS[dialect].scopes
    rows = (row for row in all_known_keys() if row.engine == engine and row.scope in scopes)
    names = {row.name for row in rows if within(version, row.since, row.until)} | _spelled(dialect, version)
    if engine == "lmi":
        names |= known_names("lmi", "server")
    if passes_on and engine == "lmi":
        names |= _options_of_build(version)
    if engine == "vllm":
        names |= {name for read, passed in _arguments() if read <= version for name in passed} | known_names(
            "vllm", "frontend"
        )
    return tuple(sorted(names))


@cache
def _spelled(dialect: DialectName, version: Version) -> frozenset[str]:
    try:
        table = find_spellings(dialect, ".".join(map(str, version)))
    except RenderError:
        return frozenset()
    if dialect == "vllm-neuronx":
        return frozenset(env.removeprefix(NEURON_PREFIX).lower() for env in _variables(table))
    if table.dialect.engine == "tgi":
        return frozenset(_variables(table))
    keys = {row.key.removeprefix("option.") for row in table.rows if row.key}
    # LMI's variables have no prefix of an engine.
    prefix = PREFIXES.get(table.dialect.engine, "-")
    return frozenset(keys | {env.removeprefix(prefix).lower() for env in _variables(table) if env.startswith(prefix)})


def _variables(table: SpellingTable) -> set[str]:
    return {row.env for row in table.rows if row.env}


def is_known_option(target: TargetContainer, name: str) -> bool:
    """Return whether a name is an option that the container knows for sure."""
    return name in _names(target, passes_on=True)


def _passes_on(target: TargetContainer) -> bool:
    return target.dialect in ("lmi-async", "lmi-vllm") and target.version >= FIRST_PASSED_ON


@cache
def _options_of_build(version: Version) -> frozenset[str]:
    """Return the options of the LMI build that was read nearest to a version."""
    numbers = [row.lmi for row in all_known_options() if row.lmi]
    build = min(numbers, key=lambda number: abs(number - version[0])) if numbers else None
    return frozenset(option for row in all_known_options() if row.lmi == build for option in row.options)


def carries(target: TargetContainer, name: str) -> bool:
    """Return whether a container is known to read an option, by the nearest version that was read."""
    if name in _spelled(target.dialect, target.version):
        return True
    if target.engine == "vllm":
        below = [names for version, names in _arguments() if version <= target.version]
        return name in known_names("vllm", "frontend") or name in (below[-1] if below else _arguments()[0][1])
    if _passes_on(target):
        return name in _options_of_build(target.version) or judge(target, name) is None
    rows = _rows(target.engine, name)
    scopes = DIALECTS[target.dialect].scopes
    return any(row.scope in scopes and within(target.version, row.since, row.until) for row in rows)


def takes_value(name: str) -> bool:
    """Return whether `true` may be the value of an argument of vLLM or SGLang, not the flag's own state."""
    return name in _TEXTS or name.endswith(("_config", "_token", "_name", "_template", "_path", "_dir"))


@cache
def _rows(engine: EngineName, name: str) -> tuple[KnownKey, ...]:
    return _by_name().get((engine, name), ())


@cache
def _by_name() -> dict[tuple[EngineName, str], tuple[KnownKey, ...]]:
    rows: dict[tuple[EngineName, str], tuple[KnownKey, ...]] = {}
    for row in all_known_keys():
        if row.scope in _OF_NO_BATCHER:
            continue
        rows[row.engine, row.name] = (*rows.get((row.engine, row.name), ()), row)
    return rows


def nearest_of(name: str, names: tuple[str, ...]) -> str:
    """Return the name that is written most like another; empty when none is near."""
    return nearest_in(name, names, 0.6)


@cache
def nearest_in(name: str, names: tuple[str, ...], cutoff: float) -> str:
    """Compare with the few names that share most pairs of letters, because comparing with all is slow."""
    shared = Counter(at for pair in _pairs(name[:80]) for at in _having(names).get(pair, ()))
    shares = ((count / (len(names[at]) + len(name)), -at) for at, count in shared.items())
    alike = [names[-at] for _, at in heapq.nlargest(_COMPARED, shares)]
    nearest = difflib.get_close_matches(name[:80], alike, n=1, cutoff=cutoff)
    return nearest[0] if nearest else ""


@cache
def _having(names: tuple[str, ...]) -> dict[str, list[int]]:
    places: dict[str, list[int]] = defaultdict(list)
    for at, name in enumerate(names):
        for pair in _pairs(name):
            places[pair].append(at)
    return dict(places)


def _pairs(name: str) -> frozenset[str]:
    return frozenset(name[at : at + 2] for at in range(len(name) - 1))
