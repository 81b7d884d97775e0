"""The page as it is: its template, and the style sheets and scripts beside this file, which end up in each page."""
