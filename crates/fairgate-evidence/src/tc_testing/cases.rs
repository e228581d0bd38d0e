//! The cases of a kernel source tree.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// A case of tc-testing.
#[derive(Debug)]
pub(crate) struct Case {
    /// The name of its file without the extension, which is mostly that of a kind.
    pub(crate) file: String,
    /// The folder of its file: `qdiscs`, `filters`, `actions` or `infra`.
    pub(crate) folder: String,
    pub(crate) id: String,
    pub(crate) name: String,
    /// The commands before the one under test, each with the exit codes that it may have.
    pub(crate) setup: Vec<(String, Vec<i64>)>,
    pub(crate) command: String,
    pub(crate) exit_code: i64,
    /// The command whose output is compared.
    pub(crate) verify: String,
    pub(crate) expected: Expected,
}

/// What the output must have.
#[derive(Debug)]
pub(crate) enum Expected {
    /// So many matches of this pattern, in Python's notation.
    Pattern(String, usize),
    /// JSON, which only actions have so far.
    Json,
    Nothing,
}

/// The folders of cases in the kernel's tree.
const FOLDERS: [&str; 4] = ["qdiscs", "filters", "actions", "infra"];

/// Reads all cases of a kernel source tree.
pub(crate) fn of(kernel: &Path) -> Result<Vec<Case>, String> {
    let tests = kernel.join("tools/testing/selftests/tc-testing/tc-tests");
    let mut cases = Vec::new();
    // Older kernels have no folder `infra`.
    for folder in FOLDERS
        .into_iter()
        .filter(|name| *name != "infra" || tests.join(name).exists())
    {
        for path in files(&tests.join(folder))? {
            let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            let values: Vec<Value> =
                serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
            let file = path
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            for value in &values {
                let case = Case::of(folder, &file, value);
                cases.push(case.ok_or_else(|| format!("{}: not a case: {value}", path.display()))?);
            }
        }
    }
    Ok(cases)
}

/// Returns the files of a folder by name.
fn files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).map_err(|error| {
        format!(
            "{}: {error}; give a kernel source tree, such as Debian's linux-source",
            folder.display()
        )
    })?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut paths: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    paths.sort();
    Ok(paths)
}

impl Case {
    fn of(folder: &str, file: &str, value: &Value) -> Option<Case> {
        let text = |key: &str| Some(value.get(key)?.as_str()?.to_owned());
        // The files write numbers as texts or as numbers.
        let number = |value: &Value| match value {
            Value::String(text) => text.trim().parse().ok(),
            value => value.as_i64(),
        };
        let command = |entry: &Value| match entry {
            Value::Array(parts) => {
                let codes = parts.get(1..).unwrap_or_default().iter().filter_map(number);
                Some((parts.first()?.as_str()?.to_owned(), codes.collect()))
            }
            entry => Some((entry.as_str()?.to_owned(), vec![0])),
        };
        let setup = value.get("setup")?.as_array()?.iter().map(command);
        let expected = match (value.get("matchJSON"), text("matchPattern")) {
            (Some(_), _) => Expected::Json,
            (None, Some(pattern)) => {
                let count = value.get("matchCount").and_then(number).unwrap_or(1);
                Expected::Pattern(pattern, usize::try_from(count).ok()?)
            }
            (None, None) => Expected::Nothing,
        };
        Some(Case {
            file: file.to_owned(),
            folder: folder.to_owned(),
            id: text("id")?,
            name: text("name")?,
            setup: setup.collect::<Option<_>>()?,
            command: text("cmdUnderTest")?,
            exit_code: number(value.get("expExitCode")?)?,
            verify: text("verifyCmd")?,
            expected,
        })
    }
}
