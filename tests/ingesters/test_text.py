from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gdiag.errors import UsageError
from gdiag.ingesters import prefixes, text, tokens


def test_lines_keep_their_numbers() -> None:
    table = text.lines(b"a\r\n\x1b[31mb\x1b[0m\0\n\nc 10%\rc 20%\rd\n")
    assert table.rows() == [(1, "a"), (2, "b"), (3, ""), (4, "c 10%"), (4, "c 20%"), (4, "d")]
    assert text.lines(b"").height == 0
    assert text.lines(b"a\rb\rc").rows() == [(1, "a"), (2, "b"), (3, "c")]


@pytest.mark.parametrize(
    ("printed", "cleaned"),
    [
        ("loss=np.float32(2.5), x", "loss=2.5, x"),
        ("{'loss': np.float64(nan)}", "{'loss': nan}"),
        ("{'lr': [np.float64(3e-05)]}", "{'lr': [3e-05]}"),
        ("loss tensor(2.5, device='cuda:0', grad_fn=<NllLossBackward0>) lr", "loss 2.5 lr"),
        ("tensor([2.5], dtype=torch.bfloat16)", "2.5"),
        ("tensor([1., 2.])", "tensor([1., 2.])"),
        ("my_tensor(2.5)", "my_tensor(2.5)"),
        ("np.floor(2.5) np.int64(7)", "np.floor(2.5) 7"),
    ],
)
def test_scalars_lose_the_type_around_them(printed: str, cleaned: str) -> None:
    assert text.clean(printed.encode()).decode() == cleaned


@pytest.mark.parametrize("printed", [b"tensor(3.75, device='cuda:0')", b"np.float32(3.75)", b"np.bool(3.75)"])
def test_two_typed_scalars_in_a_long_console_are_seen(printed: bytes) -> None:
    others = b"iteration (ms): 5 | f(x) g1(x)\n" * 30_000
    for data in (others + b"loss " + printed + b"\n" + others, printed + b"\n" + others, others + printed):
        assert text.clean(data) == data.replace(printed, b"3.75")


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_are_lines(data: bytes) -> None:
    table = text.lines(data)
    assert table["text"].null_count() == 0
    assert table["line"].is_sorted()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("0: step 5", "step 5"),
        ("[default3]:step 5", "step 5"),
        ("12: [default7]: [2026-05-29 15:42:14.66] step 5", "step 5"),
        ("[rank0]:[titan] 2025-01-01 10:00:00,123 - root - INFO - step 5", "root - INFO - step 5"),
        ("slurm_procid 0 : step 5", "step 5"),
        ("(TaskRunner pid=4711, ip=10.0.0.1) step 5", "step 5"),
        ("[1,3]<stdout>:step 5", "step 5"),
        ("12:30 is a time", "12:30 is a time"),
        ("plain", "plain"),
    ],
)
def test_prefixes_are_peeled(line: str, message: str) -> None:
    assert text.peel(line)[1] == message


@pytest.mark.parametrize(
    ("said", "found"),
    [
        (["[rank0]: ", "[rank3]: ", ""], [0, 3, None]),
        (["0: ", "1: ", "17: "], [0, 1, 17]),
        (["0: [default0]:", "0: [default3]:", "1: [default1]:"], [0, 3, 5]),
        (
            [
                "2024-01-01 10:00:00.1 node-3:0 olmo.train:81 INFO ",
                "2024-01-01 10:00:00.1 node-3:9 olmo_core.train INFO ",
            ],
            [0, 9],
        ),
        (["[default7]:", "[default7]:", "[default7]:"], [None, None, None]),
        (["2025-01-01 10:00:00,123 ", "2025-01-01 10:00:01,123 ", ""], [None, None, None]),
    ],
)
def test_ranks(said: list[str], found: list[int | None]) -> None:
    assert prefixes.ranks(pl.Series(said)).to_list() == found


@pytest.mark.parametrize(
    ("prefix", "tz", "seconds"),
    [
        ("[2025-11-10 09:43:36,161992]", None, 1762767816.161992),
        ("x 2025/11/10T09:43:36.5Z y", "+05:00", 1762767816.5),
        ("2025-11-10 09:43:36+02:00", None, 1762760616.0),
        ("2025-11-10 09:43:36", "+02:00", 1762760616.0),
        ("2025-11-10 09:43:36", "Europe/Berlin", 1762764216.0),
        ("11/10/2025 09:43:36", None, 1762767816.0),
    ],
)
def test_clocks(prefix: str, tz: str | None, seconds: float) -> None:
    assert prefixes.clocks(pl.Series([prefix, prefix]), tz).to_list() == [pytest.approx(seconds)] * 2
    assert prefixes.clocks(pl.Series(["ab " + prefix, prefix, "none"]), tz).to_list() == [
        pytest.approx(seconds)
    ] * 2 + [None]


def test_unknown_zone() -> None:
    with pytest.raises(UsageError):
        prefixes.clocks(pl.Series(["2025-11-10 09:43:36"]), "Mars/Olympus")


@pytest.mark.parametrize(
    "secret",
    [
        "hf_abcdefghijklmnopqrstu",
        "sk-abcdefghijklmnopqrstu",
        "ghp_abcdefghijklmnopqrstu",
        "a" * 40,
        "AKIAABCDEFGHIJKLMNOP",
    ],
)
def test_secrets_are_not_shown(secret: str) -> None:
    assert secret not in text.redact(f"could not log in with {secret} today")
    assert "today" in text.redact(f"could not log in with {secret} today")
    assert secret not in text.redact(f"WANDB_API_KEY={secret}")


@pytest.mark.parametrize(
    ("literal", "name"),
    [
        (" lm loss: ", "lm loss"),
        ("elapsed time per iteration (ms): ", "elapsed time per iteration (ms)"),
        ("tokens per gpu per second (tgs): ", "tokens per gpu per second (tgs)"),
        ("/1875 train_loss:", "train_loss"),
        ("| actor/pg_loss:", "actor/pg_loss"),
        (" (", ""),
        ("  grad_norm:  ", "grad_norm"),
    ],
)
def test_labels(literal: str, name: str) -> None:
    assert tokens.label(literal) == name


def test_pairs_with_units_and_words_that_look_like_numbers() -> None:
    line = "iter 10: loss nan, time 161.82ms, memory 2.0GiB, number of nan iterations: 0, rate 1,234"
    assert tokens.pairs(line.replace("loss nan", "loss 2.5"), None, ("step",)) == [
        ("step", 10.0),
        ("loss", 2.5),
        ("time", pytest.approx(0.16182)),
        ("memory", 2.0 * 2**30),
        ("number of nan iterations", 0.0),
        ("rate", 1234.0),
    ]
    assert str(tokens.pairs(line, None)[1]) == "('loss', nan)"
