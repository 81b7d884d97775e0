"""Code of the user: files and packages that a scenario names, what they import, and the errors that they raise.

`user_code` finds a file and what it says, `user_imports` what it imports from beside it, and `user_modules` imports
all of them under names of their own, in any process. `own_plugins` and `plugin_checks` make classes in them known to a
scenario, `user_errors` tells a mistake of the user from one of ours, and `global_draws` finds random numbers that are
other ones in each process. No torch is imported here.
"""
