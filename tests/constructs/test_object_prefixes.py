from __future__ import annotations

from seatrial_cdk.vending.launch_role import fitting_prefixes

S3 = "arn:aws:s3:::"
WEIGHTS = tuple(f"{S3}weights/{family}/{version}/*" for family in ("llama", "qwen") for version in ("1", "2", "3"))


def test_what_fits_stays_as_it_is() -> None:
    assert fitting_prefixes(WEIGHTS, 1_000) == WEIGHTS
    archive = f"{S3}weights/model.tar.gz"
    assert fitting_prefixes([archive, archive], 1_000) == (archive,)


def test_too_many_are_shortened_by_one_folder_after_the_other() -> None:
    assert fitting_prefixes(WEIGHTS, 100) == (f"{S3}weights/llama/*", f"{S3}weights/qwen/*")
    assert fitting_prefixes(WEIGHTS, 40) == (f"{S3}weights/*",)


def test_a_bucket_is_the_shortest_whatever_fits() -> None:
    assert fitting_prefixes(WEIGHTS, 1) == (f"{S3}weights/*",)
    assert fitting_prefixes([*WEIGHTS, f"{S3}other/a"], 1) == (f"{S3}other/a", f"{S3}weights/*")


def test_only_what_is_deeper_than_the_rest_is_shortened_and_what_a_prefix_covers_is_left_out() -> None:
    deep = [f"{S3}weights/llama/{number}/merged/*" for number in range(10)]
    assert fitting_prefixes([f"{S3}weights/llama/*", *deep], 1_000) == (f"{S3}weights/llama/*",)
    assert fitting_prefixes([f"{S3}weights/qwen.tar.gz", *deep], 100) == (
        f"{S3}weights/llama/*",
        f"{S3}weights/qwen.tar.gz",
    )
