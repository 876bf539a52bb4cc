"""The papers' experiments, their recorded results, and the command line `onebasin`."""
