"""Reports shown: one module per form; no threshold and no judgement lives here."""
