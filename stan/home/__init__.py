"""CmdStan directories ("homes"): finding one, or assembling one from the httpstan wheel."""
