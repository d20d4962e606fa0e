"""gdiag convert: what was read, as Parquet files in canonical names and units."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gdiag.cli import options
from gdiag.errors import UsageError


def convert(
    paths: options.Paths,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="Folder for the Parquet files.")],
    config: options.Settings = None,
    columns: options.Map = None,
    tz: options.Zone = None,
    steps: options.Steps = None,
) -> None:
    """Write what was read as Parquet: one file per record table, in canonical names and units."""
    from gdiag.schema import TABLES

    said = options.configuration(config)
    records = options.records(paths, said, columns, tz, steps)
    try:
        output.mkdir(parents=True, exist_ok=True)
        for table in (*TABLES, "layers"):
            frame = getattr(records, table)
            if frame.height:
                frame.write_parquet(output / f"{table}.parquet")
                typer.echo(f"{output / f'{table}.parquet'}: {frame.height:,} rows, {frame.width} columns")
    except OSError as error:
        raise UsageError(f"{output}: cannot be written ({error.strerror})") from None
