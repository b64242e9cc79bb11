"""The one table of the lint's rules: severity and source by ID; titles stand with every other rule's."""

from __future__ import annotations

import json
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from seatrial.serving.lint.finding import Edit, Finding
from seatrial.serving.properties import escape_key, escape_property

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seatrial.serving.lint.finding import Severity
    from seatrial.serving.lint.names import NamedOption
    from seatrial.serving.lint.source import ConfigSource, SourceEntry
    from seatrial.serving.lint.subject import Subject

DJL = "deepjavalibrary/djl-serving, branches 0.23.0-dlc to 0.36.0-lmi27-dlc"
TGI = "huggingface/text-generation-inference, tags v0.9.3 to v3.3.6"
API = "SageMaker API reference"


@dataclass(frozen=True, slots=True)
class LintRule:
    """What holds for every finding of a rule.

    Attributes:
        severity: How bad it is.
        source: Where the fact behind it was read.
    """

    severity: Severity
    source: str


LINT_RULES: Mapping[str, LintRule] = MappingProxyType(
    {
        "SEA302": LintRule("error", f"{API}, CreateModel, Environment; developer guide, container environment"),
        "SEA313": LintRule("warning", f"{DJL}, properties_manager and vLLM EngineArgs; {TGI}, launcher/src/main.rs"),
        "SEA314": LintRule("warning", f"{DJL}; {TGI}, launcher/src/main.rs"),
        "SEA315": LintRule("warning", "vLLM EngineArgs 0.8.4 to 0.26.0; " + DJL),
        "SEA316": LintRule("warning", f"{DJL}, user guides; aws/deep-learning-containers, sagemaker_args.py"),
        "SEA317": LintRule("error", f"{DJL}, hf_properties.py; {TGI}, launcher/src/main.rs"),
        "SEA318": LintRule("error", f"{DJL}, properties.py by branch; {TGI}, launcher/src/main.rs"),
        "SEA319": LintRule("error", f"{DJL}, vllm_rb_properties.py; {TGI}, cli.py and launcher/src/main.rs"),
        "SEA320": LintRule("warning", "java.util.Properties: the last of a key counts"),
        "SEA321": LintRule("note", f"{DJL}, LmiConfigRecommender.java"),
        "SEA322": LintRule("error", f"{TGI}, launcher/src/main.rs and backends/v3/src/main.rs"),
        "SEA323": LintRule("warning", f"{API}, ContainerStartupHealthCheckTimeoutInSeconds"),
        "SEA324": LintRule("error", f"{API}, InferenceAmiVersion; NVIDIA CUDA compatibility"),
        "SEA325": LintRule("error", "AWS Deep Learning Containers, available images"),
        "SEA326": LintRule("error", "vLLM, TGI and SGLang: attention heads are split evenly over the GPUs"),
        "SEA327": LintRule("error", "vLLM documentation, quantization: supported hardware"),
        "SEA328": LintRule("warning", "vLLM documentation, FP8 W8A8: weight-only on Turing and Ampere"),
        "SEA329": LintRule("error", f"{API}, CreateModel, EnableNetworkIsolation"),
        "SEA330": LintRule("error", "SageMaker developer guide: no secrets in the container environment"),
        "SEA331": LintRule("error", f"{API}, ModelAccessConfig.AcceptEula"),
        "SEA332": LintRule("error", f"{DJL}, lmi_dist_rb_properties.py; vLLM SpeculativeConfig"),
        "SEA333": LintRule("warning", f"{DJL}, trt_llm_user_guide.md and trtllm_aot_tutorial.md"),
        "SEA334": LintRule("warning", f"{DJL}, LmiConfigRecommender.java since 0.35"),
        "SEA335": LintRule("error", f"{DJL}, dockerd-entrypoint-with-cuda-compat.sh and ModelInfo.java"),
        "SEA336": LintRule("warning", "aws/deep-learning-containers, docs/vllm; TGI, launcher find_num_shards"),
        "SEA337": LintRule("warning", f"{DJL}, ModelInfo.java: names in capitals are lowered, others kept"),
        "SEA338": LintRule("error", f"{API}, S3ModelDataSource"),
        "SEA339": LintRule("warning", "vLLM: an explicit awq or gptq turns the Marlin kernels off"),
        "SEA340": LintRule("error", "vLLM, ModelConfig: max_model_len and the model's config.json"),
        "SEA341": LintRule("error", f"{TGI}, sagemaker-entrypoint.sh"),
        "SEA342": LintRule("note", "TGI pull request 3345 (2025-12-11); AWS Deep Learning Containers"),
        "SEA343": LintRule("warning", f"{DJL}, ModelInfo.loadServingProperties: the file wins"),
        "SEA365": LintRule("note", "Hugging Face Hub: a branch moves"),
    }
)


def found(  # noqa: PLR0917 (read as a sentence: who, which rule, where, what, how to mend)
    subject: Subject,
    rule: str,
    entry: SourceEntry | None,
    message: str,
    fix: str,
    edit: Edit | None = None,
    severity: Severity | None = None,
) -> Finding:
    """Return a finding at an entry, or at the beginning of the configuration; a severity overrules the rule's."""
    source = subject.source
    line, key = (entry.line, entry.key) if entry else (source.line, "")
    return Finding(source.file, line, key, rule, severity or LINT_RULES[rule].severity, message, fix, edit)


def rename(source: ConfigSource, entry: SourceEntry, name: str) -> Edit:
    """Return the change that writes another key."""
    text = json.dumps(name) if source.is_json else escape_key(name) if entry.form == "properties" else name
    return Edit(*entry.key_span, text)


def revalue(source: ConfigSource, entry: SourceEntry, value: str) -> Edit:
    """Return the change that writes another value."""
    text = json.dumps(value) if source.is_json else escape_property(value) if entry.form == "properties" else value
    return Edit(*entry.value_span, text)


def remove(entry: SourceEntry) -> Edit | None:
    """Return the change that takes an entry's line out; `None` in JSON."""
    return Edit(*entry.whole_span, "") if entry.whole_span else None


def key_like(option: NamedOption, name: str) -> str:
    """Write another option's name in the form of this one's key."""
    if option.entry.form == "properties":
        return f"option.{name}" if option.space == "option" else name
    for prefix in ("OPTION_", "SM_VLLM_", "SM_SGLANG_"):
        if option.entry.key.startswith(prefix):
            return prefix + (name.upper() if name.islower() else name)
    return name
