"""Benchmarks of trio_agent: one question a file, each measured beside the same work written by hand on bare Trio."""
