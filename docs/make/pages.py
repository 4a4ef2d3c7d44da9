"""MkDocs hook: the pages that are made from other files, while the site is built.

``commands.md`` from the command line's own help, ``gallery.md`` and a page for each of
``examples/plot_*.py``, and a page for each of ``notebooks/*.ipynb``. Nothing is executed here:
pictures and printed numbers are those in the tree, and ``make test-docs`` compares them.
"""

from __future__ import annotations

import ast
import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
NOTEBOOKS = ROOT / "notebooks"


def on_files(files: Any, config: Any) -> Any:
    """Add the generated pages."""
    from mkdocs.structure.files import File

    for name, content in generated().items():
        files.append(File.generated(config, name, content=content))
    return files


def on_page_content(html: str, page: Any, config: Any, files: Any) -> str:
    """Sphinx roles in docstrings become plain code."""
    return re.sub(r":(?:class|meth|func|mod|data|attr):(<code)", r"\1", html)


def on_post_page(output: str, page: Any, config: Any) -> str:
    """The one script that the theme would fetch is in the tree."""
    shim = "../" * page.url.count("/") + "assets/iframe-worker.js"
    return output.replace("https://unpkg.com/iframe-worker/shim", shim)


def generated() -> dict[str, str | bytes]:
    """File name in ``docs/`` and content, of all pages and pictures that are made here."""
    found: dict[str, str | bytes] = {"commands.md": commands()}
    entries = []
    for path in sorted(EXAMPLES.glob("plot_*.py")):
        name = path.stem.removeprefix("plot_")
        title, words, code = example(path)
        picture = EXAMPLES / "pictures" / f"{name}.png"
        found[f"gallery/{name}.png"] = picture.read_bytes()
        printed = picture.with_suffix(".txt").read_text(encoding="utf-8")
        found[f"gallery/{name}.md"] = (
            f"# {title}\n\n{words}\n\n![{title}]({name}.png)\n\nIt prints\n\n"
            f"```text\n{printed}```\n\n```python\n{code}```\n"
        )
        entries.append((title, f"gallery/{name}", f"![{title}](gallery/{name}.png)"))
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        parts = []
        for number, (text, pictures) in enumerate(map(cell, cells)):
            parts.append(text)
            for k, data in enumerate(pictures):
                picture_name = f"{path.stem}-{number}-{k}.png"
                found[f"notebooks/{picture_name}"] = data
                parts.append(f"![Picture of the cell above]({picture_name})")
        found[f"notebooks/{path.stem}.md"] = "\n\n".join(parts) + "\n"
        title = re.sub(r"^# ", "", parts[0].splitlines()[0])
        drawn = next((k for k in found if k.startswith(f"notebooks/{path.stem}-")), None)
        shown = "A notebook." if drawn is None else f"![{title}]({drawn})"
        entries.append((title, f"notebooks/{path.stem}", shown))
    found["gallery.md"] = gallery(entries)
    return found


def gallery(entries: list[tuple[str, str, str]]) -> str:
    """All examples and notebooks, each with its picture."""
    cards = "\n\n".join(
        f"<div markdown>\n**[{title}]({place}.md)**\n\n{shown}\n</div>"
        for title, place, shown in entries
    )
    return (
        "# Gallery\n\nEach page is a program from a question to a picture. The tests run them all, "
        "and compare the\nnumbers that they print.\n\n"
        f'<div class="grid-doors" markdown>\n{cards}\n</div>\n'
    )


def example(path: Path) -> tuple[str, str, str]:
    """Title, words and code of a script: its docstring, and what follows it."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    title, _, words = (ast.get_docstring(tree) or path.stem).partition("\n")
    code = "".join(text.splitlines(keepends=True)[tree.body[0].end_lineno :])
    return title.rstrip("."), words.strip(), code.lstrip("\n")


def cell(content: dict[str, Any]) -> tuple[str, list[bytes]]:
    """The Markdown of a notebook's cell, and its pictures."""
    source = "".join(content["source"])
    if content["cell_type"] == "markdown":
        return source.replace("](../docs/", "](../"), []
    text = f"```python\n{source}\n```"
    pictures = []
    for output in content["outputs"]:
        data = output.get("data", {})
        if "image/png" in data:
            pictures.append(base64.b64decode("".join(data["image/png"])))
        elif printed := "".join(output.get("text", data.get("text/plain", ""))):
            text += f"\n\n```text\n{printed.rstrip()}\n```"
    return text, pictures


def commands() -> str:
    """Every command with its arguments and options."""
    from typer.main import get_command

    from ccmac.cli.commands import application

    parts = [
        "# Commands and options\n\nMade from the commands themselves. [Command line](cli.md) "
        "explains networks, exit codes and checkpoints."
    ]
    root = get_command(application())
    parts += [described(words, command) for words, command in walked("ccmac", root)]
    return "\n\n".join(parts) + "\n"


def walked(words: str, command: Any) -> Iterator[tuple[str, Any]]:
    """The commands below a group, with all their words."""
    for name, inner in getattr(command, "commands", {}).items():
        if getattr(inner, "commands", None):
            yield from walked(f"{words} {name}", inner)
        else:
            yield f"{words} {name}", inner


def described(words: str, command: Any) -> str:
    """One command: usage, what it does, a table of options, its example."""
    options = [p for p in command.params if p.param_type_name == "option" and p.name != "help"]
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    usage = " ".join(p.metavar or (p.name or "").upper() for p in arguments)
    text = f"## {words}\n\n    {words} {usage}{' [OPTIONS]' if options else ''}\n\n{command.help}"
    if options:
        rows = "\n".join(f"| {names(p)} | {meaning(p)} |" for p in options)
        text += f"\n\n| option | meaning |\n|---|---|\n{rows}"
    if command.epilog:
        text += f"\n\n{command.epilog}"
    return text


def names(parameter: Any) -> str:
    """``--out``, ``-o`` as code."""
    return ", ".join(f"`{name}`" for name in [*parameter.opts, *parameter.secondary_opts])


def meaning(parameter: Any) -> str:
    """The help text and the default, safe in a table."""
    text = (parameter.help or "").replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")
    default = parameter.default
    known = isinstance(default, str | int | float) and not isinstance(default, bool)
    return f"{text} Default: `{default}`." if known and default != "" else text
