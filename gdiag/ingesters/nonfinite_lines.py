"""Lines of checks: `Step 41: NaN gradient in blocks.0.fc`, `Inf weight in …`, `NaN/Inf in loss`, and a program's last words
about its loss: `Loss is nan, stopping training`, `FloatingPointError: Loss became infinite or NaN at iteration=537!`.
"""

from __future__ import annotations

from typing import Final

import polars as pl

_QUICK: Final = r"(?i)(?:nan|inf)[a-z/]* (?:in )?(?:gradient|grad|weight|param|loss)"
_LINE: Final = (
    r"(?i)\b(?:step|iter(?:ation)?)\W{0,3}(\d{1,18})\W{1,3}(nan|inf)(?:/inf)?(?:inite)? (?:in )?(gradient|grad|weight|param|loss)\w*"
    r"(?: (?:in|of|for|at) (?:layer )?([\w.]+))?(?:.*?(?:value|norm)\s*[=:]\s*([-\w.+]+))?"
)

_STOP: Final = (
    r"(?i)\bloss\b(?: value)?(?: is| was| became| becomes| turned|:| =)? (?:nan\b|inf(?:inite|inity)?\b|not finite|non-?finite)"
    r"|\b(?:non-?finite|nan) loss\b|\bfound (?:nan|inf)\b.{0,30}\bloss\b"
)
_AT: Final = r"(?i)\b(?:step|iter(?:ation)?)s?\W{0,3}(\d{1,15})"


def last_words(rest: pl.DataFrame, steps: pl.DataFrame) -> pl.DataFrame:
    """A row `line`, `step`, `loss` where the console ends with the word that the loss is not finite, and logs no such loss.

    Args:
        rest: `line`, `text` of the lines that are no step lines.
        steps: `line`, `step`, `loss` and more of those that are. A line that names no step speaks of the one after them.
    """
    loss = steps["loss"].drop_nulls()
    if not len(loss) or not loss.is_finite()[-1]:
        return steps.clear()
    behind = rest.filter(pl.col("line") > steps["line"].max())
    found = behind.filter(pl.col("text").str.contains(_STOP)).head(1)
    if not len(found):
        return steps.clear()
    after = int(str(steps["step"].max())) + 1
    value = float("nan") if found["text"].str.contains(r"(?i)nan|finite")[0] else float("inf")
    named = found["text"].str.extract(_AT).cast(pl.Int64, strict=False)
    same = steps.tail(1).select(key for key in ("run", "segment", "rank") if key in steps.columns)
    return found.select("line", named.fill_null(after).alias("step"), pl.lit(value).alias("loss")).hstack(same)


def rows(table: pl.DataFrame) -> pl.DataFrame:
    """`line`, `step`, then grad_norm/<layer>, param_norm/<layer> and loss, NaN or inf where said so."""
    likely = table.filter(pl.col("text").str.contains(_QUICK))
    if not len(likely):
        return pl.DataFrame(schema={"line": pl.Int64, "step": pl.Int64})
    found = likely.select("line", pl.col("text").str.extract_groups(_LINE).alias("g")).unnest("g")
    wide: dict[tuple[int, str], dict[str, float]] = {}
    for line, step, what, where, layer, value in found.iter_rows():
        if step is None:
            continue
        quantity = where.lower()
        if quantity != "loss" and not layer:
            continue
        name = (
            "loss" if quantity == "loss" else f"{'grad_norm' if quantity.startswith('grad') else 'param_norm'}/{layer}"
        )
        number = float("nan") if what.lower() == "nan" else float("inf")
        if value and value.lower().lstrip("+-").startswith("inf"):
            number = float("-inf") if value.startswith("-") else float("inf")
        wide.setdefault((int(step), "row"), {"line": line, "step": int(step)})[name] = number
    names = dict.fromkeys(name for row in wide.values() for name in row)
    types = {n: pl.Int64 if n in ("line", "step") else pl.Float64 for n in names} or {
        "line": pl.Int64,
        "step": pl.Int64,
    }
    return pl.DataFrame(list(wide.values()), schema=types)
