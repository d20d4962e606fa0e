"""sample_logs/ is what its script writes."""

from __future__ import annotations

import gzip
from pathlib import Path

from tools import make_samples

ROOT = Path(__file__).parent.parent.parent

LIMIT = 300_000


def plain(name: str, content: bytes) -> bytes:
    # Compressed bytes depend on the zlib that Python was built with; the content does not.
    return gzip.decompress(content) if name.endswith(".gz") else content


def test_the_script_reproduces_the_folder() -> None:
    folder = ROOT / "sample_logs"
    made = make_samples.files()
    kept = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert sorted(made) == sorted(kept)
    for name, content in made.items():
        assert plain(name, content) == plain(name, kept[name]), name


def test_samples_are_small() -> None:
    assert max(path.stat().st_size for path in (ROOT / "sample_logs").rglob("*")) < LIMIT
