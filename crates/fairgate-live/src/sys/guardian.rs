//! A child process that puts a setting back when this process is gone, however it went.
//!
//! Most of what the data plane does to an interface is bound to a descriptor and ends with it. What is not (receive
//! offloads) would stay behind after `kill -9`. The child holds one end of a pipe and nothing else of ours. The pipe
//! ends when its other end is dropped or this process dies; then the child does its work and exits.

use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, fork, pipe2};

/// Has its work done when it is dropped, or when this process dies.
#[derive(Debug)]
pub(crate) struct Guardian {
    /// None once it is closed.
    pipe: Option<OwnedFd>,
    child: Pid,
}

impl Guardian {
    /// Starts the child. `work` runs there, in the network namespace of this thread.
    ///
    /// # Safety
    /// `work` does only what is allowed between `fork` and `exec` in a process of several threads (signal-safety(7)):
    /// system calls, and memory that exists already. It neither allocates nor takes locks nor panics.
    pub(crate) unsafe fn start(work: impl FnOnce()) -> Result<Guardian, Errno> {
        let (reader, writer) = pipe2(OFlag::O_CLOEXEC)?;
        // SAFETY: the child does nothing but system calls and `work`, which the caller promises is safe there, and
        // never returns from this block.
        match unsafe { fork() }? {
            ForkResult::Parent { child } => Ok(Guardian {
                pipe: Some(writer),
                child,
            }),
            ForkResult::Child => {
                // SAFETY: system calls with live arguments. The descriptors that are closed have owners in this copy of
                // the memory, none of which runs any more.
                unsafe {
                    // Ctrl-C and a service manager's SIGTERM go to the whole group: this process outlives them.
                    libc::setsid();
                    let mut all: libc::sigset_t = std::mem::zeroed();
                    libc::sigfillset(&raw mut all);
                    libc::sigprocmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut());
                    // Sockets of ours would live on in this process, and so would a pipe that others read to its end.
                    libc::dup2(reader.as_raw_fd(), 0);
                    libc::syscall(libc::SYS_close_range, 1, u32::MAX, 0);
                    let mut byte = 0u8;
                    while libc::read(0, (&raw mut byte).cast(), 1) < 0 && Errno::last() == Errno::EINTR {}
                }
                work();
                // SAFETY: ends the child without running anything that is registered for the end of this program.
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
