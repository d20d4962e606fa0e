"""nvidia-smi -q -x: XML of schema versions 11 to 13."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, cast
from xml.etree.ElementTree import Element, ParseError, XMLPullParser

import polars as pl

from gdiag.errors import InputError
from gdiag.ingesters import smi_tree, telemetry
from gdiag.ingesters.reading import Input, Options, Reading
from gdiag.model import Source

FORMAT = "nvidia-smi-xml"
_DEEPEST: Final = 30


def recognise(given: Input) -> float:
    return 0.97 if b"<nvidia_smi_log" in given.head[:4096] else 0.0


def read(given: Input, options: Options) -> Reading:
    """Samples of one or more documents in a row; a document that is cut off gives the GPUs that are whole.

    Raises:
        InputError: entities are declared, or no GPU is whole.
    """
    data = given.data()
    if b"<!ENTITY" in data:
        raise InputError(f"{given.path} declares XML entities, which nvidia-smi never does: it is not read")
    rows: list[dict[str, object]] = []
    limits: dict[str, dict[str, str]] = {}
    broken: list[tuple[int, str, str]] = []
    for document in data.split(b"<nvidia_smi_log")[1:]:
        stamp = ""
        parser: XMLPullParser[Element] = XMLPullParser(["end"])
        try:
            parser.feed(b"<nvidia_smi_log" + document.split(b"<?xml")[0])
            found = _elements(parser)
        except ParseError as error:
            found = _elements(parser)
            broken.append((error.position[0], "the document is damaged", str(error)[:120]))
        for element in found:
            if element.tag == "timestamp" and not stamp:
                stamp = element.text or ""
            elif element.tag == "gpu" and element.get("id"):
                tree: dict[str, str] = {}
                _walk(element, (), tree)
                tree.setdefault("pci/pci_bus_id", element.get("id", ""))
                row = smi_tree.row(tree)
                rows.append(row | {"stamp": stamp})
                limits.setdefault(str(row.get("model")), {}).update(smi_tree.limits(tree))
    if not rows:
        raise InputError(f"{given.path} is an nvidia-smi XML document without a whole GPU in it")
    return _reading(given, options, rows, limits, broken)


def _elements(parser: XMLPullParser[Element]) -> list[Element]:
    found: list[Element] = []
    for _, element in cast(Iterator[tuple[str, object]], parser.read_events()):
        if isinstance(element, Element):
            found.append(element)
    return found


def _walk(element: Element, above: tuple[str, ...], tree: dict[str, str]) -> None:
    for child in element:
        if child.tag == "mig_devices" or len(above) > _DEEPEST:
            continue
        if len(child):
            _walk(child, (*above, child.tag), tree)
        elif child.text is not None:
            tree[smi_tree.path(*above, child.tag)] = child.text


def _reading(
    given: Input, options: Options, rows: list[dict[str, object]], limits: dict[str, dict[str, str]], broken: list[tuple[int, str, str]]
) -> Reading:  # fmt: skip
    times, known = telemetry.clock(pl.Series("stamp", [str(r.pop("stamp")) for r in rows]), options.tz)
    timed = times.count() > 0
    for row, time in zip(rows, times, strict=True):
        row |= {"time": time, "zone_known": known} if timed else {}
    table = smi_tree.frame(rows)
    columns = {c: f"XML: {c}" for c in table.columns if c not in ("line", "zone_known")}
    if "reasons" in columns:
        columns["reasons"] = "clocks_event_reasons.active"
    notes = (
        ("local time without a zone",)
        if timed and not known
        else ()
        if timed
        else ("no timestamp: nothing can be placed in time",)
    )
    return Reading(
        Source(given.path, FORMAT, table.height, len(broken), columns, notes),
        gpus=table, facts=smi_tree.facts(limits), rejects=telemetry.rejects(broken) if broken else None,
    )  # fmt: skip
