"""The conformance suite: recorded traces of the reference loop, played through the public API.

A scenario file is data: what a model answers, what tools and hooks do, what the caller does, and what was observed. The
format is described in ``FORMAT.md`` beside this file. Nothing here knows a scenario by its name or its content.
"""
