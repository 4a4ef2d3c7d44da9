"""Linear operators: two leaves that charge (local families, gossip) and lazy algebra over them."""
