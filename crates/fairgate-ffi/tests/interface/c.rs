//! Programs in C and C++ drive the library, under valgrind and as a user would build them.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

const HERE: &str = env!("CARGO_MANIFEST_DIR");

/// The folder with the shared and the static library of this build.
fn built() -> PathBuf {
    let program = std::env::current_exe().expect("a path");
    program.parent().expect("a folder").to_owned()
}

/// Whether all these programs are installed. Otherwise it says loudly that `test` does not run.
fn are_installed(test: &str, programs: &[&str]) -> bool {
    let is_missing = |program: &&&str| {
        let found = Command::new(program).arg("--version").output();
        !found.is_ok_and(|output| output.status.success())
    };
    let missing = programs.iter().find(is_missing);
    if let Some(program) = missing {
        // Written directly, because the test harness captures `eprintln!`.
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED: {test} needs `{program}`; `make tools` installs it"
        );
    }
    missing.is_none()
}

/// Runs a command to its end, which must be a success. Returns what it printed.
fn run(command: &mut Command) -> String {
    let output = command.output().expect("the program can be started");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{command:?}: {}\n{printed}{errors}",
        output.status
    );
    printed
}

/// Installs the library below `root`, in `root/usr`.
fn install(root: &Path) -> PathBuf {
    run(Command::new(format!("{HERE}/../../scripts/install-library"))
        .arg(built())
        .env("DESTDIR", root)
        .env("PREFIX", "/usr"));
    root.join("usr")
}

/// Compiles a program as pkg-config says, and runs it under valgrind.
fn drive(test: &str, compiler: &str, standard: &str, source: &str) {
    if !are_installed(test, &[compiler, "pkg-config", "valgrind"]) {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let prefix = install(folder.path());
    let flags = run(Command::new("pkg-config")
        .args(["--cflags", "--libs", "fairgate"])
        .env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig")));
    let program = folder.path().join("drive");
    run(Command::new(compiler)
        .args([standard, "-Wall", "-Wextra", "-Werror", "-g", "-o"])
        .arg(&program)
        .arg(format!("{HERE}/tests/c/{source}"))
        .args(flags.split_whitespace())
        .arg(format!("-Wl,-rpath,{}", prefix.join("lib").display())));
    let printed = run(Command::new("valgrind")
        .args(["--quiet", "--error-exitcode=9", "--leak-check=full"])
        .arg(&program));
    assert_eq!(printed, "all checks hold\n");
}

#[test]
fn a_program_in_c_under_valgrind() {
    drive("a_program_in_c_under_valgrind", "cc", "-std=c11", "drive.c");
}

#[test]
fn a_program_in_cpp_under_valgrind() {
    drive(
        "a_program_in_cpp_under_valgrind",
        "c++",
        "-std=c++17",
        "drive.cpp",
    );
}

#[test]
fn cmake_finds_the_installed_library() {
    if !are_installed("cmake_finds_the_installed_library", &["cmake", "cc", "c++"]) {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let prefix = install(folder.path());
    let build = folder.path().join("build");
    run(Command::new("cmake")
        .args(["-S", &format!("{HERE}/tests/c/cmake"), "-B"])
        .arg(&build)
        .arg(format!("-DCMAKE_PREFIX_PATH={}", prefix.display())));
    run(Command::new("cmake").arg("--build").arg(&build));
    for program in ["shared", "static"] {
        assert_eq!(run(&mut Command::new(build.join(program))), "all checks hold\n");
    }
}
