"""The tables that have a source a program can read, and what each source says of a row."""

from __future__ import annotations

import dataclasses
import json
import re
from typing import TYPE_CHECKING, Final

import botocore.session
from botocore import __version__ as botocore_version

from scripts.renewal.rows import Denied, Table, Told
from scripts.renewal.sources import names_in
from seatrial_base.catalog.architecture import architecture_of
from seatrial_base.catalog.config_json import checked_config_json
from seatrial_base.catalog.engines import ENGINE_CANDIDATES
from seatrial_base.catalog.images import IMAGES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from scripts.renewal.rows import Answer, Json, Row
    from scripts.renewal.sources import Archive, Sources

_REGISTRY: Final = "cfnlint/data/schemas"
_HOSTING: Final = f"{_REGISTRY}/extensions/aws_sagemaker_hosting/instancetype_enum.json"
_PARSERS: Final[Mapping[str, Mapping[str, tuple[str, str]]]] = {
    "vllm": {
        "tool_call_parser": ("vllm/tool_parsers/__init__.py", "_TOOL_PARSERS_TO_REGISTER"),
        "reasoning_parser": ("vllm/reasoning/__init__.py", "_REASONING_PARSERS_TO_REGISTER"),
    },
    "sglang": {
        "tool_call_parser": ("sglang/srt/function_call/function_call_parser.py", "ToolCallParserEnum"),
        "reasoning_parser": ("sglang/srt/parser/reasoning_parser.py", "DetectorMap"),
    },
}
"""Where an engine registers the names of its parsers."""
_FLAGS: Final[Mapping[str, tuple[str, str]]] = {
    "awq": ("vllm/model_executor/layers/quantization/__init__.py", '"awq"'),
    "fp8": ("vllm/model_executor/layers/quantization/__init__.py", '"fp8"'),
    "mxfp4": ("vllm/model_executor/layers/quantization/__init__.py", '"mxfp4"'),
    "smoothquant": ("vllm/model_executor/layers/quantization/__init__.py", '"compressed-tensors"'),
    "speculative": ("vllm/config/speculative.py", '"draft_model"'),
    "eagle3": ("vllm/config/speculative.py", '"eagle3"'),
    "ngram": ("vllm/config/speculative.py", '"ngram"'),
    "prefix_cache": ("vllm/config/cache.py", "enable_prefix_caching"),
    "kv_fp8": ("vllm/config/cache.py", '"fp8"'),
}
"""What vLLM calls an optimization, and where."""
_DRIVER_NAMES: Final[Mapping[str, str]] = {
    "NVIDIA T4": "Tesla T4",
    "NVIDIA A100 40GB SXM4": "NVIDIA A100-SXM4-40GB",
    "NVIDIA A100 80GB SXM4": "NVIDIA A100-SXM4-80GB",
    "NVIDIA H100 SXM5 80GB": "NVIDIA H100 80GB HBM3",
    "NVIDIA H200 SXM 141GB": "NVIDIA H200",
    "NVIDIA B200 SXM": "NVIDIA B200",
    "NVIDIA B300 SXM": "NVIDIA B300 SXM6 AC",
    "NVIDIA RTX PRO 4500 Blackwell Server": "NVIDIA RTX PRO 4500 Blackwell Server Edition",
    "NVIDIA RTX PRO 6000 Blackwell Server": "NVIDIA RTX PRO 6000 Blackwell Server Edition",
}
"""What the CUDA driver calls an accelerator; the others it calls as the catalog does."""
_LAST_IMAGE: Final = re.compile(r"the newest is DJL (0\.\d+)|its last image is DJL (0\.\d+)")
_FROZEN: Final[Mapping[str, str]] = {"lmi-trtllm": "trtllm", "lmi-neuronx": "neuronx", "lmi-deepspeed": "deepspeed"}


def regions(_: str, row: Row, sources: Sources) -> Answer:
    """Return the regions whose registry has a resource type, or whose price list has an instance type of Hosting."""
    package = sources.package("cfn-lint")
    if "instance_type" in row:
        listed = [(name, each) for name, each in json.loads(package.text(_HOSTING)).items() if isinstance(each, dict)]
        offering: list[Json] = [name for name, each in sorted(listed) if row["instance_type"] in each["enum"]]
        what = "(instance types with a Hosting price in each region, from AWS's pricing API)"
        return Told({"regions": offering}, f"cfn-lint {package.version}, {_HOSTING.partition('/')[2]} {what}")
    having: list[Json] = [region for region, types in sorted(_types(package).items()) if row["resource_type"] in types]
    registry = "data/schemas/providers/REGION.json (the CloudFormation registry's resource types of each region)"
    return Told({"regions": having}, f"cfn-lint {package.version}, {registry}")


def _types(package: Archive) -> dict[str, dict[str, str]]:
    """Return the file of each resource type, by region."""
    return {region: json.loads(text) for region, text in package.texts(f"{_REGISTRY}/providers")}


def replacement(_: str, row: Row, sources: Sources) -> Answer:
    """Tell whether the properties that name a resource still can't be changed."""
    told = str(row["source"])
    if not told.startswith("cfn-lint"):
        return None
    package = sources.package("cfn-lint")
    types: dict[str, str] = json.loads(package.text(f"{_REGISTRY}/providers/us-east-1.json"))
    schema = json.loads(package.text(f"{_REGISTRY}/resources/{types[str(row['resource_type'])]}.json"))
    fixed = {each.removeprefix("/properties/").replace("/", ".") for each in schema.get("createOnlyProperties", [])}
    gone = [each for each in _texts(row["named_by"]) if each not in fixed]
    if gone and "; " in told:  # another source says that they can't be changed
        return None
    if gone:
        return Denied(f"cfn-lint {package.version}: {', '.join(gone)} can be changed in place now")
    return Told({}, re.sub(r"cfn-lint [\d.]+", f"cfn-lint {package.version}", told))


def parsers(part: str, row: Row, sources: Sources) -> Answer:
    """Tell whether an engine's newest release registers the parsers of a family, and which ones there are."""
    engine = str(row["engine"])
    package = sources.package(engine)
    if part == "names":
        path, variable = _PARSERS[engine][str(row["option"])]
        every = {*_texts(row["names"]), *names_in(package.text(path), variable)}  # older releases may have more
        names: list[Json] = [*sorted(every)]
        return Told({"names": names}, f"{_release(row, 'and')} and {package.words} {path}")
    for field, (path, variable) in _PARSERS[engine].items():
        name, known = row[field], names_in(package.text(path), variable)
        if name is not None and name not in known:
            return Denied(f"{package.words} has no {field} {name}; it has {', '.join(sorted(known))}")
    return Told({}, f"{_release(row, '; registered in')}; registered in {package.words}")


def _release(row: Row, joint: str) -> str:
    """Return a row's source without the release that an earlier renewal has added behind a joint."""
    return re.sub(rf"{joint} \S+ [\d.post]+ \(PyPI\).*$", "", str(row["source"])).rstrip()


def symptoms(_: str, row: Row, sources: Sources) -> Answer:
    """Tell whether vLLM's newest release still writes the message of a row that is read from it."""
    told = str(row["source"])
    if not told.startswith("vLLM"):
        return None
    package = sources.package("vllm")
    pattern = re.compile(str(row["pattern"]), re.IGNORECASE)
    if not any(pattern.search(text) for text in package.python()):
        return Denied(f"{package.words} has no such message")
    return Told({}, f"{_release(row, '; found in')}; found in {package.words}")


def neuron(part: str, row: Row, sources: Sources) -> Answer:
    """Return the families that optimum-neuron's newest release serves; the other engines have had their last one."""
    if part != "engines" or row["option"] != "vllm-neuronx":
        return None
    package, path = sources.package("optimum-neuron"), "optimum/neuron/models/inference/auto_models.py"
    registered = re.findall(r'_for_inference\(\s*"(\w+)",\s*"text-generation"', package.text(path))
    families: list[Json] = sorted(set(registered))
    return Told({"families": families}, f"huggingface/optimum-neuron v{package.version} {path}, task text-generation")


def licences(_: str, row: Row, sources: Sources) -> Answer:
    """Return the licence that the model card of a row's source names."""
    found = re.match(r"huggingface\.co/(\S+/[^\s,]+), model card", str(row["source"]))
    if found is None:
        return None
    card = sources.card(found[1])
    name = card.get("license_name") if card.get("license") == "other" else card.get("license")
    if not isinstance(name, str):
        return Denied(f"the card of {found[1]} names no licence")
    return Told({"licence": name}, str(row["source"]))


def models(part: str, row: Row, sources: Sources) -> Answer:
    """Return the shape that the hub's `config.json` of a model tells."""
    config = sources.config(str(row["id"])) if part == "rows" else None
    if config is None:
        return None
    model = str(row["id"])
    found = architecture_of(checked_config_json(dict(config), model), name=model, source="", date="")
    facts: Row = {key: value for key, value in dataclasses.asdict(found).items() if key in row}
    return Told({**facts, "id": model}, f"huggingface.co/{model}, config.json")


def optimizations(part: str, row: Row, sources: Sources) -> Answer:
    """Return what vLLM has of what its containers support, and for which instances AWS's jobs make weights."""
    if part == "job_instances":
        families: list[Json] = list(dict.fromkeys(_family(each) for each in _job_instance_types()))
        return Told({"families": families}, f"botocore {botocore_version}, {_JOBS}")
    engines = _texts(row.get("engines"))
    if part != "engines" or not row["supported"] or row["until"] or not {"vllm", "lmi-vllm"} & set(engines):
        return None
    package = sources.package("vllm")
    for name in _texts(row["optimizations"]):
        path, word = _FLAGS[name]
        if word not in package.text(path):
            return Denied(f"{package.words} has no {word} in {path}")
    return Told({}, f"{_release(row, '; still in')}; still in {package.words}")


_JOBS: Final = "sagemaker 2017-07-24: CreateOptimizationJob, DeploymentInstanceType"


def _job_instance_types() -> list[str]:
    model = botocore.session.Session().get_service_model("sagemaker")
    shape = model.shape_for("OptimizationJobDeploymentInstanceType")
    return [str(each) for each in shape.metadata["enum"]]


def _family(instance_type: str) -> str:
    return instance_type.split(".")[1]


def engine_choice(part: str, row: Row, _: Sources) -> Answer:
    """Tell by the catalog's images which containers there are for GPUs and for Neuron, and which lines are frozen."""
    if part != "rules":
        return None
    newest = max(each.date for each in IMAGES.rows)
    source = f"AWS Deep Learning Containers, image tags, as images.json has them on {newest}"
    if row["id"] in {"gpu-image", "neuron-image"}:
        of_neuron = row["id"] == "neuron-image"
        found: list[Json] = [each.name for each in ENGINE_CANDIDATES.rows if ("neuronx" in each.flavours) == of_neuron]
        same = set(_texts(row["options"])) == {str(each) for each in found}
        return Told({} if same else {"options": found}, source)
    said = _LAST_IMAGE.search(str(row["because"]))
    if said is None:
        return None
    flavour = _FROZEN[_texts(row["options"])[0]]
    last = max((each.version for each in IMAGES.rows if (each.family, each.flavour) == ("lmi", flavour)), key=_order)
    if not last.startswith(f"{said[1] or said[2]}."):
        return Denied(f"images.json has {flavour} {last}: the line is not frozen at DJL {said[1] or said[2]}")
    return Told({}, source)


def _order(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)))


def accelerators(_: str, row: Row, sources: Sources) -> Answer:
    """Return how many multiprocessors the driver of a GPU counts: this machine's, or what was read on others."""
    name = _DRIVER_NAMES.get(str(row["name"]), str(row["name"]))
    found = sources.devices().get(name)
    if found is None:
        return None
    return Told({"multiprocessors": found}, f"multi_processor_count as the CUDA driver reports it for {name}")


def _texts(value: Json | Iterable[Json]) -> list[str]:
    return [str(each) for each in value] if isinstance(value, list) else []


def _named(*fields: str) -> Callable[[Row], str]:
    return lambda row: " ".join(str(row[each]) for each in fields if each in row)


TABLES: Final[Mapping[str, Table]] = {
    "accelerators": Table("accelerators.json", accelerators, _named("name")),
    "engine_choice": Table("engine_choice.json", engine_choice, _named("id")),
    "licences": Table("licences.json", licences, _named("source")),
    "models": Table("models.json", models, _named("id")),
    "neuron": Table("neuron.json", neuron, _named("option", "accelerator")),
    "optimizations": Table("optimizations.json", optimizations, _named("engines", "optimizations")),
    "parsers": Table("parsers.json", parsers, _named("engine", "models", "option")),
    "regions": Table("regions.json", regions, _named("resource_type")),
    "replacement": Table("replacement.json", replacement, _named("resource_type")),
    "symptoms": Table("symptoms.json", symptoms, _named("name")),
}
