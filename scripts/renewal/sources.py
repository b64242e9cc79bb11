"""What publishes the facts of the catalog: packages of PyPI, the hub's model cards, AWS's API models, a GPU's driver.

The newest release of a package is fetched once into a folder of this machine. Each source can be given as a file, so
that a renewal runs without a network.
"""

from __future__ import annotations

import ast
import ctypes
import json
import re
import tarfile
import zipfile
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.error import HTTPError
from urllib.parse import urljoin
from urllib.request import Request, urlopen

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from scripts.renewal.rows import Row

FETCHED: Final = Path(__file__).resolve().parents[2] / ".seatrial" / "renewal"
INDEX: Final = "https://pypi.org/simple/"
HUB: Final = "https://huggingface.co/"
TIMEOUT_S: Final = 60.0
_LISTING: Final = "application/vnd.pypi.simple.v1+json"  # PEP 691
_RELEASE: Final = re.compile(r"-(\d+(?:\.\d+)*(?:\.post\d+)?)(?:\.tar\.gz$|-.*\.whl$)")
_MULTIPROCESSORS: Final = 16  # CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT of the CUDA driver API


@dataclass(frozen=True, slots=True)
class Archive:
    """A released package.

    Attributes:
        name: Its name on PyPI.
        version: Its version.
        file: Its wheel or source archive.
        read: The files that were read, by their paths.
    """

    name: str
    version: str
    file: Path
    read: dict[str, str] = field(default_factory=dict)

    @property
    def words(self) -> str:
        """As `vllm 0.33.0 (PyPI)`."""
        return f"{self.name} {self.version} (PyPI)"

    def text(self, path: str) -> str:
        """Return a file of the package.

        Args:
            path: Its path, as it is imported: without the folder that a source archive adds.

        Raises:
            FileNotFoundError: There is none: the package has moved it.
        """
        if path not in self.read:
            self.read.update((name, text) for name, text in self._texts(path.rpartition("/")[2]) if name == path)
        if path not in self.read:
            raise FileNotFoundError(f"{self.words} has no {path}")
        return self.read[path]

    def texts(self, folder: str) -> Iterator[tuple[str, str]]:
        """Yield the JSON files of a folder: their names without `.json`, and their texts."""
        for name, text in self._texts(".json"):
            if name.startswith(f"{folder}/"):
                yield name.rpartition("/")[2].removesuffix(".json"), text

    def python(self) -> Iterator[str]:
        """Yield the text of each Python file, texts that Python joins joined."""
        for name, text in self._texts(".py"):
            if "/tests/" not in f"/{name}":
                yield re.sub(r"""["']\s*\n\s*[rfb]*["']""", "", text)

    def _texts(self, end: str) -> Iterator[tuple[str, str]]:
        if self.file.suffix == ".whl":
            with zipfile.ZipFile(self.file) as wheel:
                for name in wheel.namelist():
                    if name.endswith(end):
                        yield name, wheel.read(name).decode("utf-8", "replace")
            return
        with tarfile.open(self.file) as archive:
            for member in archive:
                content = archive.extractfile(member) if member.isfile() and member.name.endswith(end) else None
                if content is not None:
                    yield member.name.partition("/")[2].removeprefix("src/"), content.read().decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class Sources:
    """What is asked.

    Attributes:
        given: Files in place of what would be fetched: of a package by its name, `hub`, `device`.
        folder: Where fetched packages are kept.
    """

    given: Mapping[str, Path]
    folder: Path
    seen: dict[str, Archive] = field(default_factory=dict)

    def package(self, name: str, version: str = "") -> Archive:
        """Return a release of a package, the newest one where none is named, or the file that was given for it."""
        key = f"{name} {version}"
        if key not in self.seen:
            file = self.given.get(name) or _fetched(name, version, self.folder)
            found = _RELEASE.search(file.name)
            if found is None or version not in {"", found[1]}:
                raise ValueError(f"{file.name} is no release {version or 'with a version'}, as vllm-0.33.0.tar.gz is")
            self.seen[key] = Archive(name, found[1], file)
        return self.seen[key]

    def card(self, model: str) -> Row:
        """Return what the hub's model card says: `license`, and `license_name` where that is `other`."""
        if "hub" in self.given:
            cards: dict[str, Row] = json.loads(self.given["hub"].read_text("utf-8"))
            return cards.get(model, {})
        with urlopen(f"{HUB}api/models/{model}", timeout=TIMEOUT_S) as answer:  # noqa: S310 (a fixed https address)
            told: dict[str, Any] = json.load(answer)
        return dict(told.get("cardData") or {})

    def config(self, model: str) -> Row | None:
        """Return the hub's `config.json` of a model; `None` where a licence must be accepted first."""
        if "hub" in self.given:
            configs: dict[str, Row] = json.loads(self.given["hub"].read_text("utf-8"))
            return configs.get(model)
        try:
            with urlopen(f"{HUB}{model}/raw/main/config.json", timeout=TIMEOUT_S) as answer:  # noqa: S310 (https)
                told: Row = json.load(answer)
        except HTTPError:
            return None
        return told

    def devices(self) -> dict[str, int]:
        """Return the multiprocessors of each GPU by the name that its driver gives it: this machine's, or of a file."""
        if "device" in self.given:
            found: dict[str, int] = json.loads(self.given["device"].read_text("utf-8"))
            return found
        return device_multiprocessors()


def device_multiprocessors() -> dict[str, int]:
    """Return the multiprocessors of this machine's GPUs, as the CUDA driver counts them; empty without a driver."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return {}
    count, found = ctypes.c_int(), dict[str, int]()
    if cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count)):
        return {}
    for index in range(count.value):
        device, cores, name = ctypes.c_int(), ctypes.c_int(), ctypes.create_string_buffer(96)
        cuda.cuDeviceGet(ctypes.byref(device), index)
        cuda.cuDeviceGetName(name, len(name), device)
        cuda.cuDeviceGetAttribute(ctypes.byref(cores), _MULTIPROCESSORS, device)
        found[name.value.decode()] = cores.value
    return found


def names_in(text: str, variable: str) -> frozenset[str]:
    """Return the texts that a Python file assigns to a variable: a dictionary's keys, a list's, a `Literal`'s.

    Raises:
        LookupError: No such variable: the package has moved it.
    """
    for node in ast.walk(ast.parse(text)):
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        if any(isinstance(each, ast.Name) and each.id == variable for each in targets):
            value = getattr(node, "value", None)
            return frozenset(_texts_of(value.keys if isinstance(value, ast.Dict) else [value]))
    raise LookupError(f"no {variable} there")


def _texts_of(nodes: list[Any]) -> Iterator[str]:
    for node in nodes:
        for each in ast.walk(node) if isinstance(node, ast.AST) else ():
            if isinstance(each, ast.Constant) and isinstance(each.value, str):
                yield each.value


@cache
def _fetched(name: str, version: str, folder: Path) -> Path:
    """Return the archive of a package's release: of its source and its wheels the smallest."""
    page = urljoin(INDEX, f"{name}/")
    with urlopen(Request(page, headers={"Accept": _LISTING}), timeout=TIMEOUT_S) as answer:  # noqa: S310 (https)
        files = [
            each for each in json.load(answer)["files"] if _RELEASE.search(each["filename"]) and not each["yanked"]
        ]
    wanted = _numbers(version) if version else max(_order(each["filename"]) for each in files)
    of_release = [each for each in files if _order(each["filename"]) == wanted]
    chosen = min(of_release, key=lambda each: (int(each["size"]), each["filename"]))
    file = folder / str(chosen["filename"])
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with urlopen(urljoin(page, chosen["url"]), timeout=TIMEOUT_S) as answer:  # noqa: S310 (https)
            file.write_bytes(answer.read())
    return file


def _order(filename: str) -> tuple[int, ...]:
    found = _RELEASE.search(filename)
    return _numbers(found[1]) if found else ()


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)))
