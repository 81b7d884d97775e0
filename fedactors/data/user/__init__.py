"""Data of the user's own: Python functions, tables, folders of images, and files of other federated libraries.

`arrays` turns what is found into numbers, `labels` says what kind of labels there are, `samples` reads what a function
returns, `assembly` joins training and test samples into a `Data`; `user_data` is the base of the data sets.
"""
