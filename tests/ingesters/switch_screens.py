"""ibswinfo's screen with states to choose."""

from __future__ import annotations


def screen(guid: str = "0x1", supply: str = "OK", fan: str = "6000", temperature: str = "45", fans: str = "OK") -> str:
    """A switch with two supplies and four fans; the second supply, the first fan and the temperature as given."""
    supplies = "".join(
        f"PSU{n} status        | OK\n     P/N           | A1\n     DC power      | {state}\n"
        f"     fan status    | {state}\n     power (W)     | 120\n"
        for n, state in enumerate(("OK", supply))
    )
    speeds = "".join(f"fan#{n} (rpm)        | {s}\n" for n, s in enumerate((fan, "5200", "6050", "5300"), start=1))
    heat = f"temperature (C)    | {temperature}\nmax temp (C)       | 55\n" if temperature else ""
    rule = "-" * 49 + "\n"
    return (
        f"part number        | MQM\nproduct name       | Quantum switch\nPSID               | MT_1\nGUID               | {guid}\n"
        f"{rule}uptime (d-h:m:s)   | 1d-00:00:00\n{rule}{supplies}{rule}{heat}{rule}fan status         | {fans}\n{speeds}{rule}"
    )
