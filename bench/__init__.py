"""Measurements of Elenco, and the fake model server they run against."""
