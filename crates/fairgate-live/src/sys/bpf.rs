//! Small BPF programs for tc's hooks, for sockets and for XDP. They are assembled here, and loaded and
//! attached by `bpf(2)`.
//!
//! The layouts of `union bpf_attr` and of instructions are those of linux/bpf.h. Programs without loops,
//! whose maps are a few words of memory, a list of sockets and a list of prefixes, need neither a compiler
//! nor a library (aya, libbpf): these would load an object file that a compiler with a BPF target has to make
//! first.

use std::ffi::CStr;
use std::num::NonZeroUsize;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use caps::{CapSet, Capability};
use nix::errno::Errno;

use crate::sys::guardian::Guardian;
use crate::sys::mapping::Mapping;

const BPF_MAP_CREATE: libc::c_long = 0;
const BPF_MAP_UPDATE_ELEM: libc::c_long = 2;
const BPF_MAP_DELETE_ELEM: libc::c_long = 3;
const BPF_PROG_LOAD: libc::c_long = 5;
const BPF_PROG_QUERY: libc::c_long = 16;
const BPF_LINK_CREATE: libc::c_long = 28;
const BPF_PROG_TYPE_SOCKET_FILTER: u32 = 1;
const BPF_PROG_TYPE_SCHED_CLS: u32 = 3;
const BPF_PROG_TYPE_XDP: u32 = 6;
const BPF_MAP_TYPE_ARRAY: u32 = 2;
const BPF_MAP_TYPE_LPM_TRIE: u32 = 11;
const BPF_MAP_TYPE_XSKMAP: u32 = 17;
/// `BPF_XDP` of `enum bpf_attach_type`.
const ATTACH_XDP: u32 = 37;
/// The program runs in the driver (linux/if_link.h).
const XDP_FLAGS_DRV_MODE: u32 = 1 << 2;
/// The program belongs to one interface, and may call the functions of its driver.
const BPF_F_XDP_DEV_BOUND_ONLY: u32 = 1 << 6;
/// In the place of a source register: the immediate is the descriptor of a map.
const BPF_PSEUDO_MAP_FD: u8 = 1;
/// In the place of a source register of a call: the immediate is the number of a kernel function in BTF.
const BPF_PSEUDO_KFUNC_CALL: u8 = 2;
/// The map's values can be mapped into the memory of a process.
const BPF_F_MMAPABLE: u32 = 1 << 10;
/// In the place of a source register: the immediates are the descriptor of a map, and an offset in its value.
const BPF_PSEUDO_MAP_VALUE: u8 = 2;
/// Entries are allocated when they are added. Tries need it.
const BPF_F_NO_PREALLOC: u32 = 1;
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

    /// `to += immediate`
    pub(crate) const fn add(to: u8, immediate: i32) -> Instruction {
        Instruction::new(0x07, to, 0, 0, immediate)
    }

    /// `to >>= immediate`
    pub(crate) const fn shift_right(to: u8, immediate: i32) -> Instruction {
        Instruction::new(0x77, to, 0, 0, immediate)
    }

    /// `to -= from`
    pub(crate) const fn subtract(to: u8, from: u8) -> Instruction {
        Instruction::new(0x1f, to, from, 0, 0)
    }

    /// `to` = the 64-bit word at `from + offset`
    pub(crate) const fn load(to: u8, from: u8, offset: i16) -> Instruction {
        Instruction::new(0x79, to, from, offset, 0)
    }

    /// The 64-bit word at `to + offset` = `from`
    pub(crate) const fn store(to: u8, offset: i16, from: u8) -> Instruction {
        Instruction::new(0x7b, to, from, offset, 0)
    }

    /// The 64-bit word at `to + offset` += `from`, atomically
    pub(crate) const fn add_to_memory(to: u8, offset: i16, from: u8) -> Instruction {
        Instruction::new(0xdb, to, from, offset, 0)
    }

    /// `to` = the 32-bit word at `from + offset`
    pub(crate) const fn load_word(to: u8, from: u8, offset: i16) -> Instruction {
        Instruction::new(0x61, to, from, offset, 0)
    }

    /// `to` = the 16-bit word at `from + offset`
    pub(crate) const fn load_half(to: u8, from: u8, offset: i16) -> Instruction {
        Instruction::new(0x69, to, from, offset, 0)
    }

    /// The 16-bit word at `to + offset` = `from`
    pub(crate) const fn store_half(to: u8, offset: i16, from: u8) -> Instruction {
        Instruction::new(0x6b, to, from, offset, 0)
    }

    /// The 32-bit word at `to + offset` = `from`
    pub(crate) const fn store_word(to: u8, offset: i16, from: u8) -> Instruction {
        Instruction::new(0x63, to, from, offset, 0)
    }

    /// The 32-bit word at `to + offset` = `immediate`
    pub(crate) const fn store_immediate(to: u8, offset: i16, immediate: i32) -> Instruction {
        Instruction::new(0x62, to, 0, offset, immediate)
    }

    /// Skips `skip` instructions if `register != immediate`.
    pub(crate) const fn jump_unless_equal(register: u8, immediate: i32, skip: i16) -> Instruction {
        Instruction::new(0x55, register, 0, skip, immediate)
    }

    /// Skips `skip` instructions if `register == immediate`.
    pub(crate) const fn jump_if_equal(register: u8, immediate: i32, skip: i16) -> Instruction {
        Instruction::new(0x15, register, 0, skip, immediate)
    }

    /// Skips `skip` instructions if `register <= other`, without sign.
    pub(crate) const fn jump_unless_above(register: u8, other: u8, skip: i16) -> Instruction {
        Instruction::new(0xbd, register, other, skip, 0)
    }

    /// Skips `skip` instructions if `register <= immediate`, with sign.
    pub(crate) const fn jump_unless_greater(register: u8, immediate: i32, skip: i16) -> Instruction {
        Instruction::new(0xd5, register, 0, skip, immediate)
    }

    /// Skips `skip` instructions.
    pub(crate) const fn jump(skip: i16) -> Instruction {
        Instruction::new(0x05, 0, 0, skip, 0)
    }

    /// Calls a kernel function by its number in BTF. Otherwise as [`Instruction::call`].
    pub(crate) const fn call_function(number: i32) -> Instruction {
        Instruction::new(0x85, 0, BPF_PSEUDO_KFUNC_CALL, 0, number)
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

/// `N` words of 64 bits that this process and programs read and write: an array map with one value, mapped
/// into memory.
#[derive(Debug)]
pub(crate) struct SharedWords<const N: usize> {
    map: OwnedFd,
    /// The words in it are accessed atomically only.
    memory: Mapping,
}

impl<const N: usize> SharedWords<N> {
    /// The bytes of the mapping: one page of the smallest size. The kernel maps whole pages.
    const BYTES: NonZeroUsize = NonZeroUsize::new(4096).expect("it is not zero");

    /// Creates the words, all zero.
    pub(crate) fn new() -> Result<SharedWords<N>, Errno> {
        let attributes = MapCreate {
            map_type: BPF_MAP_TYPE_ARRAY,
            key_size: 4,
            value_size: (N * size_of::<u64>()) as u32,
            entries: 1,
            flags: BPF_F_MMAPABLE,
        };
        let map = bpf(BPF_MAP_CREATE, &attributes)?;
        let memory = Mapping::of_map(&map, Self::BYTES)?;
        Ok(SharedWords { map, memory })
    }

    /// Sets a word. Programs that start afterwards read the new value.
    #[inline]
    pub(crate) fn set(&self, word: usize, value: u64) {
        self.word(word).store(value, Ordering::SeqCst);
    }

    /// Returns a word.
    #[inline]
    pub(crate) fn get(&self, word: usize) -> u64 {
        self.word(word).load(Ordering::SeqCst)
    }

    #[inline]
    fn word(&self, word: usize) -> &AtomicU64 {
        assert!(word < N, "there are {N} words");
        // SAFETY: the word is inside the mapping, which lives as long as `self`, and is aligned to 8. This
        // process accesses it only here, and programs read, write and add whole words.
        unsafe { AtomicU64::from_ptr(self.memory.base().as_ptr().cast::<u64>().add(word)) }
    }

    /// Sets a word to zero when the result is dropped, or when this process dies. The guardian must be
    /// dropped first, but if it is not, its copy of the mapping still exists.
    pub(crate) fn clear_at_death(&self, word: usize) -> Result<Guardian, Errno> {
        assert!(word < N, "there are {N} words");
        // SAFETY: the word is inside the mapping.
        let address = unsafe { self.memory.base().as_ptr().cast::<u64>().add(word) };
        let work = || {
            // SAFETY: the child has a copy of the mapping, which it shares with the programs. It is aligned
            // to 8, and every process accesses its words atomically.
            unsafe { AtomicU64::from_ptr(address) }.store(0, Ordering::SeqCst);
        };
        // SAFETY: the work is one store into memory that exists.
        unsafe { Guardian::start(&[], work) }
    }

    /// Returns the two halves of the instruction `to = address of the word`.
    pub(crate) fn address(&self, to: u8, word: usize) -> [Instruction; 2] {
        let offset = (word * size_of::<u64>()) as i32;
        [
            Instruction::new(0x18, to, BPF_PSEUDO_MAP_VALUE, 0, self.map.as_raw_fd()),
            Instruction::new(0, 0, 0, 0, offset),
        ]
    }
}

/// AF_XDP sockets by the number of their receive queue, for programs. A socket that is closed leaves the map.
#[derive(Debug)]
pub(crate) struct SocketMap(OwnedFd);

/// The part of `union bpf_attr` that `BPF_MAP_UPDATE_ELEM` reads.
#[repr(C)]
struct MapUpdate {
    map: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// A map from prefixes of addresses of `N` bytes to a word: the longest prefix counts.
#[derive(Debug)]
pub(crate) struct PrefixMap<const N: usize>(OwnedFd);

/// `struct bpf_lpm_trie_key`: the length of the prefix in bits, and the address.
#[repr(C)]
struct PrefixKey<const N: usize> {
    length: u32,
    address: [u8; N],
}

impl<const N: usize> PrefixMap<N> {
    /// The most prefixes. A tree has at most 65,536 classes, and a class may have several prefixes.
    const MOST: u32 = 1 << 20;

    /// Creates an empty map.
    pub(crate) fn new() -> Result<PrefixMap<N>, Errno> {
        let attributes = MapCreate {
            map_type: BPF_MAP_TYPE_LPM_TRIE,
            key_size: size_of::<PrefixKey<N>>() as u32,
            value_size: 4,
            entries: Self::MOST,
            flags: BPF_F_NO_PREALLOC,
        };
        bpf(BPF_MAP_CREATE, &attributes).map(PrefixMap)
    }

    /// Sets the word of a prefix. Programs that start afterwards find it.
    pub(crate) fn set(&self, address: [u8; N], length: u8, word: u32) -> Result<(), Errno> {
        let key = PrefixKey {
            length: length.into(),
            address,
        };
        update(&self.0, &key, &word)
    }

    /// Removes a prefix.
    pub(crate) fn remove(&self, address: [u8; N], length: u8) -> Result<(), Errno> {
        let key = PrefixKey {
            length: length.into(),
            address,
        };
        let attributes = MapUpdate {
            map: self.0.as_raw_fd() as u32,
            padding: 0,
            key: (&raw const key).expose_provenance() as u64,
            value: 0,
            flags: 0,
        };
        call(BPF_MAP_DELETE_ELEM, &attributes).map(drop)
    }

    /// Returns the two halves of the instruction `to = the map`.
    pub(crate) fn address(&self, to: u8) -> [Instruction; 2] {
        address_of(&self.0, to)
    }
}

/// Sets the value of a key in a map. `K` and `V` have the sizes with which the map was made.
fn update<K, V>(map: &OwnedFd, key: &K, value: &V) -> Result<(), Errno> {
    let attributes = MapUpdate {
        map: map.as_raw_fd() as u32,
        padding: 0,
        key: (&raw const *key).expose_provenance() as u64,
        value: (&raw const *value).expose_provenance() as u64,
        flags: 0,
    };
    call(BPF_MAP_UPDATE_ELEM, &attributes).map(drop)
}

/// Returns the two halves of the instruction `to = the map`.
fn address_of(map: &OwnedFd, to: u8) -> [Instruction; 2] {
    [
        Instruction::new(0x18, to, BPF_PSEUDO_MAP_FD, 0, map.as_raw_fd()),
        Instruction::new(0, 0, 0, 0, 0),
    ]
}

impl SocketMap {
    /// Creates an empty map for queues below `queues`.
    pub(crate) fn new(queues: u32) -> Result<SocketMap, Errno> {
        let attributes = MapCreate {
            map_type: BPF_MAP_TYPE_XSKMAP,
            key_size: 4,
            value_size: 4,
            entries: queues,
            flags: 0,
        };
        bpf(BPF_MAP_CREATE, &attributes).map(SocketMap)
    }

    /// Adds a bound socket. Programs that start afterwards find it.
    pub(crate) fn insert(&self, queue: u32, socket: &OwnedFd) -> Result<(), Errno> {
        update(&self.0, &queue, &(socket.as_raw_fd() as u32))
    }

    /// Returns the two halves of the instruction `to = the map`.
    pub(crate) fn address(&self, to: u8) -> [Instruction; 2] {
        address_of(&self.0, to)
    }
}

/// The part of `union bpf_attr` that `BPF_PROG_LOAD` reads.
#[repr(C)]
struct ProgramLoad {
    program_type: u32,
    count: u32,
    instructions: u64,
    license: u64,
    /// log_level, log_size, log_buf and kern_version, all zero.
    unused: [u32; 5],
    flags: u32,
    /// prog_name, empty.
    name: [u32; 4],
    interface: u32,
    padding: u32,
}

impl ProgramLoad {
    fn new(program_type: u32, program: &[Instruction], license: &'static CStr) -> ProgramLoad {
        ProgramLoad {
            program_type,
            count: program.len() as u32,
            instructions: program.as_ptr().expose_provenance() as u64,
            license: license.as_ptr().expose_provenance() as u64,
            unused: [0; 5],
            flags: 0,
            name: [0; 4],
            interface: 0,
            padding: 0,
        }
    }
}

/// The part of `union bpf_attr` that `BPF_LINK_CREATE` reads for TCX. XDP has no relatives and revisions.
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
    let attributes = ProgramLoad::new(BPF_PROG_TYPE_SCHED_CLS, program, c"MIT");
    bpf(BPF_PROG_LOAD, &attributes)
}

/// Loads a program for sockets into the kernel, which verifies it.
pub(crate) fn load_for_sockets(program: &[Instruction]) -> Result<OwnedFd, Errno> {
    let attributes = ProgramLoad::new(BPF_PROG_TYPE_SOCKET_FILTER, program, c"MIT");
    bpf(BPF_PROG_LOAD, &attributes)
}

/// Loads an XDP program. If `interface` is given, the program belongs to it and may call kernel functions.
///
/// The kernel lets programs call its functions only if they may be used under the GPL. These may: this
/// crate's licence, MIT, allows that, but the kernel's list has no entry for MIT alone.
pub(crate) fn load_xdp(program: &[Instruction], interface: Option<u32>) -> Result<OwnedFd, Errno> {
    let license = match interface {
        Some(_) => c"Dual MIT/GPL",
        None => c"MIT",
    };
    let mut attributes = ProgramLoad::new(BPF_PROG_TYPE_XDP, program, license);
    if let Some(index) = interface {
        attributes.flags = BPF_F_XDP_DEV_BOUND_ONLY;
        attributes.interface = index;
    }
    bpf(BPF_PROG_LOAD, &attributes)
}

/// Attaches an XDP program in the driver of an interface. It runs until the returned descriptor is closed.
pub(crate) fn attach_xdp(program: &OwnedFd, interface: u32) -> Result<OwnedFd, Errno> {
    let attributes = LinkCreate {
        program: program.as_raw_fd() as u32,
        interface,
        hook: ATTACH_XDP,
        flags: XDP_FLAGS_DRV_MODE,
        relative: 0,
        padding: 0,
        expected_revision: 0,
    };
    bpf(BPF_LINK_CREATE, &attributes)
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

/// Calls a command that returns a new descriptor.
fn bpf<T>(command: libc::c_long, attributes: &T) -> Result<OwnedFd, Errno> {
    let number = call(command, attributes)?;
    // SAFETY: a descriptor that is returned is new, and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// `query` of `union bpf_attr`, with all that the kernel may write of it.
#[repr(C)]
#[derive(Default)]
struct ProgramQuery {
    interface: u32,
    hook: u32,
    flags: u32,
    attach_flags: u32,
    /// No memory for the numbers of programs: they are only counted.
    programs: u64,
    count: u32,
    padding: u32,
    more: [u64; 4],
}

/// Asks the kernel whether programs can be attached to an interface at a hook of tc. Nothing is changed.
pub(crate) fn query(interface: u32, hook: Hook) -> Result<(), Errno> {
    let mut attributes = ProgramQuery {
        interface,
        hook: hook as u32,
        ..ProgramQuery::default()
    };
    // SAFETY: the kernel reads and writes a live structure of integers without padding, which is exclusively
    // borrowed and as long as its part of `union bpf_attr`. The address in it is none.
    let result = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            BPF_PROG_QUERY,
            std::ptr::from_mut(&mut attributes),
            size_of::<ProgramQuery>(),
        )
    };
    Errno::result(result).map(drop)
}

/// Calls a command. `T` is its part of `union bpf_attr`.
fn call<T>(command: libc::c_long, attributes: &T) -> Result<i32, Errno> {
    // SAFETY: the kernel reads `size_of::<T>()` bytes of a live structure of integers without padding, and
    // the memory that its addresses point to: the given number of instructions, a zero-terminated string, or
    // a key and a value of the sizes with which the map was made. All of it outlives the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command,
            std::ptr::from_ref(attributes),
            size_of::<T>(),
        )
    };
    Errno::result(result).map(|number| number as i32)
}

/// Returns whether the kernel lets this thread attach programs to interfaces, as far as capabilities decide.
pub(crate) fn may_use_programs() -> bool {
    let has = |capability| caps::has_cap(None, CapSet::Effective, capability).unwrap_or(false);
    // Before Linux 5.8, and for all of bpf(2) since, this one is enough.
    let all = has(Capability::CAP_SYS_ADMIN);
    has(Capability::CAP_NET_ADMIN) && (all || has(Capability::CAP_BPF))
}
