"""The command line: ``ccmac demo | geometry | complexity | plan | solve | data | ...``."""
