"""The three batching modes of AWS's articles on LMI, for the containers of their day and for today's.

The articles (LMI 0.23 to 0.25, Falcon-40B on ml.g5.48xlarge) compare dynamic batching (`engine=Python`,
`batch_size=4`, `max_batch_delay=100`) with continuous batching (`engine=MPI`, `rolling_batch=auto`,
`max_rolling_batch_size=32`, `max_rolling_batch_prefill_tokens=1024`) without and with paged attention.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from seatrial_base.catalog.engine_versions import existing_dialects, read_version
from seatrial_base.errors import RenderError
from seatrial_lint.engines.config import ServingConfig
from seatrial_lint.engines.engine_options import DynamicBatching
from seatrial_lint.engines.neutral import Form, Note, Rendered, render_config

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial_base.catalog.engine_versions import DialectName, Version

Mode = Literal["dynamic", "continuous", "continuous-paged"]
BATCH_SIZE, MAX_DELAY_MS, MAX_NUM_SEQS, PREFILL_TOKENS = 4, 100, 32, 1024  # as in the articles
LAST_WITH_A_CHOICE = (7,)  # DJL 0.25: `paged_attention` was removed in 0.26
FIRST_CONTINUOUS_BY_DEFAULT = (8,)


@dataclass(frozen=True, slots=True)
class ModeConfig:
    """One batching mode for one version of LMI.

    Attributes:
        config: What the engine shall do.
        dialect: How its container is configured.
        notes: What differs from the mode that the articles measured.
    """

    config: ServingConfig
    dialect: DialectName
    notes: tuple[Note, ...]


@dataclass(frozen=True, slots=True)
class Model:
    """What is served, whatever the mode.

    Attributes:
        id: Hub id, S3 URI or path.
        tensor_parallel_degree: GPUs that one copy is sharded over.
        dtype: Type of weights and activations.
    """

    id: str
    tensor_parallel_degree: int
    dtype: Literal["fp16", "bf16"] = "fp16"


FALCON_40B = Model("tiiuae/falcon-40b", 8)  # what the articles served, on eight A10G


def batching_mode(mode: Mode, version: str, model: Model = FALCON_40B) -> ModeConfig:
    """Return a batching mode as the articles measured it, or its nearest honest equivalent in a later container.

    Raises:
        RenderError: SEA307 when the text names no version of LMI.
    """
    number = read_version("lmi", version)
    if number is None:
        raise RenderError.of("SEA307", f"{version!r} is not a version of lmi", hint="write 0.25.0 or lmi27")
    served = ServingConfig(model_id=model.id, tensor_parallel_degree=model.tensor_parallel_degree, dtype=model.dtype)
    if mode == "dynamic":
        batching = DynamicBatching(batch_size=BATCH_SIZE, max_delay_ms=MAX_DELAY_MS)
        config = served.model_copy(update={"dynamic_batching": batching})
        return ModeConfig(config, "lmi-python", tuple(_dynamic_notes(number)))
    return _continuous(served, version, number, paged=mode == "continuous-paged")


def render_mode(mode: Mode, version: str, form: Form = "properties", model: Model = FALCON_40B) -> Rendered:
    """Render a batching mode; the notes say what differs from the articles and what the engine does differently.

    Raises:
        RenderError: As `batching_mode` and `render_config`.
    """
    chosen = batching_mode(mode, version, model)
    rendered = render_config(chosen.config, chosen.dialect, version, form)
    return Rendered(rendered.files, rendered.env, (*chosen.notes, *rendered.notes))


def _continuous(served: ServingConfig, version: str, number: Version, *, paged: bool) -> ModeConfig:
    dialect: DialectName = "lmi-dist" if "lmi-dist" in existing_dialects("lmi", version) else "lmi-async"
    batching = {
        "continuous_batching": True if dialect == "lmi-dist" else None,
        "max_num_seqs": MAX_NUM_SEQS,
        "max_num_batched_tokens": PREFILL_TOKENS,
        "paged_attention": paged if number <= LAST_WITH_A_CHOICE else None,
    }
    notes = tuple(_continuous_notes(number, dialect, paged=paged))
    return ModeConfig(served.model_copy(update=batching), dialect, notes)


def _dynamic_notes(number: Version) -> Iterator[Note]:
    if number >= FIRST_CONTINUOUS_BY_DEFAULT:
        message = "Written as rolling_batch=disable: the default since LMI 8 is continuous batching."
        yield Note("dynamic_batching", message)


def _continuous_notes(number: Version, dialect: DialectName, *, paged: bool) -> Iterator[Note]:
    if number <= LAST_WITH_A_CHOICE:
        return
    if paged:
        yield Note("paged_attention", "Always on since DJL 0.26, so nothing is written.")
    else:
        message = "DJL 0.26 removed continuous batching without paged attention: this is the paged mode."
        yield Note("paged_attention", message)
    if dialect == "lmi-async":
        message = "LMI 15 removed lmi-dist: vLLM batches in a separate process (engine=Python, not MPI)."
        yield Note("continuous_batching", message)
        message = "vLLM counts decode tokens in this limit and splits long prompts."
        yield Note("max_num_batched_tokens", message)
