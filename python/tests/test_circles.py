"""The checker that refuses circles between the source files of a crate."""

import shutil
import subprocess
import sys
from pathlib import Path

CHECKER = Path(__file__).parents[2] / "scripts" / "circles"


def check(folder: Path, files: dict[str, str]) -> list[str]:
    """Return the files of the circles that the checker finds in a crate of these files."""
    (folder / "scripts").mkdir()
    checker = Path(shutil.copy(CHECKER, folder / "scripts"))
    source = folder / "crates" / "one" / "src"
    source.mkdir(parents=True)
    (source.parent / "Cargo.toml").touch()
    for name, text in files.items():
        (source / name).parent.mkdir(exist_ok=True)
        (source / name).write_text(text)
    checked = subprocess.run([sys.executable, checker], capture_output=True, text=True, check=False)
    names = checked.stderr.partition(": ")[2].split(", ") if checked.returncode else []
    return [name.strip().removeprefix("crates/one/src/") for name in names]


def test_files_that_use_one_another_are_refused(tmp_path: Path) -> None:
    files = {
        "lib.rs": "mod a;\nmod b;\nmod c;\npub use c::{Three as Other, four};\n",
        "a.rs": "use crate::b;\npub fn one() { b::two() }\n",
        "b.rs": "pub fn two() { let _: crate::Other; }\n",
        "c.rs": "use super::{a::one};\npub struct Three;\npub fn four() { one() }\n",
    }
    assert check(tmp_path, files) == ["a.rs", "b.rs", "c.rs"]


def test_what_is_no_circle_is_accepted(tmp_path: Path) -> None:
    files = {
        "lib.rs": "mod a;\nmod b;\n",
        "a.rs": "mod below;\nuse crate::b;\npub use below::one;\npub(crate) const TWO: u8 = 2;\n",
        "a/below.rs": "pub fn one() { super::TWO; }\n",
        "b.rs": (
            "//! Beside [`one`](crate::a::one).\n"
            'pub fn two() -> &\'static str { "// crate::a::one()" }\n'
            "mod inside { use super::two; }\n"
            "#[cfg(test)]\nmod tests { use crate::a::one; }\n"
        ),
    }
    assert check(tmp_path, files) == []
