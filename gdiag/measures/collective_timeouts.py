"""Who keeps a collective waiting: the ranks that time out are the victims, the culprit is the one that does not.

Root and victim wordings of NCCL: a completion with error 12 (retries exhausted) names a link, a closed or refused connection names
a peer that had already failed (NCCL src/transport/net_ib.cc, misc/socket.cc).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import polars as pl

_RAN: Final = re.compile(r"SeqNum=(\d+), OpType=(\w+)(?:, NumelIn=(\d+))?.*?ran for (\d+) milliseconds")
_COMPLETED: Final = re.compile(r"last completed (?:NCCL )?work: (\d+)")
_ROOT: Final = re.compile(
    r"error 12\b|vendor err 129|retry|Duplicate GPU|unhandled cuda error|segfault|No space left|transport retry",
    re.IGNORECASE,
)
_VICTIM: Final = re.compile(
    r"Connection closed by remote peer|Connection refused|socketProgress|Socket recv failed|error 5\b|unhandled system error",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Timeouts:
    """What a run's time-outs and NCCL warnings say together."""

    operation: str | None
    """Type and sequence number of the first collective that timed out; None where the lines do not name it."""
    victims: tuple[int, ...]
    """Ranks that timed out waiting."""
    missing: tuple[int, ...]
    """Ranks of the job that did not time out in it: they never arrived."""
    behind: int | None
    """The rank whose last completed collective is older than that of all others."""
    start: float | None
    """When the waiting began: stamp less the time it ran [s]."""
    earlier: str | None
    """What the machine reported last before the waiting began, within ten minutes."""
    root: str | None
    """The first NCCL line that names a cause rather than a consequence."""
    desynchronised: bool
    """Ranks brought different sizes to one collective: a fault of the program."""
    ranks: int | None = None
    """Ranks of the job, where other rows tell."""
    waited: float | None = None
    """The longest that a rank waited in it [s]."""

    @property
    def culprit(self) -> int | None:
        """The rank that most likely kept the others waiting, if the lines agree on one."""
        if self.behind is not None:
            return self.behind
        return self.missing[0] if len(self.missing) == 1 else None


def timeouts(events: pl.DataFrame, ranks: int | None) -> Timeouts | None:
    """Put together the watchdog lines, NCCL warnings and machine errors of `events`; `ranks` of the job if known."""
    said = events.filter(pl.col("kind") == "nccl_timeout") if events.height else events
    if not said.height:
        return None
    rows = [(r, m) for r in said.iter_rows(named=True) if (m := _RAN.search(str(r["text"])))]
    if not rows:
        named = tuple(sorted({int(rank) for rank in said["rank"].drop_nulls()}))
        return Timeouts(None, named, (), _behind(said), None, None, _root(events), False, ranks)
    first = min(int(m[1]) for _, m in rows)
    waiting = [(r, m) for r, m in rows if int(m[1]) == first]
    victims = sorted({int(r["rank"]) for r, _ in waiting if r["rank"] is not None})
    total = max(ranks or 0, max(victims, default=-1) + 1)
    # One or two lines of a shortened log do not say who else waited.
    whole = len(victims) >= max(3, 0.5 * total) or (ranks == 2 and len(victims) == 1)
    missing = tuple(r for r in range(total) if r not in victims) if whole else ()
    starts = [float(r["time"]) - int(m[4]) / 1000 for r, m in waiting if r["time"] is not None]
    start = min(starts, default=None)
    sizes = {m[3] for _, m in waiting if m[3] is not None}
    return Timeouts(
        f"{waiting[0][1][2]} {first}", tuple(victims), missing, _behind(said), start, _earlier(events, start), _root(events), len(sizes) > 1, ranks,
        max(int(m[4]) for _, m in waiting) / 1000,
    )  # fmt: skip


def _behind(said: pl.DataFrame) -> int | None:
    done: dict[int, int] = {}
    for rank, text in said.select("rank", "text").iter_rows():
        found = _COMPLETED.search(str(text))
        if rank is not None and found:
            done[int(rank)] = int(found[1])
    lowest = [r for r, n in done.items() if n == min(done.values())]
    return lowest[0] if len(done) > 1 and len(lowest) == 1 else None


def _earlier(events: pl.DataFrame, start: float | None) -> str | None:
    if start is None or "time" not in events.columns:
        return None
    reported = events.filter(
        pl.col("kind").is_in(["xid", "sxid", "gpu_lost", "oom", "message", "nic"])
        & (pl.col("time") >= start - 600)
        & (pl.col("time") <= start + 60)
    ).sort("time")
    if not reported.height:
        return None
    row = reported.row(0, named=True)
    place = f"{row['host']}: " if row["host"] else ""
    return f"{place}{str(row['text'])[:160]}"


def _root(events: pl.DataFrame) -> str | None:
    for host, text in (
        events.filter(pl.col("kind").is_in(["nccl_warning", "message"])).select("host", "text").iter_rows()
    ):
        if _ROOT.search(str(text)) and not _VICTIM.search(str(text)):
            return f"{f'{host}: ' if host else ''}{str(text)[:160]}"
    return None
