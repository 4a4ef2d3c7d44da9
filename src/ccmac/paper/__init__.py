"""What only the paper needs: its realizations, comparators, hard families, data, experiments."""
