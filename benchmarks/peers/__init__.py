"""The same work with other agent libraries, each in a process of its own and by its documented fast path.

A module for each: it answers four questions (see ``_contest.py``) with the library's own means, and checks that the
tools really ran. ``python -m benchmarks peers`` runs those that are installed; the extra ``bench-peers`` installs them.
"""
