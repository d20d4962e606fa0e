"""`python -m gdiag` and the console script."""

from __future__ import annotations

import gc


def main() -> None:
    """Run the command line."""
    # Nearly all that is made at start-up stays: looking for garbage among it took a tenth of a short run.
    gc.set_threshold(50_000, 20, 100)
    from gdiag.cli import main as run

    run()


if __name__ == "__main__":
    main()
