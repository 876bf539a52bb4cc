"""The commands of `onebasin`, each in its own module; heavy imports are inside the functions."""
