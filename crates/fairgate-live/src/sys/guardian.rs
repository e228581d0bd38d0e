//! A child process that restores a setting when this process has ended, even if it was killed.
//!
//! Most changes that the data plane makes to an interface are tied to a descriptor and end with it. Receive
//! offloads are not. They would stay disabled after `kill -9`. The child holds one end of a pipe and, if its
//! work needs them, the files of a lock. It holds nothing else of this process. The pipe ends when its other
//! end is dropped or this process dies. Then the child restores the setting and exits.

use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, fork, pipe2};

/// The least number of the descriptor that ends the pipe, if the limit of descriptors allows it.
const HIGH: i32 = 1000;

/// Gives a descriptor a high number. A process that dies closes its files from the highest number to the
/// lowest (`close_files` of fs/file.c puts them on a list, and `task_work_run` takes the last one first).
/// Closing sockets and BPF links takes up to a tenth of a second, and the child should begin before that.
fn with_high_number(descriptor: OwnedFd) -> OwnedFd {
    match fcntl(&descriptor, FcntlArg::F_DUPFD_CLOEXEC(HIGH)) {
        // SAFETY: the number is that of a new descriptor, and nobody else owns it.
        Ok(number) => unsafe { OwnedFd::from_raw_fd(number) },
        // Then the child begins later.
        Err(_) => descriptor,
    }
}

/// The descriptor by which the work finds the first file that it keeps. The next one has the next number.
pub(crate) const FIRST_KEPT: RawFd = 1;

/// The least number of a descriptor that is no target of `dup2` in the child.
const ABOVE_KEPT: RawFd = 16;

/// Runs its work when it is dropped, or when this process dies.
#[derive(Debug)]
pub(crate) struct Guardian {
    /// `None` once it is closed.
    pipe: Option<OwnedFd>,
    child: Pid,
}

impl Guardian {
    /// Starts the child. `work` runs in the child, in the network namespace of this thread. The child holds
    /// the files of `kept` from [`FIRST_KEPT`] on, also their locks (flock(2)), until its work is done.
    ///
    /// # Safety
    /// `work` does only what is allowed between `fork` and `exec` in a multithreaded process
    /// (signal-safety(7)): system calls, and access to memory that exists already. It does not allocate, lock
    /// or panic.
    pub(crate) unsafe fn start(kept: &[BorrowedFd<'_>], work: impl FnOnce()) -> Result<Guardian, Errno> {
        let (reader, writer) = pipe2(OFlag::O_CLOEXEC)?;
        let writer = with_high_number(writer);
        let kept = kept.iter().map(|file| {
            let number = fcntl(file, FcntlArg::F_DUPFD_CLOEXEC(ABOVE_KEPT))?;
            // SAFETY: the number is that of a new descriptor, and nobody else owns it.
            Ok(unsafe { OwnedFd::from_raw_fd(number) })
        });
        let kept = kept.collect::<Result<Vec<OwnedFd>, Errno>>()?;
        // SAFETY: the child does nothing but system calls and `work`, which the caller promises is safe
        // there. The child never returns from this block.
        match unsafe { fork() }? {
            ForkResult::Parent { child } => Ok(Guardian {
                pipe: Some(writer),
                child,
            }),
            ForkResult::Child => {
                // SAFETY: system calls with live arguments. The descriptors that are closed have owners in
                // this copy of the memory, but none of them runs any more.
                unsafe {
                    // Ctrl-C and a service manager's SIGTERM go to the whole process group. The child must
                    // outlive them.
                    libc::setsid();
                    let mut all: libc::sigset_t = std::mem::zeroed();
                    libc::sigfillset(&raw mut all);
                    libc::sigprocmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut());
                    // Otherwise our sockets would stay open in the child, and so would pipes that other
                    // processes read.
                    libc::dup2(reader.as_raw_fd(), 0);
                    let mut next = FIRST_KEPT;
                    for file in &kept {
                        libc::dup2(file.as_raw_fd(), next);
                        next += 1;
                    }
                    libc::syscall(libc::SYS_close_range, next, u32::MAX, 0);
                    let mut byte = 0u8;
                    while libc::read(0, (&raw mut byte).cast(), 1) < 0 && Errno::last() == Errno::EINTR {}
                }
                work();
                // SAFETY: ends the child without running the exit handlers of this program.
                unsafe { libc::_exit(0) }
            }
        }
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        drop(self.pipe.take());
        while waitpid(self.child, None) == Err(Errno::EINTR) {}
    }
}
