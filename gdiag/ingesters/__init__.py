"""Formats: bytes in, records in canonical names and units out, bad lines kept aside."""
