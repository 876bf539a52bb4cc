"""CmdStan directories: what one is, finding one, and assembling one from the httpstan wheel."""
