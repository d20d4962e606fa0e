"""`python -m gdiag` and the console script."""

from __future__ import annotations


def main() -> None:
    """Run the command line."""
    from gdiag.cli import main as run

    run()


if __name__ == "__main__":
    main()
