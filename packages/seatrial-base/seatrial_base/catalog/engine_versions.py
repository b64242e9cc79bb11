"""One total order of versions for each engine.

LMI is ordered by its build number, because one DJL version (0.36.0) covers eleven builds. Builds before 8 have no
number of their own: counting on downwards, DJL 0.25 is 7 (AWS calls it V7), 0.24 is 6 and 0.23 is 5. From DJL 0.23 to
0.35 the number is the minor version less 18. TGI, vLLM and SGLang are ordered by their version's numbers.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Literal

from seatrial_base.catalog.images import all_images

EngineName = Literal["lmi", "tgi", "vllm", "sglang"]
Version = tuple[int, ...]

OLDEST_LMI = 5
_PARTS = 3
_MINOR_LESS_NUMBER = 18
_MINORS_WITH_ONE_BUILD = range(23, 36)
_NAMES: dict[EngineName, str] = {"lmi": "LMI", "tgi": "TGI", "vllm": "vLLM", "sglang": "SGLang"}


def read_version(engine: EngineName, text: str) -> Version | None:
    """Return a version as a tuple that compares in the order of release; `None` when the text names none.

    LMI is read from a build (`0.36.0-lmi27.0.0`), a number (`lmi27`, `27`), a DJL version (`0.25.0`), or an image tag.
    """
    return _lmi(text) if engine == "lmi" else _numbers(engine, text)


def given_version(engine: EngineName, text: str) -> Version:
    """Return a version that a user names.

    Raises:
        ValueError: When the text names none, or a build of LMI that is not known; it says which are.
    """
    version = read_version(engine, text)
    if engine == "lmi" and (version is None or not OLDEST_LMI <= version[0] <= newest_lmi()):
        known = f"lmi{OLDEST_LMI} (DJL 0.{OLDEST_LMI + _MINOR_LESS_NUMBER}) to lmi{newest_lmi()}"
        raise ValueError(f"{text!r} is not a known version of LMI; known: {known}")
    if version is None:
        raise ValueError(f"{text!r} is not a version of {_NAMES[engine]}")
    return version


@cache
def newest_lmi() -> int:
    """Return the number of the newest build of LMI in the catalog."""
    return max(build.lmi for build in all_images() if build.family == "lmi" and build.lmi is not None)


def version_text(engine: EngineName, version: Version) -> str:
    """Return a version for people: `LMI 27`, `TGI 3.3.6`."""
    if engine == "lmi" and version[0] <= 7:  # noqa: PLR2004 (the last without a number of its own)
        return f"DJL 0.{version[0] + _MINOR_LESS_NUMBER}"
    return f"{_NAMES[engine]} {'.'.join(map(str, version))}"


def _lmi(text: str) -> Version | None:
    if found := re.search(r"lmi[-_]?(\d+)", text.lower()):
        return (int(found[1]),)
    if re.fullmatch(r"\d+", text):
        return (int(text),) if int(text) >= OLDEST_LMI else None
    if not (found := re.match(r"v?0\.(\d+)(\.|$)", text)):
        return None
    minor = int(found[1])
    if minor in _MINORS_WITH_ONE_BUILD:
        return (minor - _MINOR_LESS_NUMBER,)
    return _newest_of_djl(text.partition("-")[0].removeprefix("v"))


def _newest_of_djl(djl: str) -> Version | None:
    builds = [build for build in all_images() if build.family == "lmi" and build.version.startswith(f"{djl}-")]
    numbers = [build.lmi for build in builds if build.lmi is not None and build.documented] or [
        build.lmi for build in builds if build.lmi is not None
    ]
    return (max(numbers),) if numbers else None


def _numbers(engine: str, text: str) -> Version | None:
    if engine == "tgi" and "optimum" in text:  # a tag that leads with PyTorch's version: `2.7.0-optimum3.3.6-neuronx-…`
        found = re.search(r"optimum([1-9]\d*(?:\.\d+)+)", text)
    else:
        named = re.search(rf"{engine}[-_]?v?(\d+(?:\.\d+)+)", text.lower())
        found = named or re.match(r"v?(\d+(?:\.\d+)*)", text)
    if not found:
        return None
    numbers = tuple(int(number) for number in found[1].split("."))
    return numbers + (0,) * (_PARTS - len(numbers))
