"""Parquet and Arrow files, such as wandb's history artifact: columns under their own names."""

from __future__ import annotations

import io
from typing import Final

import polars as pl

from gdiag.errors import InputError
from gdiag.ingesters import columns, flat
from gdiag.ingesters.reading import Input, Options, Reading

FORMAT = "parquet"
_PARQUET: Final = b"PAR1"
_ARROW: Final = b"ARROW1"


def recognise(given: Input) -> float:
    """The files' magic."""
    return 1.0 if given.head.startswith((_PARQUET, _ARROW)) else 0.0


def read(given: Input, options: Options) -> Reading:
    """Every row.

    Raises:
        InputError: damaged, or without a training metric.
    """
    kind = FORMAT if given.head.startswith(_PARQUET) else "arrow"
    content = io.BytesIO(given.data())
    try:
        frame = pl.read_parquet(content) if kind == FORMAT else pl.read_ipc(content)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise InputError(f"{given.path} is a damaged {kind} file") from error
    frame = flat.flatten_frame(_plain(frame))
    if flat.LINE in frame.columns:
        frame = frame.rename({flat.LINE: flat.LOGGED})
    if frame.height:
        columns.refuse_other(given.path, frame, options)
    notes = [] if frame.height else ["the table has no rows"]
    return columns.reading(given.path, kind, frame, options, notes=notes, line=None)


def _plain(frame: pl.DataFrame) -> pl.DataFrame:
    """Categories and bytes, which hold text, as text."""
    texts = [name for name, kind in frame.schema.items() if isinstance(kind, pl.Categorical | pl.Enum)]
    raw = [name for name, kind in frame.schema.items() if kind == pl.Binary]
    return frame.with_columns(pl.col(texts + raw).cast(pl.String, strict=False))
