//! Small BPF programs for tc's hooks. They are assembled here, and loaded and attached by `bpf(2)`.
//!
//! The layouts of `union bpf_attr` and of instructions are those of linux/bpf.h. Programs without loops,
//! whose only map is a few words of memory, need neither a compiler nor a library (aya, libbpf): these would
//! load an object file that a compiler with a BPF target has to make first.

use std::num::NonZeroUsize;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use nix::errno::Errno;

use crate::sys::guardian::Guardian;

const BPF_MAP_CREATE: libc::c_long = 0;
const BPF_PROG_LOAD: libc::c_long = 5;
const BPF_LINK_CREATE: libc::c_long = 28;
const BPF_PROG_TYPE_SCHED_CLS: u32 = 3;
const BPF_MAP_TYPE_ARRAY: u32 = 2;
/// The map's values can be mapped into the memory of a process.
const BPF_F_MMAPABLE: u32 = 1 << 10;
/// In the place of a source register: the immediates are the descriptor of a map, and an offset in its value.
const BPF_PSEUDO_MAP_VALUE: u8 = 2;
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

    /// The 32-bit word at `to + offset` = `from`
    pub(crate) const fn store_word(to: u8, offset: i16, from: u8) -> Instruction {
        Instruction::new(0x63, to, from, offset, 0)
    }

    /// Skips `skip` instructions if `register != immediate`.
    pub(crate) const fn jump_unless_equal(register: u8, immediate: i32, skip: i16) -> Instruction {
        Instruction::new(0x55, register, 0, skip, immediate)
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

/// The part of `union bpf_attr` that `BPF_MAP_CREATE` reads.
#[repr(C)]
struct MapCreate {
    map_type: u32,
    key_size: u32,
    value_size: u32,
    entries: u32,
    flags: u32,
}

/// `N` words that this process writes and programs read: an array map with one value, mapped into memory.
#[derive(Debug)]
pub(crate) struct SharedWords<const N: usize> {
    map: OwnedFd,
    base: NonNull<libc::c_void>,
}

// SAFETY: a mapping is not tied to the thread that made it. The words in it are accessed atomically only.
unsafe impl<const N: usize> Send for SharedWords<N> {}

impl<const N: usize> SharedWords<N> {
    /// The bytes of the mapping: one page of the smallest size. The kernel maps whole pages.
    const BYTES: NonZeroUsize = NonZeroUsize::new(4096).expect("it is not zero");

    /// Creates the words, all zero.
    pub(crate) fn new() -> Result<SharedWords<N>, Errno> {
        let attributes = MapCreate {
            map_type: BPF_MAP_TYPE_ARRAY,
            key_size: 4,
            value_size: (N * size_of::<u32>()) as u32,
            entries: 1,
            flags: BPF_F_MMAPABLE,
        };
        let map = bpf(BPF_MAP_CREATE, &attributes)?;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address that the kernel chooses. It invalidates no memory of ours.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                Self::BYTES.get(),
                protection,
                libc::MAP_SHARED,
                map.as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(Errno::last());
        }
        let base = NonNull::new(base).expect("mmap without MAP_FIXED never maps page zero");
        Ok(SharedWords { map, base })
    }

    /// Sets a word. Programs that start afterwards read the new value.
    pub(crate) fn set(&self, word: usize, value: u32) {
        assert!(word < N, "there are {N} words");
        // SAFETY: the word is inside the mapping, which lives as long as `self`, and is aligned to 4. This
        // process accesses it only here, and programs read whole words.
        let word = unsafe { AtomicU32::from_ptr(self.base.as_ptr().cast::<u32>().add(word)) };
        word.store(value, Ordering::SeqCst);
    }

    /// Sets a word to zero when the result is dropped, or when this process dies. The guardian must be
    /// dropped first, but if it is not, its copy of the mapping still exists.
    pub(crate) fn clear_at_death(&self, word: usize) -> Result<Guardian, Errno> {
        assert!(word < N, "there are {N} words");
        // SAFETY: the word is inside the mapping.
        let address = unsafe { self.base.as_ptr().cast::<u32>().add(word) };
        let work = || {
            // SAFETY: the child has a copy of the mapping, which it shares with the programs. It is aligned
            // to 4, and every process accesses its words atomically.
            unsafe { AtomicU32::from_ptr(address) }.store(0, Ordering::SeqCst);
        };
        // SAFETY: the work is one store into memory that exists.
        unsafe { Guardian::start(work) }
    }

    /// Returns the two halves of the instruction `to = address of the word`.
    pub(crate) fn address(&self, to: u8, word: usize) -> [Instruction; 2] {
        let offset = (word * size_of::<u32>()) as i32;
        [
            Instruction::new(0x18, to, BPF_PSEUDO_MAP_VALUE, 0, self.map.as_raw_fd()),
            Instruction::new(0, 0, 0, 0, offset),
        ]
    }
}

impl<const N: usize> Drop for SharedWords<N> {
    fn drop(&mut self) {
        // SAFETY: `mmap` made the mapping with this length, and no reference into it outlives `self`.
        unsafe { libc::munmap(self.base.as_ptr(), Self::BYTES.get()) };
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
