//! Real-time scheduling of this thread.

use nix::errno::Errno;

/// Puts this thread before all ordinary ones (SCHED_FIFO, the lowest of its priorities). It still sleeps whenever it
/// has nothing to do, and the kernel keeps 5 % of each core for others in any case (sched(7), RLIMIT_RTTIME aside).
pub(crate) fn set_realtime() -> Result<(), Errno> {
    let parameters = libc::sched_param { sched_priority: 1 };
    // SAFETY: the kernel reads a live `sched_param`; 0 is this thread.
    let result = unsafe {
        libc::sched_setscheduler(
            0,
            libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK,
            &raw const parameters,
        )
    };
    Errno::result(result).map(drop)
}
