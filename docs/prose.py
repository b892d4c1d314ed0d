"""A lint of the documentation's prose: `python docs/prose.py`, a part of `make lint`.

It reports long sentences, long pages, and phrasings that readers stumbled over. The lab notebook is exempt, and so are generated
pages, because their sentences come from the code.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
EXEMPT = ("docs/contributing/findings.md", "docs/results/experiments.md")
LONG_PAGES = ("docs/results/",)  # tables, word by word
WORDS_OF_A_SENTENCE, WORDS_OF_A_PAGE = 35, 2500
BANNED = (  # a pattern, and what to write instead
    (r"\bcounted are\b", "a subject first"),
    (r"\ban? (iteration|episode|second|seed|core|epoch|generation)'s? (plays|has) \d+ times", "per iteration"),
    (
        r"\b(steps|lines?|rows?|points?|bytes|one|samples|iterations) an? (second|iteration|episode|seed|core|node|batch|epoch)\b",
        "per",
    ),
    (r"\beach stands for itself\b", "each is judged by itself"),
    (r"\bdifferences? that (is|are) none\b", "differences that are zero"),
    (r"\bnowhere in the brackets\b", "a plain statement"),
    (r"\bof (the|a) (pair|which) [^.]{0,20}, `", "a subject first"),
    (r"\bpart in the end\b", "differ in the end"),
    (r"\bforetold\b", "predicted"),
    (r"\bwhat could fool one\b", "what can make it wrong"),
    (r"\bmakes? no bound tighter\b", "say what does make it tighter"),
    (r"\bby iteration; one\b", "per iteration"),
    (r"\bso many (trials|trainings|points|samples|workers)\b", "a number, or a name for it"),
    (r"\b(goes|going|go) on (to the same|where it|from (here|there|it))\b", "continues, resumes"),
    (r"\b(is|are) none of\b", "is not one of"),
    (r"\bbeside (OpenES|ASEBO|CPO|RCPO|PPO|evosax|the (others?|original|peers))\b", "compared with"),
    (r"\bput to the test\b", "tested"),
    (r"\bno option any more\b", "no longer an option"),
)


def sentences(page: str) -> Iterator[tuple[int, str]]:
    """The sentences of a page in Markdown, each with the number of its first line. Code and tables are left out."""
    text = re.sub(
        r"^(```.*?^```|---\n.*?^---|\|.*?$|    .*?$|<.*?$|#.*?$|!\[.*?$)", blank, page, flags=re.DOTALL | re.MULTILINE
    )
    text = re.sub(r"`[^`\n]*`", "code", text)
    text = re.sub(r"\]\([^)]*\)", "]", text)
    start = 0
    for end in re.finditer(r"[.!?:](?=[\s*\"')])|\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )|\Z", text):
        if sentence := text[start : end.end()].strip():
            yield text.count("\n", 0, text.index(sentence, start)) + 1, sentence
        start = end.end()


def blank(match: re.Match[str]) -> str:
    """The same number of lines, without words."""
    return "\n" * match[0].count("\n")


def complaints(path: str, page: str) -> Iterator[str]:
    """What is wrong with a page.

    >>> list(complaints("docs/a.md", "One.\\n\\nCounted are the policies.\\n"))
    ["docs/a.md:3: 'Counted are': write a subject first"]
    """
    words = len(re.sub(r"^(```.*?^```|    .*?$)", "", page, flags=re.DOTALL | re.MULTILINE).split())
    if words > WORDS_OF_A_PAGE and not path.startswith(LONG_PAGES):
        yield f"{path}: {words} words; at most {WORDS_OF_A_PAGE} fit on a page"
    for line, sentence in sentences(page):
        if len(sentence.split()) > WORDS_OF_A_SENTENCE:
            yield f"{path}:{line}: a sentence of {len(sentence.split())} words: {' '.join(sentence.split()[:8])} .."
        for pattern, better in BANNED:
            if found := re.search(pattern, " ".join(sentence.split()), re.IGNORECASE):
                yield f"{path}:{line}: {found[0]!r}: write {better}"


def main() -> int:
    """Print all complaints; the exit code is 1 if there are some."""
    pages = [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        ROOT / "CHANGELOG.md",
        *sorted((ROOT / "docs").rglob("*.md")),
    ]
    found = []
    for page in pages:
        path = page.relative_to(ROOT).as_posix()
        if path not in EXEMPT:
            found += complaints(path, page.read_text(encoding="utf-8"))
    print("\n".join(found), end="\n" * bool(found))
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
