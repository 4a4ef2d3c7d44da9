"""Write ledgers.json and words.json anew: ``make pins``, then review each line that differs."""

from __future__ import annotations

import json
import os
import sys
import warnings
from pathlib import Path

HERE = Path(__file__).resolve().parent
LEDGERS = HERE / "ledgers.json"
WORDS = HERE / "words.json"


def main() -> None:
    """Of ledgers one line a run, in the order of the cases; of words one for all that say them."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    sys.path[:0] = [str(HERE.parent), str(HERE.parents[1] / "src")]
    warnings.simplefilter("error")
    from pins.cases import CASES, record, run, told

    lines = []
    words = dict[str, list[str]]()
    for case in CASES:
        result = run(case)
        lines.append(f"{json.dumps(case.name)}: {json.dumps(record(result))}")
        words.setdefault(json.dumps(told(result)), []).append(case.name)
    said = [f"[{text}, {json.dumps(names)}]" for text, names in words.items()]
    WORDS.write_text("[\n" + ",\n".join(said) + "\n]\n", encoding="utf-8")
    LEDGERS.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
