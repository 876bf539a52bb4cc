"""Tools that all studies share: what a study is (`study`), and running one (`run`)."""
