"""GD702: the plateau against the hardware, never the printed average."""

from __future__ import annotations

import pytest

from gdiag.analyzers import low_bandwidth
from gdiag.model import Severity
from tests.analyzers.made_benchmarks import view
from tests.ingesters.nccl_formats import Bench, text

SIZES = tuple(1 << k for k in range(10, 34))


def judge(bench: Bench, **given: float) -> list[tuple[Severity, str]]:
    return [(f.severity, f.message) for f in low_bandwidth.analyze(view(text(bench)), **given)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("peak", "word"), [(59.0, "PCIe instead of NVLink"), (24.0, "TCP sockets"), (237.0, "half of the rails")]
)
def test_fires_and_names_the_path(peak: float, word: str) -> None:
    ((severity, message),) = judge(Bench(peak=peak, sizes=SIZES))
    assert severity is Severity.WARNING
    assert word in message


def test_quiet_on_a_healthy_node_though_its_average_is_low() -> None:
    assert judge(Bench(peak=478.0, sizes=SIZES)) == []


def test_healthy_ring_is_info() -> None:
    ((severity, message),) = judge(Bench(peak=365.0, sizes=SIZES))
    assert severity is Severity.INFO
    assert "NVLS" in message


def test_short_sweeps_and_unknown_models_are_not_judged() -> None:
    assert judge(Bench(peak=20.0, sizes=SIZES[:14])) == []
    assert judge(Bench(peak=20.0, sizes=SIZES, model="NVIDIA GeForce RTX 5090")) == []


def test_network_cards_and_expectation() -> None:
    two = Bench(ranks=16, hosts=2, peak=187.0, sizes=SIZES)
    assert judge(two) == []
    assert judge(two, nic_gbps=1600.0) == []
    assert judge(two, nic_gbps=3200.0) != []
    assert judge(two, expect=190.0) == []
    assert judge(two, expect=250.0) != []


def test_threshold() -> None:
    bench = Bench(peak=430.0, sizes=SIZES)
    assert judge(bench, ok=0.88) == []
    assert judge(bench, ok=0.95) != []


def test_crippled_by_an_override() -> None:
    output = text(Bench(ranks=2, peak=28.0, sizes=SIZES, model="NVIDIA A100 80GB PCIe"))
    info = "h:1:1 [0] NCCL INFO NCCL_TOPO_FILE set by environment to /etc/topo.xml\nh:1:1 [0] NCCL INFO 2 coll channels, 2 p2p channels\n"
    (finding,) = low_bandwidth.analyze(view(info + output))
    assert finding.severity is Severity.WARNING
    assert "topo.xml" in finding.message


SOCKET = "h:1:1 [0] NCCL INFO Using network Socket\n"


def test_sockets_between_hosts_that_have_cards() -> None:
    slow = text(Bench(ranks=16, hosts=2, peak=3.0, sizes=SIZES))
    (finding,) = low_bandwidth.analyze(view(SOCKET + slow))
    assert "TCP sockets" in finding.message
    one_each = text(Bench(ranks=2, hosts=2, peak=0.7, sizes=SIZES, model="Tesla V100-SXM2-16GB"))
    assert [f.severity for f in low_bandwidth.analyze(view(SOCKET + one_each))] == [Severity.INFO]


def test_sockets_are_said_where_no_limit_is_known_and_only_between_hosts() -> None:
    between, inside = (Bench(ranks=2, hosts=n, peak=0.7, sizes=SIZES, model="Tesla V100-SXM2-16GB") for n in (2, 1))
    (finding,) = low_bandwidth.analyze(view(SOCKET + text(between)))
    assert finding.message.endswith("NCCL says that it uses TCP sockets between hosts, not InfiniBand or RoCE")
    assert finding.measure("sockets") is True
    assert low_bandwidth.analyze(view(text(between))) == []
    assert not any(f.measure("sockets") for f in low_bandwidth.analyze(view(SOCKET + text(inside))))


def test_cards_that_nccl_names() -> None:
    info = (
        "h:1:1 [0] NCCL INFO NET/IB : Made virtual device [0] name=mlx5_0 speed=200000 ndevs=1\n"
        "h:1:1 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [2]mlx5_2:1/IB [3]mlx5_3:1/IB [RO]; OOB eth0\n"
    )
    healthy = text(Bench(ranks=16, hosts=2, peak=97.0, sizes=SIZES))
    assert low_bandwidth.analyze(view(info + healthy)) == []
    (finding,) = low_bandwidth.analyze(view(info + text(Bench(ranks=16, hosts=2, peak=48.0, sizes=SIZES))))
    assert "half of the rails" in finding.message
    single = text(Bench(ranks=2, hosts=2, peak=24.0, sizes=SIZES))
    assert low_bandwidth.analyze(view(info + single)) == []


def test_platform_that_the_plugin_names() -> None:
    info = (
        "h:1:1 [0] NCCL INFO NET/OFI Running on P4d platform, Setting NCCL_TOPO_FILE environment variable to /a/b.xml\n"
    )
    assert low_bandwidth.analyze(view(info + text(Bench(ranks=16, hosts=2, peak=43.8, sizes=SIZES)))) == []
    assert low_bandwidth.analyze(view(info + text(Bench(ranks=16, hosts=2, peak=12.0, sizes=SIZES)))) != []


@pytest.mark.parametrize(
    ("collective", "ranks", "peak"), [("all_gather", 8, 361.0), ("alltoall", 8, 345.0), ("all_reduce", 4, 363.0)]
)
def test_shapes_that_nobody_measured_are_held_to_a_ring(collective: str, ranks: int, peak: float) -> None:
    assert judge(Bench(collective, ranks=ranks, peak=peak, sizes=SIZES)) == []
    (finding,) = low_bandwidth.analyze(view(text(Bench(collective, ranks=ranks, peak=45.0, sizes=SIZES))))
    assert "PCIe instead of NVLink" in finding.message


def test_pairs_of_gpus_are_not_held_to_a_ring() -> None:
    assert judge(Bench(ranks=2, peak=80.0, sizes=SIZES, model="NVIDIA A100-SXM4-40GB")) == []
