"""Campaigns: many experiments of papers, cell by cell within a budget, and the matrix of what they found.

Each cell is an ordinary run that resumes; what is kept of it is a small JSON file, which is committed, so that a
campaign goes on where it ended, on another machine too.
"""
