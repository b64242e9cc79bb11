"""Limits of SageMaker, of the instance's accelerators and of the model's shape."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from seatrial_base.catalog.config_json import INSTEAD_OF_TEXT
from seatrial_base.catalog.engine_limits import Start, loader_of, start_cautions, start_refusals
from seatrial_base.catalog.image_addresses import judge_image, serves_embeddings
from seatrial_base.catalog.images import NEWEST_AMI, ami_cuda, ami_version
from seatrial_base.catalog.instances import computes_in, has_kernels
from seatrial_base.catalog.models import (
    find_model,
    given_instead_of_text,
    is_gated,
    resolve_model,
    split_precision,
    unsupported_format,
)
from seatrial_base.catalog.precision import find_precision
from seatrial_base.units import gib
from seatrial_lint.lint.redaction import secret_in
from seatrial_lint.lint.rules import finding, rule, whole_number
from seatrial_lint.weights import MOUNT, WeightSource, hub_id, weight_problems

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial_base.catalog.instances import Instance
    from seatrial_base.findings import Finding, Severity
    from seatrial_lint.lint.rules import Subject

# Engines that give each GPU the same number of heads: Transformers-NeuronX pads them, Accelerate places whole layers,
# and DeepSpeed shards unevenly.
SPLIT_HEADS = ("lmi-async", "lmi-vllm", "lmi-dist", "lmi-trtllm", "tgi", "vllm", "sglang")
# ContainerStartupHealthCheckTimeoutInSeconds.
MAX_STARTUP_TIMEOUT_S = 3600
# An assumption, fast on purpose: what is slower even so is told.
HUB_BYTES_S = 200_000_000
_CUDA = re.compile(r"cu(\d{2})(\d)")
# Of an ARN.
_ACCOUNT = 4
# Families whose names say it, of models that the catalog need not have.
_GENERATES = re.compile(r"(?i)(?:[._-])(?:instruct|chat)(?:[._-]|$)")
_GATED_BUCKET = re.compile(r"s3://jumpstart-private-cache-", re.IGNORECASE)


@rule("SEA326")
def divisible_degree(subject: Subject) -> Iterator[Finding]:
    """A tensor parallel degree that the model or the instance can't be split into."""
    field = subject.fields.get("tensor_parallel_degree")
    degree = field.number if field else None
    if field is None or degree is None:
        return
    # Else it is reported as out of range.
    if degree > 0:
        heads = subject.attention_heads if subject.target and subject.target.dialect in SPLIT_HEADS else None
        if heads and heads % degree:
            message = f"{degree} GPUs do not divide the {heads} attention heads of {subject.fields['model_id'].value}"
            fits = ", ".join(str(number) for number in (1, 2, 4, 8, 16) if not heads % number)
            yield finding(subject, "SEA326", field.option.entry, message, f"write {fits.replace(', ', ' or ')}")
        instance = subject.instance
        if instance and degree > _devices(instance):
            devices_message = f"{instance.instance_type} has {_devices(instance)} accelerators, fewer than {degree}"
            fix = f"write at most {_devices(instance)}, or choose a larger instance"
            yield finding(subject, "SEA326", field.option.entry, devices_message, fix)


def _devices(instance: Instance) -> int:
    """Count what a degree counts: GPUs, or the two NeuronCores of a first- or second-generation Neuron chip."""
    return instance.accelerator_count * (2 if instance.link == "neuron" else 1)


@rule("SEA327", "SEA328")
def supported_dtype(subject: Subject) -> Iterator[Finding]:
    """A type or quantization that the accelerator can't run, or only weight-only."""
    instance = subject.instance
    if instance is None or instance.link == "neuron":
        return
    dtype = subject.fields.get("dtype")
    if dtype and dtype.value == "bf16" and not instance.has_bf16:
        message = f"{instance.accelerator} has no bfloat16: the engine does not start"
        is_lmi = subject.target is not None and subject.target.engine == "lmi"
        yield finding(subject, "SEA327", dtype.option.entry, message, f"write {'fp16' if is_lmi else 'float16'}")
    quantization, has_fp8 = subject.fields.get("quantization"), computes_in(instance, "fp8")
    no_fp8 = f"{instance.accelerator} has no FP8"
    if quantization:
        if quantization.value == "fp8" and not has_fp8:
            message = f"{no_fp8}: weights are stored in FP8 but computed in 16 bits, which is slower"
            yield finding(subject, "SEA328", quantization.option.entry, message, "choose awq or gptq weights")
        elif not has_kernels(instance, quantization.value):
            message = f"there are no {quantization.value} kernels for {instance.accelerator}"
            fix = "choose an instance with a newer GPU: ml.g5, ml.g6"
            yield finding(subject, "SEA327", quantization.option.entry, message, fix)
    cache = subject.fields.get("kv_cache_dtype")
    if cache and cache.value.startswith("fp8") and not has_fp8:
        message = f"{no_fp8}: some attention kernels reject an FP8 cache"
        yield finding(subject, "SEA328", cache.option.entry, message, "leave it out")


LOADERS = {"lmi-async": "lmi-vllm", "lmi-vllm": "lmi-vllm", "vllm": "vllm", "sglang": "sglang", "tgi": "tgi"}
_DEGREES = (1, 2, 4, 8, 16)
_DECIDES = frozenset({"tensor_parallel_degree", "quantization", "dtype", "ep_size", "enable_expert_parallel"})


@rule("SEA254", "SEA257")
def start(subject: Subject) -> Iterator[Finding]:
    """Weights that the engine can't load, at this degree or on this accelerator; what nobody measured."""
    case, model = start_of(subject), subject.fields.get("model_id")
    if case is None or model is None:
        return
    degree = subject.fields.get("tensor_parallel_degree")
    for refusal in start_refusals(case):
        degrees, whole = ways_to_start(case, subject.instance)
        others = "choose weights of another format, or an engine or accelerator that loads these"
        options = [*filter(None, (degrees, "enable_expert_parallel" if whole and refusal.of_experts else ""))]
        fix = f"write {', or '.join(options)}" if options else others
        entry = degree.option.entry if degree and options else model.option.entry
        yield finding(subject, "SEA254", entry, refusal.because, f"{fix} ({refusal.row}: {refusal.source})")
    for caution in start_cautions(case):
        yield finding(subject, "SEA257", subject.facts.get("instance_type"), caution, "try it, or take ml.g5 or ml.g6")


def start_of(subject: Subject) -> Start | None:
    """Return a configuration as its engine sees it at load; `None` where a part that decides is not known."""
    name, target, instance = subject.value("model_id"), subject.target, subject.instance
    if target is None or (loader := LOADERS.get(target.dialect)) is None:
        return None
    if not hub_id(name) or not subject.decides(_DECIDES):
        return None
    degree = whole_number(subject.value("tensor_parallel_degree")) or subject.lmi_accelerators
    dealt = degree if subject.text("enable_expert_parallel").lower() in ("true", "1") else 1
    architecture, named = resolve_model(name) or (None, unsupported_format(name) or split_precision(name)[1])
    dtype = subject.value("dtype")
    if dtype not in ("bf16", "fp16"):
        dtype = instance.dtype if instance else "bf16"
    return Start(
        *loader_of(loader, None if target.assumed else target.version),
        quantization=subject.value("quantization") or named,
        degree=degree,
        expert_degree=whole_number(subject.text("ep_size")) or dealt,
        accelerator=instance.accelerator if instance else None,
        dtype=dtype,
        architecture=architecture,
    )


def ways_to_start(case: Start, instance: Instance | None) -> tuple[str, bool]:
    """Return in words the degrees at which a refused case starts, and whether expert parallelism is enough.

    They are empty where the degree is not what is refused. `instance`: its accelerators and their memory bound them.
    """
    model, bits = case.architecture, 0.0
    # Of weights that the engine quantizes itself, the size on the accelerator is not known.
    if model and case.quantization == model.checkpoint_quantization:
        precision = find_precision(case.quantization)
        bits = precision.bits if precision else 16
    heads, of_weights = (model.attention_heads, model.params_total * bits / 8) if model else (0, 0)

    def fits(degree: int) -> bool:
        has_room = instance is None or (
            degree <= instance.accelerator_count and of_weights < degree * instance.accelerator_memory_bytes
        )
        return has_room and not (heads % degree or start_refusals(replace(case, degree=degree, expert_degree=1)))

    degrees = [each for each in _DEGREES if fits(each)]
    of_degree = case.degree > 1 and bool(degrees) and case.degree not in degrees
    refusals = start_refusals(case)
    whole = any(each.of_experts for each in refusals) and not start_refusals(replace(case, expert_degree=case.degree))
    return f"a degree of {' or '.join(map(str, degrees))}" if of_degree else "", whole


@rule("SEA255", handler="any")
def textless(subject: Subject) -> Iterator[Finding]:
    """A model of embeddings or scores: TGI serves none, and what is known of the others is of generation."""
    model, target = subject.fields.get("model_id"), subject.target
    kind = given_instead_of_text(model.value) if model and hub_id(model.value) else None
    if model is None or target is None or kind is None:
        return
    tgi = target.engine == "tgi"
    message = f"{model.value} gives {kind}{', which TGI does not serve' if tgi else ': no rule here judges that'}"
    severity: Severity = "error" if tgi else "note"
    yield finding(subject, "SEA255", model.option.entry, message, INSTEAD_OF_TEXT, severity=severity)


_TOKENS = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HUGGINGFACE_HUB_TOKEN", "HF_API_TOKEN", "HF_TOKEN_PATH")


@rule("SEA256", handler="any")
def gated(subject: Subject) -> Iterator[Finding]:
    """A gated repository, and nothing in the whole environment that gives access to it."""
    model, source = subject.fields.get("model_id"), subject.source
    whole = source.kind in ("model definition", "CloudFormation template", "Terraform plan") and not source.is_partial
    if model is None or not whole or not hub_id(model.value) or not is_gated(model.value):
        return
    keys = {entry.key.removeprefix("OPTION_").upper() for entry in source.entries}
    if not keys.isdisjoint(_TOKENS) or subject.fact("s3_uri"):
        return
    message = f"{model.value} is gated: without a token the container ends with 401, after the instance has started"
    fix = "accept its licence and pass HF_TOKEN from Secrets Manager, or stage the weights to S3 (seatrial stage)"
    yield finding(subject, "SEA256", model.option.entry, message, fix)


@rule("SEA340")
def context(subject: Subject) -> Iterator[Finding]:
    """More tokens than the model was made for."""
    field, model = subject.fields.get("max_model_len"), subject.architecture
    stretched = any(name.startswith("rope_scaling") for name in subject.fields) or subject.option("hf_overrides")
    vllm = subject.target is not None and subject.target.dialect in ("lmi-async", "lmi-vllm", "vllm")
    if field is None or model is None or field.number is None or stretched or not vllm:
        return
    if field.number > model.max_context:
        message = f"{field.number} tokens exceed the context of {model.id}, {model.max_context}"
        starts = subject.text_of("VLLM_ALLOW_LONG_MAX_MODEL_LEN").strip().lower() in ("1", "true", "yes", "on")
        message += ": vLLM starts, and fails or answers nonsense beyond it" if starts else ": vLLM does not start"
        severity: Severity | None = "warning" if starts else None
        fix = f"write at most {model.max_context}"
        yield finding(subject, "SEA340", field.option.entry, message, fix, severity=severity)


@rule("SEA323", handler="any")
def cut_off_loading(subject: Subject) -> Iterator[Finding]:
    """A loading timeout that the startup health check cuts off."""
    field = subject.fields.get("model_loading_timeout_s")
    check, loading_s = subject.fact("startup_timeout_s"), field.number if field else None
    if field is None or loading_s is None:
        return
    limit_s = int(check) if check and check.isdigit() else MAX_STARTUP_TIMEOUT_S
    if loading_s > limit_s:
        limit = f"the startup health check's {limit_s} s" if check else f"{limit_s} s, the longest startup health check"
        message = f"{loading_s} s of loading exceed {limit}, which stops the container first"
        yield finding(subject, "SEA323", field.option.entry, message, f"write at most {limit_s}")


@rule("SEA395", handler="any")
def cut_off_download(subject: Subject) -> Iterator[Finding]:
    """A model of the hub that is too large to be downloaded before the startup health check ends."""
    model, given = subject.architecture, subject.fact("startup_timeout_s")
    if model is None or not hub_id(model.id) or (given is None and "variant" not in subject.facts):
        return
    precision = find_precision(model.checkpoint_quantization)
    size_bytes = model.params_total * (precision.bits if precision else 16) / 8
    limit_s = int(given) if given and given.isdigit() else MAX_STARTUP_TIMEOUT_S
    needed_s = size_bytes / HUB_BYTES_S
    if needed_s <= limit_s:
        return
    whose = f"{limit_s} s of the startup health check" if given else f"{limit_s} s, the longest startup health check"
    message = (
        f"{gib(size_bytes)} from the hub take {needed_s:,.0f} s at {HUB_BYTES_S / 1e6:,.0f} MB/s, and end after {whose}"
    )
    raised = f"raise ContainerStartupHealthCheckTimeoutInSeconds (at most {MAX_STARTUP_TIMEOUT_S}), or "
    fix = f"{raised if needed_s < MAX_STARTUP_TIMEOUT_S else ''}stage the weights in S3 (seatrial stage) and mount them"
    yield finding(subject, "SEA395", subject.fields["model_id"].option.entry, message, fix)


@rule("SEA324", handler="any")
def instance_ami(subject: Subject) -> Iterator[Finding]:
    """A CUDA that the instance's AMI can't run."""
    chosen = subject.fact("ami_version")
    if chosen is None and "variant" not in subject.facts:
        # Which AMI is used is not told.
        return
    image = subject.fact("image") or ""
    if (gap := driver_gap(image, chosen)) is not None:
        fix = f"write InferenceAmiVersion {gap[1]}"
        yield finding(subject, "SEA324", subject.source.facts.get("image"), gap[0], fix)
        return
    # An AMI whose driver is of a newer CUDA (aws/deep-learning-containers pull 6187).
    cuda, has = _CUDA.search(image.rpartition(":")[2]), ami_cuda(chosen) if chosen else None
    if cuda and has and has[0] > int(cuda[1]):
        message = (
            f"CUDA {cuda[1]}.{cuda[2]} of the image is older than the driver of {chosen}: "
            "such endpoints were seen to stay in Creating without a log"
        )
        fix = f"write InferenceAmiVersion {ami_version('cu124')}, or use an image with CUDA 13"
        yield finding(subject, "SEA324", subject.source.facts.get("image"), message, fix, severity="warning")


def driver_gap(image: str, chosen: str | None) -> tuple[str, str] | None:
    """Return why the AMI of an instance has no driver for an image, and the AMI that has; None when it has one.

    Args:
        image: The image's URI; its tag tells its CUDA (`cu130`).
        chosen: The variant's InferenceAmiVersion; None for the service's own choice.
    """
    cuda = _CUDA.search(image.rpartition(":")[2])
    if cuda is None:
        return None
    needed = (int(cuda[1]), int(cuda[2]))
    has = ami_cuda(chosen) if chosen else None
    if needed[0] <= (has[0] if has else 12 if chosen is None else needed[0]):
        return None
    ami = chosen or "the default AMI"
    message = f"CUDA {needed[0]}.{needed[1]} of the image needs a newer driver than {ami} has; it fails without a log"
    return message, ami_version(cuda[0]) or NEWEST_AMI


@rule("SEA325", handler="any")
def accelerator(subject: Subject) -> Iterator[Finding]:
    """An image for other accelerators than the instance has."""
    image, instance = subject.fact("image"), subject.instance
    if image is None or instance is None:
        return
    for_neuron = "neuron" in image
    has_neuron = instance.link == "neuron"
    if for_neuron != has_neuron:
        wanted = "AWS Neuron" if for_neuron else "NVIDIA GPUs"
        message = f"the image is for {wanted}, but {instance.instance_type} has {instance.accelerator}"
        fix = (
            "choose ml.inf2, ml.trn1 or ml.trn2"
            if for_neuron
            else "choose an image for Neuron, or an instance with GPUs"
        )
        yield finding(subject, "SEA325", subject.facts["image"], message, fix)


@rule("SEA329", handler="any")
def isolated_download(subject: Subject) -> Iterator[Finding]:
    """An isolated container that would fetch its model."""
    field = subject.fields.get("model_id")
    if field is None or (subject.fact("network_isolation") or "").lower() != "true":
        return
    if hub_id(field.value) or field.value.startswith("s3://"):
        message = f"with network isolation, the container can't download {field.value}"
        fix = f"stage the weights (seatrial stage), set ModelDataSource, and write {MOUNT} here"
        yield finding(subject, "SEA329", field.option.entry, message, fix)


@rule("SEA330", handler="any")
def option_secrets(subject: Subject) -> Iterator[Finding]:
    """A secret in plain text; no part of it is repeated."""
    for entry in subject.source.entries:
        if what := secret_in(entry.key, entry.value):
            message = f"{what} is in plain text, readable with sagemaker:DescribeModel"
            fix = "revoke it and remove it; use Secrets Manager: model.hub_token_secret"
            yield finding(subject, "SEA330", entry, message, fix)


@rule("SEA331", handler="any")
def eula(subject: Subject) -> Iterator[Finding]:
    """Gated weights whose EULA is not accepted."""
    uri, accepted = subject.facts.get("s3_uri"), subject.facts.get("accept_eula")
    if accepted and accepted.value.lower() != "true":
        message = "the EULA is declined: SageMaker refuses the weights"
        yield finding(subject, "SEA331", accepted, message, "read it, then set ModelAccessConfig.AcceptEula: true")
    elif uri and accepted is None and _GATED_BUCKET.match(uri.value):
        message = "these weights are gated, but no ModelAccessConfig accepts their EULA"
        fix = "read the EULA, then set ModelAccessConfig: {AcceptEula: true} next to S3Uri"
        yield finding(subject, "SEA331", uri, message, fix)


@rule("SEA338", handler="any")
def prefix(subject: Subject) -> Iterator[Finding]:
    """A prefix that doesn't end in a slash."""
    uri = subject.facts.get("s3_uri")
    is_prefix = subject.fact("s3_data_type") == "S3Prefix"
    if uri and is_prefix and uri.value.startswith("s3://") and not uri.value.endswith("/"):
        yield finding(subject, "SEA338", uri, "an S3Prefix must end in a slash", f"write {uri.value}/")


@rule("SEA388", "SEA389", "SEA390", "SEA391", "SEA392", handler="any")
def address(subject: Subject) -> Iterator[Finding]:
    """An image that SageMaker can't pull, start or run on the instance, by its address."""
    image, role = subject.source.facts.get("image"), (subject.fact("role") or "").split(":")
    instance_type = subject.fact("instance_type") or ""
    if image is None or instance_type.startswith("local"):
        return
    own_account = role[_ACCOUNT] if len(role) > _ACCOUNT else ""
    is_private = subject.fact("repository_access") is not None
    rules = {"registry": "SEA388", "place": "SEA389", "tag": "SEA390", "start": "SEA391", "instance": "SEA392"}
    for problem in judge_image(image.value, None, own_account, instance_type, is_private=is_private):
        rule_id, severity = rules[problem.kind], problem.severity
        yield finding(subject, rule_id, image, problem.message, problem.hint, severity=severity)


@rule("SEA397", handler="any")
def kind_of_model(subject: Subject) -> Iterator[Finding]:
    """An image for embeddings with a model that generates text."""
    image = subject.source.facts.get("image")
    model = next((entry for entry in subject.source.entries if entry.key in ("HF_MODEL_ID", "MODEL_ID")), None)
    if image is None or model is None:
        return
    if serves_embeddings(image.value) and (find_model(model.value) or _GENERATES.search(model.value)):
        message = f"the image serves embeddings and rerankers and generates no text, as {model.value} would"
        yield finding(subject, "SEA397", model, message, "use an image of vLLM, LMI or SGLang")


@rule("SEA393", "SEA394", handler="any")
def weight_places(subject: Subject) -> Iterator[Finding]:
    """Weights that the container does not find, or passes over for those of the hub."""
    facts, model = subject.source.facts, subject.fields.get("model_id")
    archive = facts.get("model_data_url") or facts.get("artifact_url")
    uri, named = facts.get("s3_uri"), model.option.entry if model and model.option.entry.is_known else None
    entries = {"model_id": named, "archive": archive, "s3_uri": uri}
    known = {name: entry.value if entry else "" for name, entry in entries.items()}
    source = WeightSource(
        **known,
        s3_data_type=subject.fact("s3_data_type") or "",
        compression=subject.fact("compression") or "",
        is_mounted=uri is not None,
        is_multi_model=subject.fact("mode") == "MultiModel",
    )
    for problem in weight_problems(source):
        rule_id = "SEA393" if problem.kind == "form" else "SEA394"
        yield finding(subject, rule_id, entries[problem.field], problem.message, problem.hint)
