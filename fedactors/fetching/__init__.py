"""Public data sets and recordings, fetched from their authors' addresses.

torchvision downloads the data sets that it knows and compares its own checksums; pooch downloads the rest. This package
says what there is, turns every failure into one message, and never keeps a file that is not what it should be. It reads
no data (that is `data`) and no recordings (that is `traces`).
"""
