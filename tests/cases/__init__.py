"""Small inputs, each written after a fault that a library of this kind once had, kept as data."""
