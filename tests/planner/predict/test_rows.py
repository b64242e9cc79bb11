from __future__ import annotations

import csv
import io
import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.planner.predict.copy_model import least_batched_tokens
from seatrial.planner.tables.predictions import (
    ENGINE,
    ERROR,
    PREDICTED,
    answered,
    as_json,
    copy_of,
    predict_csv_row,
    predictions_csv,
)
from seatrial.planner.tables.rows import RowSpec, read_engine, read_rows, refuse_problems
from seatrial_base.catalog.engines import find_engine
from seatrial_base.catalog.images import resolve_image
from seatrial_base.catalog.instances import find_instance
from seatrial_base.errors import SpecError

TGI = find_engine("tgi", "1.1")
TGI_1 = read_engine("tgi-1.1")
HEAD = "model,instance_type,tp_degree,instance_count,input_tokens,output_tokens,concurrency"
ROW = "Llama 2 7B,ml.g5.2xlarge,1,1,256,256,8"


def table(*rows: str, head: str = HEAD) -> bytes:
    return "\n".join((head, *rows, "")).encode()


def refused(content: bytes) -> str:
    with pytest.raises(SpecError) as caught:
        refuse_problems(read_rows(content, "rows.csv", engine=TGI_1)[1])
    return str(caught.value)


def written(*rows: str, head: str = HEAD) -> list[dict[str, str]]:
    columns, read = read_rows(table(*rows, head=head), "rows.csv", engine=TGI_1)
    return list(csv.DictReader(io.StringIO(predictions_csv(answered(columns, read, "simulation")))))


class TestReading:
    @pytest.mark.parametrize(
        "content",
        [
            b"\xef\xbb\xbf" + table(ROW),
            table(ROW).replace(b"\n", b"\r\n"),
            table("", ROW, "", ",,,,,,"),
            table('"Llama 2 7B","ml.g5.2xlarge","1","1","256","256","8"'),
            table(" Llama 2 7B , ml.g5.2xlarge , 1 , 1 , 256 , 256 , 8 "),
            table("meta-llama/Llama-2-7b-hf,ml.g5.2xlarge,1.0,1.0,256.0,256.0,8.0"),
            table("Llama 2 7B,ml.g5.2xlarge,1,,256,256,8"),
            table("Llama 2 7B,ml.g5.2xlarge,1,256,256,8", head=HEAD.replace("instance_count,", "")),
        ],
        ids=[
            "byte order mark",
            "crlf",
            "blank lines",
            "quoted",
            "spaces",
            "floats and hub id",
            "empty count",
            "no count",
        ],
    )
    def test_a_row_is_read_however_it_is_written(self, content: bytes) -> None:
        (_, expected), (_, found) = read_rows(table(ROW), "rows.csv"), read_rows(content, "rows.csv")

        assert [row.spec for row in found] == [row.spec for row in expected]

    def test_a_head_alone_is_a_table_without_rows(self) -> None:
        assert read_rows(table(), "rows.csv") == (tuple(HEAD.split(",")), [])

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (
                b"",
                "rows.csv: SEA220: the table is empty\n"
                "  hint: give a header with model, instance_type, input_tokens, output_tokens, concurrency",
            ),
            (b"model\n\xff", "rows.csv: SEA220: the table is not UTF-8: invalid start byte at byte 6"),
            (table('"Llama'), "rows.csv:2: SEA220: the table is not CSV: unexpected end of data"),
        ],
        ids=["empty", "latin-1", "open quote"],
    )
    def test_what_is_not_a_table(self, content: bytes, message: str) -> None:
        assert refused(content) == message

    def test_every_problem_is_told_at_once_with_line_and_column(self) -> None:
        content = table(
            "Lama 2 7B,ml.g5.2xlarge,one,0,256,many,5000",
            ROW,
            "Llama 2 7B,ml.g5.2xlarg,1,1,,nan,8",
            "Llama 2 7B,ml.g5.12xlarge,8,1,256,256,8",
            "Llama 2 7B,ml.g5.2xlarge,2,1,256,256,8",
            "Llama 2 7B,ml.g5.2xlarge,1",
            "Llama 2 7B,ml.inf2.48xlarge,1,1,256,256,-8",
        )

        found = [line for line in refused(content).split("\n") if not line.startswith("  hint: ")]

        assert found == [
            "rows.csv:2: tp_degree: SEA222: 'one' is not a whole number",
            "rows.csv:2: instance_count: SEA222: '0' is not between 1 and 1,000",
            "rows.csv:2: output_tokens: SEA222: 'many' is not a whole number",
            "rows.csv:2: concurrency: SEA222: '5000' is not between 1 and 4,096",
            "rows.csv:2: model: SEA223: the architecture of 'Lama 2 7B' is unknown",
            "rows.csv:4: input_tokens: SEA222: the cell is empty",
            "rows.csv:4: output_tokens: SEA222: 'nan' is not a whole number",
            "rows.csv:4: instance_type: SEA223: 'ml.g5.2xlarg' is not in the catalog",
            "rows.csv:5: tp_degree: SEA224: 8 accelerators are needed, but ml.g5.12xlarge has 4",
            "rows.csv:6: tp_degree: SEA224: 2 accelerators are needed, but ml.g5.2xlarge has 1",
            "rows.csv:7: SEA222: the row has 3 fields, the header 7",
            "rows.csv:8: concurrency: SEA222: '-8' is not between 1 and 4,096",
        ]

    def test_rows_on_aws_neuron_count_cores_and_have_the_engine_that_compiles(self) -> None:
        rows = table(
            "Llama 2 7B,ml.inf2.48xlarge,8,1,256,256,8",
            "Llama 2 7B,Inferentia2,2,1,256,256,8",
            "Llama 2 7B,ml.inf2.xlarge,4,1,256,256,8",
        )
        _, (first, second, third) = read_rows(rows, "rows.csv")

        assert [problem.rule for problem in third.problems] == ["SEA224"]
        assert first.spec is not None
        assert second.spec is not None
        assert (first.spec.engine.id, first.spec.instance.accelerator_count) == ("neuron", 24)
        assert (second.spec.instance.instance_type, second.spec.degree) == ("ml.inf2.xlarge", 2)
        found = predict_csv_row(first.spec)
        assert found.output_tok_s is not None
        assert (found.band.throughput, found.band.measured) == (1.0, False)

    def test_the_engine_of_aws_neuron_runs_on_no_gpu(self) -> None:
        rows = table("Llama 2 7B,ml.g5.2xlarge,1,1,256,256,8,neuron", head=f"{HEAD},engine")

        assert "rows.csv:2: engine: SEA223: the engine neuron needs AWS Neuron" in refused(rows)

    def test_a_missing_column_and_one_that_is_written_twice(self) -> None:
        found = refused(table("Llama 2 7B,1,1,1", head="model,tp_degree,tp_degree,concurrency"))

        assert [line for line in found.split("\n") if "hint" not in line] == [
            "rows.csv:1: instance_type: SEA221: the column is missing",
            "rows.csv:1: input_tokens: SEA221: the column is missing",
            "rows.csv:1: output_tokens: SEA221: the column is missing",
            "rows.csv:1: tp_degree: SEA221: duplicate column",
        ]

    def test_copies_need_accelerators_of_their_own(self) -> None:
        found = refused(table(f"{ROW},2", head=f"{HEAD},copies_per_instance"))

        assert found == "rows.csv:2: tp_degree: SEA224: 2 copies of 1 accelerators are needed, but ml.g5.2xlarge has 1"

    def test_a_word_that_a_column_does_not_know(self) -> None:
        found = refused(table(f"{ROW},static,int3", head=f"{HEAD},batching,quantization"))

        assert found == (
            "rows.csv:2: batching: SEA222: 'static' is not one of continuous, dynamic\n"
            "rows.csv:2: quantization: SEA222: 'int3' is not one of bf16, fp16, fp8, int8, w8a16, int4, awq, gptq, "
            "mxfp4, nvfp4, fp4"
        )

    @given(st.binary(max_size=300))
    def test_any_bytes_give_rows_or_problems(self, content: bytes) -> None:
        with suppress(SpecError):
            read_rows(content, "rows.csv")

    @pytest.mark.parametrize("text", ["", "tgi", "tgi-", "triton-2.0", "tgi-x"])
    def test_an_engine_is_a_family_and_a_version(self, text: str) -> None:
        with pytest.raises(SpecError) as caught:
            read_engine(text)

        assert str(caught.value) == (
            f"--engine: SEA223: the engine {text!r} is unknown\n"
            "  hint: write family and version, as `tgi-1.1` or `lmi-15`; families: "
            "lmi, tgi, vllm, sglang, trtllm, neuron"
        )

    def test_the_constants_are_those_of_the_longest_prefix(self) -> None:
        assert read_engine("tgi-1.1").facts.id == "tgi-1.x"
        assert read_engine("lmi-10.23.0").facts.id == "lmi"


TODAY = (
    "model,engine,engine_version,precision,instance_type,accelerators,tp_degree,input_tokens,output_tokens,concurrency"
)


def asked(row: str, head: str = TODAY) -> RowSpec:
    (read,) = read_rows(table(row, head=head), "rows.csv", engine=read_engine("lmi-15"))[1]
    assert read.problems == ()
    assert read.spec is not None
    return read.spec


def wrong(row: str, head: str = TODAY) -> list[tuple[str, str]]:
    (read,) = read_rows(table(row, head=head), "rows.csv", engine=read_engine("lmi-15"))[1]
    assert (read.spec is None) == bool(read.problems)
    return [(problem.field, problem.rule) for problem in read.problems]


class TestTables:
    """Tables as they are published today."""

    @pytest.mark.parametrize(
        ("named", "family", "version"),
        [
            ("vLLM,v0.11.0", "vllm", "0.11.0"),
            ("TensorRT-LLM,", "trtllm", ""),
            ("vllm-0.11.0,0.12.0", "vllm", "0.12.0"),
            (",", "lmi", "15"),
            (",16", "lmi", "16"),
        ],
    )
    def test_the_engine_of_a_row_wins(self, named: str, family: str, version: str) -> None:
        found = asked(f"Qwen/Qwen3-32B,{named},,H200,,2,900,900,8")

        assert (found.engine.family, found.engine_version) == (family, version)

    def test_a_mean_length_is_rounded(self) -> None:
        found = asked("Qwen/Qwen3-32B,vllm,,,H200,,2,1581.3,600.0,8")

        assert (found.input_tokens, found.output_tokens) == (1581, 600)

    @pytest.mark.parametrize(
        ("cells", "degree", "instance_type"),
        [
            ("L40S,,", 1, "ml.g6e.xlarge"),
            ("L40S,1,", 1, "ml.g6e.xlarge"),
            ("L40S,4,2", 2, "ml.g6e.12xlarge"),
            ("g6e.2xlarge,,", 1, "ml.g6e.2xlarge"),
            ("H100,16,8", 8, "ml.p5.48xlarge"),
        ],
    )
    def test_the_degree_may_be_left_out_where_there_is_one_accelerator(
        self, cells: str, degree: int, instance_type: str
    ) -> None:
        found = asked(f"Qwen/Qwen3-8B,vllm,,,{cells},900,900,8")

        assert (found.degree, found.instance.instance_type, found.copies_per_instance) == (degree, instance_type, 1)

    def test_a_table_may_do_without_the_column(self) -> None:
        head = HEAD.replace("tp_degree,", "")

        assert asked("Llama 2 7B,ml.g5.2xlarge,1,256,256,8", head).degree == 1

    @pytest.mark.parametrize(
        ("row", "problems"),
        [
            ("Qwen/Qwen3-8B,triton,,,H200,,1,900,900,8", [("engine", "SEA223")]),
            ("Qwen/Qwen3-8B,vllm,,int3,H200,,1,900,900,8", [("precision", "SEA222")]),
            ("Qwen/Qwen3-8B,vllm,,mxfp4,H200,,1,900,900,8", [("precision", "SEA223")]),
            ("Qwen/Qwen3-8B,vllm,,,H200,8,,900,900,8", [("tp_degree", "SEA222")]),
            ("Qwen/Qwen3-8B,vllm,,,ml.p5.48xlarge,,,900,900,8", [("tp_degree", "SEA222")]),
            ("Qwen/Qwen3-8B,vllm,,,H200,4,8,900,900,8", [("tp_degree", "SEA224")]),
            ("Qwen/Qwen3-8B,vllm,,,H200,,16,900,900,8", [("tp_degree", "SEA224")]),
            ("Qwen/Qwen3-8B,vllm,,,A100,,1,900,900,8", [("instance_type", "SEA223")]),
            ("Qwen/Qwen3-8B,vllm,,,H200,,1,900,900,inf", [("concurrency", "SEA222")]),
            ("Qwen/Qwen3-8B,vllm,,,H200,,1,900,900,", [("concurrency", "SEA222")]),
            ("Qwen/Qwen3-8B-GGUF,vllm,,,H200,,1,900,900,8", [("model", "SEA223")]),
            ("Qwen/Qwen3-8B,vllm,,,H200,,1,900,inf,8", [("output_tokens", "SEA222")]),
            ("Qwen/Qwen3-8B,vllm,,,H200,,1,0.2,900,8", [("input_tokens", "SEA222")]),
            (f"{'x' * 1_000},vllm,,,H200,,1,900,900,8", [("model", "SEA223")]),
            (f"{'x' * 1_001},vllm,,,H200,,1,900,900,8", [("model", "SEA222")]),
            ("Qwen/Qwen3-8B,vllm,,,H200,,1,900,900,8,9", [("", "SEA222")]),
        ],
    )
    def test_what_is_wrong_stays_with_the_row(self, row: str, problems: list[tuple[str, str]]) -> None:
        assert wrong(row) == problems

    @pytest.mark.parametrize(
        ("cells", "note"),
        [
            ("vllm,new,", "'new' names no release: it is taken as the newest vllm"),
            ("dynamo-sglang,0.5.9,", "'dynamo-sglang' is taken as sglang"),
            ("vllm,,w4a8_mxfp4_fp8", "'w4a8_mxfp4_fp8' is taken as mxfp4"),
        ],
    )
    def test_the_nearest_that_is_known_answers_with_a_note(self, cells: str, note: str) -> None:
        assert asked(f"openai/gpt-oss-20b,{cells},H200,,1,900,900,8").guessed == (note,)

    def test_precision_and_quantization_may_agree_but_not_contradict(self) -> None:
        head = f"{HEAD},precision,quantization"

        assert asked(f"{ROW},FP8-dynamic,fp8", head).quantization == "fp8"
        assert wrong(f"{ROW},bf16,awq", head) == [("precision", "SEA222")]

    def test_of_an_unknown_model_the_precision_is_read_all_the_same(self) -> None:
        content = table("foo/bar,ml.g5.2xlarge,1,1,256,256,8,fp3,2", head=f"{HEAD},precision,prefix_hit_rate")
        (row,) = read_rows(content, "rows.csv")[1]

        assert {(problem.field, problem.rule) for problem in row.problems} == {
            ("model", "SEA223"),
            ("precision", "SEA222"),
            ("prefix_hit_rate", "SEA222"),
        }

    def test_a_narrow_kv_cache_holds_twice_the_tokens(self) -> None:
        head = f"{HEAD},kv_precision"
        wide, narrow = (copy_of(asked(f"{ROW},{text}", head)) for text in ("auto", "fp8"))

        assert narrow.kv_room_tokens == pytest.approx(2 * wide.kv_room_tokens, rel=1e-3)
        assert wrong(f"{ROW},int2", head) == [("kv_precision", "SEA222")]

    @pytest.mark.parametrize(
        ("engine", "option", "value", "more"),
        [
            ("lmi,24", "gpu_memory_utilization", "0.95", 8_192),  # of 80 GiB a twentieth, of 0.5 MiB a token
            ("sglang,0.5.9", "mem_fraction_static", "0.88", 0),  # what is assumed without it
            ("tgi,3.3.6", "CUDA_MEMORY_FRACTION", "0.9", -16_384),
            ("vllm,0.19.0", "num_gpu_blocks_override", "100", None),
            ("sglang,0.5.9", "max_total_tokens", "1600", None),
        ],
    )
    def test_an_option_bounds_the_cache(self, engine: str, option: str, value: str, more: int | None) -> None:
        row, head = "Llama 2 7B,ml.p5.4xlarge,1,1,256,256,8", f"{HEAD},engine,engine_version,{option}"
        plain, bound = (copy_of(asked(f"{row},{engine},{cell}", head)).kv_room_tokens for cell in ("", value))
        assert bound == pytest.approx(1_600 if more is None else plain + more, abs=1)

    def test_an_option_of_the_engine_counts_or_is_named(self) -> None:
        head = f"{HEAD},gpu_memory_utilization,enforce_eager,seed"
        plain, more, eager = (asked(f"{ROW},{cells}", head) for cells in (",,", "0.95,,", ",true,3"))
        assert copy_of(more).kv_room_tokens > copy_of(plain).kv_room_tokens == copy_of(eager).kv_room_tokens
        assert (more.guessed, eager.guessed) == ((), ("not in the prediction: enforce_eager",))
        assert wrong(f"{ROW},1.2,,", head) == [("gpu_memory_utilization", "SEA222")]
        shared = copy_of(asked(f"{ROW},0.9", f"{HEAD},prefix_hit_rate"))
        assert shared.kv_limited_batch > 2 * copy_of(plain).kv_limited_batch

    def test_a_row_that_is_wrong_is_written_with_its_cells(self) -> None:
        content = table(ROW, "Llama 2 7B,ml.g5.2xlarge,1,1,256,256,x", ROW + ",9")
        columns, rows = read_rows(content, "rows.csv")
        written = answered(columns, rows, "closed")

        assert (written.unanswered, len(written.rows)) == (2, 3)
        assert [str(row[ERROR] or "")[:6] for row in written.rows] == ["", "SEA222", "SEA222"]
        assert [row["predicted_limit"] for row in written.rows] == ["memory", None, None]
        assert [row["concurrency"] for row in json.loads(as_json(written))] == [8, "x", 8]


class TestGuesses:
    def test_a_sister_id_and_a_tag_are_answered_with_a_note_and_a_wider_band(self) -> None:
        head = "model,instance_type,engine,engine_version,tp_degree,input_tokens,output_tokens,concurrency"
        load = "ml.g5.12xlarge,vllm,{},4,922,922,16"
        plain, guessed = written(
            f"Qwen/Qwen3-32B,{load.format('0.11.0')}", f"acme/Qwen3-32B,{load.format('qwen3-dev')}", head=head
        )

        assert plain["predicted_throughput_tok_s"] == guessed["predicted_throughput_tok_s"]
        assert float(guessed["predicted_throughput_low_tok_s"]) < float(plain["predicted_throughput_low_tok_s"])
        assert (plain["uncertainty"], guessed["uncertainty"]) == ("measured", "assumed")
        assert plain["predicted_note"] == ""
        assert set(guessed["predicted_note"].split("; ")) == {
            "'acme/Qwen3-32B' is taken as Qwen/Qwen3-32B",
            "'qwen3-dev' names no release: it is taken as the newest vllm",
        }


class TestWriting:
    def test_columns_that_it_does_not_know_pass_unchanged_and_in_their_order(self) -> None:
        (row,) = written(f'é,{ROW},"a, ""b"""', head=f"note,{HEAD},other")

        assert list(row) == ["note", *HEAD.split(","), "other", *PREDICTED, ENGINE, ERROR]
        assert (row["note"], row["other"]) == ("é", 'a, "b"')

    def test_rows_keep_their_order(self) -> None:
        rows = [ROW.removesuffix("8") + str(level) for level in (8, 1, 64, 8)]

        assert [row["concurrency"] for row in written(*rows)] == ["8", "1", "64", "8"]

    def test_an_earlier_prediction_is_written_anew(self) -> None:
        (row,) = written(f"{ROW},17", head=f"{HEAD},predicted_limit")

        assert row["predicted_limit"] == "memory"
        assert list(row).count("predicted_limit") == 1

    def test_means_of_an_earlier_steady_prediction_are_not_kept(self) -> None:
        (row,) = written(f"{ROW},17", head=f"{HEAD},predicted_ttft_mean_ms")

        assert row["predicted_ttft_mean_ms"] == ""

    def test_the_band_lies_around_the_value(self) -> None:
        (row,) = written(ROW)
        error = TGI.performance.throughput_error

        assert float(row["predicted_throughput_low_tok_s"]) * (1 + error) == pytest.approx(
            float(row["predicted_throughput_tok_s"]), rel=1e-4
        )
        assert float(row["predicted_latency_high_ms_per_token"]) == pytest.approx(
            float(row["predicted_latency_ms_per_token"]) * (1 + TGI.performance.latency_error), rel=1e-4
        )
        assert row["uncertainty"] == "measured"

    def test_json_has_numbers_and_no_number_is_null(self) -> None:
        columns, rows = read_rows(table("Falcon 40B,ml.g5.2xlarge,1,,256,256,8"), "rows.csv")
        (row,) = json.loads(as_json(answered(columns, rows, "simulation")))

        assert (row["model"], row["tp_degree"], row["instance_count"]) == ("Falcon 40B", 1, None)
        assert (row["predicted_throughput_tok_s"], row["predicted_limit"]) == (None, "does not fit")


@pytest.mark.parametrize(
    ("version", "instance_type", "tokens"),
    [
        ("0.33.0", "ml.p6-b200.48xlarge", 16_384),
        ("0.27.1", "ml.p6-b200.48xlarge", 8_192),  # the step at 160 GiB came with 0.28
        ("2.1", "ml.p6-b200.48xlarge", 8_192),  # vLLM 0.24
        ("0.33.0", "ml.p5e.48xlarge", 8_192),
        ("0.33.0", "ml.p4de.24xlarge", 2_048),  # A100
        ("0.33.0", "ml.g6e.2xlarge", 2_048),
    ],
)
def test_vllm_batches_as_many_tokens_as_its_release_does_on_that_memory(
    version: str, instance_type: str, tokens: int
) -> None:
    instance = find_instance(instance_type)
    assert instance is not None
    assert least_batched_tokens(find_engine("vllm", version), instance, input_tokens=64) == tokens


class TestLevelsOfATrial:
    HEAD = "model,instance_type,tp_degree,input_tokens,output_tokens,concurrency,rate_per_s,start,engine,engine_version"
    COPY = "meta-llama/Llama-3.1-8B-Instruct,H200,1,1000,200"

    def test_a_common_start_makes_convoys_as_on_a_real_h200(self) -> None:
        # Measured with vLLM 0.20.2: TTFT of 830 ms with 64 in flight, 84 ms at random arrivals of about that load.
        together, spread, random = written(
            f"{self.COPY},64,,together,vLLM,0.20.2",
            f"{self.COPY},64,,spread,vLLM,0.20.2",
            f"{self.COPY},,20,,vLLM,0.20.2",
            head=self.HEAD,
        )

        ttft_ms = [float(row["predicted_ttft_mean_ms"]) for row in (together, spread, random)]
        assert ttft_ms[0] == pytest.approx(830, rel=0.15)
        assert ttft_ms[2] == pytest.approx(84, rel=0.3)
        assert max(ttft_ms[1:]) < ttft_ms[0] / 5

    def test_a_rate_has_a_chance_and_an_endless_queue_no_latency(self) -> None:
        low, high = written(f"{self.COPY},,10,,vLLM,0.20.2", f"{self.COPY},,60,,vLLM,0.20.2", head=self.HEAD)

        assert float(low["predicted_carried_chance"]) > 0.99
        assert float(low["predicted_in_flight"]) == pytest.approx(13.5, rel=0.15)  # measured
        assert float(low["predicted_throughput_tok_s"]) == 2_000
        assert float(high["predicted_carried_chance"]) < 0.05
        assert (high["predicted_limit"], high["predicted_ttft_mean_ms"]) == ("endless queue", "")
        assert float(high["predicted_throughput_tok_s"]) < 60 * 200

    def test_the_engine_of_a_row_that_names_none_is_the_planners_and_written(self) -> None:
        columns, rows = read_rows(table(ROW), "rows.csv")
        (row,) = answered(columns, rows, "simulation").rows

        planned = resolve_image("lmi", None, "us-east-1").build.lmi
        assert str(row["predicted_engine"]).startswith(f"lmi {planned} (vLLM 0.")

    @pytest.mark.parametrize(
        ("cells", "problem"),
        [
            ("4,30,", "rate_per_s: SEA222: the row has a concurrency, too"),
            ("4,,both", "start: SEA222: 'both' is not one of spread, together"),
            (",0,", "rate_per_s: SEA222: '0' is not a rate above 0, up to 100,000"),
            (",10,spread", "start: SEA222: requests that arrive at a rate have no start"),
            (",,", "concurrency: SEA222: the cell is empty"),
        ],
    )
    def test_a_wrong_load_is_refused(self, cells: str, problem: str) -> None:
        assert f"rows.csv:2: {problem}" in refused(table(f"{self.COPY},{cells},,", head=self.HEAD))
