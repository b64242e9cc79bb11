"""Renewal of the catalog's tables, from made-up packages, cards and devices: nothing is fetched."""

from __future__ import annotations

import io
import json
import tarfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from scripts.build_engine_options import with_release
from scripts.renew import main
from scripts.renewal.rows import Denied, Row, Told, check_rows
from scripts.renewal.sources import Archive, Sources, names_in
from scripts.renewal.tables import TABLES, engine_choice

if TYPE_CHECKING:
    from collections.abc import Mapping

VLLM = {
    "vllm/tool_parsers/__init__.py": '_TOOL_PARSERS_TO_REGISTER = {"hermes": ("file", "Class"), "llama3_json": 1}\n',
    "vllm/reasoning/__init__.py": '_REASONING_PARSERS_TO_REGISTER = {"qwen3": ("file", "Class")}\n',
    "vllm/model_executor/layers/quantization/__init__.py": 'QuantizationMethods = Literal["awq", "fp8"]\n',
    "vllm/v1/core/kv_cache_utils.py": 'raise ValueError("No available memory "\n    "for the cache blocks.")\n',
}
SGLANG = {
    "sglang/srt/function_call/function_call_parser.py": 'ToolCallParserEnum: Dict = {"qwen": A, "pythonic": B}\n',
    "sglang/srt/parser/reasoning_parser.py": 'class P:\n    DetectorMap: Dict = {"qwen3": A}\n',
}
NEURON = {
    "optimum/neuron/models/inference/auto_models.py": (
        '@register_neuron_model_for_inference("llama", "text-generation")\nclass A: ...\n'
        '@register_neuron_model_for_inference("newone", "text-generation")\nclass B: ...\n'
        '@register_neuron_model_for_inference("bert", "feature-extraction")\nclass C: ...\n'
    )
}
IAM_ROLE, COMPONENT = "AWS::IAM::Role", "AWS::SageMaker::InferenceComponent"
REGISTRY = {
    "cfnlint/data/schemas/providers/us-east-1.json": json.dumps({IAM_ROLE: "r", COMPONENT: "i"}),
    "cfnlint/data/schemas/providers/eu-west-9.json": '{"AWS::IAM::Role": "r"}',
    "cfnlint/data/schemas/extensions/aws_sagemaker_hosting/instancetype_enum.json": (
        '{"description": "x", "us-east-1": {"enum": ["ml.g5.xlarge"]}, "eu-west-9": {"enum": ["ml.c5.large"]}}'
    ),
    "cfnlint/data/schemas/resources/r.json": '{"createOnlyProperties": ["/properties/RoleName"]}',
}


def source_archive(folder: Path, name: str, files: Mapping[str, str]) -> Path:
    made = folder / f"{name}.tar.gz"
    with tarfile.open(made, "w:gz") as archive:
        for path, text in files.items():
            member = tarfile.TarInfo(f"{name}/{path}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    return made


def wheel(folder: Path, name: str, files: Mapping[str, str]) -> Path:
    made = folder / f"{name}-py3-none-any.whl"
    with zipfile.ZipFile(made, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return made


@pytest.fixture
def given(tmp_path: Path) -> dict[str, Path]:
    cards = tmp_path / "cards.json"
    cards.write_text(json.dumps({"a/plain": {"license": "mit"}, "a/own": {"license": "other", "license_name": "own"}}))
    devices = tmp_path / "devices.json"
    devices.write_text('{"NVIDIA H200": 132, "NVIDIA L4": 60}')
    return {
        "vllm": source_archive(tmp_path, "vllm-0.99.1", VLLM),
        "sglang": wheel(tmp_path, "sglang-0.9.2.post1", SGLANG),
        "optimum-neuron": wheel(tmp_path, "optimum_neuron-0.5.0", NEURON),
        "cfn-lint": wheel(tmp_path, "cfn_lint-9.0.1", REGISTRY),
        "hub": cards,
        "device": devices,
    }


def table(folder: Path, name: str, *rows: Row, part: str = "rows") -> Path:
    file = folder / TABLES[name].file
    lines = ",\n".join(json.dumps({"date": "2026-01-02", **row}) for row in rows)
    file.write_text(f'{{\n"{part}": [\n{lines}\n]}}\n', "utf-8")
    return file


def renew(name: str, file: Path, given: Mapping[str, Path], *, write: bool = True) -> tuple[int, list[Row]]:
    options = [word for key, path in given.items() for word in ("--from", f"{key}={path}")]
    words = [name, "--date", "2026-12-31", *options, *(["--write"] if write else [])]
    code = main(words, data=file.parent)
    document: dict[str, list[Row]] = json.loads(file.read_text("utf-8"))
    return code, next(iter(document.values()))


def parsers_row(engine: str, tool: str | None, reasoning: str | None) -> Row:
    parsers: Row = {"tool_call_parser": tool, "reasoning_parser": reasoning}
    return {"engine": engine, "models": "a/.*", **parsers, "source": "its documentation"}


def test_parsers_that_an_engine_registers_get_the_day_and_its_version(tmp_path: Path, given: dict[str, Path]) -> None:
    rows = parsers_row("vllm", "hermes", "qwen3"), parsers_row("sglang", "qwen", None)
    code, renewed = renew("parsers", table(tmp_path, "parsers", *rows), given)
    assert [(row["source"], row["date"]) for row in renewed] == [
        ("its documentation; registered in vllm 0.99.1 (PyPI)", "2026-12-31"),
        ("its documentation; registered in sglang 0.9.2.post1 (PyPI)", "2026-12-31"),
    ]
    assert code == 0
    again = renew("parsers", tmp_path / "parsers.json", given)[1]
    assert again == renewed


def test_a_parser_that_an_engine_does_not_register_is_told_and_kept(
    tmp_path: Path, given: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    code, renewed = renew("parsers", table(tmp_path, "parsers", parsers_row("sglang", "llama4", None)), given)
    assert (code, renewed[0]["date"]) == (1, "2026-01-02")
    told = "sglang a/.*: sglang 0.9.2.post1 (PyPI) has no tool_call_parser llama4; it has pythonic, qwen"
    assert f"contradicted, kept: {told}\n" in capsys.readouterr().out


def test_names_of_parsers_are_those_of_the_release_and_of_older_ones(
    tmp_path: Path, given: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    row: Row = {"engine": "vllm", "option": "tool_call_parser", "names": ["hermes", "older"], "source": "vllm@main"}
    file = table(tmp_path, "parsers", row, part="names")
    source = "vllm@main and vllm 0.99.1 (PyPI) vllm/tool_parsers/__init__.py"
    for _ in range(2):
        _, (renewed,) = renew("parsers", file, given)
        assert (renewed["names"], renewed["source"]) == (["hermes", "llama3_json", "older"], source)
    assert "changed: vllm tool_call_parser: names: +llama3_json\n" in capsys.readouterr().out


def test_nothing_is_written_without_being_asked(tmp_path: Path, given: dict[str, Path]) -> None:
    file = table(tmp_path, "parsers", parsers_row("vllm", "hermes", None))
    before = file.read_text("utf-8")
    renew("parsers", file, given, write=False)
    assert file.read_text("utf-8") == before


def test_families_that_neuron_serves_are_those_of_the_release(
    tmp_path: Path, given: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    rows: tuple[Row, ...] = (
        {"option": "vllm-neuronx", "families": ["llama", "gone"], "source": "an older release"},
        {"option": "lmi-neuronx", "families": ["gpt2"], "source": "the last release"},
    )
    _, (served, frozen) = renew("neuron", table(tmp_path, "neuron", *rows, part="engines"), given)
    assert (served["families"], served["date"]) == (["llama", "newone"], "2026-12-31")
    assert (frozen["families"], frozen["date"]) == (["gpt2"], "2026-01-02")
    lines = capsys.readouterr().out.splitlines()
    assert "changed: vllm-neuronx: families: +newone -gone" in lines
    assert "not told, kept: 1 of the last release" in lines


def test_a_licence_is_that_of_the_card(tmp_path: Path, given: dict[str, Path]) -> None:
    rows: tuple[Row, ...] = tuple(
        {"licence": "apache-2.0", "models": [f"a/{name}*"], "source": f"huggingface.co/a/{name}, model card"}
        for name in ("plain", "own", "gone")
    )
    code, renewed = renew("licences", table(tmp_path, "licences", *rows), given)
    assert [(row["licence"], row["date"]) for row in renewed] == [
        ("mit", "2026-12-31"),
        ("own", "2026-12-31"),
        ("apache-2.0", "2026-01-02"),
    ]
    assert code == 1


def test_a_model_has_the_shape_of_its_config(
    tmp_path: Path, given: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    shape: Row = {
        "model_type": "llama",
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "vocab_size": 100,
        "max_position_embeddings": 512,
    }
    given["hub"].write_text(json.dumps({"a/small": shape}))
    known: Row = {"family": "llama", "layers": 2, "kv_heads": 2, "source": "a page"}
    rows: tuple[Row, ...] = tuple({"id": name, **known} for name in ("a/small", "a/gated"))
    _, (small, gated) = renew("models", table(tmp_path, "models", *rows), given)
    assert (small["layers"], small["kv_heads"], small["source"]) == (3, 2, "huggingface.co/a/small, config.json")
    assert (gated["layers"], gated["date"]) == (2, "2026-01-02")
    assert "changed: a/small: layers: 2 -> 3\n" in capsys.readouterr().out


def test_fields_of_a_release_of_vllm_are_those_of_its_engine_args(tmp_path: Path) -> None:
    text = "class Other:\n    a: int = 1\nclass EngineArgs:\n    model: str = 1\n    dtype: str = 2\n    plain = 3\n"
    file = source_archive(tmp_path, "vllm-0.99.1", {"vllm/engine/arg_utils.py": text})
    facts = {"_meta": {}, "lmi": {"0.9": 9}, "dates": {"0.9": "2026-01-02"}, "engine_args": {"0.9": ["model"]}}
    assert with_release(facts, Sources({"vllm": file}, Path()).package("vllm", "0.99.1"), 30, "2026-12-31") == {
        "_meta": {},
        "lmi": {"0.9": 9, "0.99.1": 30},
        "dates": {"0.9": "2026-01-02", "0.99.1": "2026-12-31"},
        "engine_args": {"0.9": ["model"], "0.99.1": ["dtype", "model"]},
    }
    with pytest.raises(ValueError, match=r"vllm-0\.99\.1\.tar\.gz is no release 1\.0"):
        Sources({"vllm": file}, Path()).package("vllm", "1.0")


def test_multiprocessors_are_those_that_a_driver_counts(tmp_path: Path, given: dict[str, Path]) -> None:
    rows: tuple[Row, ...] = tuple(
        {"name": name, "multiprocessors": 132, "source": "a whitepaper"}
        for name in ("NVIDIA H200 SXM 141GB", "NVIDIA L4", "NVIDIA L40S")
    )
    _, renewed = renew("accelerators", table(tmp_path, "accelerators", *rows), given)
    assert [(row["multiprocessors"], row["date"]) for row in renewed] == [
        (132, "2026-12-31"),
        (60, "2026-12-31"),
        (132, "2026-01-02"),
    ]


@pytest.mark.parametrize(
    ("pattern", "source", "date"),
    [
        ("no available memory for the cache blocks", "vLLM, engine start", "2026-12-31"),
        ("a message of former days", "vLLM, engine start", "2026-01-02"),
        ("no available memory for the cache blocks", "Linux", "2026-01-02"),
    ],
)
def test_a_message_that_vllm_still_writes_is_confirmed(
    tmp_path: Path, given: dict[str, Path], pattern: str, source: str, date: str
) -> None:
    row: Row = {"name": "none", "pattern": pattern, "source": source}
    assert renew("symptoms", table(tmp_path, "symptoms", row), given)[1][0]["date"] == date


@pytest.mark.parametrize(("optimization", "date"), [("fp8", "2026-12-31"), ("mxfp4", "2026-01-02")])
def test_an_optimization_that_vllm_still_has_is_confirmed(
    tmp_path: Path, given: dict[str, Path], optimization: str, date: str
) -> None:
    row: Row = {"engines": ["vllm"], "optimizations": [optimization], "supported": True, "until": None, "source": "x"}
    _, renewed = renew("optimizations", table(tmp_path, "optimizations", row, part="engines"), given)
    assert renewed[0]["date"] == date


def test_jobs_make_weights_for_the_instances_of_awss_api(tmp_path: Path, given: dict[str, Path]) -> None:
    row: Row = {"families": ["g5"], "source": "botocore"}
    _, (renewed,) = renew("optimizations", table(tmp_path, "optimizations", row, part="job_instances"), given)
    families = renewed["families"]
    assert isinstance(families, list)
    assert {"g5", "p5", "trn1"} <= set(families)


@pytest.mark.parametrize(
    "key", [{"resource_type": "AWS::SageMaker::InferenceComponent"}, {"instance_type": "ml.g5.xlarge"}]
)
def test_regions_are_those_whose_registry_has_the_type(key: Row, tmp_path: Path, given: dict[str, Path]) -> None:
    row: Row = {**key, "regions": ["eu-west-9"], "source": "older"}
    _, (renewed,) = renew("regions", table(tmp_path, "regions", row), given)
    assert renewed["regions"] == ["us-east-1"]
    assert str(renewed["source"]).startswith("cfn-lint 9.0.1, ")


@pytest.mark.parametrize(("name", "code"), [("RoleName", 0), ("Description", 1)])
def test_names_are_properties_that_can_not_be_changed(
    tmp_path: Path, given: dict[str, Path], name: str, code: int
) -> None:
    row: Row = {"resource_type": "AWS::IAM::Role", "named_by": [name], "source": "cfn-lint 1.0.0, registry"}
    found, (renewed,) = renew("replacement", table(tmp_path, "replacement", row), given)
    expected = ("cfn-lint 9.0.1, registry", "2026-12-31") if code == 0 else ("cfn-lint 1.0.0, registry", "2026-01-02")
    assert (found, (renewed["source"], renewed["date"])) == (code, expected)


def test_images_tell_which_lines_are_frozen() -> None:
    sources = Sources({}, Path())
    row: Row = {"id": "trtllm-status", "options": ["lmi-trtllm"], "because": "the newest is DJL 0.33 (LMI 15)."}
    assert isinstance(engine_choice("rules", row, sources), Told)
    assert isinstance(engine_choice("rules", {**row, "because": "the newest is DJL 0.31."}, sources), Denied)


def test_names_of_dictionaries_lists_and_literals() -> None:
    text = 'A = {"a": ("file", "Class"), **OTHER}\nB: list[str] = ["b"]\nC = Literal["c", "d"]\n'
    assert [sorted(names_in(text, name)) for name in "ABC"] == [["a"], ["b"], ["c", "d"]]
    with pytest.raises(LookupError, match="no D there"):
        names_in(text, "D")


def test_a_file_that_a_package_has_moved_is_named(given: dict[str, Path]) -> None:
    with pytest.raises(FileNotFoundError, match=r"vllm 0\.99\.1 \(PyPI\) has no vllm/gone\.py"):
        Archive("vllm", "0.99.1", given["vllm"]).text("vllm/gone.py")


@pytest.mark.parametrize("row", [{"source": "", "date": "2026-01-02"}, {"source": "a page", "date": "2026-01"}])
def test_a_row_without_source_or_day_is_no_table(row: Row) -> None:
    with pytest.raises(ValueError, match="a row without source and day"):
        check_rows(json.dumps({"rows": [row]}))
