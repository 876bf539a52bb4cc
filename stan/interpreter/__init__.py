"""The interpreter of Stan programs: the package stanli, which needs no compiler.

`runtime` loads its library, and compiles a program to the form that it interprets. `driver` is a process that accepts
CmdStan's command lines.
"""
