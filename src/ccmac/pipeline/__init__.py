"""From a problem to what a solver needs: channels, geometry, certificates, normalization, plan."""
