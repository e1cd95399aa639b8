"""The version, as a constant: asking the installed package for it would take as long as all the rest of `--help`."""

VERSION = "0.1.0"
