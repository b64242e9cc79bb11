"""What an engine refuses at load: how weights are stored, into what widths a degree cuts them, on which accelerator.

`engine_limits.json`: `builds` is read out of the engines' wheels (`scripts/build_engine_limits.py`), `storage` says how
published repositories store their weights, `limits` what a wheel does not say as data, `texts` what engines write into
their logs, `textless` which models give no text; each row names the issue, pull request or file that it rests on. The
planner, `validate`, lint and check judge by the same function, so that none passes what another refuses, and doctor
explains by the same row.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from seatrial_base.catalog.engine_versions import read_version, within
from seatrial_base.catalog.images import IMAGES
from seatrial_base.catalog.instances import ACCELERATORS
from seatrial_base.catalog.rows import CatalogTable, Sourced

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from seatrial_base.catalog.architecture import Architecture

Version: TypeAlias = tuple[int, ...]
_FP8_ARITHMETIC = 89  # vLLM's platforms/cuda.py, supports_fp8: below it, weights in FP8 have Marlin's kernels alone
_GONE = {"bitsandbytes": "bitsandbytes", "GGUF": "gguf"}
# How images name what is inside, and of which family the images are, where the option has another name.
_BUNDLED = {"vllm": "vLLM ", "sglang": "SGLang "}
_LOADERS = {"lmi": ("vllm", "lmi"), "lmi-vllm": ("vllm", "lmi")}


@dataclass(frozen=True, slots=True)
class EngineChecks(Sourced):
    """What a version of an engine, and those after it up to the next row's, says of itself.

    Attributes:
        methods: The compute capability, times ten, that each quantization method needs; `None` where it is computed.
        group_sizes: Groups that Marlin's kernels take; -1 is a whole column.
        smallest_group: Groups of experts in AWQ and GPTQ are halved down to it until they divide a rank's width.
        smallest_block: Blocks of FP8 experts are halved down to it, for Triton's kernels; `None` where they never are.
        splits_merged: A block may straddle the parts of merged matrices: gate and up, or queries, keys and values.
        holds_groups: Groups of experts in compressed-tensors must divide a rank's width.
        no_float16: Families that it does not compute in float16.
    """

    engine: str
    version: str
    methods: Mapping[str, int | None]
    group_sizes: tuple[int, ...] | None
    smallest_group: int | None
    smallest_block: int | None
    splits_merged: bool
    holds_groups: bool
    no_float16: tuple[str, ...]

    def called(self, version: Version | None) -> str:
        """Return the engine and a version of it, which is the row's where it isn't known, for users."""
        name = "vLLM" if self.engine == "vllm" else "SGLang"
        return f"{name} {'.'.join(map(str, version or ())) or self.version}"


@dataclass(frozen=True, slots=True)
class Storage(Sourced):
    """How repositories store weights of a quantization; the first row that fits one counts.

    Attributes:
        method: The checkpoint's `quant_method`.
        block: Weights that share a scale, as `Architecture.weight_block`.
        mlp_width: The width that the MLP was padded to before it was quantized; `None` where it was not.
    """

    quantization: str
    repositories: tuple[str, ...]
    method: str
    block: int | None
    mlp_width: int | None


@dataclass(frozen=True, slots=True)
class EngineLimit(Sourced):
    """What an engine can't load, or what nobody measured.

    Attributes:
        verdict: `refused`; `unmeasured`; or `cut`: refused where a rank gets a part of a block that shares a scale.
        formats: Quantizations, and formats that can't be planned; none for all.
        accelerators: Accelerators that it holds for; none for all.
        since: First version; `None` for every one up to `until`.
        of: Matrices of `cut`: `experts`, or `rows`, everything else that a degree cuts along its input.
    """

    id: str
    verdict: Literal["refused", "unmeasured", "cut"]
    engine: str
    formats: tuple[str, ...]
    accelerators: tuple[str, ...] = ()
    since: str | None = None
    until: str | None = None
    because: str = ""
    of: str = ""


@dataclass(frozen=True, slots=True)
class LimitText:
    """What an engine writes into its log where it refuses to load.

    Attributes:
        row: The row that refuses, without the engine's name: `fp8-experts` of `vllm-fp8-experts`.
        pattern: Regular expression of the text, whatever its case.
        source: Of a refusal that no other row has; empty where one has.
    """

    row: str
    engines: tuple[str, ...]
    pattern: str
    date: str
    source: str = ""


BUILDS: Final = CatalogTable(EngineChecks, "engine_limits.json#builds", key="engine")
STORAGE: Final = CatalogTable(Storage, "engine_limits.json#storage", key="quantization")
LIMITS: Final = CatalogTable(EngineLimit, "engine_limits.json#limits", key="engine")
TEXTS: Final = CatalogTable(LimitText, "engine_limits.json#texts", key="row")


@dataclass(frozen=True, slots=True)
class Start:
    """A deployment as its engine sees it at load.

    Attributes:
        engine: `vllm`, `sglang` or `tgi`: the code that loads, whatever container it is in (`loader_of`).
        version: Its version; `None` for one that nobody knows, which is taken as the newest.
        quantization: Of the weights that are loaded, or a format that can't be planned, as `GGUF`.
        degree: Tensor parallel degree.
        expert_degree: Groups that the experts are dealt out to.
        accelerator: Its name in the catalog; `None` where it isn't known.
        dtype: `bf16` or `fp16`.
        architecture: The model's shape; `None` where it isn't known: then widths are not judged.
    """

    engine: str
    version: Version | None
    quantization: str | None
    degree: int = 1
    expert_degree: int = 1
    accelerator: str | None = None
    dtype: str = "bf16"
    architecture: Architecture | None = None

    @property
    def capability(self) -> int | None:
        """The accelerator's compute capability, times ten; `None` where it isn't known, or has none."""
        row = ACCELERATORS.get(self.accelerator) if self.accelerator else None
        return row.compute_capability if row else None

    @property
    def published(self) -> Architecture | None:
        """The shape, where its weights are loaded as their repository stores them, and not quantized at start."""
        model = self.architecture
        return model if model and self.quantization == model.checkpoint_quantization else None

    @property
    def method(self) -> str:
        """The method by which the weights are quantized; empty for none, and where it isn't known."""
        return (self.published.weight_method if self.published else self.quantization) or ""


@dataclass(frozen=True, slots=True)
class StartRefusal:
    """Why an engine does not start so.

    Attributes:
        row: The row of the table that says it.
        of_experts: It falls away where each expert stays whole on one accelerator.
    """

    row: str
    because: str
    source: str
    of_experts: bool = False


def loader_of(option: str, version: Version | None) -> tuple[str, Version | None]:
    """Return the engine whose code loads the weights, and its version: of LMI, and of a server image, what is inside.

    Args:
        option: A name of `engine_choice.json`, or of an engine.
        version: The container's, as `read_version` reads it.
    """
    engine, family = _LOADERS.get(option, (option, option))
    inside = _BUNDLED.get(engine)
    if version is None or inside is None or (engine == option and version[0] == 0):
        return engine, version
    builds = [row for row in IMAGES.rows if row.family == family and (row.bundles or "").startswith(inside)]
    numbered = [(read_version("lmi" if row.lmi else "vllm", row.version) or (), row.bundles or "") for row in builds]
    newest = max((each for each in numbered if each[0] <= version), default=None)
    return engine, read_version("vllm", newest[1].removeprefix(inside)) if newest else None


def stored(architecture: Architecture, name: str, quantization: str | None) -> Architecture:
    """Return a shape with what is known of how a repository stores its weights of a quantization."""
    if quantization is None or (quantization == architecture.checkpoint_quantization and architecture.weight_method):
        return replace(architecture, checkpoint_quantization=quantization)
    row = next((row for row in STORAGE.having(quantization) if is_named(name, row.repositories)), None)
    return replace(
        architecture,
        checkpoint_quantization=quantization,
        weight_block=row.block if row else None,
        weight_method=row.method if row else None,
        mlp_width=(row.mlp_width if row else None) or architecture.mlp_width,
    )


def start_refusals(start: Start) -> tuple[StartRefusal, ...]:
    """Return every reason for which an engine ends at load; none where nothing is known against it."""
    return tuple(_refusals(start))


def start_cautions(start: Start) -> tuple[str, ...]:
    """Return what nobody measured of a deployment that may start."""
    return tuple(limit.because for limit in _limits(start, "unmeasured"))


def rows_in(text: str, engine: str | None = None) -> dict[str, str]:
    """Return the rows, with their sources, by which an engine writes a text at load; of each engine without one."""
    rows: dict[str, str] = {}
    for each in TEXTS.rows:
        for name in each.engines if re.search(each.pattern, text, re.IGNORECASE) else ():
            limit = next((one for one in LIMITS.having(name) if one.id == f"{name}-{each.row}"), None)
            if engine in (None, name):
                rows[f"{name}-{each.row}"] = limit.source if limit else each.source or BUILDS.having(name)[-1].source
    return rows


def is_named(name: str, patterns: tuple[str, ...]) -> bool:
    """Return whether a name fits one of some patterns; upper and lower case don't matter."""
    return any(fnmatchcase(name.lower(), pattern.lower()) for pattern in patterns)


def _limits(start: Start, verdict: str) -> Iterator[EngineLimit]:
    for limit in LIMITS.having(start.engine):
        fits = limit.verdict == verdict and (not limit.formats or start.quantization in limit.formats)
        fits = fits and (not limit.accelerators or start.accelerator in limit.accelerators)
        bounded = limit.since is not None or limit.until is not None
        if fits and (not bounded or (start.version is not None and within(start.version, limit.since, limit.until))):
            yield limit


def _build_of(start: Start) -> EngineChecks | None:
    """Return what the version says of itself: the newest row up to it; the oldest for an older one."""
    rows = BUILDS.having(start.engine)
    if start.version is None or not rows:
        return rows[-1] if rows else None
    older = [row for row in rows if within(start.version, row.version, None)]
    return older[-1] if older else rows[0]


def _refusals(start: Start) -> Iterator[StartRefusal]:
    yield from (StartRefusal(limit.id, limit.because, limit.source) for limit in _limits(start, "refused"))
    build, architecture, capability = _build_of(start), start.architecture, start.capability
    if build is None:
        return
    called, gone = build.called(start.version), _GONE.get(start.quantization or "")
    if gone and gone not in build.methods:
        because = f"{called} has no loader for {start.quantization} weights."
        yield StartRefusal(f"{build.engine}-methods", because, build.source)
    if architecture is None:
        return
    needed = build.methods.get(start.method)
    if needed is not None and capability is not None and capability < needed:
        because = f"{called} loads {start.method} weights from compute capability {needed / 10:g} on"
        own_words = f"the {start.accelerator} has {capability / 10:g}."
        yield StartRefusal(f"{build.engine}-capability", f"{because}; {own_words}", build.source)
    if start.dtype == "fp16" and architecture.family in build.no_float16:
        because = f"{called} does not compute {architecture.family} in float16"
        own_words = f"and the {start.accelerator} has no bf16."
        yield StartRefusal(f"{build.engine}-float16", f"{because}, {own_words}", build.source)
    if start.quantization is not None and start.published is not None:
        yield from _straddled(start, build, start.published)


def _straddled(start: Start, build: EngineChecks, architecture: Architecture) -> Iterator[StartRefusal]:
    """Yield where a degree cuts a matrix within a block of weights that share a scale."""
    block, degree = architecture.weight_block or 0, start.degree
    for split in _limits(start, "cut") if block else ():
        experts = split.of == "experts"
        parts = degree // start.expert_degree if experts else degree
        least = _smallest(start, build, block) if experts else block
        for name, width in _widths(architecture, build, split, degree).items():
            if parts == 1 or not (width % parts or width // parts % least):
                continue
            because = (
                f"{build.called(start.version)} ends at load: degree {degree} leaves {width / parts:g} of the "
                f"{width:,} columns of {name} to a rank, and {start.quantization} weights with a scale for each "
                f"{block} need a multiple of {least}."
            )
            yield StartRefusal(split.id, because, split.source, of_experts=experts)


def _widths(architecture: Architecture, build: EngineChecks, split: EngineLimit, degree: int) -> dict[str, int]:
    """Return the widths that a degree cuts: along the input, and of keys where merged matrices share no block."""
    if split.of == "experts":
        return {"an expert": architecture.expert_width} if architecture.expert_width else {}
    widths = {"the MLP": architecture.mlp_width or 0, "the shared experts": architecture.shared_width}
    if not architecture.is_mla:
        widths["the attention's output"] = architecture.attention_heads * architecture.head_dim
        if not build.splits_merged and split.formats == ("fp8",):
            # A rank has one KV head at least: they are copied where there are fewer than ranks.
            widths["keys"] = max(architecture.kv_heads, degree) * architecture.head_dim
    return {name: width for name, width in widths.items() if width}


def _smallest(start: Start, build: EngineChecks, block: int) -> int:
    """Return what an expert's width on a rank must be a multiple of."""
    if start.quantization == "fp8":
        # Only Triton's kernels take smaller blocks, and they compute in FP8.
        computes = start.capability is None or start.capability >= _FP8_ARITHMETIC
        least = build.smallest_block if computes else None
    else:
        regrouped = start.method in ("awq", "gptq")
        least = build.smallest_group if regrouped or not build.holds_groups else None
    return min(block, least or block)
