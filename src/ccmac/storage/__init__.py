"""Problems on disk: ``problem.yaml`` and one ``agent-NNNN.npz`` for each agent.

An agent's data live in its own file alone, so that a process reads only what belongs to the agents
it runs. Nothing that is read can execute: safe YAML, arrays without pickle, objectives from a fixed
table.
"""

from ccmac.storage.problems import load_problem, save_problem

__all__ = ["load_problem", "save_problem"]
