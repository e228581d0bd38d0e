//! All unsafe code of this crate: memory shared with the kernel, and system calls that no crate wraps.
//!
//! ```text
//!   mapping     memory shared with the kernel        unsafe: mmap
//!   chunks      memory in chunks for frames          unsafe: pointers into the mapping
//!   frames      stores frames in chunks              unsafe: reads and writes chunks
//!   layout      where a slot is in a ring: arithmetic
//!   ring        reads slots of mapped memory         unsafe: pointers into the mapping
//!   socket      AF_PACKET sockets, receive and send  unsafe: setsockopt
//!   fanout      divides frames among sockets
//!   batch       sends many frames at once            unsafe: sendmmsg
//!   xdp_ring    the rings of an AF_XDP socket        unsafe: pointers into the mapping
//!   xdp_socket  AF_XDP sockets, receive and send     unsafe: bind, sendto, frames in mapped memory
//!   guardian    a child process that outlives us     unsafe: fork
//!   interface   ioctls on interfaces                 unsafe: ioctl
//!   features    which features of an interface are on
//!   bpf         programs at tc's hooks and for XDP   unsafe: bpf, words in mapped memory
//!   priority    real-time scheduling                 unsafe: sched_setscheduler
//!   tcp         the kernel's figures of connections  unsafe: getsockopt, setsockopt
//!   tun_tap     creates TAP devices                  unsafe: ioctl
//!   udp         datagrams that are never cut         unsafe: setsockopt
//! ```
//!
//! All functions that these modules export are safe to call, or state their safety contract.

#![allow(unsafe_code)]

pub(crate) mod batch;
pub(crate) mod bpf;
pub(crate) mod chunks;
pub(crate) mod fanout;
pub(crate) mod features;
pub(crate) mod frames;
pub(crate) mod guardian;
pub(crate) mod interface;
pub(crate) mod layout;
pub(crate) mod mapping;
pub(crate) mod prefix_table;
pub(crate) mod priority;
pub(crate) mod ring;
pub(crate) mod socket;
pub(crate) mod tcp;
pub(crate) mod tun_tap;
pub(crate) mod udp;
mod xdp_ring;
pub(crate) mod xdp_socket;

/// Returns the error with which the kernel refuses to tell its version of Landlock, if it does
/// (landlock_create_ruleset(2)).
pub(crate) fn landlock_refusal() -> Option<nix::errno::Errno> {
    /// `LANDLOCK_CREATE_RULESET_VERSION` of linux/landlock.h.
    const VERSION: libc::c_uint = 1;
    // SAFETY: the call gets no memory. It returns a number and changes nothing.
    let version = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<u8>(),
            0usize,
            VERSION,
        )
    };
    nix::errno::Errno::result(version).err()
}
