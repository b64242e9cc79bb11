"""What the address of an image alone tells: whether SageMaker can pull it, whose it is, and what it can run on.

Nothing is said of an image of one's own but what its address says; a tag that can't be read says nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final, Literal

from seatrial_base.catalog.images import IMAGES, builds_of, dns_suffix, newer, registries, uri
from seatrial_base.catalog.rows import CatalogTable, Sourced, nearest_names, read_mapping

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial_base.catalog.images import Build, ImageFamily
    from seatrial_base.findings import Severity

_ADDRESS = re.compile(
    r"(?:(?P<host>[^/]*[.:][^/]*)/)?(?P<path>[a-z0-9._/-]+)(?::(?P<tag>[\w.-]+))?(?:@(?P<digest>.+))?"
)
_ECR = re.compile(r"(?P<account>\d{12}|\W.*)\.dkr\.ecr(?:-fips)?\.(?P<region>[a-z0-9-]+|\W.*?)\.(?P<suffix>[a-z.]+)")
_PATCHED = re.compile(r"(?:-v\d+(?:\.\d+)*)?(?:-\d{4}-\d{2}-\d{2}[\d-]*)?(?:-soci)?$")
_UNRELEASED = re.compile(r"dev|nightly|alpha|beta|\brc|preview")
_LMI = re.compile(r"(?P<djl>\d+\.\d+)(?:\.\d+)?-lmi(?P<lmi>\d+)\b")
_ARM = re.compile(r"arm64|aarch64")
_X86 = re.compile(r"amd64|x86[_-]64")
_FOR_GPU = re.compile(r"-gpu-|\bcu1\d\d|-cuda")
_INSTANCE = re.compile(r"ml\.(?P<family>[a-z]+)\d+(?P<attributes>[a-z]*)(?:-(?P<more>\w+))?\.")
# Families without accelerators: general, compute and memory, and burstable.
_CPU_FAMILIES = frozenset(["c", "m", "r", "t"])
# Digits of an account that a slip leaves: nobody else's begins or ends alike by chance.
_SAME_DIGITS = 6


@dataclass(frozen=True, slots=True)
class AddressParts:
    """The parts of an image's address; empty where only the deployment knows them, or the registry has none.

    `suffix`: what the host of a registry of Amazon ECR ends with, `amazonaws.com`; empty of another one.
    """

    host: str
    account: str
    region: str
    suffix: str
    path: str
    tag: str
    has_digest: bool

    @property
    def name(self) -> str:
        """The last part of the repository."""
        return self.path.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class ImageProblem:
    """What is wrong with an image's address; a severity overrules that of the rule of its kind."""

    kind: Literal["registry", "place", "tag", "start", "instance"]
    message: str
    hint: str
    severity: Severity | None = None


@dataclass(frozen=True, slots=True)
class Upstream(Sourced):
    """An image that an engine's project publishes; `starts` says what `serve`, which SageMaker passes, comes to."""

    names: tuple[str, ...]
    starts: str
    family: ImageFamily | Literal[""]


@dataclass(frozen=True, slots=True)
class OtherRepository(Sourced):
    """A repository of AWS that holds no build of the catalog's engines; `registry` is its table of accounts."""

    repository: str
    registry: Literal["accounts", "algorithm_accounts"]
    serves: Literal["embeddings", "text"]
    accelerator: Literal["cpu", "gpu", ""]
    tags: tuple[str, ...]


UPSTREAM: Final = CatalogTable(Upstream, "images.json#upstream", key="names")
OTHERS: Final = CatalogTable(OtherRepository, "images.json#other_repositories", key="repository")


def read_address(text: str) -> AddressParts | None:
    """Return the parts of an image's address; `None` of a text that is none, such as a placeholder."""
    found = _ADDRESS.fullmatch(text)
    host = found["host"] if found else None
    # A name without a registry and an account is one of this machine, or a helper's.
    if found is None or (host is None and "/" not in found["path"]):
        return None
    ecr = _ECR.fullmatch(host or "")
    parts = [ecr[name] if ecr else "" for name in ("account", "region", "suffix")]
    account, region, suffix = (part if part[:1].isalnum() else "" for part in parts)
    return AddressParts(
        host or "docker.io", account, region, suffix, found["path"], found["tag"] or "", bool(found["digest"])
    )


def judge_image(
    text: str, region: str | None = None, own_account: str = "", instance_type: str = "", *, is_private: bool = False
) -> Iterator[ImageProblem]:
    """Yield what is wrong with an image's address.

    Args:
        text: The address.
        region: Where it is deployed; nothing is said of it where nobody knows.
        own_account: The account of the role, whose copies of AWS's images are its own matter.
        instance_type: What it runs on; likewise.
        is_private: It is pulled through the VPC (RepositoryAccessMode Vpc), from any registry there.
    """
    address = read_address(text)
    if address is None:
        return
    if instance := _INSTANCE.match(instance_type):
        yield from _runs(address, instance_type, instance)
    if not address.suffix and not is_private and re.fullmatch(r"[a-z0-9.:-]+", address.host):
        hint = "push it to a private Amazon ECR repository in the endpoint's Region"
        message = f"SageMaker pulls no image from {address.host}: it takes private repositories of Amazon ECR"
        yield ImageProblem("registry", message, hint)
    if (row := _upstream(address)) is not None:
        message = f"{address.name} of its project does not start in SageMaker, which passes `serve`: {row.starts}"
        severity: Severity = "warning" if address.suffix else "error"
        yield ImageProblem("start", message, _instead(row, region or address.region), severity)
    if address.suffix:
        yield from _placed(address, region, own_account)
    if address.suffix and is_of_aws(address):
        yield from _tagged(address)


def _upstream(address: AddressParts) -> Upstream | None:
    row = UPSTREAM.get(address.name)
    if row is None or "sagemaker" in f"{address.path}:{address.tag}" or is_of_aws(address):
        return None
    # In one's own registry a short name, as `sglang`, is that of any image; a long one is kept with a copy.
    return row if not address.suffix or "-" in address.name else None


def _instead(row: Upstream, region: str) -> str:
    own = "build an image whose entrypoint takes `serve` and answers on port 8080"
    builds = [build for build in builds_of(row.family) if build.documented] if row.family else []
    if not builds or region not in registries():
        return own
    return f"use AWS's image, {uri(builds[-1], region)}, or {own}"


def _placed(address: AddressParts, region: str | None, own_account: str) -> Iterator[ImageProblem]:
    """Yield a registry of another Region or account than AWS's image has."""
    if region and address.region and region != address.region:
        message = f"the image is in {address.region}, and the model in {region}: SageMaker pulls from its own Region"
        known = _expected(address.name, region)
        hint = f"write {known}.dkr.ecr.{region}.{dns_suffix(region)}" if known else f"copy the image to {region}"
        yield ImageProblem("place", message, hint)
    expected = _expected(address.name, address.region)
    if expected is None or not address.account or address.account in (expected, own_account):
        return
    place = f"{expected}.dkr.ecr.{address.region}.{dns_suffix(address.region)}"
    if address.account in _accounts_of_aws() or _is_slip(address.account, expected):
        message = f"AWS's images for {address.region} are in account {expected}, not in {address.account}"
        yield ImageProblem("place", message, f"write {place}/{address.path}")
    elif any(_is_same(address.tag, tag) for tag in _tags(address.name)):
        message = f"{address.account} is no registry of AWS: it works only where it is a copy of your own"
        yield ImageProblem("place", message, f"AWS's own is {place}/{address.path}:{address.tag}", "note")


def _expected(repository: str, region: str) -> str | None:
    """Return the account of a repository of AWS in a Region; `None` where it is none of AWS, or not known."""
    other = OTHERS.get(repository)
    if other is None and repository not in _repositories():
        return None
    return _table(other.registry if other else "accounts").get(region)


def _is_slip(account: str, expected: str) -> bool:
    return account[:_SAME_DIGITS] == expected[:_SAME_DIGITS] or account[-_SAME_DIGITS:] == expected[-_SAME_DIGITS:]


@cache
def _table(name: str) -> dict[str, str]:
    return read_mapping("images.json", name)


@cache
def _accounts_of_aws() -> frozenset[str]:
    tables = (_table(name) for name in ("accounts", "algorithm_accounts"))
    return frozenset(account for table in tables for account in table.values())


@cache
def _repositories() -> frozenset[str]:
    return frozenset(build.repository for build in IMAGES.rows)


def is_of_aws(address: AddressParts) -> bool:
    """Return whether an image is one that AWS builds, or a copy under its name and tag."""
    if address.name not in _repositories() and address.name not in OTHERS:
        return False
    expected = _expected(address.name, address.region) or "none"
    if address.account and (address.account in _accounts_of_aws() or _is_slip(address.account, expected)):
        return True
    if any(_is_same(address.tag, tag) for tag in _tags(address.name)):
        return True
    # In an unknown account: `vllm` and `sglang` are everybody's names.
    return bool(address.suffix) and not address.account and ("-" in address.name or "sagemaker" in address.tag)


def _tags(repository: str) -> tuple[str, ...]:
    other = OTHERS.get(repository)
    return other.tags if other else tuple(build.tag for build in IMAGES.rows if build.repository == repository)


def _tagged(address: AddressParts) -> Iterator[ImageProblem]:
    """Yield a tag that AWS's repository does not have, as far as its lists tell."""
    builds, tags = [build for build in IMAGES.rows if build.repository == address.name], _tags(address.name)
    if address.tag in ("", "latest") and not address.has_digest:
        message = f"AWS's {address.name} has no tag latest, and no image is without a tag"
        yield ImageProblem("tag", message, f"write {address.path}:{tags[-1]}")
        return
    if not address.tag or _UNRELEASED.search(address.tag) or any(_is_same(address.tag, tag) for tag in tags):
        return
    if (numbered := _LMI.match(address.tag)) and address.name == "djl-inference":
        yield from _numbered(address, numbered, builds)
        return
    nearest = nearest_names(_PATCHED.sub("", address.tag), tags)
    if nearest and not _is_newer(address.tag, nearest[0], builds):
        message = f"AWS's lists have no tag {address.tag} of {address.name}"
        yield ImageProblem("tag", message, f"listed: {', '.join(nearest)}", "note")


def _numbered(address: AddressParts, tag: re.Match[str], builds: list[Build]) -> Iterator[ImageProblem]:
    """Yield a build of LMI with a version of DJL that it isn't of, or one before the first that is called so."""
    of_line = [build for build in builds if build.flavour == "vllm" and build.lmi is not None]
    number = int(tag["lmi"])
    first, last = of_line[0], max(build.lmi or 0 for build in of_line)
    own = next((build for build in of_line if build.lmi == number), None)
    severity: Severity | None = None
    if own is None:
        because, hint = f"LMI {number} has no image of this name", f"the first is {first.tag}"
    elif not own.version.startswith(f"{tag['djl']}."):
        because, hint = f"LMI {number} is of DJL {own.version.partition('-')[0]}", f"write {own.tag}"
    else:
        because, hint, severity = f"its lists have LMI {number} as {own.tag}", f"write {own.tag}", "note"
    if own is not None or 0 < number <= last:
        yield ImageProblem("tag", f"AWS lists no djl-inference:{address.tag}: {because}", hint, severity)


def _is_same(written: str, listed: str) -> bool:
    """Return whether a tag is a listed one, but for its patch level and parts of versions that it leaves out."""
    parts = zip(*(_PATCHED.sub("", tag).split("-") for tag in (written, listed)), strict=False)
    counts = {_PATCHED.sub("", tag).count("-") for tag in (written, listed)}
    return len(counts) == 1 and all(own == of or of.startswith(f"{own}.") for own, of in parts)


def _is_newer(tag: str, nearest: str, builds: list[Build]) -> bool:
    """Return whether a tag may be of an image that came after the lists."""
    near = next((build for build in builds if build.tag == nearest), None)
    last = (newer(near) or [near])[-1].tag if near else nearest
    return _order(tag) > _order(last)


def _order(tag: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", _PATCHED.sub("", tag))]


def _runs(address: AddressParts, instance_type: str, instance: re.Match[str]) -> Iterator[ImageProblem]:
    """Yield an instance type that can't run an image, by architecture and by what its tag says that it needs."""
    name, other = f"{address.path}:{address.tag}".lower(), OTHERS.get(address.name)
    of_aws = is_of_aws(address)
    is_graviton = "g" in instance["attributes"] or (instance["more"] or "").startswith("gb")
    is_arm = _ARM.search(name) is not None
    is_x86 = _X86.search(name) is not None or (of_aws and not is_arm)
    if is_arm != is_graviton and (is_arm or is_x86):
        has, needs = ("arm64", "x86_64") if is_graviton else ("x86_64", "arm64")
        message = f"the image is for {needs}, and {instance_type} is {has}: the container ends with `exec format error`"
        yield ImageProblem("instance", message, f"build it for {has}, or choose an instance type of {needs}")
    has_gpu = instance["family"] not in _CPU_FAMILIES
    for_gpu = (other is not None and other.accelerator == "gpu") or _FOR_GPU.search(name) is not None
    if for_gpu and not has_gpu:
        message = f"the image needs a GPU, and {instance_type} has none"
        yield ImageProblem("instance", message, "choose an instance type with GPUs, or the image for CPUs")


def serves_embeddings(text: str) -> bool:
    """Return whether an image serves embeddings and rerankers, and generates no text."""
    address = read_address(text)
    other = OTHERS.get(address.name) if address else None
    return other is not None and other.serves == "embeddings"
