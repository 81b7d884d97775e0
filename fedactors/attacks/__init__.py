"""What devices do that do not play by the rules: they alter what they send, or the labels that they learn from.

One file for each attack. An attack is a pure function of the attackers' own updates or labels, so attackers do not know
each other: attacks that need the honest updates of a round (ALIE, inner product manipulation) are not here. The clock
knows nothing of attacks: plans are the same with and without them. Options can be imported without torch.
"""
