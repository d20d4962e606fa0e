from __future__ import annotations

import pytest

from gdiag.errors import InputError
from gdiag.ingesters import nvidia_smi_xml
from gdiag.ingesters.reading import Input, Options, Reading

GPU = """<gpu id="00000000:01:00.0"><product_name>NVIDIA A100-SXM4-80GB</product_name><uuid>GPU-a</uuid>
<clocks_{g}_reasons><clocks_{g}_reason_gpu_idle>Not Active</clocks_{g}_reason_gpu_idle>
<clocks_{g}_reason_sw_thermal_slowdown>Active</clocks_{g}_reason_sw_thermal_slowdown></clocks_{g}_reasons>
<temperature><gpu_temp>86 C</gpu_temp><gpu_temp_slow_threshold>89 C</gpu_temp_slow_threshold></temperature>
<gpu_power_readings><power_draw>311.5 W</power_draw><current_power_limit>400.00 W</current_power_limit></gpu_power_readings>
<clocks><sm_clock>1275 MHz</sm_clock></clocks><fb_memory_usage><used>50 MiB</used></fb_memory_usage>
<mig_devices><mig_device><fb_memory_usage><used>12 MiB</used></fb_memory_usage></mig_device></mig_devices></gpu>"""
WHOLE = "<?xml version='1.0'?><nvidia_smi_log><timestamp>Fri Aug  4 11:44:30 2023</timestamp>{}</nvidia_smi_log>"


def read(text: str) -> Reading:
    data = text.encode()
    given = Input("q.xml", data[:65536], None, data)
    assert nvidia_smi_xml.recognise(given) > 0.9
    return nvidia_smi_xml.read(given, Options())


@pytest.mark.parametrize("generation", ["throttle", "event"])
def test_both_generations_of_names_are_read(generation: str) -> None:
    frame = read(WHOLE.format(GPU.format(g=generation))).gpus
    assert frame is not None
    row = frame.row(0, named=True)
    assert (row["temperature"], row["power"], row["power_limit"], row["clock_sm"]) == (86, 311.5, 400, 1275)
    assert row["reasons"] == 0x20
    assert row["memory_used"] == 50 * 2**20
    assert row["bus_id"] == "0000:01:00"


def test_documents_in_a_row_are_a_series() -> None:
    text = WHOLE.format(GPU.format(g="event"))
    frame = read(text + "\n" + text.replace("11:44:30", "11:45:30")).gpus
    assert frame is not None
    assert frame["time"].to_list() == [1691149470.0, 1691149530.0]


def test_a_torn_document_gives_its_whole_gpus() -> None:
    text = WHOLE.format(GPU.format(g="event") + GPU.format(g="event"))
    reading = read(text[:-300])
    assert reading.gpus is not None
    assert reading.gpus.height == 1


def test_entities_are_refused() -> None:
    with pytest.raises(InputError, match="entities"):
        read('<!DOCTYPE x [<!ENTITY a "b">]><nvidia_smi_log></nvidia_smi_log>')


def test_a_document_without_gpus_is_refused() -> None:
    with pytest.raises(InputError, match="without a whole GPU"):
        read("<nvidia_smi_log></nvidia_smi_log>")
