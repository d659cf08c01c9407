"""What people see of a run: tables, progress on a terminal, and a dry run before one."""
