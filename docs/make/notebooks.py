"""Run notebooks and keep what they print and draw.

    python docs/make/notebooks.py                      all of notebooks/*.ipynb, in place
    python docs/make/notebooks.py notebooks/grid.ipynb

Cells run one after the other in one namespace, as in Jupyter; no kernel is needed.
tests/test_docs.py runs them with :func:`executed` and compares the numbers.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

ROOT = Path(__file__).resolve().parents[2]


def executed(cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The cells with new outputs."""
    names: dict[str, Any] = {"__name__": "__main__"}
    found = []
    plt.close("all")
    for number, cell in enumerate(cells):
        found.append(dict(cell))
        if cell["cell_type"] == "code":
            found[-1]["outputs"] = run("".join(cell["source"]), names, f"cell {number}")
    return found


def run(source: str, names: dict[str, Any], where: str) -> list[dict[str, Any]]:
    """What a cell prints, what its last line is, and what it draws."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    value = None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, where, "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), where, "eval"), names)
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        outputs.append(
            {"output_type": "stream", "name": "stdout", "text": lines(printed.getvalue())}
        )
    drawn = plt.get_fignums()
    if value is not None and not drawn:
        data: dict[str, Any] = {"text/plain": lines(repr(value))}
        if hasattr(value, "_repr_html_"):
            data["text/html"] = lines(value._repr_html_())
        outputs.append(shown(data))
    for number in drawn:
        stream = io.BytesIO()
        plt.figure(number).savefig(stream, dpi=90, metadata={"Software": None})
        picture = base64.b64encode(stream.getvalue()).decode()
        outputs.append(
            {"output_type": "display_data", "data": {"image/png": picture}, "metadata": {}}
        )
    plt.close("all")
    return outputs


def shown(data: dict[str, Any]) -> dict[str, Any]:
    """An output that is displayed."""
    return {"output_type": "display_data", "data": data, "metadata": {}}


def lines(text: str) -> list[str]:
    """As notebooks keep text."""
    return text.splitlines(keepends=True)


def main(names: list[str]) -> int:
    """Run and write."""
    for path in map(Path, names or sorted((ROOT / "notebooks").glob("*.ipynb"))):
        book = json.loads(path.read_text(encoding="utf-8"))
        book["cells"] = executed(book["cells"])
        path.write_text(json.dumps(book, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
