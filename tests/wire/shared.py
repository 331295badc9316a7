"""Where the material is that tests use when it lies beside the checkout."""

from __future__ import annotations

from pathlib import Path

SHARED = Path(__file__).resolve().parents[3] / "shared"
RECORDINGS = SHARED / "recordings"
VECTORS = SHARED / "reference" / "vectors"
