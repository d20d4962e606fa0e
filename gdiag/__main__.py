"""`python -m gdiag` and the console script."""

from __future__ import annotations


def main() -> None:
    """Run the command line."""
    from gdiag.cli import app

    app()


if __name__ == "__main__":
    main()
