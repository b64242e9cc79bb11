from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.documents.calibration import Calibration
from seatrial.planner.predict.copy_model import Speculation
from seatrial.planner.predict.iteration_cost import costs_of, kernels_of
from seatrial.planner.predict.memory import SharedPrefix
from seatrial.planner.predict.request_simulation import simulate_open
from seatrial_base.catalog import operators
from seatrial_base.catalog.engines import find_engine
from seatrial_base.catalog.operators import find_operator
from tests.planner.predict.conftest import placed

if TYPE_CHECKING:
    from seatrial.planner.predict.copy_model import Copy
    from seatrial_base.catalog.engines import Engine
    from tests.planner.predict.conftest import PlaceCopy

FITTED = find_engine("tgi", "1.1.0").performance
LMI = find_engine("lmi", "0.36.0")
VLLM = LMI.performance
LLAMA_2_7B = 6_738_415_616
EMBEDDING = 32_000 * 4_096
WEIGHTS = 2 * (LLAMA_2_7B - EMBEDDING)  # the input embedding is looked up, not read
BODY = LLAMA_2_7B - 2 * EMBEDDING
VECTORS_S = 32 * 20 * 2 * 4_096 / 600e9  # 20 passes over a token's vector in each layer
MIXTRAL = "mistralai/Mixtral-8x7B-v0.1"
DEEPSEEK = "deepseek-ai/DeepSeek-V3"
GPT_OSS = "openai/gpt-oss-20b"
H100, A100 = "NVIDIA H100 SXM5 80GB", "NVIDIA A100 80GB SXM4"
A10G_PRODUCT = find_operator("NVIDIA A10G", "product", None)
A10G_READING = 600e9 * A10G_PRODUCT.memory_efficiency / FITTED.product_factor
A10G_ARITHMETIC = 70e12 * A10G_PRODUCT.compute_efficiency / FITTED.product_factor


class TestProducts:
    def test_a_small_batch_reads_the_weights(self, copy_of: PlaceCopy) -> None:
        costs = costs_of(copy_of())

        assert costs.weights == pytest.approx(WEIGHTS / A10G_READING)
        assert costs.busy(1) == pytest.approx(costs.weights, rel=1e-6)

    def test_a_large_batch_is_bound_by_arithmetic(self, copy_of: PlaceCopy) -> None:
        costs = costs_of(copy_of())

        assert costs.token == pytest.approx(2 * BODY / A10G_ARITHMETIC + VECTORS_S)
        assert costs.head_token == pytest.approx(2 * EMBEDDING / A10G_ARITHMETIC)
        assert costs.busy(500) == pytest.approx(500 * (costs.token + costs.head_token), rel=1e-4)

    @given(st.integers(1, 2_000), st.floats(1, 8))
    def test_sharpness_says_how_much_of_reading_and_arithmetic_overlaps(self, tokens: int, sharpness: float) -> None:
        costs = replace(costs_of(placed()), sharpness=sharpness)
        read, arithmetic = costs.weights, tokens * (costs.token + costs.head_token)

        assert max(read, arithmetic) <= costs.busy(tokens) <= (read + arithmetic) * (1 + 1e-9)
        assert replace(costs, sharpness=1).busy(tokens) == pytest.approx(read + arithmetic)
        assert replace(costs, sharpness=2).busy(tokens) == pytest.approx(math.hypot(read, arithmetic))

    def test_an_engine_without_a_sharpness_has_that_of_the_measured_kernels(self, copy_of: PlaceCopy) -> None:
        mixtral = costs_of(copy_of(MIXTRAL, "ml.p4de.24xlarge", degree=2, engine=LMI))
        kernels = [find_operator(A100, kind, None, "vllm").sharpness for kind in ("product", "experts")]

        assert VLLM.sharpness == 0
        assert [mixtral.sharpness, mixtral.expert_sharpness] == kernels
        assert costs_of(copy_of()).sharpness == FITTED.sharpness > 1

    def test_only_output_tokens_pass_the_output_embedding(self, copy_of: PlaceCopy) -> None:
        costs = replace(costs_of(copy_of()), sharpness=1)

        assert costs.busy(3, 40) - costs.busy(0, 43) == pytest.approx(3 * costs.head_token)

    @given(
        st.sampled_from([(MIXTRAL, None), (GPT_OSS, "mxfp4"), (DEEPSEEK, "fp8"), ("meta-llama/Llama-3.1-70B", "fp8")]),
        st.integers(0, 3_000),
        st.integers(1, 3_000),
    )
    def test_no_iteration_gets_shorter_with_its_tokens(
        self, model: tuple[str, str | None], tokens: int, more: int
    ) -> None:
        name, quantization = model
        costs = costs_of(placed(name, "ml.p5en.48xlarge", degree=8, engine=LMI, quantization=quantization))

        assert costs.device(tokens + more) >= costs.device(tokens or 1)
        assert costs.step(tokens + more) >= costs.step(tokens or 1)
        assert costs.mixed(8, tokens + more) > costs.mixed(8, tokens)
        assert costs.prefill(1, tokens + more) > costs.prefill(1, tokens or 1) or more <= 1 - tokens


class TestFixedTime:
    def test_each_layer_takes_the_least_time_of_its_operators(self, copy_of: PlaceCopy) -> None:
        copy = copy_of("meta-llama/Llama-3.1-70B", "ml.p5.48xlarge", degree=8, engine=LMI)

        assert costs_of(copy).fixed == pytest.approx(80 * (layer_s(copy, products=4)) + VLLM.step_s)

    def test_experts_take_the_place_of_two_products(self, copy_of: PlaceCopy) -> None:
        copy = copy_of("Qwen/Qwen3-235B-A22B", "ml.p5.48xlarge", degree=8, engine=LMI)
        experts_s = latency_s(copy, "experts")

        assert costs_of(copy).fixed == pytest.approx(94 * (layer_s(copy, products=2) + experts_s) + VLLM.step_s)

    def test_latent_attention_has_two_products_more(self, copy_of: PlaceCopy) -> None:
        copy = copy_of(DEEPSEEK, "ml.p5en.48xlarge", degree=8, engine=LMI)
        experts_s = latency_s(copy, "experts")

        assert costs_of(copy).fixed == pytest.approx(61 * (layer_s(copy, products=4) + experts_s) + VLLM.step_s)

    def test_a_higher_degree_saves_none_of_it(self, copy_of: PlaceCopy) -> None:
        one, eight = (costs_of(copy_of(instance_type="ml.p5.48xlarge", degree=degree, engine=LMI)) for degree in (1, 8))

        assert eight.fixed == one.fixed
        assert eight.weights == pytest.approx(one.weights / 8)


class TestExperts:
    def test_a_mixture_reads_more_of_its_experts_as_the_batch_grows(self, copy_of: PlaceCopy) -> None:
        costs = costs_of(copy_of(MIXTRAL, "ml.p4de.24xlarge", degree=2, engine=LMI))

        assert costs.read(1) == pytest.approx(costs.weights + costs.expert_weights * 2 / 8)
        assert costs.read(2) == pytest.approx(costs.weights + costs.expert_weights * 0.4)  # 0.5 / 1.25
        assert costs.read(500) == pytest.approx(costs.weights + costs.expert_weights, rel=0.02)

    @given(st.floats(0.001, 1), st.integers(1, 10_000))
    def test_popular_experts_are_chosen_again(self, share: float, tokens: int) -> None:
        found, more = (operators.chosen_share(share, count) for count in (tokens, tokens + 1))

        assert operators.chosen_share(share, 1) == pytest.approx(share)
        assert found <= more <= 1 + 1e-9
        assert found <= 1 - (1 - share) ** tokens + 1e-9  # where all are as popular

    def test_an_engine_runs_its_own_kernels_where_they_were_measured(self) -> None:
        own, borrowed = find_operator(A100, "experts", None, "trtllm"), find_operator(A100, "experts", "int4", "trtllm")

        assert (own.engine, borrowed.engine) == ("trtllm", "")
        assert find_engine("lmi", "27").kernels == "vllm"

    def test_each_release_of_vllm_makes_experts_faster(self, copy_of: PlaceCopy) -> None:
        def experts(engine: Engine) -> float:
            return costs_of(copy_of(MIXTRAL, "ml.p5.48xlarge", degree=2, engine=engine)).expert_weights

        middle = experts(find_engine("vllm", "0.16.0"))
        assert experts(find_engine("vllm", "0.17.1")) == pytest.approx(middle * math.exp(VLLM.experts_release))
        newest = experts(find_engine("vllm", "0.19.0"))
        assert experts(find_engine("vllm", "0.30.0")) == experts(find_engine("vllm", "1.0.0")) == newest < middle
        assert experts(find_engine("vllm", "nightly-5b8c")) == experts(find_engine("vllm", "")) == middle

    def test_a_release_changes_nothing_on_an_accelerator_without_rows_of_several(self, copy_of: PlaceCopy) -> None:
        copies = (
            copy_of("openai/gpt-oss-20b", "ml.g5.2xlarge", engine=find_engine("vllm", version))
            for version in ("0.11.0", "0.19.0")
        )

        assert len({costs_of(copy).expert_weights for copy in copies}) == 1

    @pytest.mark.parametrize(
        ("version", "vllm"),
        [("0.36.0-lmi21.0.0", "0.16.0"), ("20", "0.15.1"), ("lmi15", "0.11.0"), ("27", "0.19.0"), ("", "0.19.0")],
    )
    def test_lmi_counts_as_the_vllm_inside(self, version: str, vllm: str) -> None:
        assert find_engine("lmi", version).releases == find_engine("vllm", vllm).releases

    def test_dealing_tokens_out_to_ranks_and_scales_of_blocks_take_time_in_each_layer(self, copy_of: PlaceCopy) -> None:
        plain = copy_of(DEEPSEEK, "ml.p5en.48xlarge", degree=8, engine=LMI)
        scaled = copy_of(DEEPSEEK, "ml.p5en.48xlarge", degree=8, engine=LMI, quantization="fp8")
        dealt = replace(plain, expert_parallel_degree=8)

        assert costs_of(dealt).fixed - costs_of(plain).fixed == pytest.approx(61 * VLLM.expert_parallel_layer_s)
        least_s = 61 * (6 - 2) * (latency_s(scaled, "product", "fp8") - latency_s(plain, "product"))
        least_s += 61 * (latency_s(scaled, "experts", "fp8") - latency_s(plain, "experts"))
        assert costs_of(scaled).fixed - costs_of(plain).fixed == pytest.approx(
            least_s + 61 * VLLM.block_scaling_layer_s
        )

    def test_experts_are_read_as_their_kernel_reads(self, copy_of: PlaceCopy) -> None:
        copy = copy_of(MIXTRAL, "ml.p4de.24xlarge", degree=2, engine=LMI)
        active, total = 12_879_925_248, 46_702_792_704
        read_bytes = 2 * (total - active) / (1 - 2 / 8) / 2  # of each of two accelerators
        kernel = find_operator(A100, "experts", None, "vllm")

        assert costs_of(copy).expert_weights == pytest.approx(
            factor(copy, "experts") * read_bytes / (2_039e9 * kernel.memory_efficiency)
        )

    def test_each_token_multiplies_only_the_experts_that_it_chose(self, copy_of: PlaceCopy) -> None:
        copy = copy_of(MIXTRAL, "ml.p4de.24xlarge", degree=2, engine=LMI)
        chosen = (46_702_792_704 - 12_879_925_248) / (1 - 2 / 8) * 2 / 8
        kernel = find_operator(A100, "experts", None, "vllm")

        assert costs_of(copy).expert_token == pytest.approx(
            factor(copy, "experts") * 2 * chosen / (2 * 312e12 * kernel.compute_efficiency)
        )

    def test_a_dense_model_has_none(self, copy_of: PlaceCopy) -> None:
        costs = costs_of(copy_of(engine=LMI))

        assert (costs.expert_weights, costs.expert_token) == (0, 0)
        assert costs.read(7) == costs.weights

    def test_tgi_computes_every_expert_of_a_small_batch(self, copy_of: PlaceCopy) -> None:
        costs = costs_of(copy_of(MIXTRAL, "ml.p4d.24xlarge", degree=8))

        assert costs.read(1) == costs.weights + costs.expert_weights
        assert costs.arithmetic(0, 256) == pytest.approx(256 * (costs.token + 4 * costs.expert_token))  # 8 of 2 chosen
        assert costs.arithmetic(0, 257) == pytest.approx(257 * (costs.token + costs.expert_token))


class TestPrecision:
    @pytest.mark.parametrize(
        ("model", "quantization", "expected"),
        [
            (GPT_OSS, "mxfp4", ("product/16-bit", "experts/mxfp4")),
            (MIXTRAL, None, ("product/16-bit", "experts/16-bit")),
            (DEEPSEEK, "fp8", ("product/fp8", "experts/fp8")),
            (MIXTRAL, "int4", ("product/16-bit", "experts/int4")),
            ("meta-llama/Llama-3.1-70B", "fp8", ("product/fp8",)),
            ("meta-llama/Llama-3.1-70B", "awq", ("product/16-bit",)),  # no table: 4-bit weights at 16-bit efficiency
        ],
    )
    def test_each_operator_runs_at_the_precision_of_its_weights(
        self, model: str, quantization: str | None, expected: tuple[str, ...], copy_of: PlaceCopy
    ) -> None:
        copy = copy_of(model, "ml.p5en.48xlarge", degree=8, engine=LMI, quantization=quantization)
        found = [name.partition("/")[2] for name in kernels_of(copy)]

        assert tuple(name for name in found if name.startswith(("product", "experts"))) == expected
        assert {name for name in found if name not in expected} == {
            "decode attention/16-bit",
            "prefill attention/16-bit",
            "link/16-bit",
        }

    def test_a_format_of_experts_leaves_the_rest_at_16_bits(self, copy_of: PlaceCopy) -> None:
        plain, narrow = (
            costs_of(copy_of(GPT_OSS, "ml.p5.4xlarge", engine=LMI, quantization=quantization))
            for quantization in (None, "mxfp4")
        )
        efficiencies = [find_operator(H100, "experts", name, "vllm").memory_efficiency for name in (None, "mxfp4")]
        factors = [VLLM.factor(H100, "experts", name) for name in ("16-bit", "mxfp4")]

        assert (narrow.weights, narrow.token) == (plain.weights, plain.token)
        assert narrow.expert_weights / plain.expert_weights == pytest.approx(
            4.25 / 16 * efficiencies[0] / efficiencies[1] * factors[1] / factors[0]
        )

    def test_a_dense_model_in_a_format_of_experts_is_narrow_throughout(self, copy_of: PlaceCopy) -> None:
        plain, narrow = (costs_of(copy_of(engine=LMI, quantization=quantization)) for quantization in (None, "mxfp4"))
        narrow_bytes = 2 * EMBEDDING + 4.25 / 8 * BODY

        assert narrow.weights / plain.weights == pytest.approx(narrow_bytes / WEIGHTS)
        assert narrow.token == plain.token  # the A10G has no narrower arithmetic

    def test_narrow_arithmetic_counts_where_the_accelerator_has_it(self, copy_of: PlaceCopy) -> None:
        def token(instance_type: str, quantization: str | None) -> float:
            return costs_of(copy_of(instance_type=instance_type, engine=LMI, quantization=quantization)).token

        assert token("ml.p5.4xlarge", "fp8") < token("ml.p5.4xlarge", None)
        assert token("ml.g5.2xlarge", "fp8") == token("ml.g5.2xlarge", None)

    def test_weights_that_no_arithmetic_takes_as_they_are_run_at_16_bits(self, copy_of: PlaceCopy) -> None:
        plain, narrow = (
            costs_of(copy_of(instance_type="ml.p5.4xlarge", engine=LMI, quantization=quantization))
            for quantization in (None, "nvfp4")  # the H100 multiplies 8 bits, but not 4
        )

        assert narrow.token == plain.token
        assert narrow.weights < plain.weights


class TestLink:
    @pytest.mark.parametrize("degree", [2, 4, 8])
    def test_an_all_reduce_takes_what_was_measured_at_its_degree(self, degree: int, copy_of: PlaceCopy) -> None:
        costs = costs_of(copy_of(instance_type="ml.p5.48xlarge", degree=degree, engine=LMI))
        link, slower = operators.link(H100, degree, "vllm"), VLLM.factor(H100, "link", "16-bit")

        assert (link.degree, link.engine) == (degree, "vllm")
        for size, tokens in ((0.0, 0), (2**21, 256), (2**25, 4_096)):  # 8,192 bytes a token
            assert costs.link(tokens) == pytest.approx(2 * 32 * slower * link.all_reduce_s(size))

    def test_an_all_reduce_between_two_measured_sizes_takes_a_time_between_theirs(self) -> None:
        link = operators.link(H100, 8, "trtllm")
        sizes, times = link.message_bytes, link.message_s

        for at in range(len(sizes) - 1):
            assert link.all_reduce_s(sizes[at]) == pytest.approx(times[at])
            assert link.all_reduce_s((sizes[at] + sizes[at + 1]) / 2) == pytest.approx((times[at] + times[at + 1]) / 2)
        assert link.all_reduce_s(0) == times[0]
        assert link.all_reduce_s(2 * sizes[-1]) == pytest.approx(2 * times[-1])

    def test_an_all_reduce_without_measured_sizes_has_a_latency_and_a_bandwidth(self) -> None:
        link = operators.link("NVIDIA A10G", 4, "vllm")

        assert link.message_bytes == ()
        assert link.all_reduce_s(1e6) == pytest.approx(link.latency_s + 1.5 * 1e6 / link.bus_bytes_s)

    def test_ranks_on_nvlink_wait_for_each_other_beside_the_host(self, copy_of: PlaceCopy) -> None:
        nvlink, pcie = (
            costs_of(copy_of(instance_type=name, degree=8)) for name in ("ml.p4d.24xlarge", "ml.g5.48xlarge")
        )

        assert nvlink.ranks == pytest.approx(2 * 32 * 7 * FITTED.skew_s)
        assert replace(nvlink, host=1.0).step(1) - replace(nvlink, host=1.0, ranks=0.0).step(1) == pytest.approx(
            nvlink.ranks
        )
        assert pcie.ranks == 0

    def test_accelerators_that_reach_no_others_memory_go_through_the_hosts(self, copy_of: PlaceCopy) -> None:
        costs = costs_of(copy_of(instance_type="ml.g5.48xlarge", degree=8, engine=LMI))
        link, slower = operators.link("NVIDIA A10G", 8), VLLM.factor("NVIDIA A10G", "link", "16-bit")

        assert link.hop_s > 0
        assert costs.link(0) == pytest.approx(2 * 32 * (slower * link.latency_s + 7 * link.hop_s))

    def test_it_crosses_the_link_twice_a_layer_and_once_in_falcon(self, copy_of: PlaceCopy) -> None:
        llama = costs_of(copy_of(instance_type="ml.g5.12xlarge", degree=4))
        falcon = costs_of(copy_of("tiiuae/falcon-40b", "ml.g5.12xlarge", degree=4))

        assert llama.link(0) / (2 * 32) == pytest.approx(falcon.link(0) / 60)
        added = [costs.link(100) - costs.link(0) for costs in (llama, falcon)]
        assert added[0] / (2 * 32 * 4_096) == pytest.approx(added[1] / (60 * 8_192))

    def test_nvlink_carries_a_token_faster_than_pcie(self, copy_of: PlaceCopy) -> None:
        pcie, nvlink = (
            costs_of(copy_of(instance_type=name, degree=8, engine=LMI))
            for name in ("ml.g6e.48xlarge", "ml.p4d.24xlarge")
        )

        assert pcie.link(1_000) - pcie.link(0) > 10 * (nvlink.link(1_000) - nvlink.link(0))

    def test_a_single_accelerator_reduces_nothing(self, copy_of: PlaceCopy) -> None:
        assert costs_of(copy_of()).link(1_000) == 0.0


class TestHost:
    def test_an_eager_step_never_beats_the_host_that_launches_its_kernels(self, copy_of: PlaceCopy) -> None:
        costs = costs_of(copy_of(instance_type="ml.p4d.24xlarge", degree=8))

        launches = 32 * (FITTED.kernels + 2)  # two all-reduces a layer
        assert costs.host == costs.prompt_host == pytest.approx(launches * FITTED.kernel_launch_s)
        assert costs.step(1) == pytest.approx(costs.host + costs.ranks + FITTED.sequence_s)

    def test_cuda_graphs_take_the_host_away_from_decode_steps_not_from_prompts(self, copy_of: PlaceCopy) -> None:
        costs = costs_of(copy_of(instance_type="ml.p5.48xlarge", degree=8, engine=LMI))

        assert VLLM.cuda_graphs
        assert costs.host == 0
        assert costs.prompt_host == pytest.approx(32 * (VLLM.kernels + 2) * VLLM.kernel_launch_s)
        sequence_s = VLLM.sequence_s * (1 + 7 * VLLM.sequence_rank)
        assert costs.step(1) == pytest.approx(costs.device(1) + costs.ranks + sequence_s)
        slow = replace(costs, prompt_host=1.0)
        assert slow.step(1) == costs.step(1)
        assert slow.mixed(1, 16) == pytest.approx(1.0 + costs.ranks + sequence_s + 16 * VLLM.input_token_s)
        assert slow.prefill(1, 16) == pytest.approx(slow.mixed(1, 16))

    def test_the_server_works_on_every_sequence_and_prompt_token(self, copy_of: PlaceCopy) -> None:
        costs = costs_of(copy_of(engine=LMI))

        assert costs.step(64) - costs.device(64) == pytest.approx(64 * VLLM.sequence_s)
        assert costs.mixed(64, 100) - costs.device(64, 100) == pytest.approx(
            64 * VLLM.sequence_s + 100 * (VLLM.input_token_s + costs.prompt_token)
        )


class TestAttention:
    def test_the_cache_is_read_as_the_kernel_reads_once_the_batch_fills_the_accelerator(
        self, copy_of: PlaceCopy
    ) -> None:
        costs = costs_of(copy_of())
        kernel = find_operator("NVIDIA A10G", "decode attention", None)
        read = FITTED.attention_factor * 524_288 / (600e9 * kernel.memory_efficiency)

        assert costs.attention(100) == pytest.approx(read)
        assert costs.attention(1) == pytest.approx(32 * FITTED.attention_token_s)
        assert costs.attention(1) > costs.attention(100)

    def test_a_head_is_read_at_the_bandwidth_of_one_multiprocessor(self, copy_of: PlaceCopy) -> None:
        a10g = costs_of(copy_of()).attention_latency
        a100 = costs_of(copy_of(instance_type="ml.p4d.24xlarge", degree=8)).attention_latency

        assert a10g / a100 == pytest.approx((1_555e9 / 108) / (600e9 / 80))

    def test_query_heads_that_share_keys_share_the_read(self, copy_of: PlaceCopy) -> None:
        llama_2, llama_3 = (
            costs_of(copy_of(name)) for name in ("meta-llama/Llama-2-7b-hf", "meta-llama/Meta-Llama-3-8B")
        )

        assert llama_3.attention_latency / llama_2.attention_latency == pytest.approx(8 / 32)

    def test_a_layer_with_linear_attention_reads_a_state_of_every_sequence(self, copy_of: PlaceCopy) -> None:
        costs = costs_of(copy_of("Qwen/Qwen3-Next-80B-A3B-Instruct", "ml.p5.48xlarge", degree=8, engine=LMI))

        assert costs.sequence > VLLM.sequence_s * (1 + 7 * VLLM.sequence_rank) * 1.05
        assert costs.fixed > 36 * VLLM.linear_layer_s

    def test_sparse_attention_reads_chosen_tokens_and_an_index(self, copy_of: PlaceCopy) -> None:
        shape = copy_of("deepseek-ai/DeepSeek-V3.2", "ml.p5en.48xlarge", degree=8, engine=LMI).architecture

        assert shape.attended_tokens(2_000) == 2_000
        assert shape.attended_tokens(10_000) == pytest.approx(2_048 + 7_952 / 9)
        assert shape.cached_tokens(10_000) == 10_000

    def test_a_prompt_under_sparse_attention_multiplies_the_latents_that_it_chose(self, copy_of: PlaceCopy) -> None:
        shape = copy_of("deepseek-ai/DeepSeek-V3.2", "ml.p5en.48xlarge", degree=8, engine=LMI).architecture
        chosen, width = (2_048 * 1_024 + 6_144 * 2_048) / 8_192, 576 / 192

        assert shape.seen_by_prompt(0, 2_000) == 1_000
        assert shape.seen_by_prompt(0, 8_192) == pytest.approx(width * chosen + (4_096 - chosen) / 9)
        assert shape.seen_by_prompt(4_096, 8_192) == pytest.approx(width * 2_048 + 4_096 / 9)

    def test_a_long_prompt_gains_by_sparse_attention(self, copy_of: PlaceCopy) -> None:
        sparse = copy_of("deepseek-ai/DeepSeek-V3.2", "ml.p5en.48xlarge", degree=8, engine=LMI).architecture
        dense = copy_of(DEEPSEEK, "ml.p5en.48xlarge", degree=8, engine=LMI).architecture

        assert sparse.seen_by_prompt(0, 4_000) > dense.seen_by_prompt(0, 4_000)
        assert sparse.seen_by_prompt(0, 64_000) < dense.seen_by_prompt(0, 64_000) / 2

    def test_a_kernel_that_spreads_heads_fills_the_accelerator_at_once(self, copy_of: PlaceCopy) -> None:
        costs = costs_of(copy_of(engine=LMI))

        assert costs.attention(1) == costs.attention(100) == costs.attention_token

    def test_every_accelerator_reads_the_whole_latent(self, copy_of: PlaceCopy) -> None:
        copy = copy_of(DEEPSEEK, "ml.p5en.48xlarge", degree=8, engine=LMI, quantization="fp8")
        kernel = find_operator("NVIDIA H200 SXM 141GB", "decode attention", None)
        read = 61 * 576 * 2 / (4_800e9 * kernel.memory_efficiency)

        assert copy.kv_bytes_per_token == 61 * 576 * 2
        assert costs_of(copy).attention_token == pytest.approx(factor(copy, "decode attention") * read)

    def test_a_prompt_reaches_more_of_the_peak_the_longer_it_is(self, copy_of: PlaceCopy) -> None:
        kernel = find_operator("NVIDIA A10G", "prefill attention", None)

        for prompt in (256, 2_048):
            reached = 70e12 * kernel.compute_efficiency * prompt / (prompt + kernel.half_length)
            flops = 2 * 32 * prompt * 32 * 128  # 4 * layers * heads * head dim for each of half the prompt's tokens
            assert costs_of(copy_of(input_tokens=prompt)).prompt_token == pytest.approx(flops / reached)


class TestPrompts:
    def test_a_prefill_is_arithmetic_attention_and_the_servers_work_per_token(self, copy_of: PlaceCopy) -> None:
        costs = costs_of(copy_of())
        arithmetic = 256 * (2 * BODY / A10G_ARITHMETIC + VECTORS_S + costs.prompt_token)

        assert costs.prefill(1, 256) == pytest.approx(
            costs.fixed + arithmetic + 256 * FITTED.input_token_s + FITTED.sequence_s, rel=1e-4
        )

    def test_a_prefill_of_one_token_still_reads_the_weights(self, copy_of: PlaceCopy) -> None:
        costs = costs_of(copy_of(input_tokens=1))

        assert costs.prefill(1, 1) > costs.weights

    @pytest.mark.parametrize(("rate", "computed"), [(0.0, 1_000), (0.25, 750), (0.999, 1), (1.0, 1)])
    def test_a_cached_prefix_is_not_computed_but_for_the_last_token(
        self, rate: float, computed: int, copy_of: PlaceCopy
    ) -> None:
        copy = copy_of(engine=LMI, input_tokens=1_000, prefix_hit_rate=rate)

        assert copy.prefilled_tokens == computed
        assert copy.tokens_reserved == copy_of(engine=LMI, input_tokens=1_000).tokens_reserved

    def test_a_prefix_that_requests_share_keeps_none_of_them_waiting(self, copy_of: PlaceCopy) -> None:
        copy = replace(copy_of(engine=LMI, input_tokens=1_000, prefix_hit_rate=0.9), kv_room_tokens=8_000)
        copies = (copy, replace(copy, shared=SharedPrefix(900)))  # 56 whole blocks of 16
        assert [each.kv_limited_batch for each in copies] == [8_000 // 1_136, (8_000 - 896) // 240]
        own, once = (max(each.started_s for each in simulate_open(one, [0.0] * 20, 19)[0]) for one in copies)
        assert once < own / 6

    def test_a_step_reads_each_adapter_of_its_batch(self, copy_of: PlaceCopy) -> None:
        plain = copy_of(engine=LMI)
        costs, adapted = (costs_of(each) for each in (plain, replace(plain, adapters=4, adapter_bytes=(2e8, 0.0))))
        more = [adapted.step(batch) - costs.step(batch) for batch in (1, 2, 4, 64)]
        each = 2e8 / (600e9 * A10G_PRODUCT.memory_efficiency) * VLLM.factor("NVIDIA A10G", "product", "16-bit")
        assert (more[1] - more[0], more[2] - more[1]) == pytest.approx((each, 2 * each), rel=0.01)
        assert more[3] - more[2] < each  # no more than four are read, and the batch's arithmetic

    def test_what_is_computed_attends_to_the_cached_prefix(self, copy_of: PlaceCopy) -> None:
        whole = costs_of(copy_of(engine=LMI, input_tokens=1_000))
        last = costs_of(copy_of(engine=LMI, input_tokens=1_000, prefix_hit_rate=0.8))

        # 500 tokens seen on average of a whole prompt, 900 by its last fifth
        assert last.prompt_token / whole.prompt_token == pytest.approx(900 / 500)


class TestFactors:
    @pytest.mark.parametrize(
        ("operator", "plain"),
        [
            ("product", VLLM.product_factor),
            ("experts", VLLM.experts_factor),
            ("link", VLLM.link_factor),
            ("decode attention", VLLM.attention_factor),
            ("prefill attention", VLLM.attention_factor),
        ],
    )
    def test_what_differs_on_one_accelerator_multiplies(self, operator: str, plain: float) -> None:
        own = replace(VLLM, kernel_factors=(f"NVIDIA B200 SXM/{operator}/nvfp4=0.5",))

        assert own.factor("NVIDIA B200 SXM", operator, "nvfp4") == pytest.approx(plain / 2)
        assert own.factor("NVIDIA B200 SXM", operator, "fp8") == plain
        assert own.factor(H100, operator, "nvfp4") == plain


class TestMultiples:
    def test_drafted_tokens_are_verified_in_one_step_and_cost_a_share_of_it(self, copy_of: PlaceCopy) -> None:
        plain = copy_of()
        drafted = replace(plain, speculation=Speculation(draft_tokens=3, acceptance_rate=0.5, draft_cost=0.1))

        assert drafted.tokens_per_step == pytest.approx(1 + 0.5 + 0.25 + 0.125)
        assert drafted.decode_steps == 136  # 255 / 1.875
        step, drafting = costs_of(plain).step(1), costs_of(drafted).step(1)
        assert drafting - FITTED.sequence_s == pytest.approx(1.3 * (step - FITTED.sequence_s))

    def test_a_calibration_scales_what_is_fixed_and_what_each_token_adds(self, copy_of: PlaceCopy) -> None:
        plain = copy_of(MIXTRAL, "ml.p4d.24xlarge", degree=8)
        measured = replace(plain, calibration=Calibration(fixed=2.0, marginal=3.0))
        before, after = costs_of(plain), costs_of(measured)

        for name in ("host", "fixed", "weights", "expert_weights", "attention_latency"):
            assert getattr(after, name) == pytest.approx(2 * getattr(before, name))
        each = ("token", "head_token", "expert_token", "prompt_token", "attention_token")
        for name in (*each, "sequence", "input_token"):
            assert getattr(after, name) == pytest.approx(3 * getattr(before, name))
        assert after.link(0) == pytest.approx(2 * before.link(0))
        assert after.link(10) - after.link(0) == pytest.approx(3 * (before.link(10) - before.link(0)))


def factor(copy: Copy, kind: str) -> float:
    """Return what the engine takes for an operator of a copy over the measured kernel."""
    name = next(name for name in kernels_of(copy) if name.split("/")[1] == kind)
    release = copy.engine.experts_release_factor(copy.hardware.accelerator) if kind == "experts" else 1.0
    return release * copy.engine.performance.factor(*name.split("/"))


def latency_s(copy: Copy, kind: operators.Kind, quantization: str | None = None) -> float:
    """Return the least time of an operator in an engine, at 16 bits or those of its weights."""
    kernel = find_operator(copy.hardware.accelerator, kind, quantization, copy.engine.kernels)
    return factor(copy, kind) * kernel.latency_s


def layer_s(copy: Copy, *, products: int) -> float:
    """Return the least time of a layer of some products, its experts excluded."""
    return VLLM.layer_s + latency_s(copy, "decode attention") + products * latency_s(copy, "product")
