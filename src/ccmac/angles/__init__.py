"""How the channels lie to each other: what ``ccmac.geometry`` computes and says."""
