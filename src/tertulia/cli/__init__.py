"""The command line: one file for each group of commands.

`run`, `model`, `operator`, `party`, `nvflare`, `privacy` and `installation` are groups. A long command has a file of
its own, named like the command: `init`, `demo`, `rehearse`, `warm`. Each command is a plain function; `main` registers
all of them. `options` has the arguments that several commands share, `process` the handling of errors and signals.
"""
