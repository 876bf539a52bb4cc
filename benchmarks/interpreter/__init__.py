"""Parity of the Stan interpreter `stanli` with CmdStan's compiled programs."""
