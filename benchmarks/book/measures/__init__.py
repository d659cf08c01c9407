"""Measures: functions of arguments and a seed that return scores by name, on top of the other benchmarks."""
