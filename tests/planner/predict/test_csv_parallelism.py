from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from seatrial.planner.tables.options import EVERY, Parallelism, arrange, read_groups
from seatrial.planner.tables.predictions import copy_of, predict_csv_row
from seatrial.planner.tables.rows import read_rows
from seatrial_base.catalog.models import find_model

if TYPE_CHECKING:
    from seatrial.planner.tables.rows import CsvRow

EXPERTS, DENSE = "deepseek-ai/DeepSeek-R1", "Qwen/Qwen3-32B"


def arranged(
    degree: int, *, moe_ep: int = 1, attention_dp: int = 1, accelerators: int = 0, model: str = EXPERTS
) -> Parallelism:
    shape = find_model(model)
    assert shape is not None
    return arrange(shape, degree, moe_ep=moe_ep, attention_dp=attention_dp, accelerators=accelerators, most=8)


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("", 1),
        ("4", 4),
        ("8.0", 8),
        ("false", 1),
        ("0", 1),
        ("True", EVERY),
        ("on", EVERY),
        ("1.5", None),
        ("-1", None),
    ],
)
def test_a_cell_is_a_number_of_groups_or_true(text: str, groups: int | None) -> None:
    assert read_groups(text) == groups


def test_a_divisor_of_the_degree_is_taken_as_it_is() -> None:
    assert arranged(8, moe_ep=8, attention_dp=4) == Parallelism(8, 1, 8, 4)


def test_true_is_one_group_for_each_accelerator() -> None:
    assert arranged(8, moe_ep=EVERY, attention_dp=EVERY) == Parallelism(8, 1, 8, 8)


@pytest.mark.parametrize("accelerators", [0, 8])
def test_vllms_tensor_parallel_degree_is_that_of_one_group(accelerators: int) -> None:
    found = arranged(1, moe_ep=8, attention_dp=8, accelerators=accelerators)

    assert found == Parallelism(8, 1, 8, 8, ("tp_degree 1 and attention_dp 8 are taken as 8 accelerators",))


def test_the_row_s_accelerators_tell_two_groups_of_four_from_two_of_two() -> None:
    assert arranged(4, attention_dp=2, accelerators=8).degree == 8
    assert arranged(4, attention_dp=2).degree == 4


def test_a_degree_that_no_instance_has_is_the_nearest_with_a_note() -> None:
    found = arranged(4, moe_ep=3, attention_dp=16)

    assert (found.expert_parallel_degree, found.attention_data_parallel_degree) == (2, 4)
    assert found.notes == (
        "attention_dp 16 does not divide 4 accelerators: it is taken as 4",
        "moe_ep 3 does not divide 4 accelerators: it is taken as 2",
    )


def test_a_model_without_experts_runs_data_parallel_as_several_copies() -> None:
    found = arranged(8, moe_ep=8, attention_dp=2, model=DENSE)

    assert found == Parallelism(
        4,
        2,
        notes=(
            "moe_ep is left out: Qwen/Qwen3-32B has no experts",
            "attention_dp 2 of a model without experts is taken as 2 copies",
        ),
    )


HEAD = "model,engine,instance_type,tp_degree,input_tokens,output_tokens,concurrency,"
ROW = f"{EXPERTS},SGLang,H200,8,1000,1000,64,"


def row(columns: str, cells: str, start: str = ROW) -> CsvRow:
    return read_rows(f"{HEAD}{columns}\n{start}{cells}\n".encode(), "rows.csv")[1][0]


@pytest.mark.parametrize(
    ("columns", "cells"),
    [
        ("moe_ep,attention_dp", "8,4"),
        ("expert_parallel_degree,attention_data_parallel_degree", "8,4"),
        ("ep,dp_attention", "true,4"),
        ("ep,attention_dp,dp_attention", "8,4,true"),
    ],
)
def test_the_columns_have_several_names(columns: str, cells: str) -> None:
    asked = row(columns, cells).asked

    assert asked is not None
    assert (asked.expert_parallel_degree, asked.attention_data_parallel_degree) == (8, 4)
    assert copy_of(asked).attention_degree == 2


def test_what_a_cell_cannot_mean_is_told_with_its_column() -> None:
    problems = row("moe_ep,ep,attention_dp", "8,4,some").problems

    assert [(each.rule, each.field, each.message) for each in problems] == [
        ("SEA222", "moe_ep", "moe_ep 8 and ep 4 contradict each other"),
        ("SEA222", "attention_dp", "'some' is neither a whole number nor true or false"),
    ]


def test_a_wrong_cell_is_told_beside_an_unknown_model_and_instance_type() -> None:
    problems = row("moe_ep,attention_dp", "some,1.5", "nobody/none,,K80,8,1000,1000,8,").problems

    assert {each.field for each in problems} == {"moe_ep", "attention_dp", "model", "instance_type"}


def test_attention_by_groups_is_predicted_with_a_wider_band() -> None:
    plain, grouped = row("attention_dp", "").asked, row("attention_dp", "8").asked
    assert plain is not None
    assert grouped is not None

    expected, found = predict_csv_row(plain, "closed"), predict_csv_row(grouped, "closed")

    assert found.output_tok_s != expected.output_tok_s
    assert found.band.latency > expected.band.latency
    assert "Attention data parallelism was not fitted" in found.band.because


def test_on_aws_neuron_both_columns_are_left_out_with_a_note() -> None:
    asked = row("moe_ep,attention_dp", "8,8", "Qwen/Qwen3-30B-A3B,,ml.trn2.48xlarge,8,1000,1000,8,").asked

    assert asked is not None
    assert (asked.expert_parallel_degree, asked.attention_data_parallel_degree) == (1, 1)
    assert asked.guessed == ("moe_ep and attention_dp are left out: on AWS Neuron they are not modelled",)
