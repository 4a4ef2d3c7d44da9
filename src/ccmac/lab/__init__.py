"""What studies methods and is not needed to solve: instances, data, experiments, complexity."""
