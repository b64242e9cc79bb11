"""Container images of the serving engines: versions and updates, registry accounts by region, AMI.

A line is an engine in one flavour: what its images bundle, or who builds them. `scripts/build_images.py` writes the
table.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final, Literal, get_args

from seatrial_base.catalog.rows import CatalogTable, Sourced, nearest_names, read_mapping
from seatrial_base.errors import PlanError

if TYPE_CHECKING:
    from collections.abc import Callable


ImageFamily = Literal["lmi", "tgi", "vllm", "sglang"]
Flavour = Literal["vllm", "cuda", "server", "huggingface", "trtllm", "neuronx", "deepspeed", "fastertransformer"]

# What an engine is unless its backend says otherwise; before LMI 10 vLLM and lmi-dist shipped in the DeepSpeed image.
_USUAL: dict[ImageFamily, tuple[Flavour, ...]] = {
    "lmi": ("vllm", "deepspeed"),
    "tgi": ("cuda",),
    "vllm": ("cuda",),
    "sglang": ("cuda",),
}
# AMIs whose driver is native to the image's CUDA (InferenceAmiVersion: 535 is CUDA 12.2, 550 is 12.4, 580 is 13.0).
_AMI_BY_CUDA = {
    "cu122": "al2-ami-sagemaker-inference-gpu-2",
    "cu124": "al2-ami-sagemaker-inference-gpu-3-1",
    "cu130": "al2023-ami-sagemaker-inference-gpu-4-1",
}
# CUDA that the driver of each AMI runs without a compatibility layer (InferenceAmiVersion, developer guide).
_CUDA_BY_AMI = {
    "al2-ami-sagemaker-inference-gpu-2": (12, 2),
    "al2-ami-sagemaker-inference-gpu-2-1": (12, 2),
    "al2-ami-sagemaker-inference-gpu-3-1": (12, 4),
    "al2023-ami-sagemaker-inference-gpu-4-1": (13, 0),
}
# CUDA that counts as the default AMI's: its driver is not documented, and CUDA 13 was seen to fail on it.
DEFAULT_AMI_CUDA = (12, 2)
# The InferenceAmiVersion with the newest driver.
NEWEST_AMI = "al2023-ami-sagemaker-inference-gpu-4-1"


@dataclass(frozen=True, slots=True)
class Build(Sourced):
    """One published build of a container.

    Attributes:
        flavour: What it bundles (`trtllm`, `neuronx`), or whose build it is (`huggingface`; `server` is AWS's line on
            Amazon Linux).
        version: Version as the catalog writes it: `0.36.0-lmi27.0.0`, `3.3.6`.
        lmi: Number of the LMI build; one DJL version covers several. `None` before DJL 0.25.
        cuda: CUDA of the image as its tag writes it, `cu130`; `None` when it has none or none is known.
        bundles: The inference library inside, where the version does not say it: `vLLM 0.23.1`.
        documented: How this build behaves has been read in its sources or documentation.
        missing_regions: Regions of the registry table for which it isn't listed.
    """

    family: ImageFamily
    flavour: Flavour
    version: str
    lmi: int | None
    repository: str
    tag: str
    cuda: str | None
    bundles: str | None
    documented: bool
    missing_regions: tuple[str, ...]


# Sorted by engine and version.
IMAGES: Final = CatalogTable(Build, "images.json")


@dataclass(frozen=True, slots=True)
class RegionalImage:
    """A build in one region: `account.dkr.ecr.region.suffix/repository:tag`.

    Attributes:
        uri: Address in the region's registry; listed, not pulled.
        ami_version: InferenceAmiVersion with a driver native to its CUDA; `None` when none is known.
    """

    build: Build
    uri: str
    ami_version: str | None


def resolve_image(
    family: ImageFamily,
    version: str | None,
    region: str,
    *,
    flavours: tuple[Flavour, ...] | None = None,
    accepted: Callable[[Build], bool] | None = None,
) -> RegionalImage:
    """Return a build's address in a region.

    Args:
        version: As the catalog writes it; an LMI build also by its number (`lmi27`, `27`), a DJL version (`0.36.0`,
            its newest documented build) or its tag. `None` takes the newest build whose behaviour is documented.
        flavours: The lines that may serve; the engine's usual one by default.
        accepted: Says which builds may be taken when no version is given; every one by default.

    Raises:
        PlanError: SEA303 when the version or the region is unknown.
    """
    builds = builds_of(family, flavours)
    matching = (
        [build for build in builds if version in _names(build)]
        if version
        else [build for build in builds if accepted is None or accepted(build)]
    )
    if not matching:
        requested = f"version {version} of {family}" if version else f"{family} with {' or '.join(flavours or ())}"
        raise _unknown(requested, version or "", [build.version for build in builds])
    build = max(matching, key=lambda build: (build.documented, _order(build)))
    if region not in regions_of_build(build):
        raise _unknown(f"{build.tag} in {region}", region, regions_of_build(build))
    return RegionalImage(build, uri(build, region), ami_version(build.cuda))


def builds_of(family: ImageFamily, flavours: tuple[Flavour, ...] | None = None) -> list[Build]:
    """Return the builds of an engine in some flavours, the usual ones by default."""
    chosen = flavours or _USUAL[family]
    return [build for build in IMAGES.rows if build.family == family and build.flavour in chosen]


def regions_of_build(build: Build) -> list[str]:
    """Return the regions for which a build is listed, sorted."""
    return sorted(set(registries()) - set(build.missing_regions))


def check_region(region: str) -> None:
    """Check that there are registries in a region.

    Raises:
        PlanError: SEA303 when none is known.
    """
    if region not in registries():
        raise _unknown(region, region, sorted(registries()))


def image_rank(build: Build) -> tuple[int, int, tuple[int, ...]]:
    """Return a key that is lowest for the builds of the foremost line, and grows from new to old within a line."""
    families, flavours = get_args(ImageFamily), get_args(Flavour)
    newest_first = tuple(-number for number in _order(build))
    return families.index(build.family), flavours.index(build.flavour), newest_first


def uri(build: Build, region: str) -> str:
    """Return the address of a build in a region for which it is listed."""
    return f"{registry(region)}/{build.repository}:{build.tag}"


def image_digest(uri: str) -> str | None:
    """Return the digest that an image's address names, as `sha256:…`; `None` when it names a tag alone."""
    _, at, digest = uri.partition("@sha256:")
    return f"sha256:{digest}" if at else None


def image_repository_uri(uri: str) -> str:
    """Return the registry and repository of an image's address, without tag or digest."""
    registry, _, rest = uri.partition("/")
    return f"{registry}/{rest.partition('@')[0].partition(':')[0]}"


def registry(region: str) -> str | None:
    """Return the registry of a region, `account.dkr.ecr.region.suffix`; `None` when none is known."""
    account = registries().get(region)
    return f"{account}.dkr.ecr.{region}.{dns_suffix(region)}" if account else None


def repositories(family: str) -> tuple[str, ...]:
    """Return the repositories that hold builds of an engine, sorted."""
    return tuple(sorted({build.repository for build in IMAGES.rows if build.family == family}))


def find_image(repository: str, tag: str) -> Build | None:
    """Return the build with a repository and tag; `None` when the catalog has none."""
    return next((build for build in IMAGES.rows if (build.repository, build.tag) == (repository, tag)), None)


def newer(build: Build) -> list[Build]:
    """Return the builds of the same line that came after a build, oldest first."""
    own_line = [other for other in builds_of(build.family, (build.flavour,)) if _order(other) > _order(build)]
    return sorted(own_line, key=_order)


def ami_version(cuda: str | None) -> str | None:
    """Return the InferenceAmiVersion whose driver is native to a CUDA (`cu130`); `None` when none is known."""
    return _AMI_BY_CUDA.get(cuda) if cuda else None


def ami_cuda(version: str) -> tuple[int, int] | None:
    """Return the newest CUDA that an InferenceAmiVersion runs natively, as (13, 0); `None` of an unknown one."""
    return _CUDA_BY_AMI.get(version)


def _order(build: Build) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", build.version))


def _names(build: Build) -> tuple[str, ...]:
    if build.family != "lmi":
        return (build.version, build.tag)
    number = () if build.lmi is None else (f"lmi{build.lmi}", str(build.lmi))
    return (build.version, build.tag, build.version.partition("-")[0], *number)


def _unknown(what: str, requested: str, known: list[str]) -> PlanError:
    names = nearest_names(requested, known) or tuple(known[-8:])
    hint = f"known: {', '.join(names)}; or give the image's URI in serving.image"
    return PlanError.of("SEA303", f"no image is known for {what}", hint=hint)


def dns_suffix(region: str) -> str:
    """Return what hosts of AWS in a Region end with, as `amazonaws.com`."""
    suffixes = read_mapping("images.json", "dns_suffixes")
    return next(suffix for prefix, suffix in suffixes.items() if region.startswith(prefix))


def console_host(region: str) -> str:
    """Return the host of AWS's console in the partition of a Region; a token counts as one of `aws`."""
    partitions = {"cn-": "console.amazonaws.cn", "us-gov-": "console.amazonaws-us-gov.com"}
    return next((host for prefix, host in partitions.items() if region.startswith(prefix)), "console.aws.amazon.com")


@cache
def registries() -> dict[str, str]:
    """Return the account of AWS's images in each Region."""
    return read_mapping("images.json", "accounts")


@dataclass(frozen=True, slots=True)
class ImageChange:
    """One thing that another build brings.

    Attributes:
        what: `LMI`, `vLLM`, `CUDA`, `InferenceAmiVersion` or `version`.
        before: Of the deployed build; `None` when it is not known or the service decides.
        after: Of the newer build.
    """

    what: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class Update:
    """What the catalog lists after a build, in a region.

    Attributes:
        newer: Documented builds that came after it, oldest first.
        unread: Builds that came after it whose behaviour no one has read, oldest first.
        changes: From the deployed build to the last of `newer`; none when there is none.
    """

    build: Build
    newer: tuple[Build, ...]
    unread: tuple[Build, ...]
    changes: tuple[ImageChange, ...]


def update_of(build: Build, region: str) -> Update:
    """Return what is listed after a build for a region."""
    after = [other for other in newer(build) if region in regions_of_build(other)]
    documented = tuple(other for other in after if other.documented)
    unread = tuple(other for other in after if not other.documented)
    return Update(build, documented, unread, image_changes(build, documented[-1]) if documented else ())


def image_changes(before: Build, after: Build) -> tuple[ImageChange, ...]:
    """Return what differs between two builds of a line."""
    texts = [build.bundles or "" for build in (before, after)]
    # The library's name with its two versions.
    library = max(text.rpartition(" ")[0] for text in texts) or "library"
    pairs = (
        ImageChange("LMI", _text(before.lmi), _text(after.lmi)),
        ImageChange("version", before.version, after.version),
        ImageChange(library, *(text.rpartition(" ")[2] or None for text in texts)),
        ImageChange("CUDA", _cuda(before.cuda), _cuda(after.cuda)),
        ImageChange("InferenceAmiVersion", ami_version(before.cuda), ami_version(after.cuda)),
    )
    return tuple(change for change in pairs if change.before != change.after)


def _text(number: int | None) -> str | None:
    return None if number is None else str(number)


def _cuda(cuda: str | None) -> str | None:
    """Return `13.0` for `cu130`."""
    return None if cuda is None else f"{cuda[2:-1]}.{cuda[-1]}"
