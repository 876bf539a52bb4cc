"""C functions that call a Stan library at many points, with their binaries for the common platforms."""
