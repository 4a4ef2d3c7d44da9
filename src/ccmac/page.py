"""One self-contained HTML page: a title, a picture, text and tables; nothing is fetched."""

from __future__ import annotations

import base64
import html
import io
from typing import Any

import numpy as np

from ccmac import show
from ccmac.results import Result
from ccmac.version import __version__

STYLE = """
:root { color-scheme: light dark; --paper: #fdfcf9; --ink: #22252b; --soft: #667; --line: #ddd; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #17191d; --ink: #e4e4e0; --soft: #9a9da5; --line: #3a3d44; }
}
body { margin: 0 auto; max-width: 46rem; padding: 1.5rem 1rem 3rem; background: var(--paper);
  color: var(--ink); font: 1rem/1.55 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; margin-bottom: 0; } h2 { font-size: 1.1rem; margin: 1.6rem 0 .2rem; }
p { margin: .2rem 0; } .soft { color: var(--soft); font-size: .9rem; }
figure { margin: 1.5rem 0; } img { width: 100%; height: auto; border-radius: 6px; }
.wide { overflow-x: auto; margin-top: .4rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .92rem; }
caption { text-align: left; font-weight: 600; padding: .4rem 0; }
th, td { padding: .2rem .9rem .2rem 0; border-bottom: 1px solid var(--line); text-align: right; }
th:first-child { text-align: left; font-weight: 500; white-space: nowrap; }
tr > :last-child { padding-right: 0; }
"""


def document(title: str, head: str, body: str, subtitle: str = "", image: bytes = b"") -> str:
    """The page; ``body`` is HTML, everything else is escaped. ``image`` is a PNG."""
    figure = ""
    if image:
        encoded = base64.b64encode(image).decode("ascii")
        words = html.escape(head)
        figure = f'<figure><img alt="{words}" src="data:image/png;base64,{encoded}"></figure>\n'
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{html.escape(head)}</h1>\n"
        f'<p class="soft">{html.escape(subtitle or f"ccmac {__version__}")}</p>\n'
        f"{figure}{body}\n</body>\n</html>\n"
    )


def wide(heading: str, table: str) -> str:
    """A heading and a table that scrolls on a narrow screen."""
    return f'<h2>{html.escape(heading)}</h2>\n<div class="wide">{table}</div>\n'


def of_result(result: Result) -> str:
    """A result: what was found, its residuals, multipliers and bill, with a picture."""
    facts = str(result).split("\n\n")[0].splitlines()
    pairs = [(line[:14].strip(), line[14:]) for line in facts[1:]]
    body = wide("The answer", show.table(("", ""), pairs))
    z = show.named_rows(result.named["z"])
    body += wide("Shared variables z", show.table(("", "value"), z)) if z else ""
    rows = show.named_rows(result.named.get("coupled", {}))
    body += wide("Multipliers of coupled rows", show.table(("", "value"), rows)) if rows else ""
    body += wide("The bill", show.ledger_html(result.ledger))
    return document("ccmac result", facts[0], body, image=_picture(result))


def _picture(result: Result) -> bytes:
    """What ``Result.plot`` draws, as PNG; nothing without Matplotlib."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
    except ImportError:
        return b""
    figure = np.ravel(result.plot())[0].figure
    target = io.BytesIO()
    canvas: Any = FigureCanvasAgg(figure)
    canvas.print_png(target)
    return bytes(target.getvalue())
