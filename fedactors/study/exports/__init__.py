"""What a study gives other programs: CSV, LaTeX and pandas frames."""
