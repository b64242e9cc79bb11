"""Container images of the serving engines: versions, registry accounts by region, the AMI that their CUDA needs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from seatrial.catalog.table import nearest, read_mapping, read_rows
from seatrial.errors import PlanError

if TYPE_CHECKING:
    from seatrial.catalog.engines import Family

# AMIs whose driver is native to the image's CUDA (InferenceAmiVersion: 535 is CUDA 12.2, 550 is 12.4, 580 is 13.0).
_AMI_BY_CUDA = {
    "cu122": "al2-ami-sagemaker-inference-gpu-2",
    "cu124": "al2-ami-sagemaker-inference-gpu-3-1",
    "cu130": "al2023-ami-sagemaker-inference-gpu-4-1",
}


@dataclass(frozen=True, slots=True)
class Build:
    """One published build of a container.

    Attributes:
        family: The engine.
        version: Version as the catalog writes it: `0.36.0-lmi27.0.0`, `3.3.6`.
        lmi: Number of the LMI build; one DJL version covers several.
        repository: ECR repository.
        tag: Image tag.
        cuda: CUDA of the image as its tag writes it, `cu130`.
        documented: How this build behaves has been read in its sources or documentation.
        missing_regions: Regions of the registry table for which it isn't listed.
        source: Where it was listed.
        date: When.
    """

    family: Family
    version: str
    lmi: int | None
    repository: str
    tag: str
    cuda: str | None
    documented: bool
    missing_regions: tuple[str, ...]
    source: str
    date: str


@dataclass(frozen=True, slots=True)
class Image:
    """A build in one region: `account.dkr.ecr.region.suffix/repository:tag`.

    Attributes:
        build: The build.
        uri: Address in the region's registry; listed, not pulled.
        ami_version: InferenceAmiVersion with a driver native to its CUDA; `None` when none is known.
    """

    build: Build
    uri: str
    ami_version: str | None


def resolve(family: Family, version: str | None, region: str) -> Image:
    """Return a build's address in a region.

    Args:
        family: The engine.
        version: As the catalog writes it; an LMI build also by its number (`lmi27`, `27`), a DJL version (`0.36.0`,
            its newest documented build) or its tag. `None` takes the newest build whose behaviour is documented.
        region: AWS region.

    Raises:
        PlanError: SEA303 when the version or the region is unknown.
    """
    builds = [build for build in every() if build.family == family]
    matching = [build for build in builds if version is None or version in _names(build)]
    if not matching:
        raise _unknown(f"version {version} of {family}", version or "", [build.version for build in builds])
    build = max(matching, key=_newest)
    accounts = _accounts()
    if region not in accounts or region in build.missing_regions:
        raise _unknown(f"{build.tag} in {region}", region, sorted(set(accounts) - set(build.missing_regions)))
    uri = f"{accounts[region]}.dkr.ecr.{region}.{_dns_suffix(region)}/{build.repository}:{build.tag}"
    return Image(build, uri, ami_version(build.cuda))


@cache
def every() -> tuple[Build, ...]:
    """Return every build, sorted by engine and version."""
    return read_rows("images.json", Build)


def ami_version(cuda: str | None) -> str | None:
    """Return the InferenceAmiVersion whose driver is native to a CUDA (`cu130`); `None` when none is known."""
    return _AMI_BY_CUDA.get(cuda) if cuda else None


def _names(build: Build) -> tuple[str, ...]:
    if build.lmi is None:
        return (build.version, build.tag)
    return (build.version, build.tag, build.version.partition("-")[0], f"lmi{build.lmi}", str(build.lmi))


def _newest(build: Build) -> tuple[bool, tuple[int, ...]]:
    return build.documented, tuple(int(number) for number in re.findall(r"\d+", build.version))


def _unknown(what: str, asked: str, known: list[str]) -> PlanError:
    names = nearest(asked, known) or tuple(known[-8:])
    hint = f"known: {', '.join(names)}; or give the image's URI in serving.image"
    return PlanError.of("SEA303", f"no image is known for {what}", hint=hint)


def _dns_suffix(region: str) -> str:
    suffixes = read_mapping("images.json", "dns_suffixes")
    return next(suffix for prefix, suffix in suffixes.items() if region.startswith(prefix))


@cache
def _accounts() -> dict[str, str]:
    return read_mapping("images.json", "accounts")
