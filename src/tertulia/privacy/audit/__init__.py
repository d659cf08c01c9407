"""Audits: lower bounds of epsilon from attacks, and the inputs that mechanisms are fed on two neighbours.

Bounds are pure statistics, of arrays of scores or counts of right guesses; `inputs` has the rules for inputs.

| module | the attack | the bound |
|---|---|---|
| `pairs` | many draws on two neighbours | Clopper-Pearson, of epsilon or of the mu of Gaussian differential privacy |
| `sequential` | the same, draw by draw | a confidence sequence: it may stop at any time |
| `one_run` | one run with many canaries | Steinke, Nasr, Jagielski 2023 |
| `tradeoff` | one run with many canaries | Mahloujifar, Melis, Chaudhuri 2025: for a curve, such as that of mu-GDP |

A bound that is above a claim shows that the claim is false, but for a chance of `level`. A bound below it shows
nothing: an attack may be too weak. So each bound comes with `could_have_shown`, that of a perfect attacker with equal
means.
"""
