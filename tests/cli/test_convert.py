from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Seatrial

TGI = (
    "HF_MODEL_ID=tiiuae/falcon-40b\nHF_MODEL_REVISION=abc\nMAX_TOTAL_TOKENS=2048\nMAX_BATCH_PREFILL_TOKENS=4096\n"
    "DTYPE=bfloat16\nSM_NUM_GPUS=8\n"
)
LMI = (
    "# Rendered by Seatrial.\nengine=Python\noption.model_id=tiiuae/falcon-40b\noption.revision=abc\n"
    "option.async_mode=true\noption.rolling_batch=disable\noption.entryPoint=djl_python.lmi_vllm.vllm_async_service\n"
    "option.tensor_parallel_degree=8\noption.dtype=bf16\noption.max_model_len=2048\n"
    "option.max_rolling_batch_prefill_tokens=4096\n"
)
ONE_GPU = ("--instance-type", "ml.g5.2xlarge")
VLLM = (
    "SM_VLLM_MODEL=tiiuae/falcon-40b\nSM_VLLM_REVISION=abc\nSM_VLLM_TENSOR_PARALLEL_SIZE=8\nSM_VLLM_DTYPE=bfloat16\n"
    "SM_VLLM_MAX_MODEL_LEN=2048\nSM_VLLM_MAX_NUM_BATCHED_TOKENS=4096\n"
)


@pytest.fixture
def tgi(project: Path) -> Path:
    file = project / "tgi.env"
    file.write_text(TGI)
    return file


def test_what_both_can_say_is_kept(seatrial: Seatrial, tgi: Path) -> None:
    done = seatrial(
        "convert", "--from", "tgi", "--to", "lmi", "--to-version", "lmi27", "--form", "properties", tgi.name
    )
    assert (done.returncode, done.stdout) == (0, LMI)
    assert done.stderr == "TGI 3.3.6, tgi -> lmi-async on LMI 27: 6 kept, 0 lost\n"


def test_there_and_back_is_the_same(seatrial: Seatrial, tgi: Path) -> None:
    assert seatrial("convert", "--to", "vllm", tgi.name, "-o", "vllm.env").returncode == 0
    assert (tgi.parent / "vllm.env").read_text() == VLLM
    back = seatrial("convert", "--from", "vllm", "--to", "tgi", "vllm.env")
    assert back.returncode == 0
    assert sorted(back.stdout.splitlines()) == sorted(TGI.splitlines())


def test_what_is_lost_is_listed_with_its_line_and_why(seatrial: Seatrial, tgi: Path) -> None:
    token = "hf_" + "a" * 30
    tgi.write_text(f"{TGI}MAX_INPUT_TOKENS=1024\nWAITING_SERVED_RATIO=1.2\nHF_TOKEN={token}\n")
    done = seatrial("convert", "--to", "vllm", "--to-version", "0.23.0", tgi.name)
    assert done.returncode == 1
    assert done.stdout == VLLM
    assert token not in done.stderr
    assert done.stderr.splitlines() == [
        "TGI 3.3.6, tgi -> vLLM 0.23.0: 6 kept, 3 lost",
        "lost: MAX_INPUT_TOKENS (line 7): It has no bound on the prompt alone: max_model_len bounds prompt and output "
        "together.",
        "lost: WAITING_SERVED_RATIO (line 8): vLLM 0.23.0 has no equivalent option",
        "lost: HF_TOKEN (line 9): secrets are not copied; use Secrets Manager",
    ]


def test_arguments_of_vllm_pass_between_lmi_and_vllm(seatrial: Seatrial, project: Path) -> None:
    (project / "serving.properties").write_text("option.model_id=a/b\noption.seed=7\noption.swap_space=4\n")
    done = seatrial(
        "convert", "--to", "vllm", "--to-version", "0.23.0", "serving.properties", "--instance-type", "ml.g5.12xlarge"
    )
    assert done.stdout == "SM_VLLM_MODEL=a/b\nSM_VLLM_TENSOR_PARALLEL_SIZE=4\nSM_VLLM_SEED=7\n"
    assert done.stderr.splitlines()[1:] == [
        "lost: option.swap_space (line 3): swap_space was removed from vLLM (last seen in LMI 20); LMI 27 ignores it "
        "silently"
    ]


def test_without_its_method_speculative_decoding_goes_whole(seatrial: Seatrial, project: Path) -> None:
    (project / "serving.properties").write_text(
        'option.model_id=a/b\noption.speculative_config={"method":"eagle3","model":"m","num_speculative_tokens":4}\n'
    )
    done = seatrial("convert", "--to", "lmi", "--to-version", "lmi14", "serving.properties")
    assert done.returncode == 1
    assert "speculative" not in done.stdout
    assert done.stderr.splitlines()[1:] == [
        "lost: option.speculative_config (line 2): lmi-dist on LMI 14 has no option for eagle3"
    ]
    assert seatrial("convert", "--to", "tgi", "serving.properties").returncode == 1


def test_what_only_vllm_understands_of_an_object_passes_as_it_is(seatrial: Seatrial, project: Path) -> None:
    drafted = '{"method":"ngram","num_speculative_tokens":4,"prompt_lookup_max":4}'
    (project / "serving.properties").write_text(f"option.model_id=a/b\noption.speculative_config={drafted}\n")
    done = seatrial("convert", "--to", "vllm", "--from-version", "lmi27", "serving.properties", *ONE_GPU)
    assert (done.returncode, done.stdout) == (
        0,
        f"SM_VLLM_MODEL=a/b\nSM_VLLM_TENSOR_PARALLEL_SIZE=1\nSM_VLLM_SPECULATIVE_CONFIG={drafted}\n",
    )


def test_every_gpu_is_one_gpu_elsewhere(seatrial: Seatrial, project: Path) -> None:
    (project / "serving.properties").write_text("option.model_id=a/b\noption.tensor_parallel_degree=max\n")
    done = seatrial("convert", "--to", "vllm", "serving.properties")
    assert done.returncode == 1
    assert done.stderr.splitlines()[1:] == [
        "lost: option.tensor_parallel_degree (line 2): LMI uses every GPU, vLLM 0.26.0 uses one GPU unless "
        "the number is set; give --instance-type"
    ]
    assert seatrial("convert", "--to", "lmi", "serving.properties").returncode == 0


def test_no_kind_of_secret_is_copied(seatrial: Seatrial, project: Path) -> None:
    secrets = {"api_key": "swordfish", "hf_overrides": '{"password": "swordfish"}', "seed": "nvapi-" + "aB3dE5" * 5}
    lines = "".join(f"option.{key}={value}\n" for key, value in secrets.items())
    (project / "serving.properties").write_text(f"option.model_id=a/b\n{lines}")
    done = seatrial("convert", "--to", "vllm", "serving.properties", *ONE_GPU)
    assert (done.returncode, done.stdout) == (1, "SM_VLLM_MODEL=a/b\nSM_VLLM_TENSOR_PARALLEL_SIZE=1\n")
    assert [line.partition(" ")[2].partition(":")[0] for line in done.stderr.splitlines()[1:]] == [
        f"option.{key} (line {number})" for number, key in enumerate(secrets, start=2)
    ]
    assert not any(value in done.stderr for value in ("swordfish", secrets["seed"]))


def test_a_token_in_a_key_is_not_repeated(seatrial: Seatrial, project: Path) -> None:
    token = "hf_" + "a1" * 15
    (project / "serving.properties").write_text(f"option.model_id=a/b\noption.{token}=1\n")
    done = seatrial("convert", "--to", "lmi", "serving.properties")
    assert done.returncode == 1
    assert token not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("none.env", "--to", "lmi"), "none.env: SEA101: no such file\n"),
        (("README", "--to", "lmi"), "README: SEA101: not a serving configuration\n"),
        (
            ("tgi.env", "--to", "ollama"),
            "tgi.env: SEA107: ollama is not a container; valid: lmi, tgi, vllm, sglang, or lmi-async, lmi-vllm, "
            "lmi-dist, "
            "lmi-trtllm, lmi-neuronx, lmi-deepspeed, lmi-python, tgi, tgi-neuronx, vllm, vllm-neuronx, sglang\n"
            "  hint: give --from and its version\n",
        ),
        (("tgi.env", "--to", "vllm", "-o", "tgi.env"), "tgi.env: SEA101: can't be written: File exists\n"),
    ],
)
def test_what_can_not_be_converted_exits_2(
    arguments: tuple[str, ...], message: str, seatrial: Seatrial, tgi: Path
) -> None:
    (tgi.parent / "README").write_text("prose")
    done = seatrial("convert", *arguments)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", message)
    assert tgi.read_text() == TGI
