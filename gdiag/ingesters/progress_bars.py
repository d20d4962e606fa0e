"""Progress bars with metrics behind them: tqdm (kohya, diffusers, Lightning), logged or drawn, and Keras.

`Epoch 0:  22%|██▏  | 4/18 [00:17<01:02,  4.47s/it, loss=9.926]` and `4/102 [>.....] - ETA: 8:10 - loss: 0.6791`. A bar that
begins again after a full one is the next epoch: its steps are counted on. A description that speaks of evaluation makes
the bar's last loss an eval_loss. Keras' bars are those of `keras_bars`.
"""

from __future__ import annotations

import re
from typing import Final

import polars as pl

from gdiag.errors import InputError
from gdiag.ingesters import console, fields, keras_bars, logged_bars, prefixes
from gdiag.ingesters.aliases import claim, family
from gdiag.ingesters.console import Found
from gdiag.ingesters.console_epochs import EVALUATION
from gdiag.ingesters.reading import Input, Options, Reading

FORMAT: Final = "progress-bars"
_TQDM: Final = r"^(.*?):?\s*(?:\d{1,3}%\s*(?:\|[^|]*\|)?)?\s*(\d{1,15})(?:/(\d{1,15})|it)\s*\[([\d:]+)(?:<[^,\]]*)?,[^,\]]*(?:,\s*([^\]]*))?\]?"
_BEGUN: Final = r"(?:\d|it) ?\[[\d:]+[<,]"
_PACED: Final = r"(?:it/s|s/it)[^\]\[]*\]"
_SNIFF: Final = re.compile(
    rb"(\d+)/(\d+) ?\[[\d:]+<[^,\]\n]*,[^,\]\n]*, ?[^\]\n]*[=:] ?[-\d.ni]"
    rb"|(?i:loss)[=:] ?[-\d.ni]{3,25}[^\n]{0,80}?(\d+)(?:it|/(\d+)) ?\[[\d:]+[<,]"
    rb"|Progress on:[^\n]{1,80}? (\d[\d.]*\w+)/([\d.]+\w*|-) rate:[^\n]{1,80}? postfix:[^\n]*?[=:] ?[-\d.ni]"
    rb"|(\d+)/(\d+)[ \t]*(?:\[[=>. ]*\]|[\xe2\x94\x81-\xbf ]*)[ \t]*-?[ \t]*(?:ETA:|\d+s)[^\n]{1,60}?- [a-z_]*(?:loss|acc\w*): [-\d.n]"
    rb"|^ - (\d+)s - [a-z_]*loss: [-\d.n]",
    re.MULTILINE,
)
_HINTS: Final = (logged_bars.MARK.encode(), b"it/s", b"s/it", b"ETA: ", b"s/step", b"s/sample", b"s - loss: ")
_PREFIX: Final = 200
_TURNS: Final = 4
"""So many times and more each member draws by turns: epochs come one after the other."""
_TRAINING: Final = frozenset({"loss", "eval_loss", "grad_norm", "lr"})
_NUMBER: Final = r"[=:]\s*(?:[-+.]?\d|(?i:nan|inf))"


def recognise(given: Input) -> float:
    """By its bars; weak where every bar is full, for the console may say more between them."""
    text = console.sample(given)
    if console.is_binary(given) or not any(hint in text for hint in _HINTS):
        return 0.0
    if keras_bars.is_fit(text):
        return 0.6
    places = [tuple(filter(None, groups)) for groups in _SNIFF.findall(text)]
    return 0.0 if not places else 0.2 if all(p[0] == p[-1] for p in places) else 0.6 if len(places) > 2 else 0.3


def read(given: Input, options: Options) -> Reading:
    """The steps that the bars show.

    Raises:
        InputError: no bar has a metric behind it.
    """
    table, notes = logged_bars.as_bars(console.lines_of(given))
    keras = keras_bars.is_keras(table)
    if keras:
        table = keras_bars.unglued(table)
    else:
        table = table.with_columns(pl.col("text").str.replace_all("\x08", "", literal=True))
    members = pl.DataFrame() if keras else _members(table)
    rows, more = keras_bars.rows(table) if keras else _of_members(table, members) if len(members) else _tqdm(table)
    wide = fields.read(rows.select("line", "text"), shape=r"\d+, ", ends=given.data().endswith((b"\n", b"\r"))).wide
    if not _TRAINING & {c.canonical for name in wide.columns if (c := claim(name) or family(name)) is not None}:
        raise InputError(f"{given.path} holds progress bars without a metric behind them: no series")
    if "loss" in wide.columns and not {"train_loss_step", "reduced_train_loss"}.isdisjoint(wide.columns):
        wide = wide.drop("loss")  # Lightning 1 shows the mean of the last twenty steps beside the step's own
    wide = _changed(wide.with_columns(pl.col("step").cast(pl.Int64)))
    if len(members):
        wide = wide.join(members, on="line", how="left", maintain_order="left")
    quiet = table.filter(~pl.col("line").is_in(rows["line"].implode()))
    return console.finish(given, options, FORMAT, Found(quiet, wide, console.no_rejects(), (*notes, *more)))


def _members(table: pl.DataFrame) -> pl.DataFrame:
    """`line` and `rank` or `run` of bars that several members of a job draw by turns; empty where they do not."""
    bars = table.filter(pl.col("text").str.contains(_BEGUN))
    before = bars["text"].str.slice(0, _PREFIX).str.extract(r"^(.*?)(?:\d{1,3}%|\d+/\d+|\d+it)")
    for told in (prefixes.ranks(before), prefixes.ranked(prefixes.names(before))):
        kinds = told.drop_nulls().n_unique()
        turns = int((told != told.shift()).sum())
        if kinds > 1 and turns >= _TURNS * kinds and not told.null_count():
            return pl.DataFrame([bars["line"], told])
    return pl.DataFrame()


def _of_members(table: pl.DataFrame, members: pl.DataFrame) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """As `_tqdm`, each member's bars for themselves."""
    told = table.join(members.unique("line", keep="first"), on="line", how="inner", maintain_order="left")
    read = [_tqdm(part.drop(members.columns[1])) for part in told.partition_by(members.columns[1], maintain_order=True)]
    rows = pl.concat([part for part, _ in read], how="diagonal").sort("line", maintain_order=True)
    return rows, tuple(dict.fromkeys(note for _, notes in read for note in notes))


def _tqdm(table: pl.DataFrame) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """`line`, `text`: the step and the metrics of every row of every bar."""
    bars = _parted(table.filter(pl.col("text").str.contains(_BEGUN)))
    groups = (
        pl.col("text")
        .str.extract_groups(_TQDM)
        .struct.rename_fields(["said", "at", "of", "took", "metrics"])
        .alias("g")
    )
    bars = bars.select("line", groups).unnest("g").drop_nulls("at").with_row_index("row")
    says = pl.when(pl.col("said").str.contains(_NUMBER)).then(pl.col("said") + ", ")
    text = pl.concat_str(says.fill_null(""), pl.col("metrics").fill_null(""))
    bars = bars.with_columns(
        pl.col("at", "of").cast(pl.Int64),
        pl.col("took").str.replace_all(":", "", literal=True).str.slice(0, 15).cast(pl.Int64),
        text.alias("text"),
        pl.col("said").fill_null("").str.contains(EVALUATION).alias("eval"),
    ).filter(pl.col("text").str.contains(_NUMBER))
    if not len(bars):
        return bars, ()
    train = _counted(bars.filter(~pl.col("eval")))
    evals = _evaluations(bars.filter("eval"), train)
    note = ("the bars begin again every epoch: steps are counted on",) if train["bar"].max() else ()
    return pl.concat([train, evals], how="diagonal").sort("row"), note


def _parted(bars: pl.DataFrame) -> pl.DataFrame:
    """The lines with those that hold several bars, the carriage returns between them lost, cut behind each."""
    if not (bars["text"].str.count_matches(_BEGUN) > 1).any():
        return bars
    return bars.with_columns(pl.col("text").str.replace_all(_PACED, "${0}\r").str.split("\r")).explode("text")


def _counted(bars: pl.DataFrame) -> pl.DataFrame:
    """Train rows with `step` and `bar`, the number of full bars before."""
    at, of = pl.col("at"), pl.col("of")
    if bars["at"].n_unique() == 1 and not bars["of"].count():
        rows = bars.with_columns(pl.int_range(1, pl.len() + 1).alias("step"), pl.lit(0).alias("bar"))
    else:
        full = (at.shift() >= 0.9 * of.shift()).fill_null(True)
        anew = (at == of) & (at == at.shift()) & (pl.col("took") < pl.col("took").shift())
        begins = (((at < at.shift()) & full) | anew).fill_null(False)
        length = pl.when(begins).then(pl.coalesce(of.shift(), at.shift())).otherwise(0)
        rows = bars.with_columns((at + length.cum_sum()).alias("step"), begins.cum_sum().alias("bar"))
    rows = rows.filter((pl.col("step") != pl.col("step").shift(-1)).fill_null(True))  # drawn again with new metrics
    return rows.with_columns(pl.concat_str(pl.col("step"), pl.lit(", "), pl.col("text")).alias("text"))


def _evaluations(bars: pl.DataFrame, train: pl.DataFrame) -> pl.DataFrame:
    """The last row of every evaluation bar, its metrics as those of evaluation, at the training step before it."""
    if not len(bars) or not len(train):
        return train.clear()
    ends = (pl.col("at").shift(-1) <= pl.col("at")) | (pl.col("row").shift(-1) - pl.col("row") > 1)
    last = bars.filter(ends.fill_null(True))
    last = last.join_asof(train.select("row", "step"), on="row", strategy="backward").drop_nulls("step")
    metrics = pl.col("metrics").fill_null("").str.replace_all(r"(^|, )(?:train_|avg_|avr_)?loss=", "${1}eval_loss=")
    return last.with_columns(pl.concat_str(pl.col("step"), pl.lit(", "), metrics).alias("text"))


def _changed(wide: pl.DataFrame) -> pl.DataFrame:
    """Values of evaluation only where they are new: bars show the last ones until the next evaluation."""
    shown = [n for n in fields.names_of(wide) if (c := claim(n)) is not None and c.canonical == "eval_loss"]
    if not shown or "loss" not in wide.columns:
        return wide
    return wide.with_columns(
        pl.when(pl.col("loss").is_null() | pl.col(n).ne_missing(pl.col(n).shift())).then(pl.col(n)).alias(n)
        for n in shown
    )
