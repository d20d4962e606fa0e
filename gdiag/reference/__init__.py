"""Figures from outside: one data file per subject, each row with its source and whether it was verified."""
