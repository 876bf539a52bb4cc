"""What all studies share: cells to run, frames of measures, claims tried on them, views and the record."""
