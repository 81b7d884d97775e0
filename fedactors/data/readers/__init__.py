"""File formats of image data sets: IDX, Parquet, and what image data sets on disk have in common."""
