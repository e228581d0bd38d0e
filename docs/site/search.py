"""The index of the search: all sections of the built site, in a file that needs no server."""

import json
import shutil
from html.parser import HTMLParser
from importlib import resources
from pathlib import Path

HEADINGS = ("h1", "h2", "h3", "h4")


class Sections(HTMLParser):
    """The sections of a page: from one heading to the next."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.page = page
        self.found: list[dict[str, str]] = []
        self.depth = 0
        self.heading = False
        self.skipped = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin a section at a heading of the article."""
        given = dict(attrs)
        self.depth += tag == "article"
        self.skipped += tag in ("script", "style")
        if self.depth and tag in HEADINGS:
            anchor = f"#{given['id']}" if tag != "h1" and given.get("id") else ""
            self.found.append({"location": self.page + anchor, "title": "", "text": ""})
            self.heading = True

    def handle_endtag(self, tag: str) -> None:
        """End a heading, or the article."""
        self.depth -= tag == "article"
        self.skipped -= tag in ("script", "style")
        self.heading = self.heading and tag not in HEADINGS

    def handle_data(self, data: str) -> None:
        """Add text to the current section."""
        if self.depth and self.found and not self.skipped:
            part = "title" if self.heading else "text"
            self.found[-1][part] += data.replace("¶", "")


def write(site: Path) -> None:
    """Write the index, and puts lunr, which is part of mkdocs, beside it."""
    sections: list[dict[str, str]] = []
    for page in sorted(site.rglob("*.html")):
        name = page.relative_to(site).as_posix()
        if name not in ("404.html", "search.html"):
            reader = Sections(name)
            reader.feed(page.read_text())
            sections += reader.found
    for section in sections:
        section["title"] = " ".join(section["title"].split())
        section["text"] = " ".join(section["text"].split())
    folder = site / "search"
    folder.mkdir(exist_ok=True)
    (folder / "sections.js").write_text(f"const sections = {json.dumps(sections)};\n")
    lunr = resources.files("mkdocs") / "contrib/search/templates/search/lunr.js"
    with resources.as_file(lunr) as source:
        shutil.copy(source, folder / "lunr.js")
