"""GD711: links that are down or slow, GPUs joined by less than the others, counters that grow."""

from __future__ import annotations

import re

import pytest

from gdiag.analyzers import nvlink
from gdiag.ingesters import nvlink as screens
from gdiag.ingesters.assemble import assemble
from gdiag.ingesters.reading import Input, Options
from gdiag.measures.run import RunView
from gdiag.model import Finding, Severity

H100 = "NVIDIA H100 80GB HBM3"


def judge(*texts: str, rate: float = 0.95) -> list[Finding]:
    """Findings of files that follow each other."""
    given = [Input(f"links{n}.txt", text.encode(), None, text.encode()) for n, text in enumerate(texts)]
    records = assemble([screens.read(one, Options()) for one in given])
    return nvlink.analyze(RunView(records.runs[0], records), rate=rate)


def status(links: dict[int, list[float]], model: str = H100) -> str:
    def line(number: int, rate: float) -> str:
        return f"\t Link {number}: {f'{rate:g} GB/s' if rate else '<inactive>'}\n"

    return "".join(
        f"GPU {gpu}: {model} (UUID: GPU-{gpu})\n" + "".join(line(i, r) for i, r in enumerate(rates))
        for gpu, rates in links.items()
    )


def matrix(size: int, ways: dict[tuple[int, int], str], usual: str = "NV18") -> str:
    head = "\t" + "\t".join(f"GPU{i}" for i in range(size)) + "\tCPU Affinity\n"
    rows = [
        f"GPU{a}\t" + "\t".join(" X " if a == b else ways.get((a, b), ways.get((b, a), usual)) for b in range(size)) + "\t0-31\n"
        for a in range(size)
    ]  # fmt: skip
    return head + "".join(rows)


FULL = [26.562] * 18
SILENT = f"GPU 2: {H100} (UUID: GPU-2)\nNVML: Unable to retrieve Nvlink information as all links are inActive\n"


@pytest.mark.parametrize(
    "text",
    [
        status(dict.fromkeys(range(8), FULL)),
        status({0: FULL}),
        status({g: [25.781] * 4 + [0, 0] for g in range(4)}, "Tesla V100-SXM2-16GB"),
        status({0: [14.062, 14.062, 0, 0]}, "NVIDIA GeForce RTX 3090"),
        "GPU 0: NVIDIA H100 (UUID: GPU-0)\nNvlink queries are not supported for Devices in MIG mode\n",
        "GPU 0: NVIDIA L40S (UUID: GPU-0)\nDevice does not have or support Nvlink\n",
        "GPU 0: NVIDIA GeForce RTX 2080 SUPER (UUID: GPU-0)\nNVML: Unable to retrieve Nvlink information as all links are inActive\n",
        matrix(8, {}),
        matrix(4, {}, "SYS"),
        matrix(4, {(0, 1): "NV4", (2, 3): "NV4"}, "SYS"),
        matrix(3, {(0, 1): "NV12"}, "PHB"),
        # The hybrid cube mesh of eight V100: four peers each, one or two links to them.
        matrix(8, {(0, 1): "NV1", (0, 2): "NV1", (0, 3): "NV2", (0, 4): "NV2", (1, 2): "NV2", (1, 3): "NV1", (1, 5): "NV2",
                   (2, 3): "NV1", (2, 6): "NV2", (3, 7): "NV2", (4, 5): "NV1", (4, 6): "NV1", (4, 7): "NV2", (5, 6): "NV2",
                   (5, 7): "NV1", (6, 7): "NV1"}, "SYS"),
        matrix(2, {(0, 1): "SYS"}),
        "GPU 0: NVIDIA H100 (UUID: GPU-0)\n\t Link 0: Replay Errors: 0\n\t Link 0: CRC Errors: 0\n",
    ],
)  # fmt: skip
def test_quiet_where_nothing_is_lost(text: str) -> None:
    assert judge(text) == []


def test_a_list_that_is_cut_says_nothing_of_the_rest() -> None:
    assert judge(status({0: FULL, 1: FULL, 2: FULL[:5]})) == []


def test_a_link_that_is_down() -> None:
    (finding,) = judge(status({g: [0.0 if (g, i) == (3, 4) else r for i, r in enumerate(FULL)] for g in range(8)}))
    assert finding.severity is Severity.WARNING
    assert finding.message == "GPU 3 has 17 active NVLinks, not the 18 of its model (link 4 inactive)"
    assert finding.where.gpu == 3


def test_a_gpu_alone_is_a_note() -> None:
    (finding,) = judge(status({0: [0.0] * 18}))
    assert finding.severity is Severity.INFO


def test_a_gpu_whose_links_are_all_inactive_among_others() -> None:
    (finding,) = judge(status({0: FULL, 1: FULL}) + SILENT)
    assert "GPU 2 has 0 active NVLinks" in finding.message


def test_of_several_readings_of_a_gpu_the_latest_counts() -> None:
    fine = status(dict.fromkeys(range(4), FULL))
    for given in ((fine, SILENT), (fine + SILENT,)):
        (finding,) = judge(*given)
        assert "GPU 2 has 0 active NVLinks" in finding.message
    assert judge(SILENT, fine) == []
    assert judge(status({0: FULL, 1: FULL, 2: [0.0, *FULL[1:]], 3: FULL}) + fine) == []
    assert judge(status({0: FULL, 1: FULL, 2: FULL[:17], 3: FULL}), fine) == []


def test_files_of_several_hosts_that_are_not_named() -> None:
    def host(number: int, text: str) -> str:
        return re.sub(r"UUID: GPU-(\d)", rf"UUID: GPU-0000000{number}-0000-0000-0000-00000000000\1", text)

    fine = status(dict.fromkeys(range(4), FULL))
    down = status({0: FULL, 1: FULL, 2: [0.0, *FULL[1:]], 3: FULL})
    for given in ((host(1, down), host(2, fine)), (host(2, fine), host(1, down)), (host(1, down) + host(2, fine),)):
        (finding,) = judge(*given)
        assert "GPU 2 has 17 active NVLinks" in finding.message
    assert judge(host(1, down), host(1, fine)) == []
    counts = "GPU 1: NVIDIA H100 (UUID: GPU-1)\n\t Link 7: Recovery Errors: {}\n"
    assert {f.severity for f in judge(host(1, counts.format(3)), host(2, counts.format(9)))} == {Severity.INFO}
    assert Severity.WARNING in {f.severity for f in judge(host(1, counts.format(3)), host(1, counts.format(9)))}


def test_of_several_matrices_of_a_host_the_latest_counts() -> None:
    broken, fine = matrix(8, {(0, 1): "SYS"}), matrix(8, {})
    assert judge(broken + fine) == []
    (finding,) = judge(fine + broken)
    assert "GPU 0 and GPU 1 are joined by SYS" in finding.message
    named = ["# HOST node-1\n" + text for text in (broken, fine)]
    assert judge(*named) == []
    # Files that name no host may be of two.
    assert len(judge(broken, fine)) == 1


def test_a_reading_of_counters_leaves_the_links_as_they_were() -> None:
    down = status({g: [0.0 if (g, i) == (3, 4) else r for i, r in enumerate(FULL)] for g in range(8)})
    counts = f"GPU 3: {H100} (UUID: GPU-3)\n\t Link 7: Replay Errors: 0\n"
    (finding,) = judge(down, counts)
    assert "(link 4 inactive)" in finding.message


def test_an_unknown_model_is_held_against_its_peers() -> None:
    rates = {g: [50.0] * 10 for g in range(4)} | {2: [50.0] * 9 + [0.0]}
    (finding,) = judge(status(rates, "Some new GPU"))
    assert "not 10 of another GPU" in finding.message


def test_a_slow_link_and_its_threshold() -> None:
    text = status({0: FULL, 1: [13.281, *FULL[1:]]})
    (finding,) = judge(text)
    assert finding.message == "GPU 1: NVLink 0 runs at 13.281 GB/s, others at 26.562"
    assert judge(text, rate=0.4) == []


def test_a_pair_and_a_gpu_without_nvlinks_where_the_others_have_some() -> None:
    (pair,) = judge(matrix(8, {(2, 5): "SYS"}))
    assert pair.message == "GPU 2 and GPU 5 are joined by SYS where the other pairs have NVLinks"
    (alone,) = judge(matrix(8, {tuple(sorted((3, i))): "PHB" for i in range(8) if i != 3}))  # type: ignore[misc]
    assert alone.where.gpu == 3
    assert "no NVLink to any other GPU" in alone.message
    (fewer,) = judge(matrix(8, {tuple(sorted((6, i))): "NV17" for i in range(8) if i != 6}))  # type: ignore[misc]
    assert fewer.where.gpu == 6
    assert "fewer NVLinks (119) than the others (125)" in fewer.message


def test_a_matrix_that_contradicts_itself() -> None:
    text = matrix(4, {}).replace("GPU1\tNV18", "GPU1\tSYS")
    assert any("GPU 0 to GPU 1 is NV18, back it is SYS" in f.message for f in judge(text))


def test_counters_of_one_reading_are_a_note_and_growth_is_a_warning() -> None:
    once = "GPU 1: NVIDIA H100 (UUID: GPU-1)\n\t Link 7: Recovery Errors: 3\n\t Link 7: CRC Errors: 12\n"
    assert {f.severity for f in judge(once)} == {Severity.INFO}
    (grown,) = (
        f
        for f in judge(once + once.replace("Recovery Errors: 3", "Recovery Errors: 9"))
        if f.severity is Severity.WARNING
    )
    assert grown.message.startswith("GPU 1 NVLink 7: recovery_errors grew by 6 between readings")
    assert grown.where.gpu == 1
    assert all(f.severity is Severity.INFO or "recovery" in f.message for f in judge(once + once))


def test_replays_matter_by_their_rate() -> None:
    def reading(clock: str, count: int) -> str:
        return f"{clock}\nGPU 1: {H100} (UUID: GPU-1)\n\t Link 7: Replay Errors: {count}\n"

    start, later = "Thu Mar  5 10:00:00 UTC 2026", "Thu Mar  5 14:00:00 UTC 2026"
    (few,) = judge(reading(start, 3) + reading(later, 123))
    assert few.severity is Severity.INFO
    (many,) = judge(reading(start, 3) + reading(later, 124))
    assert many.severity is Severity.WARNING
    assert "replay_errors grew by 121 between readings" in many.message


def test_a_retraining_that_failed_is_a_warning_from_one_reading_on() -> None:
    (once,) = judge(f"GPU 1: {H100} (UUID: GPU-1)\n\t Link 7: Link recovery failed events: 7\n")
    assert once.severity is Severity.WARNING
    assert once.message.startswith("GPU 1 NVLink 7: link_recovery_failed_events is 7 since the last reset")


def test_a_retraining_that_fails_between_readings_is_critical() -> None:
    once = f"GPU 1: {H100} (UUID: GPU-1)\n\t Link 7: Link recovery failed events: 7\n"
    (grown,) = judge(once + once.replace("events: 7", "events: 8"))
    assert grown.severity is Severity.CRITICAL


def test_no_pair_joined_though_the_model_has_nvlinks() -> None:
    named = "".join(f"GPU {g}: {H100} (UUID: GPU-{g})\n" for g in range(4))
    (finding,) = judge(matrix(4, {}, "SYS") + named)
    assert finding.message == "no pair of GPUs is joined by NVLinks (SYS), though each has 18"
    assert judge(matrix(4, {}, "SYS") + named.replace(H100, "NVIDIA L40S")) == []
    assert judge(matrix(4, {}) + named) == []
