//! Real-time scheduling of this thread.

use std::fs;
use std::time::Duration;

use nix::errno::Errno;

/// Gives this thread a higher priority than all ordinary ones (SCHED_FIFO, lowest priority). The thread still
/// sleeps when it has no work, and often enough that the kernel never throttles it (see `pace.rs`).
pub(crate) fn set_realtime() -> Result<(), Errno> {
    // The kernel's `sched_param` is this number alone.
    let priority: libc::c_int = 1;
    // A system call, because musl's function refuses: POSIX means a process, and the kernel a thread.
    // SAFETY: the kernel reads a live number; 0 means this thread.
    let result = unsafe {
        libc::syscall(
            libc::SYS_sched_setscheduler,
            0,
            libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK,
            &raw const priority,
        )
    };
    Errno::result(result).map(drop)
}

/// Returns the share of a core that the kernel gives to real-time threads, in parts per million (sched(7)).
pub(crate) fn realtime_share() -> u64 {
    let read = |name: &str| -> Option<i64> {
        fs::read_to_string(format!("/proc/sys/kernel/{name}"))
            .ok()?
            .trim()
            .parse()
            .ok()
    };
    match (read("sched_rt_runtime_us"), read("sched_rt_period_us")) {
        // -1 means no limit.
        (Some(runtime @ 0..), Some(period @ 1..)) => {
            (runtime as u64).saturating_mul(1_000_000) / period as u64
        }
        _ => 1_000_000,
    }
}

/// Returns how long this thread was ready to run while another one had the processor. `None` if this kernel
/// does not count it (Linux `Documentation/scheduler/sched-stats.rst`, "/proc/<pid>/schedstat").
pub(crate) fn waited_for_processor() -> Option<Duration> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanos = text.split_whitespace().nth(1)?.parse().ok()?;
    Some(Duration::from_nanos(nanos))
}
