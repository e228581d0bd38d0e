//! The system calls that a run may make, by seccomp.
//!
//! A call that is not in the list fails with EPERM. The list has what the run itself needs, and the standard
//! library, the C library, the allocator and the API's runtime for it: threads, sockets, reading files. No
//! program can be executed, no other process be looked into, no file system, module, key or clock be changed.

#[cfg(all(
    target_endian = "little",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")
))]
pub(super) use filtered::Calls;
#[cfg(not(all(
    target_endian = "little",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")
)))]
pub(super) use unfiltered::Calls;

/// For processors whose calls the filter's library does not know.
#[cfg(not(all(
    target_endian = "little",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")
)))]
mod unfiltered {
    use crate::config::Plan;
    use crate::privileges::LaterFiles;

    #[derive(Debug)]
    pub(crate) struct Calls;

    impl Calls {
        pub(crate) fn new(_: &Plan, _: &LaterFiles<'_>) -> Result<Calls, String> {
            Err("not supported on this processor".to_owned())
        }

        pub(crate) fn enter(&self) -> Result<usize, String> {
            unreachable!("it can't be made")
        }
    }
}

#[cfg(all(
    target_endian = "little",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")
))]
mod filtered {
    use std::collections::BTreeMap;

    use libc::c_long;
    use seccompiler::{
        BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
        SeccompRule, TargetArch, apply_filter,
    };

    use super::super::files::asks_for_groups;
    use crate::backend::BackendKind;
    use crate::config::{Divide, Isolate, Plan};
    use crate::privileges::LaterFiles;

    /// Allowed with any arguments.
    const ALLOWED: &[c_long] = &[
        // Memory
        libc::SYS_brk,
        libc::SYS_madvise,
        libc::SYS_membarrier,
        libc::SYS_mincore,
        libc::SYS_mlock,
        libc::SYS_mremap,
        libc::SYS_munmap,
        libc::SYS_munlock,
        // Descriptors and files
        libc::SYS_close,
        libc::SYS_close_range,
        libc::SYS_dup,
        libc::SYS_dup3,
        libc::SYS_faccessat,
        libc::SYS_faccessat2,
        libc::SYS_fchmod,
        libc::SYS_fchmodat,
        libc::SYS_fcntl,
        libc::SYS_flock,
        libc::SYS_fstat,
        libc::SYS_fstatfs,
        libc::SYS_getcwd,
        libc::SYS_getdents64,
        libc::SYS_lseek,
        libc::SYS_memfd_create,
        libc::SYS_mkdirat,
        libc::SYS_newfstatat,
        libc::SYS_openat,
        libc::SYS_pipe2,
        libc::SYS_pread64,
        libc::SYS_read,
        libc::SYS_readlinkat,
        libc::SYS_readv,
        libc::SYS_statfs,
        libc::SYS_statx,
        libc::SYS_unlinkat,
        libc::SYS_write,
        libc::SYS_writev,
        // Sockets
        libc::SYS_accept,
        libc::SYS_accept4,
        libc::SYS_bind,
        libc::SYS_connect,
        libc::SYS_getpeername,
        libc::SYS_getsockname,
        libc::SYS_getsockopt,
        libc::SYS_recvfrom,
        libc::SYS_recvmmsg,
        libc::SYS_recvmsg,
        libc::SYS_sendmmsg,
        libc::SYS_sendmsg,
        libc::SYS_sendto,
        libc::SYS_setsockopt,
        libc::SYS_shutdown,
        // Events and time
        libc::SYS_clock_getres,
        libc::SYS_clock_gettime,
        libc::SYS_clock_nanosleep,
        libc::SYS_epoll_create1,
        libc::SYS_epoll_ctl,
        libc::SYS_epoll_pwait,
        libc::SYS_epoll_pwait2,
        libc::SYS_eventfd2,
        libc::SYS_gettimeofday,
        libc::SYS_nanosleep,
        libc::SYS_ppoll,
        libc::SYS_signalfd4,
        libc::SYS_timerfd_create,
        libc::SYS_timerfd_settime,
        // Threads, and the children that restore settings of interfaces
        libc::SYS_clone3,
        libc::SYS_exit,
        libc::SYS_exit_group,
        libc::SYS_futex,
        libc::SYS_getcpu,
        libc::SYS_get_robust_list,
        libc::SYS_rseq,
        libc::SYS_sched_getaffinity,
        libc::SYS_sched_getparam,
        libc::SYS_sched_getscheduler,
        libc::SYS_sched_yield,
        libc::SYS_set_robust_list,
        libc::SYS_set_tid_address,
        libc::SYS_setsid,
        libc::SYS_wait4,
        libc::SYS_waitid,
        // Signals of this process
        libc::SYS_restart_syscall,
        libc::SYS_rt_sigaction,
        libc::SYS_rt_sigprocmask,
        libc::SYS_rt_sigreturn,
        libc::SYS_rt_sigtimedwait,
        libc::SYS_sigaltstack,
        libc::SYS_tgkill,
        libc::SYS_tkill,
        // Who and what this process is
        libc::SYS_capget,
        libc::SYS_getegid,
        libc::SYS_geteuid,
        libc::SYS_getgid,
        libc::SYS_getpid,
        libc::SYS_getppid,
        libc::SYS_getrandom,
        libc::SYS_getresgid,
        libc::SYS_getresuid,
        libc::SYS_getrusage,
        libc::SYS_gettid,
        libc::SYS_getuid,
        libc::SYS_sysinfo,
        libc::SYS_times,
        libc::SYS_uname,
    ];

    /// The older forms of some of these, which other processors don't have.
    #[cfg(target_arch = "x86_64")]
    const OLDER: &[c_long] = &[
        libc::SYS_access,
        libc::SYS_chmod,
        libc::SYS_dup2,
        libc::SYS_epoll_wait,
        libc::SYS_lstat,
        libc::SYS_mkdir,
        libc::SYS_open,
        libc::SYS_poll,
        libc::SYS_readlink,
        libc::SYS_rmdir,
        libc::SYS_stat,
        libc::SYS_time,
        libc::SYS_unlink,
    ];
    #[cfg(not(target_arch = "x86_64"))]
    const OLDER: &[c_long] = &[];

    /// To replace a file.
    const REPLACING: &[c_long] = &[
        libc::SYS_fsync,
        #[cfg(not(target_arch = "riscv64"))]
        libc::SYS_renameat,
        libc::SYS_renameat2,
    ];

    /// To give it the group and the attributes, among them the access list, of the one that it replaces.
    const KEEPING: &[c_long] = &[
        libc::SYS_fchown,
        libc::SYS_fgetxattr,
        libc::SYS_flistxattr,
        libc::SYS_fremovexattr,
        libc::SYS_fsetxattr,
    ];

    /// The families of sockets that a run opens after its start. Those of the endpoints are open.
    const FAMILIES: [i32; 4] = [libc::AF_UNIX, libc::AF_NETLINK, libc::AF_PACKET, libc::AF_XDP];

    /// New namespaces. A process that has one is root in it.
    const NAMESPACES: i32 = libc::CLONE_NEWCGROUP
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWNET
        | libc::CLONE_NEWNS
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWUSER
        | libc::CLONE_NEWUTS;

    /// What threads say of themselves: their name, the accuracy of their timers, names of memory.
    const SAID_OF_THREADS: [i32; 4] = [
        libc::PR_SET_NAME,
        libc::PR_GET_NAME,
        libc::PR_SET_TIMERSLACK,
        PR_SET_VMA,
    ];

    /// Of linux/prctl.h: the name of a piece of memory.
    const PR_SET_VMA: i32 = 0x5356_4d41;

    /// Settings of descriptors and terminals: not blocking, closing when a program is executed, whether it is
    /// a terminal, its size, how much there is to read.
    const OF_DESCRIPTORS: [libc::Ioctl; 5] = [
        libc::FIONBIO,
        libc::FIOCLEX,
        libc::TCGETS,
        libc::TIOCGWINSZ,
        libc::FIONREAD,
    ];

    /// Settings of sockets and interfaces (sockios.h), and of TUN and TAP devices (if_tun.h). The letter of
    /// the latter is also that of terminals, whose numbers are lower.
    const OF_INTERFACES: [(u64, u64); 4] = [
        (0xff00, 0x8900),
        (0xfff0, 0x54c0),
        (0xfff0, 0x54d0),
        (0xfff0, 0x54e0),
    ];

    type Rules = BTreeMap<i64, Vec<SeccompRule>>;

    /// The programs for the kernel, in the order in which they are to be installed.
    #[derive(Debug)]
    pub(crate) struct Calls {
        programs: [BpfProgram; 2],
        count: usize,
    }

    impl Calls {
        pub(crate) fn new(plan: &Plan, later: &LaterFiles<'_>) -> Result<Calls, String> {
            compile(plan, later).map_err(|error| error.to_string())
        }

        /// Limits this thread. Returns how many calls it may make.
        pub(crate) fn enter(&self) -> Result<usize, String> {
            for program in &self.programs {
                apply_filter(program).map_err(|error| match error {
                    seccompiler::Error::Seccomp(error) if error.raw_os_error() == Some(libc::ENOSYS) => {
                        "this kernel has no seccomp".to_owned()
                    }
                    error => error.to_string(),
                })?;
            }
            Ok(self.count)
        }
    }

    fn compile(plan: &Plan, later: &LaterFiles<'_>) -> Result<Calls, seccompiler::Error> {
        let processor: TargetArch = std::env::consts::ARCH.try_into()?;
        let rules = rules(plan, later)?;
        let count = rules.len();
        let refuse = |errno: i32| SeccompAction::Errno(errno as u32);
        let allowed = SeccompFilter::new(rules, refuse(libc::EPERM), SeccompAction::Allow, processor)?;
        // A filter can't look at the arguments of `clone3`. The C library uses `clone` if there is none.
        let newer = Rules::from([(libc::SYS_clone3, Vec::new())]);
        let newer = SeccompFilter::new(newer, SeccompAction::Allow, refuse(libc::ENOSYS), processor)?;
        Ok(Calls {
            programs: [newer.try_into()?, allowed.try_into()?],
            count,
        })
    }

    fn rules(plan: &Plan, later: &LaterFiles<'_>) -> Result<Rules, seccompiler::Error> {
        let mut rules: Rules = ALLOWED
            .iter()
            .chain(OLDER)
            .map(|call| (*call, Vec::new()))
            .collect();
        let equal = |argument, value: i32| when(argument, SeccompCmpOp::Eq, u64::from(value as u32));
        let masked = |argument, mask: u64, value| when(argument, SeccompCmpOp::MaskedEq(mask), value);
        let any = |argument, values: &[i32]| {
            let rules = values.iter().map(|value| equal(argument, *value));
            rules.collect::<Result<Vec<_>, _>>()
        };
        rules.insert(libc::SYS_socket, any(0, &FAMILIES)?);
        rules.insert(libc::SYS_socketpair, any(0, &[libc::AF_UNIX])?);
        rules.insert(libc::SYS_prctl, any(0, &SAID_OF_THREADS)?);
        rules.insert(libc::SYS_clone, vec![masked(0, NAMESPACES as u64, 0)?]);
        // Limits can be read and not be set.
        rules.insert(libc::SYS_prlimit64, vec![pointer_is_null(2)?]);
        let mut ioctls = Vec::new();
        for number in OF_DESCRIPTORS {
            ioctls.push(equal(1, number as i32)?);
        }
        for (mask, value) in OF_INTERFACES {
            ioctls.push(masked(1, mask, value)?);
        }
        rules.insert(libc::SYS_ioctl, ioctls);
        // Memory is never executed, unless libraries are loaded to look up groups.
        let maps = match asks_for_groups(plan) {
            true => Vec::new(),
            false => vec![masked(2, libc::PROT_EXEC as u64, 0)?],
        };
        rules.insert(libc::SYS_mmap, maps.clone());
        rules.insert(libc::SYS_mprotect, maps);
        // A change of classes changes the table by which the kernel divides frames.
        let has_programs = plan.isolate != Isolate::Never || plan.shard_by == Divide::Class;
        if has_programs && plan.backend != Some(BackendKind::Kernel) || plan.backend == Some(BackendKind::Xdp)
        {
            rules.insert(libc::SYS_bpf, Vec::new());
        }
        if !later.kept.is_empty() || !later.written.is_empty() {
            rules.extend(REPLACING.iter().map(|call| (*call, Vec::new())));
        }
        if !later.written.is_empty() {
            rules.extend(KEEPING.iter().map(|call| (*call, Vec::new())));
        }
        Ok(rules)
    }

    /// Returns the rule that compares the lower half of an argument.
    fn when(argument: u8, operator: SeccompCmpOp, value: u64) -> Result<SeccompRule, seccompiler::Error> {
        let half = SeccompCmpArgLen::Dword;
        let condition = SeccompCondition::new(argument, half, operator, value)?;
        Ok(SeccompRule::new(vec![condition])?)
    }

    fn pointer_is_null(argument: u8) -> Result<SeccompRule, seccompiler::Error> {
        let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Qword, SeccompCmpOp::Eq, 0)?;
        Ok(SeccompRule::new(vec![condition])?)
    }
}
