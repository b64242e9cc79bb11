from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from seatrial.local.engine.weights import Shape, weights_file

if TYPE_CHECKING:
    from pathlib import Path

TINY = Shape(hidden=32, layers=1, heads=2, kv_heads=1, intermediate=32, vocabulary=300)


def test_the_file_is_made_once_and_names_its_recipe(tmp_path: Path) -> None:
    first = weights_file(tmp_path, shape=TINY)
    stamp = first.stat().st_mtime_ns
    assert first.name == "random-llama-v1-32x1x2x1x32x300-seed0.gguf"
    assert weights_file(tmp_path, shape=TINY) == first
    assert first.stat().st_mtime_ns == stamp


def test_equal_seeds_give_equal_bytes_and_others_do_not(tmp_path: Path) -> None:
    one, two = weights_file(tmp_path / "a", shape=TINY), weights_file(tmp_path / "b", shape=TINY)
    assert one.read_bytes() == two.read_bytes()
    assert one.read_bytes() != weights_file(tmp_path, shape=TINY, seed=1).read_bytes()


def test_racing_makers_leave_one_whole_file(tmp_path: Path) -> None:
    with ThreadPoolExecutor(2) as pool:
        made = list(pool.map(lambda _: weights_file(tmp_path, shape=TINY), range(2)))
    assert [path.name for path in tmp_path.iterdir()] == [made[0].name]
    assert made[0].read_bytes()[:4] == b"GGUF"
