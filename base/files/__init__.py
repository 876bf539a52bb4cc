"""Files of ours: written whole or not at all, and read into memory."""
