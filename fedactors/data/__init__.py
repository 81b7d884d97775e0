"""Data sets, their files, and which client holds which samples.

`sets` has one file per data set, `readers` the file formats that several of them share, `partitions` how samples are
spread over clients, `server` the server's own data. Descriptions import no torch, because the clock needs their sizes.
"""
