"""Tools that all studies share: the definition of a study (`study`), and its runs (`run`)."""
