"""Tools for agents that work on files."""
