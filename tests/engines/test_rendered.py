"""What Seatrial renders has no error, and is read back as the container that it was rendered for."""

from __future__ import annotations

from pathlib import Path

import pytest

from seatrial_base.catalog.engine_versions import DIALECT_NAMES, DIALECTS, DialectName, existing_dialects
from seatrial_base.errors import RenderError
from seatrial_lint.engines.config import ServingConfig, SpeculativeDecoding
from seatrial_lint.engines.engine_options import Lora, RopeScaling
from seatrial_lint.engines.neutral import Form, render_config
from seatrial_lint.engines.properties import write_env
from seatrial_lint.lint.lint import Given, LintReport, lint_sources
from seatrial_lint.lint.read import read_content, read_path

GOLDEN = Path(__file__).with_name("golden")
VERSIONS = {
    "lmi": [str(number) for number in range(5, 28)],
    "tgi": ["0.0.28", "0.3.0", "0.9.3", "1.1.0", "1.4.5", "2.0.2", "2.3.1", "2.4.0", "3.0.1", "3.3.6"],
    "vllm": ["0.4.1", "0.4.5", "0.8.4", "0.11.1", "0.12.0", "0.23.0", "0.30.0"],
    "sglang": ["0.5.20"],
}
PLAIN = {"model_id": "org/model", "revision": "abc"}
CONFIGS = (
    ServingConfig(**PLAIN, tensor_parallel_degree=4, dtype="bf16", max_num_seqs=64, max_model_len=4096),
    ServingConfig(**PLAIN, max_num_seqs=8, dtype="fp16", enforce_eager=True, gpu_memory_utilization=0.9),
    ServingConfig(**PLAIN, max_num_seqs=8, quantization="fp8", prefix_caching=True, chunked_prefill=True),
    ServingConfig(**PLAIN, max_num_seqs=8, quantization="awq", kv_cache_dtype="fp8_e4m3"),
    ServingConfig(**PLAIN, max_num_seqs=8, lora=Lora(max_adapters=3, max_rank=8)),
    ServingConfig(**PLAIN, max_num_seqs=8, speculative_decoding=SpeculativeDecoding(method="ngram", draft_tokens=3)),
    ServingConfig(**PLAIN, max_num_seqs=8, rope_scaling=RopeScaling(kind="dynamic", factor=2.0)),
    ServingConfig(**PLAIN, model_loading_timeout_s=3600, predict_timeout_s=480, max_queued_requests=100),
)


def reports(dialect: DialectName, form: Form) -> list[LintReport]:
    """Lint whatever of the configurations a dialect can say, in every version that has it."""
    engine = DIALECTS[dialect].engine
    found = []
    for version in (one for one in VERSIONS[engine] if dialect in existing_dialects(engine, one)):
        for config in CONFIGS:
            try:
                rendered = render_config(config, dialect, version, form)
            except RenderError:
                continue
            text = "".join(rendered.files.values()) or write_env(rendered.env)
            name = "serving.properties" if rendered.files else "container.env"
            found.append(lint_sources(read_content(text.encode(), name), Given(engine=engine, version=version)))
    return found


@pytest.mark.parametrize("form", ["properties", "env"])
@pytest.mark.parametrize("dialect", DIALECT_NAMES)
def test_it_has_no_error_in_any_version(dialect: DialectName, form: Form) -> None:
    found = reports(dialect, form)
    assert found or (form == "properties" and not dialect.startswith("lmi"))
    told = {(one.rule, one.field) for report in found for one in report.findings if one.severity == "error"}
    assert told == set()
    assert all(dialect in reading or not dialect.startswith("lmi") for report in found for reading in report.readings)


def test_the_golden_files_have_no_error() -> None:
    features = sorted((GOLDEN / "features").iterdir())
    sources = [*read_path(GOLDEN), *(source for file in features for source in read_path(file))]
    report = lint_sources(sources)
    assert report.unreadable == ()
    assert [str(one) for one in report.findings if one.severity == "error"] == []
