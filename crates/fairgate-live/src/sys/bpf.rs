//! Small BPF programs for tc's hooks. They are assembled here, and loaded and attached by `bpf(2)`.
//!
//! The layouts of `union bpf_attr` and of instructions are those of linux/bpf.h. Programs without maps and
//! loops need neither a compiler nor a library.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use nix::errno::Errno;

const BPF_PROG_LOAD: libc::c_long = 5;
const BPF_LINK_CREATE: libc::c_long = 28;
const BPF_PROG_TYPE_SCHED_CLS: u32 = 3;
/// Attaches before all other programs.
const BPF_F_BEFORE: u32 = 1 << 3;

/// The hook in tc at which a program runs. The numbers are those of `enum bpf_attach_type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Hook {
    /// Received frames, after packet sockets.
    Ingress = 46,
    /// Frames that the kernel sends.
    Egress = 47,
}

/// `struct bpf_insn`. Registers are numbered as in linux/bpf.h: r0 holds the result, r1 the first argument.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Instruction {
    code: u8,
    /// Destination register in the lower half, source in the upper half, on little-endian machines; swapped
    /// on others.
    registers: u8,
    offset: i16,
    immediate: i32,
}

impl Instruction {
    const fn new(code: u8, to: u8, from: u8, offset: i16, immediate: i32) -> Instruction {
        let registers = if cfg!(target_endian = "little") {
            from << 4 | to
        } else {
            to << 4 | from
        };
        Instruction {
            code,
            registers,
            offset,
            immediate,
        }
    }

    /// `to = immediate`
    pub(crate) const fn set(to: u8, immediate: i32) -> Instruction {
        Instruction::new(0xb7, to, 0, 0, immediate)
    }

    /// `to = from`
    pub(crate) const fn copy(to: u8, from: u8) -> Instruction {
        Instruction::new(0xbf, to, from, 0, 0)
    }

    /// `to &= immediate`
    pub(crate) const fn and(to: u8, immediate: i32) -> Instruction {
        Instruction::new(0x57, to, 0, 0, immediate)
    }

    /// `to >>= immediate`
    pub(crate) const fn shift_right(to: u8, immediate: i32) -> Instruction {
        Instruction::new(0x77, to, 0, 0, immediate)
    }

    /// `to` = the 32-bit word at `from + offset`
    pub(crate) const fn load_word(to: u8, from: u8, offset: i16) -> Instruction {
        Instruction::new(0x61, to, from, offset, 0)
    }

    /// Skips `skip` instructions if `register == immediate`.
    pub(crate) const fn jump_if_equal(register: u8, immediate: i32, skip: i16) -> Instruction {
        Instruction::new(0x15, register, 0, skip, immediate)
    }

    /// Calls a kernel helper with r1 to r5. The result is in r0.
    pub(crate) const fn call(helper: i32) -> Instruction {
        Instruction::new(0x85, 0, 0, 0, helper)
    }

    /// Returns r0.
    pub(crate) const fn exit() -> Instruction {
        Instruction::new(0x95, 0, 0, 0, 0)
    }
}

/// The part of `union bpf_attr` that `BPF_PROG_LOAD` reads.
#[repr(C)]
struct ProgramLoad {
    program_type: u32,
    count: u32,
    instructions: u64,
    license: u64,
    /// log_level, log_size, log_buf, kern_version and prog_flags, all zero.
    unused: [u32; 6],
}

/// The part of `union bpf_attr` that `BPF_LINK_CREATE` reads for TCX.
#[repr(C)]
struct LinkCreate {
    program: u32,
    interface: u32,
    hook: u32,
    flags: u32,
    relative: u32,
    padding: u32,
    expected_revision: u64,
}

/// Loads a program for tc's hooks into the kernel, which verifies it.
pub(crate) fn load(program: &[Instruction]) -> Result<OwnedFd, Errno> {
    let attributes = ProgramLoad {
        program_type: BPF_PROG_TYPE_SCHED_CLS,
        count: program.len() as u32,
        instructions: program.as_ptr().expose_provenance() as u64,
        license: c"MIT".as_ptr().expose_provenance() as u64,
        unused: [0; 6],
    };
    bpf(BPF_PROG_LOAD, &attributes)
}

/// Attaches a program to a hook of an interface. It runs until the returned descriptor is closed.
pub(crate) fn attach(program: &OwnedFd, interface: u32, hook: Hook) -> Result<OwnedFd, Errno> {
    let attributes = LinkCreate {
        program: program.as_raw_fd() as u32,
        interface,
        hook: hook as u32,
        flags: BPF_F_BEFORE,
        relative: 0,
        padding: 0,
        expected_revision: 0,
    };
    bpf(BPF_LINK_CREATE, &attributes)
}

/// Calls a command that returns a new descriptor. `T` is the command's part of `union bpf_attr`.
fn bpf<T>(command: libc::c_long, attributes: &T) -> Result<OwnedFd, Errno> {
    // SAFETY: the kernel reads `size_of::<T>()` bytes of a live structure of integers without padding, and
    // the memory that its addresses point to: the given number of instructions and a zero-terminated string.
    // Both outlive the call. A descriptor that is returned is new, and nobody else owns it.
    unsafe {
        let result = libc::syscall(
            libc::SYS_bpf,
            command,
            std::ptr::from_ref(attributes),
            size_of::<T>(),
        );
        Ok(OwnedFd::from_raw_fd(Errno::result(result)? as i32))
    }
}
