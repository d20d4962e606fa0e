"""nvidia-smi topo -m and nvlink -s, -e: how the GPUs of a host are joined, which links are up and what they count.

Links end as rows of `ports`: device GPU3, port = number of the link, counters `nvlink_active` (1 or 0), `nvlink_rate` [GB/s] and
what nvlink -e counts, as `nvlink_crc_errors`. The matrix ends as `facts`: scope `topology` (and the host), key `GPU0 GPU1`, value
as printed (NV18, PIX, SYS); `section` numbers the matrices of a file. Models are facts of the scope `nvlink model`, UUIDs of the scope
`nvlink uuid` (of links also `guid`), and what is said instead of a GPU's links (MIG, none, all inactive) facts of the scope `nvlink state`.
"""

from __future__ import annotations

from typing import Final

from gdiag.errors import InputError
from gdiag.ingesters import console, nvlink_lines
from gdiag.ingesters.reading import Input, Options, Reading
from gdiag.model import Source

FORMAT: Final = "nvidia-smi-nvlink"
_MOST: Final = 1 << 20


def recognise(given: Input) -> float:
    return nvlink_lines.sureness(given.head)


def read(given: Input, options: Options) -> Reading:
    """Links and matrix.

    Raises:
        InputError: it lists GPUs and neither a link nor a pair.
    """
    table = console.lines_of(given).head(_MOST)
    texts = dict(table.select("line", "text").iter_rows())
    if texts and not given.data().endswith(b"\n"):
        texts |= {(last := max(texts)): nvlink_lines.whole_part(texts[last])}
    found = nvlink_lines.parse(texts, options.tz)
    if not found.ports and "matrix" not in found.kinds and not any(found.gpus.values()):
        head = nvlink_lines.begins_matrix(given.head)
        form = "the head of the matrix of nvidia-smi topo -m" if head else "the list of nvidia-smi -L"
        raise InputError(f"{given.path} is {form}: it names GPUs and says nothing of their links")
    told = sum(not scope.startswith("nvlink uuid") for _, _, scope, _, _ in found.facts)
    rows = max(len(found.ports) + told, len(found.gpus))
    source = Source(given.path, FORMAT, rows, notes=nvlink_lines.said(found))
    return Reading(source, ports=nvlink_lines.ports(found), facts=nvlink_lines.facts(found))
