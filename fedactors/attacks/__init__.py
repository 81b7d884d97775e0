"""Attacks of devices: they send other updates than theirs, or learn from other labels than theirs.

One file for each attack. An attack is a pure function of the attackers' own updates or labels, so attackers do not know
each other: attacks that need the honest updates of a round (ALIE, inner product manipulation) are not here. The clock
knows nothing of attacks: plans are the same with and without them, unless the selection, a departure or the end of the
run follows from losses. Options can be imported without torch.
"""
