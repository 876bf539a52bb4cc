"""A command as a process, and the programs that it starts."""
