//! The system calls that a script may make, by seccomp.
//!
//! A call that is not in the list fails with ENOSYS, as if the kernel were older: programs know that. The
//! list has what shells, the programs that they start, and interpreters need. So there is no mount, no
//! namespace, no look into other processes, no key, no module, no clock that is set, and nothing that a newer
//! kernel adds. What only root may do anyway fails with EPERM: of some calls programs know no other error.

use crate::record::sandbox::{Refusal, refused};

/// Limits this process and all that it starts.
#[cfg(all(
    target_endian = "little",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")
))]
pub(in crate::record::sandbox) fn limit_calls() -> Result<(), Refusal> {
    let step = "limiting system calls by seccomp";
    let programs = filtered::programs().map_err(refused(step))?;
    for program in &programs {
        seccompiler::apply_filter(program).map_err(refused(step))?;
    }
    Ok(())
}

/// For processors whose calls the filter's library does not know.
#[cfg(not(all(
    target_endian = "little",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")
)))]
pub(in crate::record::sandbox) fn limit_calls() -> Result<(), Refusal> {
    Err(refused("limiting system calls by seccomp")(
        "not supported on this processor",
    ))
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
        SeccompRule, TargetArch,
    };

    const ALLOWED: &[c_long] = &[
        // Memory
        libc::SYS_brk,
        libc::SYS_madvise,
        libc::SYS_membarrier,
        libc::SYS_mincore,
        libc::SYS_mmap,
        libc::SYS_mprotect,
        libc::SYS_mremap,
        libc::SYS_msync,
        libc::SYS_munlock,
        libc::SYS_munmap,
        // Descriptors
        libc::SYS_close,
        libc::SYS_close_range,
        libc::SYS_copy_file_range,
        libc::SYS_dup,
        libc::SYS_dup3,
        libc::SYS_fadvise64,
        libc::SYS_fallocate,
        libc::SYS_fcntl,
        libc::SYS_fdatasync,
        libc::SYS_flock,
        libc::SYS_fsync,
        libc::SYS_ftruncate,
        libc::SYS_ioctl,
        libc::SYS_lseek,
        libc::SYS_pipe2,
        libc::SYS_pread64,
        libc::SYS_preadv,
        libc::SYS_preadv2,
        libc::SYS_pwrite64,
        libc::SYS_pwritev,
        libc::SYS_pwritev2,
        libc::SYS_read,
        libc::SYS_readahead,
        libc::SYS_readv,
        libc::SYS_sendfile,
        libc::SYS_splice,
        libc::SYS_tee,
        libc::SYS_vmsplice,
        libc::SYS_write,
        libc::SYS_writev,
        // Files
        libc::SYS_chdir,
        libc::SYS_faccessat,
        libc::SYS_faccessat2,
        libc::SYS_fchdir,
        libc::SYS_fchmod,
        libc::SYS_fchmodat,
        libc::SYS_fchmodat2,
        libc::SYS_fchown,
        libc::SYS_fchownat,
        libc::SYS_fgetxattr,
        libc::SYS_flistxattr,
        libc::SYS_fremovexattr,
        libc::SYS_fsetxattr,
        libc::SYS_fstat,
        libc::SYS_fstatfs,
        libc::SYS_getcwd,
        libc::SYS_getdents64,
        libc::SYS_getxattr,
        libc::SYS_inotify_add_watch,
        libc::SYS_inotify_init1,
        libc::SYS_inotify_rm_watch,
        libc::SYS_lgetxattr,
        libc::SYS_linkat,
        libc::SYS_listxattr,
        libc::SYS_llistxattr,
        libc::SYS_lremovexattr,
        libc::SYS_lsetxattr,
        libc::SYS_mkdirat,
        libc::SYS_mknodat,
        libc::SYS_newfstatat,
        libc::SYS_openat,
        libc::SYS_openat2,
        libc::SYS_readlinkat,
        libc::SYS_removexattr,
        libc::SYS_renameat2,
        libc::SYS_setxattr,
        libc::SYS_statfs,
        libc::SYS_statx,
        libc::SYS_symlinkat,
        libc::SYS_truncate,
        libc::SYS_umask,
        libc::SYS_unlinkat,
        libc::SYS_utimensat,
        // Sockets; which families, `conditions` says
        libc::SYS_accept,
        libc::SYS_accept4,
        libc::SYS_bind,
        libc::SYS_connect,
        libc::SYS_getpeername,
        libc::SYS_getsockname,
        libc::SYS_getsockopt,
        libc::SYS_listen,
        libc::SYS_recvfrom,
        libc::SYS_recvmmsg,
        libc::SYS_recvmsg,
        libc::SYS_sendmmsg,
        libc::SYS_sendmsg,
        libc::SYS_sendto,
        libc::SYS_setsockopt,
        libc::SYS_shutdown,
        libc::SYS_socket,
        libc::SYS_socketpair,
        // Events and time
        libc::SYS_clock_getres,
        libc::SYS_clock_gettime,
        libc::SYS_clock_nanosleep,
        libc::SYS_epoll_create1,
        libc::SYS_epoll_ctl,
        libc::SYS_epoll_pwait,
        libc::SYS_epoll_pwait2,
        libc::SYS_eventfd2,
        libc::SYS_getitimer,
        libc::SYS_gettimeofday,
        libc::SYS_nanosleep,
        libc::SYS_ppoll,
        libc::SYS_pselect6,
        libc::SYS_setitimer,
        libc::SYS_signalfd4,
        libc::SYS_timer_create,
        libc::SYS_timer_delete,
        libc::SYS_timer_getoverrun,
        libc::SYS_timer_gettime,
        libc::SYS_timer_settime,
        libc::SYS_timerfd_create,
        libc::SYS_timerfd_gettime,
        libc::SYS_timerfd_settime,
        libc::SYS_times,
        // Processes and threads
        libc::SYS_clone,
        libc::SYS_execve,
        libc::SYS_execveat,
        libc::SYS_exit,
        libc::SYS_exit_group,
        libc::SYS_futex,
        libc::SYS_futex_waitv,
        libc::SYS_get_robust_list,
        libc::SYS_getcpu,
        libc::SYS_getpriority,
        libc::SYS_getrusage,
        libc::SYS_ioprio_get,
        libc::SYS_ioprio_set,
        libc::SYS_pidfd_open,
        libc::SYS_pidfd_send_signal,
        libc::SYS_prctl,
        libc::SYS_prlimit64,
        libc::SYS_rseq,
        libc::SYS_sched_get_priority_max,
        libc::SYS_sched_get_priority_min,
        libc::SYS_sched_getaffinity,
        libc::SYS_sched_getattr,
        libc::SYS_sched_getparam,
        libc::SYS_sched_getscheduler,
        libc::SYS_sched_rr_get_interval,
        libc::SYS_sched_setaffinity,
        libc::SYS_sched_setattr,
        libc::SYS_sched_setparam,
        libc::SYS_sched_setscheduler,
        libc::SYS_sched_yield,
        libc::SYS_set_robust_list,
        libc::SYS_set_tid_address,
        libc::SYS_setpgid,
        libc::SYS_setpriority,
        libc::SYS_setsid,
        libc::SYS_wait4,
        libc::SYS_waitid,
        // Signals
        libc::SYS_kill,
        libc::SYS_restart_syscall,
        libc::SYS_rt_sigaction,
        libc::SYS_rt_sigpending,
        libc::SYS_rt_sigprocmask,
        libc::SYS_rt_sigqueueinfo,
        libc::SYS_rt_sigreturn,
        libc::SYS_rt_sigsuspend,
        libc::SYS_rt_sigtimedwait,
        libc::SYS_rt_tgsigqueueinfo,
        libc::SYS_sigaltstack,
        libc::SYS_tgkill,
        libc::SYS_tkill,
        // Who and what this process and this machine are
        libc::SYS_capget,
        libc::SYS_capset,
        libc::SYS_getegid,
        libc::SYS_geteuid,
        libc::SYS_getgid,
        libc::SYS_getgroups,
        libc::SYS_getpgid,
        libc::SYS_getpid,
        libc::SYS_getppid,
        libc::SYS_getrandom,
        libc::SYS_getresgid,
        libc::SYS_getresuid,
        libc::SYS_getsid,
        libc::SYS_gettid,
        libc::SYS_getuid,
        libc::SYS_setfsgid,
        libc::SYS_setfsuid,
        libc::SYS_setgid,
        libc::SYS_setgroups,
        libc::SYS_setregid,
        libc::SYS_setresgid,
        libc::SYS_setresuid,
        libc::SYS_setreuid,
        libc::SYS_setuid,
        libc::SYS_sysinfo,
        libc::SYS_uname,
    ];

    /// The older forms of some of these, which newer processors don't have.
    #[cfg(target_arch = "x86_64")]
    const OLDER: &[c_long] = &[
        libc::SYS_access,
        libc::SYS_alarm,
        libc::SYS_arch_prctl,
        libc::SYS_chmod,
        libc::SYS_chown,
        libc::SYS_creat,
        libc::SYS_dup2,
        libc::SYS_epoll_create,
        libc::SYS_epoll_wait,
        libc::SYS_eventfd,
        libc::SYS_fork,
        libc::SYS_futimesat,
        libc::SYS_getdents,
        libc::SYS_getpgrp,
        libc::SYS_getrlimit,
        libc::SYS_inotify_init,
        libc::SYS_lchown,
        libc::SYS_link,
        libc::SYS_lstat,
        libc::SYS_mkdir,
        libc::SYS_mknod,
        libc::SYS_open,
        libc::SYS_pause,
        libc::SYS_pipe,
        libc::SYS_poll,
        libc::SYS_readlink,
        libc::SYS_rename,
        libc::SYS_renameat,
        libc::SYS_rmdir,
        libc::SYS_select,
        libc::SYS_setrlimit,
        libc::SYS_signalfd,
        libc::SYS_stat,
        libc::SYS_symlink,
        libc::SYS_time,
        libc::SYS_unlink,
        libc::SYS_utime,
        libc::SYS_utimes,
        libc::SYS_vfork,
    ];
    #[cfg(target_arch = "aarch64")]
    const OLDER: &[c_long] = &[libc::SYS_getrlimit, libc::SYS_renameat, libc::SYS_setrlimit];
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    const OLDER: &[c_long] = &[];

    /// Refused with any arguments, with EPERM.
    const REFUSED: &[c_long] = &[
        libc::SYS_adjtimex,
        libc::SYS_bpf,
        libc::SYS_chroot,
        libc::SYS_clock_settime,
        libc::SYS_delete_module,
        libc::SYS_finit_module,
        libc::SYS_init_module,
        libc::SYS_keyctl,
        libc::SYS_mount,
        libc::SYS_perf_event_open,
        libc::SYS_pivot_root,
        libc::SYS_ptrace,
        libc::SYS_reboot,
        libc::SYS_setdomainname,
        libc::SYS_sethostname,
        libc::SYS_setns,
        libc::SYS_settimeofday,
        libc::SYS_swapoff,
        libc::SYS_swapon,
        libc::SYS_syslog,
        libc::SYS_umount2,
        libc::SYS_unshare,
    ];

    /// New namespaces. A process that has one is root in it.
    const NAMESPACES: [i32; 7] = [
        libc::CLONE_NEWCGROUP,
        libc::CLONE_NEWIPC,
        libc::CLONE_NEWNET,
        libc::CLONE_NEWNS,
        libc::CLONE_NEWPID,
        libc::CLONE_NEWUSER,
        libc::CLONE_NEWUTS,
    ];

    /// Types into a terminal, and on a console pastes into it.
    const OF_TERMINALS: [libc::Ioctl; 2] = [libc::TIOCSTI, libc::TIOCLINUX];

    type Rules = BTreeMap<i64, Vec<SeccompRule>>;

    /// Returns the programs for the kernel, in the order in which they are to be installed: with which
    /// arguments calls are refused, and which calls there are.
    pub(super) fn programs() -> Result<[BpfProgram; 2], seccompiler::Error> {
        let processor: TargetArch = std::env::consts::ARCH.try_into()?;
        let refuse = |errno: i32| SeccompAction::Errno(errno.cast_unsigned());
        // The kernel obeys the last program whose answer is an error, so this one lets the refused calls
        // pass.
        let known: Rules = ALLOWED
            .iter()
            .chain(OLDER)
            .chain(REFUSED)
            .map(|call| (*call, Vec::new()))
            .collect();
        let known = SeccompFilter::new(known, refuse(libc::ENOSYS), SeccompAction::Allow, processor)?;
        let refused = SeccompFilter::new(
            conditions()?,
            SeccompAction::Allow,
            refuse(libc::EPERM),
            processor,
        )?;
        // The last one ends the installing of others.
        Ok([refused.try_into()?, known.try_into()?])
    }

    /// Returns the calls that are refused, with some arguments or with any.
    fn conditions() -> Result<Rules, seccompiler::Error> {
        let is = |argument, operator, value: i32| {
            let value = u64::from(value.cast_unsigned());
            SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)
        };
        let flag = |flag: &i32| {
            let mask = u64::from(flag.cast_unsigned());
            Ok(SeccompRule::new(vec![is(
                0,
                SeccompCmpOp::MaskedEq(mask),
                *flag,
            )?])?)
        };
        let terminal =
            |request: &libc::Ioctl| Ok(SeccompRule::new(vec![is(1, SeccompCmpOp::Eq, *request as i32)?])?);
        // No AF_UNIX: the sockets of services are files, and a read-only file system does not close them.
        // Pairs are allowed. Netlink only for the interfaces, of which the script has its own.
        let families = [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];
        let others = families.map(|family| is(0, SeccompCmpOp::Ne, family));
        let others = others.into_iter().collect::<Result<Vec<_>, _>>()?;
        let netlink = vec![
            is(0, SeccompCmpOp::Eq, libc::AF_NETLINK)?,
            is(2, SeccompCmpOp::Ne, libc::NETLINK_ROUTE)?,
        ];
        let mut rules: Rules = REFUSED.iter().map(|call| (*call, Vec::new())).collect();
        rules.extend([
            (libc::SYS_clone, collected(NAMESPACES.iter().map(flag))?),
            (libc::SYS_ioctl, collected(OF_TERMINALS.iter().map(terminal))?),
            (
                libc::SYS_socket,
                vec![SeccompRule::new(others)?, SeccompRule::new(netlink)?],
            ),
            (
                libc::SYS_socketpair,
                vec![SeccompRule::new(vec![is(0, SeccompCmpOp::Ne, libc::AF_UNIX)?])?],
            ),
        ]);
        Ok(rules)
    }

    fn collected(
        rules: impl Iterator<Item = Result<SeccompRule, seccompiler::Error>>,
    ) -> Result<Vec<SeccompRule>, seccompiler::Error> {
        rules.collect()
    }
}
