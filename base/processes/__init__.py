"""The process of a command, and the programs that it starts."""
