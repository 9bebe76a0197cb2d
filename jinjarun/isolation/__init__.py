"""Run what strangers wrote in processes that can be killed and reach nothing else.

`IsolatedExecutor` runs calls in worker processes; `sandbox` has the walls that a process raises around itself. Together
they hold, on Linux, against a template that costs too much, against our own code gone astray under it, and against
machine code that an attacker runs in a worker; `SECURITY.md` says what holds elsewhere.
"""

from jinjarun.isolation.executor import IsolatedExecutor
from jinjarun.isolation.sandbox import walls_here

__all__ = ["IsolatedExecutor", "walls_here"]
