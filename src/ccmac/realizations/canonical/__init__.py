"""The theorem's oracle: exact channels in one process, modelled rounds."""
