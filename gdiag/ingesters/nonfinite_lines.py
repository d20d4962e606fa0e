"""Lines of home-made checks that name a layer: `Step 41: NaN gradient in blocks.0.fc`, `Inf weight in …`, `NaN/Inf in loss`."""

from __future__ import annotations

from typing import Final

import polars as pl

_QUICK: Final = r"(?i)(?:nan|inf)[a-z/]* (?:in )?(?:gradient|grad|weight|param|loss)"
_LINE: Final = (
    r"(?i)\b(?:step|iter(?:ation)?)\W{0,3}(\d{1,18})\W{1,3}(nan|inf)(?:/inf)?(?:inite)? (?:in )?(gradient|grad|weight|param|loss)\w*"
    r"(?: (?:in|of|for|at) (?:layer )?([\w.]+))?(?:.*?(?:value|norm)\s*[=:]\s*([-\w.+]+))?"
)


def rows(table: pl.DataFrame) -> pl.DataFrame:
    """`line`, `step`, then grad_norm/<layer>, param_norm/<layer> and loss, NaN or inf where said so."""
    found = (
        table.filter(pl.col("text").str.contains(_QUICK))
        .select("line", pl.col("text").str.extract_groups(_LINE).alias("g"))
        .unnest("g")
    )
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
