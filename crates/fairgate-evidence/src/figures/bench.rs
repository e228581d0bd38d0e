//! Starts cargo and programs, and keeps what they print in `target/figures`, in case somebody wants to see
//! it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use fairgate_config::Memory;
use serde_json::Value;

use crate::figures::Result;
use crate::figures::criterion::{self, Measured};

/// What is run, where, and how thoroughly.
pub(crate) struct Bench {
    root: PathBuf,
    folder: PathBuf,
    /// Whether it is only tried.
    pub(crate) is_quick: bool,
}

/// Programs that must be there, and what has them.
const PROGRAMS: [(&str, &str); 3] = [
    ("valgrind", "instructions are counted by it: apt install valgrind"),
    ("iperf3", "the testbed needs it: scripts/install-tools"),
    ("ping", "the testbed needs it: scripts/install-tools"),
];

/// What schedulers with a million flows need, bytes, and some room.
const MEMORY: u64 = 6 << 30;

/// The benchmarks that are run, and their packages.
const BENCHES: [(&str, &str); 9] = [
    ("fairgate", "pairs"),
    ("fairgate", "instructions"),
    ("fairgate", "overflow"),
    ("fairgate", "classify"),
    ("fairgate", "dissect"),
    ("fairgate-sim", "hops"),
    ("fairgate-live", "forward"),
    ("fairgate-live", "precision"),
    ("fairgate-live", "hostile"),
];

impl Bench {
    /// `folder` is for what is printed, and is made.
    pub(crate) fn new(root: PathBuf, folder: PathBuf, is_quick: bool) -> Result<Bench> {
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(Bench {
            root,
            folder,
            is_quick,
        })
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Checks that everything can be measured here.
    pub(crate) fn check(&self) -> Result<()> {
        for (program, remedy) in PROGRAMS {
            let answer = Command::new(program)
                .arg("-h")
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status();
            answer.map_err(|_| format!("there is no `{program}`: {remedy}"))?;
        }
        if !self.is_quick && Memory::watch().available() < MEMORY {
            let needed = MEMORY >> 30;
            return Err(format!(
                "a million flows take {needed} GiB of memory, and less is available"
            ));
        }
        match self.output("id", &["-u"])?.trim() {
            "0" => Ok(()),
            _ => Err("live traffic needs root, to build network namespaces".to_owned()),
        }
    }

    /// Builds everything first, so that nothing is measured beside a compiler. Cargo chooses the features of
    /// dependencies by the packages that a command names, so each command is the one that runs later.
    pub(crate) fn build(&self) -> Result<()> {
        for (package, bench) in BENCHES {
            let command = [&self.bench_command(package, bench)[..], &["--no-run"]];
            self.cargo(&command.concat(), "build", &[])?;
        }
        for package in ["fairgate-cli", "fairgate-evidence"] {
            let program = ["build", "--profile", self.profile(), "-p", package];
            self.cargo(&program, "build", &[])?;
        }
        Ok(())
    }

    /// Runs a benchmark of a crate. Returns what it prints.
    pub(crate) fn bench(&self, package: &str, name: &str, arguments: &[&str]) -> Result<String> {
        let command = [&self.bench_command(package, name)[..], &["--"], arguments];
        self.cargo(&command.concat(), name, &[])
    }

    /// Runs a benchmark that criterion measures.
    pub(crate) fn criterion(&self, package: &str, name: &str) -> Result<Vec<Measured>> {
        // A folder of its own, so that nothing of another run is read.
        let home = tempfile::tempdir().map_err(|error| format!("a temporary folder: {error}"))?;
        let quick: &[&str] = if self.is_quick { &["--", "--quick"] } else { &[] };
        let command = [&self.bench_command(package, name)[..], quick];
        self.cargo(&command.concat(), name, &[("CRITERION_HOME", home.path())])?;
        criterion::measured(home.path())
    }

    /// Runs `fairgate ARGUMENTS --json`. Returns its document.
    pub(crate) fn fairgate(&self, arguments: &[&str]) -> Result<Value> {
        self.program("fairgate-cli", arguments)
    }

    /// Runs `fairgate-lab ARGUMENTS --json`. Returns its document.
    pub(crate) fn lab(&self, arguments: &[&str]) -> Result<Value> {
        self.program("fairgate-evidence", arguments)
    }

    fn program(&self, package: &str, arguments: &[&str]) -> Result<Value> {
        let run = ["run", "--quiet", "--profile", self.profile(), "-p", package, "--"];
        let text = self.cargo(&[&run, arguments, &["--json"]].concat(), arguments[0], &[])?;
        serde_json::from_str(&text).map_err(|error| format!("{package} {arguments:?}: {error}"))
    }

    /// Runs a program. Returns what it prints.
    pub(crate) fn output(&self, program: &str, arguments: &[&str]) -> Result<String> {
        self.run(Command::new(program).args(arguments))
    }

    /// The profile of the build. What is only tried need not wait for the optimiser.
    fn profile(&self) -> &'static str {
        if self.is_quick { "dev" } else { "dist" }
    }

    fn bench_command<'a>(&self, package: &'a str, name: &'a str) -> [&'a str; 7] {
        let profile = self.profile();
        ["bench", "--profile", profile, "-p", package, "--bench", name]
    }

    fn cargo(&self, arguments: &[&str], log: &str, environment: &[(&str, &Path)]) -> Result<String> {
        let cargo = std::env::var_os("CARGO").unwrap_or("cargo".into());
        let mut command = Command::new(cargo);
        command.args(arguments).envs(environment.iter().copied());
        let began = Instant::now();
        let text = self.run(&mut command)?;
        // Standard output is for the result.
        eprintln!(
            "{:>5} s  cargo {}",
            began.elapsed().as_secs(),
            arguments.join(" ")
        );
        let log = self.folder.join(format!("{log}.txt"));
        fs::write(&log, &text).map_err(|error| format!("{}: {error}", log.display()))?;
        Ok(text)
    }

    /// Runs a program. Returns what it prints.
    pub(crate) fn run(&self, command: &mut Command) -> Result<String> {
        self.both(command).map(|[printed, _]| printed)
    }

    /// Runs a program. Returns what it says on standard error.
    pub(crate) fn said(&self, command: &mut Command) -> Result<String> {
        self.both(command).map(|[_, said]| said)
    }

    fn both(&self, command: &mut Command) -> Result<[String; 2]> {
        let output = command
            .current_dir(&self.root)
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("{command:?}: {error}"))?;
        let [printed, said] =
            [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        match output.status.success() && !said.contains("SKIPPED") {
            true => Ok([printed, said]),
            false => Err(format!(
                "{command:?} failed ({}):\n{said}{printed}",
                output.status
            )),
        }
    }
}
