"""The commands of `onebasin`, one module each; heavy imports stand inside the functions."""
