//! Runs all benchmarks of one build and writes their figures into `docs/performance.md`: `make figures`.
//!
//! ```text
//!   sections   runs benchmarks, reads what they say, makes blocks of Markdown
//!     bench      starts cargo and programs; keeps what they print
//!     criterion  what criterion measured, from its files
//!     columns    tables that benchmarks print as text
//!     markdown   tables as Markdown
//!   peers      dummynet's schedulers beside ours: `make peers`
//!   machine    what it was measured on, with the commit
//!   document   puts each block between its markers
//! ```
//!
//! The prose of the document is written by hand and names no figure of a run, so that it can't contradict
//! one.
//!
//! `QUICK=1 make figures` (`fairgate-lab figures --quick`) tries all of this in a few minutes: an unoptimised
//! build, few samples, small numbers. Its document goes to the target folder, because its figures mean
//! nothing.

mod bench;
mod columns;
mod criterion;
mod document;
mod machine;
mod markdown;
mod peers;
mod sections;

use std::path::{Path, PathBuf};
use std::{env, fs};

use bench::Bench;

/// What goes wrong here is told to whoever typed the command, and to nobody else.
type Result<T> = std::result::Result<T, String>;

/// Runs everything, or with a checkout of dummynet what is beside it. Returns the path of the document. With
/// `is_quick`, that is in the target folder.
pub(crate) fn write(is_quick: bool, dummynet: Option<&Path>) -> Result<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let target = env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), PathBuf::from);
    let bench = Bench::new(root.clone(), target.join("figures"), is_quick)?;
    let performance = root.join("docs/performance.md");
    let text = read(&performance)?;

    // Before anything takes time.
    document::check(&text, &sections::blocks())?;
    let blocks = match dummynet {
        Some(checkout) => vec![("peers", peers::measure(&bench, checkout)?)],
        None => all_blocks(&bench)?,
    };
    let path = match is_quick {
        true => bench.folder().join("performance.md"),
        false => performance,
    };
    let filled = document::fill(&text, &blocks)?;
    fs::write(&path, filled).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path)
}

/// Measures everything but the peers.
fn all_blocks(bench: &Bench) -> Result<Vec<(&'static str, String)>> {
    bench.check()?;
    let head = machine::head(bench)?;
    bench.build()?;

    let mut blocks = vec![("head", head)];
    for section in sections::ALL {
        blocks.extend((section.measure)(bench)?);
        document::check_measured(section.blocks, &blocks)?;
    }
    Ok(blocks)
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}
