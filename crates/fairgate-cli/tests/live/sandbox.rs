//! What a run that forwards may still do. The tests look at the running process, and have it make calls.

use std::fs;

use fairgate_live::testbed::Network;
use nix::sys::signal::Signal;

use crate::common::{live, say, until};
use crate::run::{BACKENDS, PLAIN, Run, plain, transfer};

/// Returns the values of a field in the status of each thread.
fn of_threads(run: &Run, field: &str) -> Vec<String> {
    let process = run.program.as_ref().expect("the run has not ended").id();
    let threads = fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let value = |thread: std::io::Result<fs::DirEntry>| {
        // A thread that answered a client may have ended in between.
        let status = fs::read_to_string(thread.unwrap().path().join("status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix(field));
        Some(line.expect("proc(5) has this field").trim().to_owned())
    };
    threads.filter_map(value).collect()
}

#[test]
fn all_threads_of_a_run_are_confined() {
    let Some(_watched) = live("all_threads_of_a_run_are_confined") else {
        return;
    };
    let network = Network::build().unwrap();
    for backend in BACKENDS {
        let run = Run::start(&network.router, &plain(backend));
        let modes = of_threads(&run, "Seccomp:");
        assert!(
            modes.len() > 1 && modes.iter().all(|mode| mode == "2"),
            "{backend}: {modes:?}"
        );
        transfer(&network, &format!("{}:5002", Network::RIGHT), backend);
        assert!(
            !run.said().contains("system calls are not limited"),
            "{}",
            run.said()
        );
        run.stop();
    }
}

#[test]
fn the_log_says_how_far_a_run_is_confined() {
    let Some(_watched) = live("the_log_says_how_far_a_run_is_confined") else {
        return;
    };
    let network = Network::build().unwrap();
    for (arguments, says, mode) in [
        (&["run"][..], "system calls are allowed; ", "2"),
        (
            &["run", "--no-sandbox"],
            "warning: no sandbox: --no-sandbox was given",
            "0",
        ),
        (
            &["run", "--json", "--no-sandbox"],
            "warning: no sandbox: --no-sandbox was given",
            "0",
        ),
    ] {
        let mut run = Run::spawn(&network.router, PLAIN, arguments, |_| {}).wait();
        until("the log says it", || run.said().contains(says));
        let modes = of_threads(&run, "Seccomp:");
        assert!(
            modes.iter().all(|found| found == mode),
            "{arguments:?}: {modes:?}"
        );
        run.signal(Signal::SIGINT);
        assert_eq!(run.output().status.code(), Some(0));
    }
}

/// A file that is replaced is read again, as always. One that a symbolic link leads to from then on, in
/// another folder, is not; the run goes on.
#[test]
fn a_file_is_read_again_only_from_the_folders_that_were_read() {
    let Some(_watched) = live("a_file_is_read_again_only_from_the_folders_that_were_read") else {
        return;
    };
    let network = Network::build().unwrap();
    let [folder, elsewhere] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let link = folder.path().join("home.toml");
    let [first, second, other] = [
        folder.path().join("first.toml"),
        folder.path().join("second.toml"),
        elsewhere.path().join("other.toml"),
    ];
    for file in [&first, &second, &other] {
        fs::write(file, PLAIN).unwrap();
    }
    std::os::unix::fs::symlink(&first, &link).unwrap();
    let run = Run::of_file(&network.router, &link).wait();
    for (count, (target, says)) in [
        (&second, "its queues are active"),
        (&other, "Permission denied"),
        (&first, "its queues are active"),
    ]
    .into_iter()
    .enumerate()
    {
        let new = folder.path().join("new");
        std::os::unix::fs::symlink(target, &new).unwrap();
        fs::rename(&new, &link).unwrap();
        run.signal(Signal::SIGHUP);
        let mut said = String::new();
        until("the file is read again or refused", || {
            said = run.said();
            said.matches("its queues are active").count() + said.matches("was not applied").count() > count
        });
        let last = said.rsplit_once(says);
        assert!(last.is_some(), "{says}: {said}");
        if target == &other {
            assert!(said.contains("--no-sandbox"), "the remedy is named: {said}");
        }
    }
    run.stop();
}

/// A call that the first thread of a process makes, because this test makes it.
#[cfg(target_arch = "x86_64")]
mod calls {
    use nix::sys::ptrace;
    use nix::sys::wait::{WaitPidFlag, waitpid};
    use nix::unistd::Pid;

    /// A stopped process, whose next instruction can be chosen. It goes on when this is dropped.
    pub(super) struct Stopped {
        process: Pid,
        registers: nix::libc::user_regs_struct,
    }

    impl Stopped {
        /// Stops a process that waits in a call of the kernel.
        pub(super) fn new(process: u32) -> Stopped {
            let process = Pid::from_raw(process as i32);
            ptrace::seize(process, ptrace::Options::empty()).unwrap();
            ptrace::interrupt(process).unwrap();
            waitpid(process, Some(WaitPidFlag::__WALL)).unwrap();
            let registers = ptrace::getregs(process).unwrap();
            // The instruction before the next one is `syscall`: 0f 05.
            let before = ptrace::read(process, (registers.rip - 2) as ptrace::AddressType).unwrap();
            assert_eq!(before & 0xffff, 0x050f, "the process waits in the kernel");
            Stopped { process, registers }
        }

        /// Has it make a call. Returns what the kernel returns.
        pub(super) fn call(&self, number: i64, arguments: [u64; 6]) -> i64 {
            let mut registers = self.registers;
            registers.rip -= 2;
            registers.rax = number as u64;
            // Nothing is to be restarted.
            registers.orig_rax = u64::MAX;
            let [rdi, rsi, rdx, r10, r8, r9] = arguments;
            (registers.rdi, registers.rsi, registers.rdx) = (rdi, rsi, rdx);
            (registers.r10, registers.r8, registers.r9) = (r10, r8, r9);
            ptrace::setregs(self.process, registers).unwrap();
            ptrace::step(self.process, None).unwrap();
            waitpid(self.process, Some(WaitPidFlag::__WALL)).unwrap();
            ptrace::getregs(self.process).unwrap().rax as i64
        }

        /// Writes a text below its stack. Returns where it is.
        pub(super) fn text(&self, text: &str) -> u64 {
            let place = (self.registers.rsp - 4096) & !7;
            let mut bytes = text.as_bytes().to_vec();
            bytes.push(0);
            for (index, word) in bytes.chunks(8).enumerate() {
                let mut whole = [0; 8];
                whole[..word.len()].copy_from_slice(word);
                let address = (place + 8 * index as u64) as ptrace::AddressType;
                ptrace::write(self.process, address, i64::from_ne_bytes(whole)).unwrap();
            }
            place
        }
    }

    impl Drop for Stopped {
        fn drop(&mut self) {
            let mut registers = self.registers;
            // The call in which it waited was interrupted.
            registers.rax = -i64::from(nix::libc::EINTR) as u64;
            registers.orig_rax = u64::MAX;
            let _ = ptrace::setregs(self.process, registers);
            let _ = ptrace::detach(self.process, None);
        }
    }
}

/// The run itself makes calls that it must not make, with the arguments of an attacker: each is refused. Then
/// it goes on.
#[cfg(target_arch = "x86_64")]
#[test]
fn a_run_that_was_taken_over_could_do_little() {
    use nix::libc;

    const PERMISSION: i64 = -(libc::EPERM as i64);
    const ACCESS: i64 = -(libc::EACCES as i64);
    let Some(_watched) = live("a_run_that_was_taken_over_could_do_little") else {
        return;
    };
    let network = Network::build().unwrap();
    let run = Run::start(&network.router, PLAIN);
    let process = run.program.as_ref().expect("the run has not ended").id();
    {
        let stopped = calls::Stopped::new(process);
        assert_eq!(stopped.call(libc::SYS_getpid, [0; 6]), i64::from(process));
        let program = stopped.text("/bin/sh");
        let here = libc::AT_FDCWD as u64;
        for (number, arguments, what) in [
            (libc::SYS_execve, [program, 0, 0, 0, 0, 0], "executing a program"),
            (
                libc::SYS_execveat,
                [here, program, 0, 0, 0, 0],
                "executing a program",
            ),
            (
                libc::SYS_ptrace,
                [libc::PTRACE_ATTACH as u64, 1, 0, 0, 0, 0],
                "looking into another process",
            ),
            (
                libc::SYS_process_vm_readv,
                [1, 0, 0, 0, 0, 0],
                "looking into another process",
            ),
            (libc::SYS_kill, [1, 0, 0, 0, 0, 0], "a signal"),
            (
                libc::SYS_unshare,
                [libc::CLONE_NEWUSER as u64, 0, 0, 0, 0, 0],
                "a namespace",
            ),
            (
                libc::SYS_clone,
                [libc::CLONE_NEWNET as u64, 0, 0, 0, 0, 0],
                "a namespace",
            ),
            (libc::SYS_setns, [0; 6], "a namespace"),
            (libc::SYS_mount, [0; 6], "mounting"),
            (libc::SYS_chroot, [0; 6], "another root"),
            (libc::SYS_init_module, [0; 6], "a module"),
            (libc::SYS_capset, [0; 6], "capabilities"),
            (libc::SYS_setuid, [0; 6], "another user"),
            (libc::SYS_chown, [program, 0, 0, 0, 0, 0], "another owner"),
            (libc::SYS_keyctl, [0; 6], "keys"),
            (
                libc::SYS_io_uring_setup,
                [1, 0, 0, 0, 0, 0],
                "calls past the filter",
            ),
            (
                libc::SYS_socket,
                [libc::AF_INET as u64, libc::SOCK_STREAM as u64, 0, 0, 0, 0],
                "the Internet",
            ),
            (
                libc::SYS_ioctl,
                [0, libc::TIOCSTI, program, 0, 0, 0],
                "typing into a terminal",
            ),
            (
                libc::SYS_mmap,
                [0, 4096, libc::PROT_EXEC as u64, 0x22, u64::MAX, 0],
                "executable memory",
            ),
            (
                libc::SYS_mprotect,
                [0, 4096, libc::PROT_EXEC as u64, 0, 0, 0],
                "executable memory",
            ),
        ] {
            assert_eq!(stopped.call(number, arguments), PERMISSION, "{what}");
        }
        assert_eq!(stopped.call(libc::SYS_clone3, [0; 6]), -i64::from(libc::ENOSYS));
        let socket = [libc::AF_UNIX as u64, libc::SOCK_STREAM as u64, 0, 0, 0, 0];
        assert!(
            stopped.call(libc::SYS_socket, socket) > 0,
            "a socket of this machine"
        );

        // Files: its configuration, and others.
        let open = |path: &str, flags: i32| {
            let path = stopped.text(path);
            stopped.call(libc::SYS_openat, [here, path, flags as u64, 0o600, 0, 0])
        };
        let own = run.folder.path().join("run.toml").display().to_string();
        assert!(open(&own, libc::O_RDONLY) > 0);
        if run.said().contains("files are not limited") {
            say("SKIPPED: the files of a_run_that_was_taken_over_could_do_little: no Landlock");
        } else {
            assert_eq!(open(&own, libc::O_WRONLY), ACCESS);
            assert_eq!(open("/etc/passwd", libc::O_RDONLY), ACCESS);
            assert_eq!(
                open("/etc/cron.d/fairgate", libc::O_WRONLY | libc::O_CREAT),
                ACCESS
            );
            assert_eq!(open("/proc/1/environ", libc::O_RDONLY), ACCESS);
        }
    }
    transfer(&network, &format!("{}:5003", Network::RIGHT), "after the calls");
    run.stop();
}
