//! Reads a TPACKET_V2 receive ring: slots that the kernel fills and we hand back, in turn.
//!
//! The first word of a slot says whose it is. The kernel writes a frame and then sets `TP_STATUS_USER`; we read the
//! frame and then set `TP_STATUS_KERNEL`. Acquire and release on that word order everything else, so that no lock and
//! no system call is needed while frames are there.
//!
//! Why version 2: a slot holds one frame and is ours the moment the frame is in (ping 34-60 us through a bridge).
//! Version 3 packs frames into blocks and hands over a block when it is full or after a time-out of milliseconds: up
//! to a fifth more packets per second, but a wait in front of every queue that this library is there to keep short.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use libc::tpacket2_hdr;

use crate::offload::{VNET_HEADER, VnetHeader};
use crate::sys::layout::Layout;
use crate::vlan::Tag;

/// A frame as it lies in its slot.
pub(crate) struct Received<'a> {
    /// The bytes that were captured, from the link header on.
    pub(crate) bytes: &'a [u8],
    /// Length of the frame on the wire; above `bytes.len()` if the slot was too small.
    pub(crate) length: usize,
    /// Whether the whole frame also waits in the socket's receive queue, because the slot was too small.
    pub(crate) copied: bool,
    /// The VLAN tag that the kernel took out of the frame.
    pub(crate) tag: Option<Tag>,
    /// What the sender left to the hardware.
    pub(crate) offload: VnetHeader,
}

/// A cursor over a ring in memory that someone else keeps mapped.
#[derive(Debug)]
pub(crate) struct Ring {
    base: NonNull<u8>,
    layout: Layout,
    next: usize,
}

// SAFETY: the ring's memory belongs to this cursor alone on our side; a raw pointer has no ties to a thread.
unsafe impl Send for Ring {}

impl Ring {
    /// A cursor at slot 0.
    ///
    /// # Safety
    /// `base` points to `layout.bytes()` bytes, aligned to 16, readable and writable for as long as the `Ring` is
    /// used, all of them initialised. Whoever fills a slot stops touching it when he sets its status to
    /// `TP_STATUS_USER`, with release ordering, until the status is `TP_STATUS_KERNEL` again. Nobody else on our side
    /// reads or writes the memory.
    pub(crate) unsafe fn new(base: NonNull<u8>, layout: Layout) -> Ring {
        Ring {
            base,
            layout,
            next: 0,
        }
    }

    /// The start of the slot that is next.
    fn slot(&self) -> *mut u8 {
        // SAFETY: `next` is below `layout.slots`, so that the slot lies within the memory promised to `new`.
        unsafe { self.base.as_ptr().add(self.layout.offset(self.next)) }
    }

    fn status(&self) -> &AtomicU32 {
        // SAFETY: `tp_status` is the first field, a u32, and a slot is aligned to 16. Both sides access this word
        // atomically only (the header copied in `front` is read while the slot is ours, when nobody writes it).
        unsafe { AtomicU32::from_ptr(self.slot().cast()) }
    }

    /// The oldest frame that we haven't released, if the kernel has filled the slot.
    #[inline]
    pub(crate) fn front(&self) -> Option<Received<'_>> {
        let status = self.status().load(Ordering::Acquire);
        if status & libc::TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: the slot is ours until `release`, the header is at its start, aligned, and plain integers.
        let header: tpacket2_hdr = unsafe { self.slot().cast::<tpacket2_hdr>().read() };
        let start = usize::from(header.tp_mac);
        let length = header.tp_snaplen as usize;
        assert!(
            start >= size_of::<tpacket2_hdr>() + VNET_HEADER && start + length <= self.layout.slot,
            "the kernel keeps a frame and its headers within their slot"
        );
        // SAFETY: the assertion keeps both slices inside the slot, which nobody writes before `release`; that takes
        // `&mut self` and so ends the borrow that these slices live by.
        let (vnet, bytes) = unsafe {
            let frame = self.slot().add(start);
            (
                std::slice::from_raw_parts(frame.sub(VNET_HEADER), VNET_HEADER),
                std::slice::from_raw_parts(frame, length),
            )
        };
        let tag = (status & libc::TP_STATUS_VLAN_VALID != 0).then_some(Tag {
            // Kernels before 3.14 do not tell the protocol.
            tpid: if status & libc::TP_STATUS_VLAN_TPID_VALID != 0 {
                header.tp_vlan_tpid
            } else {
                Tag::CUSTOMER
            },
            tci: header.tp_vlan_tci,
        });
        Some(Received {
            bytes,
            length: header.tp_len as usize,
            copied: status & libc::TP_STATUS_COPY != 0,
            tag,
            offload: VnetHeader::parse(vnet),
        })
    }

    /// Hands the slot that [`Ring::front`] showed back to the kernel.
    #[inline]
    pub(crate) fn release(&mut self) {
        self.status().store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = self.layout.next(self.next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Memory that plays the kernel's part, aligned to 16.
    struct Memory {
        words: Vec<u128>,
        layout: Layout,
    }

    impl Memory {
        fn new(slots: usize) -> Memory {
            let layout = Layout::new(1000, slots).unwrap();
            Memory {
                words: vec![0; layout.bytes() / 16],
                layout,
            }
        }

        fn base(&mut self) -> NonNull<u8> {
            NonNull::new(self.words.as_mut_ptr().cast()).unwrap()
        }
    }

    /// What the kernel does: frame, virtio header and slot header first, the status last.
    fn deliver(base: NonNull<u8>, layout: Layout, index: usize, frame: &[u8], status: u32, tci: u16) {
        let start = 90usize;
        let header = tpacket2_hdr {
            tp_status: 0,
            tp_len: frame.len() as u32,
            tp_snaplen: frame.len() as u32,
            tp_mac: start as u16,
            tp_net: start as u16 + 14,
            tp_sec: 0,
            tp_nsec: 0,
            tp_vlan_tci: tci,
            tp_vlan_tpid: 0x88a8,
            tp_padding: [0; 4],
        };
        // SAFETY: the test's memory spans the layout, and the slot is the kernel's now.
        unsafe {
            let slot = base.as_ptr().add(layout.offset(index));
            slot.cast::<tpacket2_hdr>().write(header);
            slot.add(start)
                .copy_from_nonoverlapping(frame.as_ptr(), frame.len());
            AtomicU32::from_ptr(slot.cast()).store(status, Ordering::Release);
        }
    }

    #[test]
    fn frames_come_in_turn_and_slots_go_back() {
        let mut memory = Memory::new(32);
        let (base, layout) = (memory.base(), memory.layout);
        // SAFETY: `memory` outlives the ring, spans the layout and is touched through `base` only.
        let mut ring = unsafe { Ring::new(base, layout) };
        assert!(ring.front().is_none());
        for round in 0..100u8 {
            let first = usize::from(round) * 3 % layout.slots;
            for offset in 0..3 {
                let frame = vec![round; 60 + offset];
                deliver(
                    base,
                    layout,
                    (first + offset) % layout.slots,
                    &frame,
                    libc::TP_STATUS_USER,
                    0,
                );
            }
            for offset in 0..3 {
                let received = ring.front().unwrap();
                assert_eq!(received.bytes, vec![round; 60 + offset]);
                assert_eq!((received.length, received.tag), (60 + offset, None));
                ring.release();
            }
            assert!(ring.front().is_none(), "the kernel hasn't filled the next slot");
        }
    }

    #[test]
    fn status_bits_tell_of_tags_and_copies() {
        let mut memory = Memory::new(32);
        let (base, layout) = (memory.base(), memory.layout);
        // SAFETY: `memory` outlives the ring, spans the layout and is touched through `base` only.
        let mut ring = unsafe { Ring::new(base, layout) };
        let tagged = libc::TP_STATUS_USER | libc::TP_STATUS_VLAN_VALID;
        deliver(base, layout, 0, &[1; 60], tagged, 7);
        deliver(
            base,
            layout,
            1,
            &[1; 60],
            tagged | libc::TP_STATUS_VLAN_TPID_VALID,
            7,
        );
        deliver(
            base,
            layout,
            2,
            &[1; 60],
            libc::TP_STATUS_USER | libc::TP_STATUS_COPY,
            7,
        );
        assert_eq!(ring.front().unwrap().tag, Some(Tag { tpid: 0x8100, tci: 7 }));
        ring.release();
        assert_eq!(ring.front().unwrap().tag, Some(Tag { tpid: 0x88a8, tci: 7 }));
        ring.release();
        let received = ring.front().unwrap();
        assert!(received.copied && received.tag.is_none());
    }
}
