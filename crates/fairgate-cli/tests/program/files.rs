//! Output files: inputs and devices are kept, and errors are found before the work.

use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt, symlink};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use super::{fairgate, folder, skipped, text};

/// A temporary folder.
struct Scratch(tempfile::TempDir);

impl Scratch {
    fn new() -> Scratch {
        Scratch(tempfile::tempdir().expect("a temporary folder"))
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn with(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        fs::write(self.at(name), content).expect("the folder is writable");
        self.at(name)
    }

    fn with_copy(&self, name: &str, example: &str) -> PathBuf {
        let example = folder("../../examples").join(example);
        self.with(name, fs::read(example).expect("the example is there"))
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).expect("a readable folder");
        let mut names: Vec<String> = entries
            .map(|entry| {
                entry
                    .expect("a readable folder")
                    .file_name()
                    .into_string()
                    .expect("text")
            })
            .collect();
        names.sort();
        names
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = fairgate(arguments);
        command.current_dir(self.0.path());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("the program was built")
    }

    /// Checks the exit code and returns standard error.
    #[track_caller]
    fn ends(&self, arguments: &[&str], code: i32) -> String {
        let output = self.run(arguments);
        let stderr = text(&output.stderr).to_owned();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {stderr}");
        stderr
    }
}

const QUICK: [&str; 5] = ["compare", "--duration", "2s", "--queue", "fifo"];

#[test]
fn what_a_command_reads_is_not_written() {
    let scratch = Scratch::new();
    let capture = scratch.with_copy("my.pcap", "home.pcap.gz");
    let scenario = scratch.with_copy("flows.csv", "dumbbell.toml");
    fs::create_dir(scratch.at("results")).unwrap();
    fs::hard_link(&scenario, scratch.at("results/results.json")).unwrap();
    symlink("my.pcap", scratch.at("link")).unwrap();
    let before = (fs::read(&capture).unwrap(), fs::read(&scenario).unwrap());
    for arguments in [
        ["compare", "--trace", "my.pcap", "--out", "my.pcap"],
        ["compare", "--trace", "link", "--out", "results/../my.pcap"],
        ["compare", "--trace", "my.pcap", "--out", "link"],
    ] {
        let stderr = scratch.ends(&arguments, 2);
        assert!(stderr.contains("the command reads"), "{stderr}");
    }
    for out in ["flows.csv", "results", "results/results.json"] {
        let stderr = scratch.ends(&["simulate", "flows.csv", "--out", out], 2);
        assert!(stderr.contains("the command reads"), "{stderr}");
    }
    assert!((fs::read(&capture).unwrap(), fs::read(&scenario).unwrap()) == before);
}

#[test]
fn an_output_is_kept_apart_from_standard_output() {
    let scratch = Scratch::new();
    let printed = fs::File::create(scratch.at("printed.json")).unwrap();
    let mut command = scratch.command(&[&QUICK[..], &["--json", "--out", "printed.json"]].concat());
    let output = command.stdout(printed).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let document = fs::read_to_string(scratch.at("printed.json")).unwrap();
    assert!(
        document.contains("standard output is the same file"),
        "{document}"
    );
}

#[test]
fn a_device_is_not_replaced() {
    let scratch = Scratch::new();
    let node = scratch.at("null");
    let made = Command::new("mknod").arg(&node).args(["c", "1", "3"]).status();
    if !made.is_ok_and(|made| made.success()) || fs::OpenOptions::new().write(true).open(&node).is_err() {
        super::skipped("a_device_is_not_replaced needs root to create a device");
        return;
    }
    let output = scratch.run(&[&QUICK[..], &["--out", "null"]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(fs::metadata(&node).unwrap().file_type().is_char_device());
    assert_eq!(scratch.names(), ["null"]);
}

#[test]
fn json_writes_a_report_only_on_request() {
    let scratch = Scratch::new();
    scratch.ends(&[&QUICK[..], &["--json"]].concat(), 0);
    assert_eq!(scratch.names(), Vec::<String>::new());
    scratch.ends(&[&QUICK[..], &["--json", "--out", "mine.html"]].concat(), 0);
    assert_eq!(scratch.names(), ["mine.html"]);
}

#[test]
fn the_default_report_replaces_only_a_report() {
    let scratch = Scratch::new();
    scratch.ends(&QUICK, 0);
    scratch.ends(&QUICK, 0);
    let mine = scratch.with("fairgate-report.html", "<!DOCTYPE html><title>My thesis</title>");
    let stderr = scratch.ends(&QUICK, 2);
    assert!(
        stderr.contains("no report") && stderr.contains("--out"),
        "{stderr}"
    );
    assert!(fs::read_to_string(&mine).unwrap().contains("My thesis"));
    scratch.ends(&[&QUICK[..], &["--out", "fairgate-report.html"]].concat(), 0);
    assert!(!fs::read_to_string(&mine).unwrap().contains("My thesis"));
}

/// The inputs are invalid too, which only the run would find.
#[test]
fn an_output_that_cannot_be_written_is_found_before_the_run() {
    let scratch = Scratch::new();
    scratch.with("text.pcap", "no capture at all");
    fs::create_dir(scratch.at("folder.html")).unwrap();
    for out in ["nowhere/report.html", "folder.html", "text.pcap/report.html"] {
        let stderr = scratch.ends(&["compare", "--trace", "text.pcap", "--out", out], 3);
        assert!(stderr.contains(out), "{stderr}");
    }
    assert_eq!(scratch.names(), ["folder.html", "text.pcap"]);
}

/// Tests one command of each kind that writes files. It must print its figures even if the file cannot be
/// written.
#[test]
fn figures_are_printed_even_if_the_disk_is_full() {
    let example = folder("../../examples/dumbbell.toml");
    let example = example.to_str().expect("an ordinary path");
    let commands: [&[&str]; 2] = [
        &[
            "compare",
            "--duration",
            "2s",
            "--queue",
            "fifo",
            "--out",
            "full.html",
        ],
        &["simulate", example, "--duration", "6s", "--out", "full.csv"],
    ];
    for arguments in commands {
        let scratch = Scratch::new();
        // Every write to these names fails because the device is full.
        for name in ["full.html", "full.csv"] {
            symlink("/dev/full", scratch.at(name)).unwrap();
        }
        let output = scratch.run(arguments);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{arguments:?}: {stderr}");
        assert!(stderr.contains("No space left"), "{arguments:?}: {stderr}");
        assert!(text(&output.stdout).lines().count() > 3, "{arguments:?}");

        let output = scratch.run(&[arguments, &["--json"]].concat());
        assert_eq!(output.status.code(), Some(3), "{arguments:?}");
        let result: Value = serde_json::from_slice(&output.stdout).expect("the result");
        let error: Value = serde_json::from_slice(&output.stderr).expect("the error");
        assert_ne!(result["schema"], "fairgate.error/1");
        assert_eq!(error["schema"], "fairgate.error/1");
    }
}

/// Returns whether this process ignores the signal. The programs that it starts ignore it, too.
fn is_ignored(signal: Signal) -> bool {
    let status = fs::read_to_string("/proc/self/status").expect("Linux has it");
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = u64::from_str_radix(ignored.expect("Linux has it").trim(), 16).expect("a mask");
    ignored >> (signal as i32 - 1) & 1 == 1
}

/// The pipe accepts only a part of the report, so that the signal arrives while the program is writing.
#[test]
fn a_signal_leaves_nothing_behind() {
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGKILL] {
        if is_ignored(signal) {
            skipped(&format!("{signal} is ignored here, as under nohup"));
            continue;
        }
        let scratch = Scratch::new();
        make_pipe(&scratch.at("pipe"));
        // It is open before the program is: without a reader, the program could end and the test wait for it.
        let mut options = fs::File::options();
        options.read(true).custom_flags(nix::libc::O_NONBLOCK);
        let mut pipe = options.open(scratch.at("pipe")).unwrap();
        let arguments = [&QUICK[..], &["--out", "pipe"]].concat();
        let mut program = scratch
            .command(&arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program was built");
        // A report has more than that.
        let mut read = 0;
        while read < 100 {
            read += pipe.read(&mut [0; 100]).unwrap_or(0);
            assert_eq!(program.try_wait().unwrap(), None, "it ended by itself");
            std::thread::sleep(Duration::from_millis(1));
        }
        kill(Pid::from_raw(program.id() as i32), signal).unwrap();
        let status = program.wait().unwrap();
        assert_eq!(status.signal(), Some(signal as i32));
        assert_eq!(scratch.names(), ["pipe"]);
        assert!(fs::metadata(scratch.at("pipe")).unwrap().file_type().is_fifo());
    }
}

/// A folder of results is created with its first file, when the run is complete.
#[test]
fn an_interrupted_run_leaves_no_folder() {
    let scratch = Scratch::new();
    let scenario = folder("../../examples/dumbbell.toml");
    let scenario = scenario.to_str().expect("an ordinary path");
    scratch.ends(
        &["simulate", scenario, "--duration", "6s", "--out", "results/first"],
        0,
    );
    assert_eq!(scratch.names(), ["results"]);
    for arguments in [&["simulate", scenario, "--duration", "10h"][..]] {
        let arguments = [arguments, &["--out", "outer/folder"]].concat();
        let mut program = scratch.command(&arguments).stdout(Stdio::null()).spawn().unwrap();
        let files = format!("/proc/{}/fd", program.id());
        let drafts = || {
            let entries = fs::read_dir(&files).expect("it runs");
            let open = entries.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
            open.filter(|file| file.starts_with(scratch.0.path())).count()
        };
        while drafts() < 4 {
            std::thread::sleep(Duration::from_millis(5));
            let ended = program.try_wait().expect("our own child");
            assert_eq!(ended, None, "{arguments:?} ended by itself");
        }
        kill(Pid::from_raw(program.id() as i32), Signal::SIGTERM).unwrap();
        assert_eq!(program.wait().unwrap().signal(), Some(Signal::SIGTERM as i32));
        assert_eq!(scratch.names(), ["results"]);
    }
    scratch.with("file", "");
    let stderr = scratch.ends(&["simulate", scenario, "--out", "file/results"], 3);
    assert!(stderr.contains("Not a directory"), "{stderr}");
}

/// The packets of a capture are written while the simulation runs, long before the file gets its name.
#[test]
fn an_interrupted_capture_leaves_no_file() {
    if is_ignored(Signal::SIGINT) {
        skipped("SIGINT is ignored here, as under nohup");
        return;
    }
    let scratch = Scratch::new();
    let scenario = fs::read_to_string(folder("../../examples/dumbbell.toml")).expect("an example");
    let capture = "\n[[simulate.capture]]\ninterface = \"provider->home\"\nfile = \"packets.pcapng\"\n";
    scratch.with("captured.toml", &(scenario + capture));
    let mut program = scratch
        .command(&[
            "simulate",
            "captured.toml",
            "--duration",
            "10h",
            "--out",
            "results",
        ])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program was built");
    let files = format!("/proc/{}/fd", program.id());
    let written = || {
        let entries = fs::read_dir(&files).expect("it runs");
        let open = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let ours =
            open.filter(|file| fs::read_link(file).is_ok_and(|target| target.starts_with(scratch.0.path())));
        ours.filter_map(|file| Some(fs::metadata(file).ok()?.len()))
            .max()
            .unwrap_or(0)
    };
    while written() < 100_000 {
        std::thread::sleep(Duration::from_millis(5));
        assert_eq!(
            program.try_wait().expect("our own child"),
            None,
            "it ended by itself"
        );
    }
    kill(Pid::from_raw(program.id() as i32), Signal::SIGINT).unwrap();
    assert_eq!(program.wait().unwrap().signal(), Some(Signal::SIGINT as i32));
    assert_eq!(scratch.names(), ["captured.toml"]);
}

/// A shell reads the printed command as the name of the file.
#[test]
fn a_file_may_have_any_name() {
    let name = OsStr::from_bytes(b"m\xfc n.pcap");
    let scratch = Scratch::new();
    fs::copy(folder("../../examples/home.pcap.gz"), scratch.0.path().join(name)).unwrap();
    let mut command = scratch.command(&["compare", "--queue", "fifo", "--json", "--trace"]);
    let output = command.arg(name).output().expect("the program was built");
    let document: Value = serde_json::from_slice(&output.stdout).expect("the result");
    let shown = document["command"].as_str().expect("text");
    assert!(shown.contains(r"--trace $'m\374 n.pcap'"), "{shown}");

    let script = OsStr::from_bytes(b"m\xfc.tc");
    fs::write(scratch.0.path().join(script), "qdisc add dev eth0 root fq_codel").unwrap();
    let output = scratch
        .command(&["tc"])
        .arg(script)
        .output()
        .expect("the program was built");
    assert!(
        text(&output.stdout).contains("fq_codel"),
        "{}",
        text(&output.stderr)
    );
}

/// The result contains the command.
#[test]
fn an_output_may_have_any_name() {
    let scratch = Scratch::new();
    let name = OsStr::from_bytes(b"m\xfc.json");
    let mut command = scratch.command(&[&QUICK[..], &["--out"]].concat());
    let output = command.arg(name).output().expect("the program was built");
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(scratch.0.path().join(name).exists());
}

fn make_pipe(path: &Path) {
    let made = Command::new("mkfifo")
        .arg(path)
        .status()
        .expect("coreutils are there");
    assert!(made.success());
}
