"""What `seatrial predict` answers: limits, deployments, and that no prediction is absurd."""

from __future__ import annotations

import csv
import io
import math
from itertools import product

import pytest

from seatrial.planner.predict.closed_form import predict_at
from seatrial.planner.tables.predictions import PREDICTED, answered, copy_of, predict_csv_row, predictions_csv
from seatrial.planner.tables.rows import read_engine, read_rows

HEAD = "model,instance_type,tp_degree,instance_count,input_tokens,output_tokens,concurrency"
ROW = "Llama 2 7B,ml.g5.2xlarge,1,1,256,256,8"


def table(*rows: str, head: str = HEAD) -> bytes:
    return "\n".join((head, *rows, "")).encode()


def written(*rows: str, head: str = HEAD) -> list[dict[str, str]]:
    columns, read = read_rows(table(*rows, head=head), "rows.csv", engine=read_engine("tgi-1.1"))
    return list(csv.DictReader(io.StringIO(predictions_csv(answered(columns, read, "simulation")))))


class TestLimits:
    @pytest.mark.parametrize(
        ("row", "limit"),
        [
            ("Llama 2 7B,ml.g5.2xlarge,1,1,256,256,1", "memory"),
            ("Llama 2 7B,ml.g5.2xlarge,1,1,256,256,64", "kv"),
            ("Llama 2 7B,ml.g5.2xlarge,1,1,256,256,512", "timeout"),
            ("Llama 2 7B,ml.p4d.24xlarge,8,1,256,256,1", "host"),
            ("Llama 2 7B,ml.p4d.24xlarge,8,1,256,256,512", "admission"),
            ("Llama 2 7B,ml.g5.12xlarge,4,1,8000,256,1", "context"),
            ("Falcon 40B,ml.g5.2xlarge,1,1,256,256,1", "does not fit"),
        ],
    )
    def test_what_bounds_a_row(self, row: str, limit: str) -> None:
        assert written(row)[0]["predicted_limit"] == limit

    def test_a_batch_limit(self) -> None:
        (row,) = written("Llama 2 7B,ml.g5.12xlarge,4,1,256,256,64,32", head=f"{HEAD},max_num_seqs")

        assert row["predicted_limit"] == "batch limit"

    @pytest.mark.parametrize(
        ("row", "because"),
        [
            ("openai/gpt-oss-120b,ml.p5.48xlarge,8,1,256,256,8,tgi,", "TGI has no mxfp4 quantization."),
            ("Llama 2 7B,ml.g5.2xlarge,1,1,256,256,8,tgi-1.1,int8", "TGI has no int8 quantization."),
            ("openai/gpt-oss-20b,ml.g4dn.12xlarge,4,1,256,256,8,vllm-0.19,", "vLLM 0.19 loads mxfp4 weights from"),
            ("openai/gpt-oss-120b,ml.p5.48xlarge,8,1,256,256,8,trtllm,", None),
        ],
    )
    def test_what_the_engine_cannot_load_is_answered_in_its_row(self, row: str, because: str | None) -> None:
        (cells,) = written(row, head=f"{HEAD},engine,quantization")

        assert (cells["predicted_limit"] == "engine can't load it") is (because is not None)
        assert (cells["predicted_throughput_tok_s"] == "") is (because is not None)
        assert cells["predicted_error"].startswith(f"SEA254: {because}" if because is not None else "")

    def test_what_does_not_fit_has_no_numbers(self) -> None:
        (row,) = written("Falcon 40B,ml.g5.2xlarge,1,1,256,256,1")

        assert [row[name] for name in PREDICTED] == ["", "", "does not fit", "", "", "", "", "assumed"]


class TestDeployments:
    def test_copies_share_the_requests_evenly(self) -> None:
        head = f"{HEAD},copies_per_instance"
        one, four = written(
            "Llama 2 7B,ml.g5.12xlarge,1,1,256,256,8,1", "Llama 2 7B,ml.g5.12xlarge,1,1,256,256,32,4", head=head
        )

        ratio = float(four["predicted_throughput_tok_s"]) / float(one["predicted_throughput_tok_s"])
        assert ratio == pytest.approx(4, rel=0.05)
        assert four["uncertainty"] == "assumed"

    def test_instances_share_them_by_chance(self) -> None:
        one, four = written("Llama 2 7B,ml.g5.2xlarge,1,1,256,256,16", "Llama 2 7B,ml.g5.2xlarge,1,4,256,256,64")

        ratio = float(four["predicted_throughput_tok_s"]) / float(one["predicted_throughput_tok_s"])
        assert 3 < ratio < 4

    def test_dynamic_batching_is_told_apart(self) -> None:
        head = f"{HEAD},batching,batch_size,max_batch_delay_ms"
        (row,) = written("Falcon 40B,ml.g5.48xlarge,8,1,32,128,8,dynamic,4,100", head=head)

        assert (row["predicted_limit"], row["uncertainty"]) == ("batch limit", "assumed")

    def test_quantized_weights_leave_more_room(self) -> None:
        plain, quantized = written(f"{ROW},,tgi-1.4", f"{ROW},awq,tgi-1.4", head=f"{HEAD},quantization,engine")

        assert float(quantized["predicted_throughput_tok_s"]) > float(plain["predicted_throughput_tok_s"])
        assert quantized["uncertainty"] == "assumed"


MODELS = ("Llama 2 7B", "Llama 2 13B Chat", "Mistral 7B Instruct", "Mixtral 8x7B", "Falcon 40B", "Llama 2 70B")
PLACES = (
    ("ml.g5.2xlarge", 1),
    ("ml.g5.12xlarge", 4),
    ("ml.g5.48xlarge", 8),
    ("ml.p4d.24xlarge", 4),
    ("ml.p4d.24xlarge", 8),
    ("ml.p5.48xlarge", 8),
)
PAYLOADS = ((256, 256), (3_840, 256), (32, 1_024), (1_000, 1))


@pytest.mark.parametrize(("engine", "version"), [("tgi", "1.1"), ("lmi", "15")])
@pytest.mark.parametrize("model", MODELS)
def test_no_prediction_is_absurd(model: str, engine: str, version: str) -> None:
    default = read_engine(f"{engine}-{version}")
    for (instance_type, degree), (prompt, output) in product(PLACES, PAYLOADS):
        levels = (1, 2, 8, 32, 128)
        rows = [f"{model},{instance_type},{degree},1,{prompt},{output},{level}" for level in levels]
        read = read_rows(table(*rows), "rows.csv", engine=default)[1]
        asked = [row.spec for row in read if row.spec is not None]
        found = [predict_csv_row(one) for one in asked]
        if found[0].output_tok_s is None:
            assert {one.limit for one in found} == {"does not fit"}
            continue
        alone = predict_at(copy_of(asked[0]), 1).ms_per_token
        highest = 0.0
        for one in found:
            assert one.output_tok_s is not None
            assert one.ms_per_token is not None
            assert math.isfinite(one.output_tok_s)
            assert one.output_tok_s > 0
            assert one.ms_per_token >= 0.97 * alone
            assert one.output_tok_s > 0.8 * highest
            highest = max(highest, one.output_tok_s)
