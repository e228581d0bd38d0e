//! Reads a TPACKET_V2 receive ring. The kernel fills its slots in order, and we return them in order.
//!
//! The first word of a slot says who owns it. The kernel writes a frame and then sets `TP_STATUS_USER`. We
//! read the frame and then set `TP_STATUS_KERNEL`. Acquire and release operations on that word order all
//! other accesses. While there are frames, neither a lock nor a system call is needed.
//!
//! Why version 2: a slot holds one frame and is ours as soon as the frame is there (ping 34-60 us through a
//! bridge). Version 3 packs frames into blocks, and hands over a block when it is full or after a timeout of
//! milliseconds. It forwards up to a fifth more packets per second, but adds a delay in front of every queue.
//! Short delays are the purpose of this program.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use libc::tpacket2_hdr;

use crate::offload::{VNET_HEADER, VnetHeader};
use crate::received::Received;
use crate::sys::layout::Layout;
use crate::vlan::Tag;

/// A filled slot.
pub(crate) struct Filled<'a> {
    /// The frame.
    pub(crate) received: Received<'a>,
    /// Whether the whole frame is also in the socket's receive queue, because the slot was too small.
    pub(crate) is_copied: bool,
}

/// A cursor over a ring. The owner of the `Ring` keeps the memory mapped.
#[derive(Debug)]
pub(crate) struct Ring {
    base: NonNull<u8>,
    layout: Layout,
    next: usize,
}

// SAFETY: on our side only this cursor uses the ring's memory; a raw pointer is not tied to a thread.
unsafe impl Send for Ring {}

impl Ring {
    /// Creates a cursor at slot 0.
    ///
    /// # Safety
    /// `base` points to `layout.bytes()` initialised bytes. They are aligned to 16, and readable and writable
    /// for as long as the `Ring` is used. The other side that fills a slot sets its status to
    /// `TP_STATUS_USER` with release ordering, and then does not touch the slot until the status is
    /// `TP_STATUS_KERNEL` again. Nothing else on our side reads or writes the memory.
    pub(crate) unsafe fn new(base: NonNull<u8>, layout: Layout) -> Ring {
        Ring {
            base,
            layout,
            next: 0,
        }
    }

    /// Returns the start of the next slot.
    fn slot(&self) -> *mut u8 {
        // SAFETY: `next` is below `layout.slots`, so the slot is within the memory promised to `new`.
        unsafe { self.base.as_ptr().add(self.layout.offset(self.next)) }
    }

    fn status(&self) -> &AtomicU32 {
        // SAFETY: `tp_status` is the first field, a u32, and a slot is aligned to 16. Both sides access this
        // word only atomically. (`front` copies the header while the slot is ours; then nobody writes it.)
        unsafe { AtomicU32::from_ptr(self.slot().cast()) }
    }

    /// Returns the oldest frame that was not released, if the kernel has filled the slot.
    #[inline]
    pub(crate) fn front(&self) -> Option<Filled<'_>> {
        let status = self.status().load(Ordering::Acquire);
        if status & libc::TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: the slot is ours until `release`; the header is at its start, aligned, and consists of
        // integers.
        let header: tpacket2_hdr = unsafe { self.slot().cast::<tpacket2_hdr>().read() };
        let start = usize::from(header.tp_mac);
        let length = header.tp_snaplen as usize;
        assert!(
            start >= size_of::<tpacket2_hdr>() + VNET_HEADER && start + length <= self.layout.slot,
            "the kernel must keep a frame and its headers within the slot"
        );
        // SAFETY: the assertion keeps both slices inside the slot, which nobody writes before `release`.
        // `release` takes `&mut self`, which ends the borrow of these slices.
        let (vnet, bytes) = unsafe {
            let frame = self.slot().add(start);
            (
                std::slice::from_raw_parts(frame.sub(VNET_HEADER), VNET_HEADER),
                std::slice::from_raw_parts(frame, length),
            )
        };
        let tag = (status & libc::TP_STATUS_VLAN_VALID != 0).then_some(Tag {
            // Kernels before 3.14 do not report the protocol.
            tpid: if status & libc::TP_STATUS_VLAN_TPID_VALID != 0 {
                header.tp_vlan_tpid
            } else {
                Tag::CUSTOMER
            },
            tci: header.tp_vlan_tci,
        });
        Some(Filled {
            received: Received {
                bytes,
                length: header.tp_len as usize,
                tag,
                offload: VnetHeader::parse(vnet),
            },
            is_copied: status & libc::TP_STATUS_COPY != 0,
        })
    }

    /// Returns the slot of [`Ring::front`] to the kernel.
    #[inline]
    pub(crate) fn release(&mut self) {
        self.status().store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = self.layout.next(self.next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Memory aligned to 16, in which the test acts as the kernel.
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

    /// Fills a slot as the kernel does: frame, virtio header and slot header first, the status last.
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
        // SAFETY: the test's memory spans the layout, and the kernel's side owns the slot now.
        unsafe {
            let slot = base.as_ptr().add(layout.offset(index));
            slot.cast::<tpacket2_hdr>().write(header);
            slot.add(start)
                .copy_from_nonoverlapping(frame.as_ptr(), frame.len());
            AtomicU32::from_ptr(slot.cast()).store(status, Ordering::Release);
        }
    }

    #[test]
    fn frames_are_read_in_order_and_slots_are_reused() {
        let mut memory = Memory::new(32);
        let (base, layout) = (memory.base(), memory.layout);
        // SAFETY: `memory` outlives the ring, spans the layout and is touched through `base` only.
        let mut ring = unsafe { Ring::new(base, layout) };
        assert!(ring.front().is_none());
        for pass in 0..100u8 {
            let first = usize::from(pass) * 3 % layout.slots;
            for offset in 0..3 {
                let frame = vec![pass; 60 + offset];
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
                let received = ring.front().unwrap().received;
                assert_eq!(received.bytes, vec![pass; 60 + offset]);
                assert_eq!((received.length, received.tag), (60 + offset, None));
                ring.release();
            }
            assert!(ring.front().is_none(), "the kernel has not filled the next slot");
        }
    }

    #[test]
    fn status_bits_report_tags_and_copies() {
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
        assert_eq!(
            ring.front().unwrap().received.tag,
            Some(Tag { tpid: 0x8100, tci: 7 })
        );
        ring.release();
        assert_eq!(
            ring.front().unwrap().received.tag,
            Some(Tag { tpid: 0x88a8, tci: 7 })
        );
        ring.release();
        let filled = ring.front().unwrap();
        assert!(filled.is_copied && filled.received.tag.is_none());
    }
}
