"""gdiag.toml or [tool.gdiag]: the settings a project keeps; unknown keys are refused."""
