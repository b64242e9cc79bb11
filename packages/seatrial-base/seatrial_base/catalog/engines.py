"""Engines: how fast one runs on given hardware, the defaults of its batches, and which one serves a model best."""

from __future__ import annotations

import math
import re
import sys
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Final, Literal

from seatrial_base.catalog.engine_versions import newest_lmi, read_version
from seatrial_base.catalog.images import IMAGES
from seatrial_base.catalog.rows import CatalogTable, Sourced

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from seatrial_base.catalog.images import Flavour, ImageFamily


_VLLM = "vLLM "  # how an image says what it bundles

Family = Literal["lmi", "tgi", "vllm", "sglang", "trtllm", "neuron"]


@dataclass(frozen=True, slots=True)
class Performance(Sourced):
    """The constants of the performance model (`seatrial.planner.predict.iteration_cost`).

    Attributes:
        fitted: Whether they were fitted on measurements; assumed when not.
        cuda_graphs: Decode steps run as CUDA graphs: the host launches no kernel.
        product_factor: Time of matrix products over that of the measured kernels (`catalog/operators.py`).
        experts_factor: The same of experts.
        attention_factor: The same of attention.
        link_factor: The same of all-reduces.
        kernel_factors: What differs from these on one accelerator, as `NVIDIA B200 SXM/experts/mxfp4=0.61`.
        sharpness: How reading and arithmetic add up; 0 where each operator's own holds.
        step_s: Work between two iterations: scheduling, sampling, preparing the next one.
        layer_s: Small kernels of a layer: norms, rotary embedding, activation, quantization.
        kernels: Kernels that the host launches for one dense layer, all-reduces not counted.
        moe_kernels: The same for a layer with experts.
        kernel_launch_s: Time of the host to launch one kernel.
        sequence_s: Work of the server per sequence and step.
        input_token_s: Work of the server per prompt token.
        request_s: Time of a request before its prefill and after its last token: front end, tokenizer.
        front_end_s: What each other request that is sent with it adds: the front end is one process, which fills in
            chat templates and turns text into tokens. Felt where clients start together, since they stay together.
        bunching: Share of the requests in flight whose prompts arrive together, beyond those that chance brings.
        attention_token_s: Time of one head of one layer per token of context on one multiprocessor of an A10G; 0 where
            the kernel spreads a head over several.
        skew_s: What the ranks wait for each other in an all-reduce, for each further rank.
        sequence_rank: Share of `sequence_s` that each further rank adds to it.
        linear_layer_s: What a layer with linear attention takes beside `layer_s`: its many small kernels.
        block_scaling_layer_s: What a layer with experts takes beside `layer_s` where weights of 8 bits have a scale for
            each block, and inputs are scaled alike.
        expert_parallel_layer_s: What a layer takes beside `layer_s` where experts are dealt out to the ranks.
        sparse_layer_s: What a layer with sparse attention takes beside `layer_s`: choosing what it reads.
        experts_release: Logarithm of the time of experts over that in the minor release before (`Engine.releases`).
        reserve_bytes: Memory of one accelerator that neither weights nor KV cache can use.
        throughput_error: Band of throughputs where `catalog/data/bands.json` has none for the engine: the share that
            80 % of predictions were off by at most with configurations left out (TGI 1.x), or an assumption.
        latency_error: The same of latencies.
    """

    id: str
    fitted: bool
    cuda_graphs: bool
    product_factor: float
    experts_factor: float
    attention_factor: float
    link_factor: float
    kernel_factors: tuple[str, ...]
    sharpness: float
    step_s: float
    layer_s: float
    kernels: int
    moe_kernels: int
    kernel_launch_s: float
    sequence_s: float
    input_token_s: float
    request_s: float
    front_end_s: float
    bunching: float
    attention_token_s: float
    skew_s: float
    sequence_rank: float
    linear_layer_s: float
    block_scaling_layer_s: float
    expert_parallel_layer_s: float
    sparse_layer_s: float
    experts_release: float
    reserve_bytes: int
    throughput_error: float
    latency_error: float
    fitted_accelerators: tuple[str, ...]

    def factor(self, accelerator: str, operator: str, precision: str) -> float:
        """Return the time of an operator on an accelerator over that of the measured kernels."""
        plain = {
            "product": self.product_factor,
            "experts": self.experts_factor,
            "link": self.link_factor,
        }.get(operator, self.attention_factor)
        return plain * _factors(self.kernel_factors).get(f"{accelerator}/{operator}/{precision}", 1.0)


PERFORMANCE: Final = CatalogTable(Performance, "engines.json#performance", key="id")


@dataclass(frozen=True, slots=True)
class Engine(Sourced):
    """What the planner knows about one engine.

    Attributes:
        version_prefix: Versions that it holds for begin like this.
        constants: Row of its performance constants, or of those that it borrows.
        fitted: Whether the constants were fitted on this engine; borrowed or assumed when not.
        scheduler: Whether a prefill stops decoding, or prompts are mixed into decode steps in chunks.
        steps_between_prefills: Decode steps after which waiting prompts are admitted (`separate`).
        waiting_served_ratio: Share of the running batch that lets waiting prompts in at once (`separate`).
        kv_block_tokens: Tokens of one block of the KV cache.
        kv_reserved_output: Share of the output that holds room in the KV cache on average: all of it where the engine
            reserves it with the prompt, half where it grows token by token.
        moe_dense_tokens: Tokens up to which every expert is computed for every token.
        default_batched_tokens: Prompt tokens of one iteration by default.
        large_batched_tokens: The same on accelerators newer than the A100 with at least 70 GiB.
        largest_batched_release: First minor release of vLLM with more from 160 GiB on; `None` where none has.
        largest_batched_tokens: Prompt tokens from there on, in this version.
        memory_utilization: Share of the accelerator's memory that the engine takes by default.
        graphs_release: First minor release of vLLM whose share holds its CUDA graphs, too; `None` where none does.
        graphs_memory_utilization: Share from that release on.
        graphs_bytes: Memory of CUDA graphs within the share, of this version; before, they take of the rest.
        compiled_shapes: Batch and sequence length are compiled in: every step computes the whole batch over the whole
            length, and every prompt is filled up to it (AWS Neuron).
        batch_limit: Sequences that the planner batches at most.
        kv_share_of_rest: The engine takes `memory_utilization` of what weights and activations leave, not of the whole
            memory (TensorRT-LLM's `free_gpu_memory_fraction`).
        steps_ahead: Iterations that are decided on while another runs: what arrives meanwhile waits for them, too.
        keeps_window: A model whose every layer has a sliding window keeps no more than that of a sequence.
        measured_releases: Minor releases of the fit, the oldest, the one in the middle and the newest; none where
            releases differ in nothing.
        release_accelerators: Those on which rows of several releases were measured: elsewhere releases differ in
            nothing that is known.
        releases: Minor releases from the middle to this version, within those of the fit; 0 where the version is none.
        memory_share: What is taken of an accelerator's memory instead of `memory_utilization`, where a spec says it.
        most_kv_bytes: Its KV cache at most, where a spec says it; so `most_kv_tokens`, `most_kv_blocks`; 0 for none.
    """

    id: str
    family: Family
    version_prefix: str
    constants: str
    fitted: bool
    scheduler: Literal["separate", "chunked"]
    steps_between_prefills: int
    waiting_served_ratio: float
    kv_block_tokens: int
    kv_reserved_output: float
    moe_dense_tokens: int
    default_batched_tokens: int
    large_batched_tokens: int
    memory_utilization: float
    compiled_shapes: bool = False
    batch_limit: int = 256
    kv_share_of_rest: bool = False
    steps_ahead: int = 0
    keeps_window: bool = True
    measured_releases: tuple[int, ...] = ()
    release_accelerators: tuple[str, ...] = ()
    releases: int = 0
    largest_batched_release: int | None = None
    largest_batched_tokens: int = 0
    graphs_release: int | None = None
    graphs_memory_utilization: float = 0.0
    graphs_bytes: int = 0
    memory_share: float | None = None
    most_kv_bytes: float = 0.0
    most_kv_tokens: int = 0
    most_kv_blocks: int = 0

    @property
    def kernels(self) -> str:
        """The engine whose kernels these constants are factors on (`catalog.operators`)."""
        return self.constants.partition("-")[0]

    def experts_release_factor(self, accelerator: str) -> float:
        """Return the time of experts in this release over that in the middle one of the fit."""
        releases = self.releases if accelerator in self.release_accelerators else 0
        return math.exp(self.performance.experts_release * releases)

    @property
    def performance(self) -> Performance:
        """The performance constants of this engine, or those that it borrows."""
        return PERFORMANCE[self.constants]


ENGINES: Final = CatalogTable(Engine, "engines.json", key="family")
# AWS's line of vLLM on Amazon Linux counts versions of its own.
_VLLM_INSIDE: Final = {
    build.version: (build.bundles or "").removeprefix(_VLLM) for build in IMAGES.rows if build.flavour == "server"
}


@cache
def find_engine(family: Family, version: str) -> Engine:
    """Return the constants of an engine's version: those of the longest prefix that matches."""
    matching = [row for row in ENGINES.having(family) if version.startswith(row.version_prefix)]
    best = max(matching, key=lambda row: len(row.version_prefix))
    if not best.measured_releases:
        return best
    inside = _bundled_vllm(version) if family == "lmi" else _VLLM_INSIDE.get(version, version)
    minor = _minor(inside or version)
    # A build that tells no bundle is as fast as the ones before it, but nobody knows its defaults.
    known = bundle_is_known(version) if family == "lmi" else bool(inside)
    reached = minor if known and minor is not None else -1
    if family == "lmi" and known and inside:
        bundled = find_engine("vllm", inside)
        if bundled.constants != best.constants:
            best = replace(best, **{name: getattr(bundled, name) for name in ("constants", "scheduler")})
    counts = best.graphs_release is not None and reached >= best.graphs_release
    steps = best.largest_batched_release is not None and reached >= best.largest_batched_release
    oldest, middle, newest = best.measured_releases
    return replace(
        best,
        releases=0 if minor is None else min(newest, max(oldest, minor)) - middle,
        largest_batched_tokens=best.largest_batched_tokens if steps else best.large_batched_tokens,
        memory_utilization=best.graphs_memory_utilization if counts else best.memory_utilization,
        graphs_bytes=best.graphs_bytes if counts else 0,
    )


def release_of(family: str, version: str) -> tuple[int, ...] | None:
    """Return the release whose constants a version has, (0, 26) of LMI 28; `None` where nothing tells."""
    inside = version
    if family == "lmi":
        inside = _bundled_vllm(version) if bundle_is_known(version) else ""
    elif family == "vllm":
        inside = _VLLM_INSIDE.get(version, version)
    numbers = re.match(r"v?(\d+)\.(\d+)", inside)
    return tuple(int(number) for number in numbers.groups()) if numbers else None


def bundle_is_known(lmi_version: str) -> bool:
    """Return whether the catalog knows which vLLM a version of LMI bundles."""
    number = read_version("lmi", lmi_version)
    return number is not None and any(
        build.lmi == number[0] and (build.bundles or "").startswith(_VLLM) for build in IMAGES.rows
    )


def _minor(version: str) -> int | None:
    """Return the minor release of a vLLM, beyond all of them for another line of versions; `None` without one."""
    numbers = re.match(r"v?(\d+)\.(\d+)", version)
    if numbers is None:
        return None
    return int(numbers[2]) if numbers[1] == "0" else sys.maxsize


def _bundled_vllm(version: str) -> str:
    """Return the vLLM inside a version of LMI: of the newest build up to it that tells; of the newest for none."""
    number = read_version("lmi", version) or (newest_lmi(),)
    builds = [build for build in IMAGES.rows if build.family == "lmi" and (build.bundles or "").startswith(_VLLM)]
    known = [build for build in builds if build.lmi is not None and build.lmi <= number[0]]
    newest = max(known, key=lambda build: build.lmi or 0, default=None)
    return (newest.bundles or "").removeprefix(_VLLM) if newest else ""


@cache
def _factors(written: tuple[str, ...]) -> dict[str, float]:
    pairs = (entry.rpartition("=") for entry in written)
    return {name: float(value) for name, _, value in pairs}


Fact = Literal["accelerators", "architecture", "quantization", "speculation", "api"]
Facts = dict[Fact, str]


@dataclass(frozen=True, slots=True)
class EngineCandidate:
    """An engine with a backend.

    Attributes:
        backends: What `serving.backend` says for it.
        flavours: The lines of images that run it.
        last_lmi: Number of the last LMI build that has it; `None` where the lines themselves say it.
        automatic: It may be chosen where the spec fixes nothing.
        for_api: Paths of requests for which it may be chosen too, before the others.
    """

    name: str
    title: str
    engine: ImageFamily
    backends: tuple[str, ...]
    flavours: tuple[Flavour, ...]
    last_lmi: int | None
    automatic: bool
    for_api: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EngineRule(Sourced):
    """One row of the table.

    Attributes:
        when: Values of facts, all of which must fit; nothing fits every case.
        unless: Values of facts with which it says nothing; it says nothing either where such a fact is unknown.
        because: The reason, a sentence; `{title}`, `{instances}` and the facts are filled in.
    """

    id: str
    options: tuple[str, ...]
    verdict: Literal["for", "against", "excludes"]
    when: Mapping[Fact, tuple[str, ...]]
    unless: Mapping[Fact, tuple[str, ...]]
    because: str


# By preference.
ENGINE_CANDIDATES: Final = CatalogTable(EngineCandidate, "engine_choice.json#options", key="name")
ENGINE_RULES: Final = CatalogTable(EngineRule, "engine_choice.json#rules", key="options")


@dataclass(frozen=True, slots=True)
class EngineCase:
    """What the rules look at.

    Attributes:
        facts: `accelerators` (`gpu`, `neuron` or `both`), `architecture` (its family), `quantization`,
            `speculation` (the method) and `api` (of the workload); one that is unknown or not asked for is absent.
        instances: The allowed instance types, for users.
    """

    facts: Facts
    instances: str = "the instance type"


def best_candidate(case: EngineCase, among: Iterable[EngineCandidate] | None = None) -> EngineCandidate:
    """Return the first option that no rule excludes; the first of all when every one is excluded."""
    candidates = tuple(among) if among is not None else automatic_candidates(case)
    free = [option for option in candidates if not rule_reasons(case, option, "excludes")]
    return (free or list(candidates))[0]


def rule_reasons(case: EngineCase, option: EngineCandidate, *verdicts: str) -> list[str]:
    """Return the sentences of the rules that fit a case and say one of the verdicts of an option."""
    words = {"title": option.title, "instances": case.instances} | {
        str(name): fact for name, fact in case.facts.items()
    }
    fitting = [rule for rule in ENGINE_RULES.having(option.name) if rule.verdict in verdicts]
    return [rule.because.format_map(words) for rule in fitting if _fits(rule, case.facts)]


def why_chosen(case: EngineCase, option: EngineCandidate) -> str:
    """Return why an option is chosen: what speaks for it, and what against those that were passed over."""
    every = automatic_candidates(case)
    others = [other for other in every if other != option]
    preferred = every[: every.index(option)] if option in every else ()
    passed = [other for other in others if other in preferred or not rule_reasons(case, other, "excludes")]
    against = [sentence for other in passed for sentence in rule_reasons(case, other, "excludes", "against")[:1]]
    return " ".join([*rule_reasons(case, option, "for"), *against])


def choice_warnings(case: EngineCase, option: EngineCandidate, fixed_by: str) -> tuple[str, ...]:
    """Return a warning of what speaks against an option, in one piece; none when nothing does.

    `fixed_by`: the fields of the spec that fix it, as `serving.engine`; empty when it was chosen.
    """
    against, best = rule_reasons(case, option, "excludes", "against"), best_candidate(case)
    if not against:
        return ()
    if option == best:
        return (" ".join(against),)
    favour = rule_reasons(case, option, "for")
    started = f"SEA353: {fixed_by} fixes {option.title}; Seatrial would take {best.title}."
    return (" ".join([started, *against, *(f"Advantage: {sentence}" for sentence in favour)]),)


def status_of(engine: str, flavour: str) -> str | None:
    """Return how an engine's line of images stands when it gets no new versions; `None` when it does."""
    line = (engine, flavour)
    option = next((option for option in ENGINE_CANDIDATES.rows if (option.engine, option.flavours[0]) == line), None)
    fitting = ENGINE_RULES.having(option.name) if option else ()
    return next((rule.because for rule in fitting if rule.id.endswith("-status")), None)


def automatic_candidates(case: EngineCase | None = None) -> tuple[EngineCandidate, ...]:
    """Return the options that are chosen among unless the spec fixes one, best first."""
    api = case.facts.get("api") if case else None
    first = tuple(option for option in ENGINE_CANDIDATES.rows if api in option.for_api)
    return (*first, *(option for option in ENGINE_CANDIDATES.rows if option.automatic and option not in first))


def _fits(rule: EngineRule, facts: Facts) -> bool:
    within = all(facts.get(fact) in values for fact, values in rule.when.items())
    return within and all(fact in facts and facts[fact] not in values for fact, values in rule.unless.items())
