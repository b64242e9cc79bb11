"""Replays a corpus of judged configurations through the lint, and prints what it judges otherwise.

    python benchmarks/lint/corpus.py FILE [--verbose] [--fix | --convert]

FILE has a JSON object a line: `id`, `files` (name to text), `engine` and `version` (null: not told), and the judgement:

- `expect`: `["clean"]`, no error is right; or rule IDs that must be found, at `key` where it is given.
- `absent`: `RULE@key`: this finding would be false.
- `wanted`: findings that must be there: `{"any_of": [RULE, …], "key": KEY}`; an empty key is any.
- `also`: `RULE@key`: this finding is right as well.

With `--fix`, every file is also mended: mending again must change nothing, nothing may be found that was not found
before, and where `clean` nothing but spellings, case and repetitions may change.

Exit 0 when all are judged alike, else 1. With `--convert`, each is converted to every container, newest and oldest
version, and what the lint says of the results is printed instead.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parents[2]))  # run as a file
from benchmarks.lint.conversions import convert_all
from seatrial_lint.lint.lint import Given, lint_sources, mended_text
from seatrial_lint.lint.read import read_content, read_path
from seatrial_lint.lint.source import ConfigSource, Unreadable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from seatrial_base.findings import Finding

MOST_SHOWN = 40


@dataclass(frozen=True, slots=True)
class Miss:
    """A case that is judged otherwise.

    Attributes:
        kind: `false error`, `false finding`, `missed`, `no verdict` or `bad fix`.
        case: The case's ID.
        what: Rule and key, and what was found.
    """

    kind: str
    case: str
    what: str


def main(file: Path, *, verbose: bool, fix: bool) -> int:
    """Replay a file and print misses and counts; return the exit status."""
    cases = _cases(file)
    began_s = time.perf_counter()
    misses = [miss for case in cases for miss in (*judged(case), *(mended(case) if fix else ()))]
    took_s = time.perf_counter() - began_s
    shown = misses if verbose else misses[:MOST_SHOWN]
    for miss in shown:
        print(f"{miss.kind}: {miss.case}\n    {miss.what}")
    if len(misses) > len(shown):
        print(f"… and {len(misses) - len(shown)} more (--verbose)")
    kinds = ", ".join(f"{count} {kind}" for kind, count in Counter(miss.kind for miss in misses).items())
    wrong = len({miss.case for miss in misses})
    print(f"{len(cases) - wrong} of {len(cases)} cases as judged{f' ({kinds})' if kinds else ''}; {took_s:.1f} s")
    return 1 if misses else 0


def _cases(file: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]


def judged(case: Mapping[str, object]) -> Iterator[Miss]:
    """Yield what the lint judges otherwise than the case."""
    name = str(case["id"])
    try:
        found = _found(case)
    except ValueError as error:
        yield Miss("no verdict", name, str(error))
        return
    expected = _texts(case.get("expect"))
    if expected == ["clean"]:
        for one in found:
            if one.severity == "error":
                yield Miss("false error", name, _shown(one))
    elif "wanted" not in case:
        key = str(case.get("key", ""))
        for rule in expected:
            yield from _missed(name, [rule], key, found)
    for absent in _texts(case.get("absent")):
        rule, _, key = absent.partition("@")
        yield from (Miss("false finding", name, _shown(one)) for one in found if _is(one, [rule], key))
    for also in _texts(case.get("also")):
        rule, _, key = also.partition("@")
        yield from _missed(name, [rule], key, found)
    wanted = case.get("wanted")
    for one_of in wanted if isinstance(wanted, list) else []:
        yield from _missed(name, _texts(one_of["any_of"]), str(one_of["key"]), found)


def mended(case: Mapping[str, object]) -> Iterator[Miss]:
    """Yield where mending is not idempotent, or makes something wrong."""
    name = str(case["id"])
    given = Given(case["engine"], case["version"])  # type: ignore[arg-type]  # of a file
    with tempfile.TemporaryDirectory() as folder:
        sources = [one for one in _sources(case, Path(folder)) if isinstance(one, ConfigSource)]
    for source in sources:
        before = lint_sources([source], given).findings
        text = mended_text(source, before, given)
        again = replace(source, text=text)
        after = lint_sources([one for one in _read_again(again) if isinstance(one, ConfigSource)], given).findings
        new = {one.message for one in after if one.severity != "note"} - {one.message for one in before}
        if mended_text(again, after, given) != text:
            yield Miss("bad fix", name, f"{source.file} is mended again")
        if new:
            yield Miss("bad fix", name, f"{source.file}: {min(new)}")


def _read_again(source: ConfigSource) -> Iterator[ConfigSource]:
    for one in read_content(source.text.encode(source.encoding), source.file):
        if isinstance(one, ConfigSource):
            beside = {name: fact for name, fact in source.facts.items() if name == "model_py"}
            yield replace(one, facts={**one.facts, **beside})


def _sources(case: Mapping[str, object], folder: Path) -> list[ConfigSource | Unreadable]:
    files = case["files"]
    if not isinstance(files, dict):
        raise TypeError("files is no mapping")
    for file, text in files.items():
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return list(read_path(folder))


def _found(case: Mapping[str, object]) -> tuple[Finding, ...]:
    engine, version = case["engine"], case["version"]
    with tempfile.TemporaryDirectory() as folder:
        sources = _sources(case, Path(folder))
    given = Given(engine, version)  # type: ignore[arg-type]  # of a file; an engine that is none is told as an error
    return lint_sources(sources, given).findings


def _missed(name: str, rules: list[str], key: str, found: tuple[Finding, ...]) -> Iterator[Miss]:
    if not any(_is(one, rules, key) for one in found):
        others = "; ".join(f"{one.rule}@{one.field}" for one in found) or "nothing"
        yield Miss("missed", name, f"{' or '.join(rules)}@{key or 'any'}; found: {others}")


def _is(one: Finding, rules: list[str], key: str) -> bool:
    return one.rule in rules and key in ("", one.field)


def _shown(one: Finding) -> str:
    return f"{one.rule} {one.severity} {one.field}: {one.message}"


def _texts(value: object) -> list[str]:
    return [str(one) for one in value] if isinstance(value, list) else []


if __name__ == "__main__":
    if "--convert" in sys.argv:
        sys.exit(convert_all(_cases(Path(sys.argv[1])), verbose="--verbose" in sys.argv))
    sys.exit(main(Path(sys.argv[1]), verbose="--verbose" in sys.argv, fix="--fix" in sys.argv))
