"""What a run guarantees about the privacy of users: what each device has spent, and epsilon by a well-kept library.

It refuses to claim amplification by sampling: who takes part emerges from timing, and is taken as known to everybody.
"""
