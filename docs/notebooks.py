"""The tutorials as notebooks: `python docs/notebooks.py` writes a .ipynb beside each page.

The page is the source. Its `python` and `sh` blocks become code cells, and the text between them becomes Markdown cells.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

TUTORIALS = Path(__file__).parent / "tutorials"
DOWNLOAD = re.compile(r"\n?\[Download it as a notebook\]\([^)]*\)\.")


def notebook(page: str) -> dict[str, Any]:
    """A page in the notebook format 4.5.

    >>> [cell["cell_type"] for cell in notebook("# A\\n\\n```python\\nx = 1\\n```\\n\\nB\\n")["cells"]]
    ['markdown', 'code', 'markdown']
    """
    cells: list[dict[str, Any]] = []
    parts = re.split(r"^```(python|sh)\n(.*?)^```\n", DOWNLOAD.sub("", page), flags=re.DOTALL | re.MULTILINE)
    for i in range(0, len(parts), 3):
        if text := parts[i].strip():
            cells.append({"cell_type": "markdown", "metadata": {}, "source": text})
        if i + 2 < len(parts):
            source = ("%%sh\n" if parts[i + 1] == "sh" else "") + parts[i + 2].rstrip()
            code = {"execution_count": None, "metadata": {}, "outputs": [], "source": source}
            cells.append({"cell_type": "code", **code})
    cells = [{"id": f"cell-{number}", **cell} for number, cell in enumerate(cells)]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def as_text(page: Path) -> str:
    """The notebook of a page, as the file contains it."""
    return json.dumps(notebook(page.read_text(encoding="utf-8")), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    for page in TUTORIALS.glob("*.md"):
        page.with_suffix(".ipynb").write_text(as_text(page), encoding="utf-8")
