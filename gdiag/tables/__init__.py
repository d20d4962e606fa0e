"""Reports that are tables and no diagnosis: what the logs hold, around one step, and how two runs differ."""
