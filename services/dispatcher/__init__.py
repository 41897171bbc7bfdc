"""Has boards scanned again and again, each at its time."""
