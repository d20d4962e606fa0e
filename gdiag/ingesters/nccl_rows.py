"""Rows of nccl-tests and rccl-tests tables, 2017 to today: one grammar, read column-wise.

A row is `size count type [redop] [root]` and then groups of four cells (time, algbw, busbw, wrong); `-I` adds four cells
to each group, `-S` a time stamp at the end, `-C` measures CPU time. hardware.md 1.1 and 1.2 list the versions.
"""

from __future__ import annotations

from typing import Final

import polars as pl

TYPES: Final = r"u?int(?:8|32|64)|half|float|double|bfloat16|f8e[45]m[23]|fp8_e[45]m[23]|char"
_TYPE_WORDS: Final = ["float", "int", "half", "double", "f8e", "fp8", "char"]
_PREFIX: Final = (
    r"^(?:\[\d+,\d+\]<std(?:out|err)>:|\d+: |\[\d+\] |\d{4}-\d\d-\d\d[T ][\d:.,]+(?:Z|[+-]\d\d:?\d\d)? |"
    r"pod/\S+ |[A-Za-z][\w./-]*: )+"
)
_GLUED: Final = r"[A-Za-z][\w.-]*(?::\d+:\d+ ?\[\d+\] (?:\S+ )?NCCL|: Test (?:timeout|NCCL|CUDA|failure)).*$"
_REDOPS: Final = ("sum", "prod", "min", "max", "avg", "mulsum", "none", "all", "custom")
_HEADER: Final = r"\b(?:size|bytes)\s+(?:count|N)\s+type\b"
_NUMBERS: Final = r"^\s*(?:[\d.e+]+\s+){3}(?:[\d.e+-]+|N/A)"
GROUP: Final = ("time", "algbw", "busbw", "wrong")
EXTRA: Final = ("t_min", "t_max", "t_p99", "t_cv")


def stripped(lines: pl.DataFrame) -> pl.DataFrame:
    """`lines` (line, text) without launcher prefixes: mpirun tags, srun and hydra ranks, time stamps, pod names."""
    return lines.with_columns(text=pl.col("text").str.replace(_PREFIX, "").str.strip_chars_end("\r"))


def headers(lines: pl.DataFrame) -> pl.DataFrame:
    """Column headers: line, has_root, per_iteration, milliseconds, cpu_time, in_place_only."""
    found = lines.filter(pl.col("text").str.contains("type", literal=True)).filter(pl.col("text").str.contains(_HEADER))
    above = lines.filter(pl.col("text").str.contains("in-place", literal=True)).select(
        line=pl.col("line") + 1, in_place_only=~pl.col("text").str.contains("out-of-place", literal=True)
    )
    text = pl.col("text")
    return (
        found.select(
            "line",
            has_root=text.str.contains(r"\broot\b"),
            per_iteration=text.str.contains("i_min", literal=True),
            milliseconds=text.str.contains(r"\bbytes\s+N\b"),
            cpu_time=text.str.contains("cputime", literal=True),
        )
        .join(above, on="line", how="left", maintain_order="left")
        .with_columns(pl.col("in_place_only").fill_null(value=False))
    )


def rows(lines: pl.DataFrame, heads: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Complete rows, one per side (in_place false, then true), and rejects (line, reason, text).

    lines: line (Int64, ascending) and text (stripped of prefixes). The result has line, size [B], count, type, redop,
    root, in_place, time [µs], cpu_time, algbw, busbw [GB/s], wrong, t_min, t_max, t_p99 [µs], t_cv [%].
    """
    tokens = _tokens(lines.filter(pl.col("text").str.contains_any(_TYPE_WORDS)))
    if not tokens.height:
        return _empty(), pl.DataFrame(schema={"line": pl.Int64, "reason": pl.String, "text": pl.String})
    parts = (
        tokens.join_asof(heads, on="line", strategy="backward")
        .with_columns(
            size=pl.col("tokens").list.get(0).str.replace_all("_", "", literal=True).cast(pl.Int64, strict=False),
            count=pl.col("tokens").list.get(1).str.replace_all("_", "", literal=True).cast(pl.Int64, strict=False),
            type=pl.col("tokens").list.get(2),
            redop=pl.col("tokens").list.get(3, null_on_oob=True),
        )
        .with_columns(redop=pl.when(pl.col("redop").is_in(_REDOPS)).then("redop"))
        .with_columns(cells=pl.col("tokens").list.slice(pl.when(pl.col("redop").is_null()).then(3).otherwise(4)))
        .with_columns(n=pl.col("cells").list.len().cast(pl.Int64))
        .with_columns(
            rooted=(pl.col("n") % 4 == 1) | (pl.col("has_root").fill_null(value=False) & (pl.col("n") % 4 != 0))
        )
        .with_columns(
            root=pl.when("rooted").then(pl.col("cells").list.get(0, null_on_oob=True)).cast(pl.Int32, strict=False),
            cells=pl.col("cells").list.slice(pl.col("rooted").cast(pl.Int32)),
            width=pl.when(pl.col("per_iteration").fill_null(value=False)).then(8).otherwise(4),
        )
    )
    parts = _joined_splits(parts, lines)
    parts = parts.with_columns(groups=pl.col("cells").list.len() // pl.col("width"))
    # One group under a header of two stands in the place where the header puts it.
    first_in_place = pl.col("in_place_only").fill_null(value=False) | pl.col("text").str.contains(r"-?\d\s{18,}\d")
    sides = [
        _side(parts.filter(pl.col("groups") >= 2), 0, in_place=pl.lit(value=False)),
        _side(parts.filter(pl.col("groups") >= 2), 1, in_place=pl.lit(value=True)),
        _side(parts.filter(pl.col("groups") == 1), 0, in_place=first_in_place),
    ]
    table = pl.concat(sides).sort("line", "in_place", maintain_order=True)
    torn = parts.filter(~pl.col("line").is_in(table["line"].unique().to_list()) | (pl.col("groups") == 0))
    reason = pl.when(pl.col("text").str.contains("XX", literal=True)).then(pl.lit("placeholder instead of figures"))
    rejects = torn.select("line", reason=reason.otherwise(pl.lit("row without a complete set of figures")), text="text")
    return table, rejects


def _tokens(candidates: pl.DataFrame) -> pl.DataFrame:
    """Lines of the shape `size count type …`, split at blanks; what other processes glued into a line is cut off."""
    mixed = pl.col("text").str.contains_any(["[", "NCCL", "Test "])
    clean = candidates.with_columns(body=pl.col("text"))
    cut = pl.col("text").str.replace(_GLUED, "").str.replace_all(r"\[\d+\]", "")
    clean = pl.concat([clean.filter(~mixed), candidates.filter(mixed).with_columns(body=cut)]).sort("line")
    body = pl.col("body").str.strip_chars_start(" #")
    split = clean.with_columns(tokens=body.str.extract_all(r"\S+")).drop("body")
    shaped = pl.col("tokens").list.get(2, null_on_oob=True).str.contains(rf"^(?:{TYPES})$")
    shaped &= pl.col("tokens").list.get(0, null_on_oob=True).str.contains(r"^\d[\d_]*$")
    shaped &= pl.col("tokens").list.get(1, null_on_oob=True).str.contains(r"^\d[\d_]*$")
    stamped = pl.col("tokens").list.get(-1, null_on_oob=True).str.contains(":", literal=True)
    whole = pl.col("tokens").list.len()
    return split.filter(shaped).with_columns(
        tokens=pl.col("tokens").list.head(pl.when(stamped).then(whole - 2).otherwise(whole))
    )


def _side(parts: pl.DataFrame, group: int, *, in_place: pl.Expr) -> pl.DataFrame:
    def cell(position: int) -> pl.Expr:
        index = pl.lit(group) * pl.col("width") + position
        return pl.col("cells").list.get(index, null_on_oob=True).cast(pl.Float64, strict=False)

    wide = pl.col("width") == 8
    scale = pl.when(pl.col("milliseconds").fill_null(value=False)).then(1e3).otherwise(1.0)
    return parts.with_columns(
        in_place=in_place, time=cell(0) * scale, algbw=cell(1), busbw=cell(2), wrong=cell(3),
        cpu_time=pl.col("cpu_time").fill_null(value=False),
        **{name: pl.when(wide).then(cell(4 + i)) for i, name in enumerate(EXTRA)},
    ).filter(pl.col("time").is_not_null() & pl.col("busbw").is_not_null()).select(_empty().columns)  # fmt: skip


def _joined_splits(parts: pl.DataFrame, lines: pl.DataFrame) -> pl.DataFrame:
    """Rows whose figures stand alone on later lines because another process printed in between."""
    bare = parts.filter(pl.col("cells").list.len() == 0)
    if not bare.height:
        return parts
    loose = (
        lines.filter(pl.col("text").str.contains(_NUMBERS))
        .with_columns(cells=pl.col("text").str.replace(_GLUED, "").str.extract_all(r"\S+"))
        .filter(pl.col("cells").list.len().is_in([4, 8]))
        .join_asof(parts.select("line", row=pl.col("line")), on="line", strategy="backward")
        .group_by("row", maintain_order=True)
        .agg(found=pl.col("cells").explode())
    )
    return (
        parts.join(loose, left_on="line", right_on="row", how="left", maintain_order="left")
        .with_columns(cells=pl.when(pl.col("cells").list.len() == 0).then(pl.col("found")).otherwise(pl.col("cells")))
        .with_columns(pl.col("cells").fill_null([]))
        .drop("found")
    )


def _empty() -> pl.DataFrame:
    figures = dict.fromkeys((*GROUP, *EXTRA), pl.Float64)
    return pl.DataFrame(
        schema={"line": pl.Int64, "size": pl.Int64, "count": pl.Int64, "type": pl.String, "redop": pl.String,
                "root": pl.Int32, "in_place": pl.Boolean, "cpu_time": pl.Boolean, **figures}
    )  # fmt: skip
