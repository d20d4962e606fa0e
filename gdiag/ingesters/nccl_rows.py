"""Rows of nccl-tests and rccl-tests tables, 2017 to today: one grammar, read column-wise.

A row is `size count type [redop] [root]` and then groups of four cells (time, algbw, busbw, wrong); `-I` adds four cells
to each group, `-S` a time stamp at the end, `-C` measures CPU time. hardware.md 1.1 and 1.2 list the versions. Nearly all
rows are aligned tables: with runs of blanks made one, a CSV reader splits them, and rows of one shape are cast together.
What that leaves (rows with other output glued in, behind unknown prefixes, with separators, torn) is looked at by pattern.
"""

from __future__ import annotations

import io
from typing import Final

import polars as pl

TYPE_NAMES: Final = (
    "float", "half", "double", "bfloat16", "char", "int8", "int32", "int64", "uint8", "uint32", "uint64",
    "f8e4m3", "f8e5m2", "f8e4m2", "f8e5m3", "fp8_e4m3", "fp8_e5m2",
)  # fmt: skip
TYPES: Final = r"u?int(?:8|32|64)|half|float|double|bfloat16|f8e[45]m[23]|fp8_e[45]m[23]|char"
_TYPE_WORDS: Final = ["float", "int", "half", "double", "f8e", "fp8", "char"]
_LAUNCHER: Final = (
    r"\[\d+,\d+\]<std(?:out|err)>:|\d+: |\[\d+\] |\d{4}-\d\d-\d\d[T ][\d:.,]+(?:Z|[+-]\d\d:?\d\d)? |pod/\S+ "
)
_PREFIX: Final = rf"^(?:{_LAUNCHER}|[A-Za-z][\w./-]*: )+"
_GLUED: Final = (
    r"(?:[A-Za-z][\w.-]*(?::\d+:\d+ ?\[\d+\] (?:\S+ )?NCCL|: Test (?:timeout|NCCL|CUDA|failure))|\[\d+\] NCCL |"
    r"Test (?:timeout|NCCL|CUDA|failure)|NCCL (?:INFO|WARN|version)).*$"
)
_MIXED: Final = ["[", "NCCL", "Test "]
_ANYWHERE: Final = (
    rf"(?:^|[^\w.])(?P<size>\d[\d_,]*)\s+(?P<count>\d[\d_,]*(?:\.\d+)?(?:e\+?\d+)?)\s+(?P<rest>(?:{TYPES})(?:\s.*)?)$"
)
REDOPS: Final = ("sum", "prod", "min", "max", "avg", "mulsum", "none", "all", "custom")
HEADER: Final = r"\b(?:size(?:\(B\))?|bytes)\s+(?:count(?:\(elems\))?|N)\s+type\b"
_FIGURE: Final = r"^\s*[\dN]"
GROUP: Final = ("time", "algbw", "busbw", "wrong")
EXTRA: Final = ("t_min", "t_max", "t_p99", "t_cv")
FLAGS: Final = ("has_root", "per_iteration", "milliseconds", "cpu_time", "unchecked", "in_place_only")
_CELLS: Final = 24
"""More than the cells of the longest row."""
_SHAPE: Final = ["op", "rooted", "width", "groups", "milliseconds"]
_TORN: Final = "row without a complete set of figures"


def text_lines(piece: bytes, first: int) -> pl.DataFrame:
    """Lines of a piece without carriage returns: line (numbered from `first`), text; bytes that are no UTF-8 become U+FFFD."""
    lines = pl.read_csv(
        io.BytesIO(b"text\n" + piece), separator="\x01", quote_char=None, schema={"text": pl.String},
        truncate_ragged_lines=True, encoding="utf8-lossy",
    )  # fmt: skip
    return lines.select(
        pl.int_range(first, first + pl.len(), dtype=pl.Int64).alias("line"), pl.col("text").fill_null("")
    )


def once(lines: pl.DataFrame) -> pl.DataFrame:
    """Each text of `lines` (line, text) once, with the list of its lines.

    A log of many test runs says the same again and again: texts are looked at once and not line by line.
    """
    return lines.group_by("text").agg("line")


def each(texts: pl.DataFrame) -> pl.DataFrame:
    """What was found in texts for each of their lines, line ascending."""
    return texts.explode("line").sort("line", maintain_order=True)


def stripped(texts: pl.DataFrame) -> pl.DataFrame:
    """`texts` without launcher prefixes: mpirun tags, srun and hydra ranks, time stamps, pod names."""
    text = pl.col("text")
    bare = text.str.starts_with(" ") | text.str.starts_with("#")
    # A test that fails names its own host.
    failed = text.str.contains(": Test ", literal=True)
    return texts.with_columns(
        text=pl.coalesce(
            pl.when(~bare & ~failed).then(text).str.replace(_PREFIX, ""),
            pl.when(~bare & failed).then(text).str.replace(rf"^(?:{_LAUNCHER})+", ""),
            text,
        )
    )


def split(texts: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Rows (line, text, tokens from the size on) and all other texts; rows with other output glued in are in both."""
    maybe = texts["text"].str.contains_any(_TYPE_WORDS)
    if not maybe.any():
        return each(texts.clear()).with_columns(tokens=pl.lit(None, pl.List(pl.String))), texts
    candidates = texts.filter(maybe)
    text = pl.col("text")
    mixed = text.str.contains_any(_MIXED)
    cut = pl.when(mixed).then(text).str.replace(_GLUED, "").str.replace_all(r"\[\d+\]", "")
    found = candidates.with_columns(mixed=mixed, body=pl.coalesce(cut, text))
    found = found.with_columns(tokens=pl.col("body").str.extract_all(r"\S+"))
    cells = pl.col("tokens").list
    shaped = cells.get(2, null_on_oob=True).is_in(TYPE_NAMES)
    for i in (0, 1):
        shaped &= cells.get(i, null_on_oob=True).cast(pl.Int64, strict=False).is_not_null()
    shaped_mask = found.select(shaped.fill_null(value=False)).to_series()
    plain, rest = found.filter(shaped_mask), found.filter(~shaped_mask)
    odd = _anywhere(rest)
    rows = pl.concat([plain, odd])
    foreign = pl.concat([rest.join(odd, on="text", how="anti"), rows.filter("mixed")]).select(texts.columns)
    return each(rows.select("line", "text", "tokens")), pl.concat([texts.filter(~maybe), foreign])


def _anywhere(texts: pl.DataFrame) -> pl.DataFrame:
    """Rows behind a prefix that no launcher is known to print, and rows with thousands separators."""
    odd = texts.with_columns(p=pl.col("body").str.extract_groups(_ANYWHERE)).unnest("p").drop_nulls("size")
    body = pl.concat_str(
        pl.col("size", "count").str.replace_all("[_,]", ""),
        pl.col("rest").str.replace_all(r"(\d)[_,](\d{3})", "${1}${2}"),
        separator=" ",
    )
    return odd.with_columns(tokens=body.str.extract_all(r"\S+")).select(texts.columns)


def headers(texts: pl.DataFrame) -> pl.DataFrame:
    """Column headers: line, has_root, per_iteration, milliseconds, cpu_time, in_place_only."""
    text = pl.col("text")
    found = texts.filter(text.str.contains("type", literal=True)).filter(text.str.contains(HEADER))
    in_place = texts.filter(
        text.str.contains("in-place", literal=True) & ~text.str.contains("out-of-place", literal=True)
    )
    found = found.select(
        "line",
        has_root=text.str.contains(r"\broot\b"),
        per_iteration=text.str.contains("i_min", literal=True),
        milliseconds=text.str.contains(r"\bbytes\s+N\b"),
        cpu_time=text.str.contains("cputime", literal=True),
        # Tables that were edited, and other tests that print like these, may have no column of wrong elements.
        unchecked=~text.str.contains(r"wrong|error|\bres\b"),
    )
    above = each(in_place)["line"]
    return each(found).with_columns(in_place_only=(pl.col("line") - 1).is_in(above.implode()))


def rows(
    found: pl.DataFrame, others: pl.DataFrame, heads: pl.DataFrame, taken: pl.Series
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Complete rows, one per side (in_place false, then true), and rejects (line, reason, text).

    found, others: as `split` gives them. taken: lines of rows read already. The result has line, size [B],
    count, type, redop, root, in_place, time [µs], cpu_time, algbw, busbw [GB/s], wrong, t_min, t_max, t_p99 [µs], t_cv [%].
    """
    if not found.height:
        return empty(), pl.DataFrame(schema={"line": pl.Int64, "reason": pl.String, "text": pl.String})
    cells = pl.col("tokens").list
    wide = found.select("line", "text", **{f"t{i}": cells.get(i, null_on_oob=True) for i in range(_CELLS)})
    parts = _completed(_shaped(wide, heads), others, taken)
    table = _table(parts)
    torn = parts.join(table.select("line"), on="line", how="anti").sort("line")
    reason = pl.when(pl.col("text").str.contains("XX", literal=True)).then(pl.lit("placeholder instead of figures"))
    return table, torn.select("line", reason=reason.otherwise(pl.lit(_TORN)), text="text")


def _whole(cell: pl.Expr) -> pl.Expr:
    return cell.cast(pl.Int64, strict=False)


def _shaped(wide: pl.DataFrame, heads: pl.DataFrame) -> pl.DataFrame:
    """`wide` (line, t0 to the last cell, empty ones null) with where its figures begin and how many there are."""
    cells = [f"t{i}" for i in range(_CELLS)]
    # No figure holds a colon: the last cell that does is a time stamp's.
    stamped = pl.coalesce(cells[:7:-1]).str.contains(":", literal=True)
    return (
        wide.join_asof(heads, on="line", strategy="backward")
        .with_columns(
            pl.col(FLAGS).fill_null(value=False),
            n=pl.sum_horizontal(pl.col(name).is_not_null() for name in cells).cast(pl.Int64),
            stamp=pl.when(stamped.fill_null(value=False)).then(2).otherwise(0),
            op=pl.col("t3").is_in(REDOPS).fill_null(value=False).cast(pl.Int64),
        )
        .with_columns(
            width=pl.when("per_iteration").then(8).when("unchecked").then(3).otherwise(4),
            figures=pl.col("n") - pl.col("stamp") - 3 - pl.col("op"),
        )
        .with_columns(
            first=pl.when(pl.col("op") == 1).then("t4").otherwise("t3"),
            second=pl.when(pl.col("op") == 1).then("t5").otherwise("t4"),
        )
        .with_columns(
            rooted=pl.when("unchecked")
            .then(pl.col("has_root"))
            .otherwise(
                (pl.col("figures") % 4 == 1)
                | pl.col("first").str.starts_with("-").fill_null(value=False)
                | (pl.col("has_root") & ((pl.col("figures") % 4 != 0) | ~_is_time()))
            )
        )
        .drop("first", "second")
        .with_columns(start=3 + pl.col("op") + pl.col("rooted"), figures=pl.col("figures") - pl.col("rooted"))
    )


def _is_time() -> pl.Expr:
    """Whether the first figure is the row's time, which the second as algbw bears out: a row that lost its last cell begins with its root."""
    time, algbw = (pl.col(name).cast(pl.Float64, strict=False) for name in ("first", "second"))
    size = pl.col("t0").cast(pl.Float64, strict=False)
    return ((time > 0) & ((size / time / 1e3 - algbw).abs() <= 0.05 * algbw + 0.01)).fill_null(value=False)


def _table(parts: pl.DataFrame) -> pl.DataFrame:
    """The sides of shaped rows, in order of lines."""
    parts = parts.with_columns(groups=(pl.col("figures") // pl.col("width")).clip(0, 2))
    whole = parts.filter(pl.col("groups") > 0)
    alike = [whole] if whole.select(_SHAPE).n_unique() == 1 else whole.partition_by(_SHAPE)
    sides = [side for part in alike if part.height for side in _sides(part)]
    table = pl.concat([empty(), *sides]).sort("line", "in_place", maintain_order=True)
    return table.filter(pl.col("size").is_not_null())


def _sides(part: pl.DataFrame) -> list[pl.DataFrame]:
    """The sides of rows that are all of one shape: figures from the same cell on."""
    start, width, groups = (int(part[name][0]) for name in ("start", "width", "groups"))
    scale = 1e3 if part["milliseconds"][0] else 1.0
    head = part.select(
        "line", size=_whole(pl.col("t0")), count=pl.coalesce(_whole(pl.col("t1")), pl.col("t1").cast(pl.Float64, strict=False).cast(pl.Int64, strict=False)), type=pl.col("t2").cast(pl.Categorical),
        redop=(pl.col("t3") if part["op"][0] else pl.lit(None, pl.String)).cast(pl.Categorical),
        root=pl.col(f"t{start - 1}").cast(pl.Int32, strict=False) if part["rooted"][0] else pl.lit(None, pl.Int32),
        cpu_time="cpu_time",
    )  # fmt: skip
    names = (*GROUP, *EXTRA)[:width]
    found = []
    for group in range(groups):
        at = start + group * width
        figures = part.select(pl.col(f"t{at + i}").cast(pl.Float64, strict=False).alias(n) for i, n in enumerate(names))
        # One group under a header of two stands in the place where the header puts it.
        blank = pl.col("in_place_only") | pl.col("text").str.contains(r"-?\d\s{18,}\d")
        in_place = part.select(blank).to_series() if groups == 1 else pl.lit(value=bool(group))
        absent = {x: pl.lit(None, pl.Float64) for x in (*GROUP, *EXTRA) if x not in names}
        side = pl.concat([head, figures], how="horizontal").with_columns(
            pl.col("time") * scale, in_place=in_place, **absent
        )
        # What is below 0 is a root in the place of a time: a cell is missing.
        whole = (pl.col("time").fill_null(-1) >= 0) & pl.col("busbw").is_not_null()
        found.append(side.filter(whole).select(empty().columns))
    return found


def _completed(parts: pl.DataFrame, others: pl.DataFrame, taken: pl.Series) -> pl.DataFrame:
    """Rows whose figures stand on later lines because another process printed in between, put together again."""
    missing = pl.when("in_place_only").then("width").otherwise(2 * pl.col("width")) - pl.col("figures")
    short = parts.filter((missing > 0) & (pl.col("stamp") == 0))
    if not short.height:
        return parts
    loose = each(others.filter(pl.col("text").str.contains(_FIGURE))).select(
        "line", more=pl.col("text").str.replace(_GLUED, "").str.replace_all(r"\[\d+\]", "").str.extract_all(r"\S+")
    )
    figure = pl.element().cast(pl.Float64, strict=False).is_not_null() | (pl.element() == "N/A")
    loose = loose.filter((pl.col("more").list.len() > 0) & pl.col("more").list.eval(figure).list.all())
    if not loose.height:
        return parts
    every = pl.concat([parts["line"], taken]).unique().sort()
    following = (
        loose.join_asof(pl.DataFrame({"line": every, "row": every}), on="line", strategy="backward")
        .drop_nulls("row")
        .group_by("row", maintain_order=True)
        .agg(more=pl.col("more").explode(empty_as_null=False))
    )
    grown = short.join(following, left_on="line", right_on="row", how="inner", maintain_order="left")
    grown = grown.with_columns(more=pl.col("more").list.head(missing))
    # A row of one complete side is grown by a whole side or not at all: figures below it may be of something else.
    grown = grown.filter((pl.col("figures") % pl.col("width") != 0) | (pl.col("more").list.len() >= pl.col("width")))
    cells = [f"t{i}" for i in range(_CELLS)]
    joined = pl.concat_list(pl.concat_list(cells).list.drop_nulls(), "more")
    grown = grown.with_columns(joined=joined, figures=pl.col("figures") + pl.col("more").list.len())
    grown = grown.with_columns(
        pl.col("joined").list.get(i, null_on_oob=True).alias(name) for i, name in enumerate(cells)
    ).select(parts.columns)  # fmt: skip
    return pl.concat([parts.join(grown.select("line"), on="line", how="anti"), grown.cast(parts.schema)])


def empty() -> pl.DataFrame:
    figures = dict.fromkeys((*GROUP, *EXTRA), pl.Float64)
    return pl.DataFrame(
        schema={"line": pl.Int64, "size": pl.Int64, "count": pl.Int64, "type": pl.Categorical, "redop": pl.Categorical,
                "root": pl.Int32, "in_place": pl.Boolean, "cpu_time": pl.Boolean, **figures}
    )  # fmt: skip
