"""The style sheet of the HTML page: light or dark as the reader's system is, and readable when printed."""

from __future__ import annotations

from typing import Final

STYLE: Final = """
:root { color-scheme: light dark; --paper: #fff; --card: #f6f7f9; --ink: #1b1f24; --quiet: #5d6673; --rule: #d7dce2;
  --line: #1668b8; --critical: #c62828; --warning: #b26a00; --info: #1b7a8c; --good: #2e7d32; }
@media (prefers-color-scheme: dark) { :root { --paper: #14171b; --card: #1d2126; --ink: #e5e8eb; --quiet: #9aa4b0;
  --rule: #343b44; --line: #6cb2f5; --critical: #ef6b6b; --warning: #f0ad4e; --info: #5cc3d6; --good: #7cc47f; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1120px; padding: 1rem; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.4rem; margin: 0; } h2 { font-size: 1.15rem; margin: 0 0 .5rem; } h3 { font-size: 1rem; margin: .8rem 0 .2rem; }
header p, small, .tick, dt { color: var(--quiet); } header p { margin: 0 0 1rem; }
section, nav { background: var(--card); border: 1px solid var(--rule); border-radius: 6px; padding: 1rem; margin: 0 0 1rem; }
nav ol { margin: 0; padding-left: 1.5rem; } a { color: var(--line); }
.incident { border-left: 5px solid var(--rule); } .incident.critical { border-left-color: var(--critical); }
.incident.warning { border-left-color: var(--warning); } .incident.info { border-left-color: var(--info); }
.badge { color: var(--paper); border-radius: 3px; padding: .05rem .4rem; font-size: .75rem; font-weight: 600; text-transform: uppercase; }
.badge.critical { background: var(--critical); } .badge.warning { background: var(--warning); } .badge.info { background: var(--info); }
.facts { display: flex; flex-wrap: wrap; gap: 1rem; } .facts dl { flex: 1 1 300px; } .facts figure { flex: 1 1 440px; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem .8rem; margin: 0; align-content: start; } dd { margin: 0; }
figure { margin: 0; max-width: 700px; } .curves { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(440px, 100%), 1fr)); gap: 1rem; }
summary { cursor: pointer; } ul, ol { margin: .2rem 0; padding-left: 1.4rem; } meter { width: 5rem; vertical-align: middle; }
li.for::marker { color: var(--good); content: "+ "; } li.against::marker { color: var(--critical); content: "− "; }
li.missing::marker { color: var(--warning); content: "? "; } .note { color: var(--warning); }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-size: .9rem; overflow-wrap: normal; }
th, td { text-align: left; vertical-align: top; padding: .15rem .9rem .15rem 0; border-bottom: 1px solid var(--rule); }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
svg { width: 100%; height: auto; display: block; font: 11px system-ui, sans-serif; fill: var(--ink); } .name { font-weight: 600; }
.tick { fill: var(--quiet); font-size: 10px; } .axis { fill: none; stroke: var(--quiet); }
.grid { fill: none; stroke: var(--rule); stroke-width: .5; } .limit { fill: none; stroke: var(--warning); stroke-dasharray: 4 3; }
.envelope { fill: var(--line); opacity: .3; } .line { fill: none; stroke: var(--line); stroke-width: 1.2; } .point { fill: var(--line); }
.cross { fill: none; stroke: var(--critical); stroke-width: 1.5; } .lost { fill: var(--critical); }
.band { opacity: .22; } .band.critical { fill: var(--critical); } .band.warning { fill: var(--warning); } .band.info { fill: var(--info); }
@media print { section { break-inside: avoid; } body { max-width: none; } }
"""
