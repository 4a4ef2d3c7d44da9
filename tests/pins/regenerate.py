"""Write ledgers.json anew: ``make pins``, then review the difference line by line."""

from __future__ import annotations

import json
import os
import sys
import warnings
from pathlib import Path

HERE = Path(__file__).resolve().parent
LEDGERS = HERE / "ledgers.json"


def main() -> None:
    """One line a run, in the order of the cases."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    sys.path[:0] = [str(HERE.parent), str(HERE.parents[1] / "src")]
    warnings.simplefilter("error")
    from pins.cases import CASES, record, run

    lines = [f"{json.dumps(case.name)}: {json.dumps(record(run(case)))}" for case in CASES]
    LEDGERS.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
