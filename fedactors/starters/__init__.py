"""Small plugins that run as they are, for `fedactors new` to copy: an algorithm, a data set, a model, a selection.

They are ordinary modules, checked like all others. In a copy, `starter` and `Starter` are the name that the user chose.
"""
