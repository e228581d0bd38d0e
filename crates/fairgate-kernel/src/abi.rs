//! The functions that the C part of the module calls, and what they need of the kernel. `module/fairgate.h`
//! declares both.
//!
//! Each function is called within a guard (`guard.S`): a panic ends the call, not the kernel. Nothing is
//! unwound. The queue is then only asked for its packets (`fgk_salvage`), and its memory is released block by
//! block, without its destructors.

use alloc::boxed::Box;
use core::alloc::{GlobalAlloc, Layout};
use core::fmt::Write;
use core::slice;

use fairgate::{DropReason, Next, Packet, Slot, Statistics, Time};

use crate::form::Refused;
use crate::nodes::Reading;
use crate::prepared::Prepared;
use crate::queue::{Arriving, Queue};
use crate::tree::Plan;

// SAFETY: `module/packet.c`, `memory.c` and `panic.c` define them with these types.
unsafe extern "C" {
    fn fgk_alloc(size: usize, align: usize, is_zeroed: bool) -> *mut u8;
    fn fgk_free(at: *mut u8);
    fn fgk_copy(skb: u64) -> u64;
    fn fgk_panic(text: *const u8, length: usize) -> !;
}

struct Kernel;

// SAFETY: `fgk_alloc` returns null, or memory of this size and alignment that nothing else uses until
// `fgk_free`.
unsafe impl GlobalAlloc for Kernel {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: it may be called in every context that a guard is entered in.
        unsafe { fgk_alloc(layout.size(), layout.align(), false) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        unsafe { fgk_alloc(layout.size(), layout.align(), true) }
    }

    unsafe fn dealloc(&self, at: *mut u8, _: Layout) {
        // SAFETY: `at` is from `fgk_alloc`.
        unsafe { fgk_free(at) }
    }
}

#[global_allocator]
static ALLOCATOR: Kernel = Kernel;

/// A line of text without allocation. What is too long is cut off.
struct Line {
    bytes: [u8; 160],
    length: usize,
}

impl Line {
    const EMPTY: Line = Line {
        bytes: [0; 160],
        length: 0,
    };
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        let free = &mut self.bytes[self.length..];
        let length = text.len().min(free.len());
        free[..length].copy_from_slice(&text.as_bytes()[..length]);
        self.length += length;
        Ok(())
    }
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    let mut line = Line::EMPTY;
    // The place first: a long message is cut off.
    if let Some(place) = info.location() {
        let _ = write!(line, "{}:{}: ", place.file(), place.line());
    }
    let _ = write!(line, "{}", info.message());
    // SAFETY: the pointer is valid for the length. It leaves the guarded call.
    unsafe { fgk_panic(line.bytes.as_ptr(), line.length) }
}

/// An arriving packet: `struct fgk_packet`.
#[repr(C)]
pub(crate) struct FgkPacket {
    skb: u64,
    stamp: u64,
    head: *const u8,
    head_length: u32,
    length: u32,
    memory: u32,
    mark: u32,
    priority: u32,
    ethertype: u16,
    outer_ethertype: u16,
    vlan: u16,
}

/// A packet that leaves: `struct fgk_leaving`.
#[repr(C)]
pub(crate) struct FgkLeaving {
    skb: u64,
    until: u64,
    corrupted_bit: u64,
    marked: bool,
    remarked: bool,
    corrupted: bool,
    traffic_class: u8,
    reason: u8,
}

/// The statistics of a queue or a class: `struct fgk_counts`.
#[repr(C)]
pub(crate) struct FgkCounts {
    enqueued: [u64; 2],
    dequeued: [u64; 2],
    dropped: [u64; 2],
    flushed: [u64; 2],
    backlog: [u64; 2],
    marked: u64,
    overlimits: u64,
    sojourn_ns: u64,
    reasons: [u64; 24],
}

const _: () = assert!(DropReason::ALL.len() <= 24);

fn counts(statistics: &Statistics, into: &mut FgkCounts) {
    let pair = |count: fairgate::Count| [count.packets, count.bytes];
    into.enqueued = pair(statistics.enqueued);
    into.dequeued = pair(statistics.dequeued);
    into.dropped = pair(statistics.dropped);
    into.flushed = pair(statistics.flushed);
    into.backlog = pair(statistics.backlog());
    into.marked = statistics.marked;
    into.overlimits = statistics.overlimits;
    into.sojourn_ns = statistics.sojourn.saturating_mul(Statistics::SOJOURN_UNIT);
    for (place, reason) in into.reasons.iter_mut().zip(DropReason::ALL) {
        *place = statistics.dropped_for(*reason);
    }
}

/// Why a plan is refused: `struct fgk_refusal`.
#[repr(C)]
pub(crate) struct FgkRefusal {
    text: [u8; 160],
    node: u32,
}

/// Prepares the plan in `bytes`, or that of a qdisc to which nothing was sent if it is null: a tree, or a
/// change of `running` if that is not null. Returns null and the reason if it is refused.
///
/// # Safety
/// `bytes` is null or has `length` bytes. `refusal` is valid. `running` is null or from this function, and
/// nothing else uses it meanwhile.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn fgk_prepare(
    running: *const Prepared,
    bytes: *const u8,
    length: usize,
    seed: u64,
    refusal: *mut FgkRefusal,
) -> *mut Prepared {
    // SAFETY: by this function's contract.
    let bytes = (!bytes.is_null()).then(|| unsafe { slice::from_raw_parts(bytes, length) });
    // SAFETY: by this function's contract.
    let prepared = read(bytes).and_then(|plan| match unsafe { running.as_ref() } {
        Some(running) => running.change_to(plan, seed),
        None => Prepared::new(plan, seed),
    });
    match prepared {
        Ok(prepared) => Box::into_raw(prepared),
        Err(refused) => {
            // SAFETY: by this function's contract.
            tell(&refused, unsafe { &mut *refusal });
            core::ptr::null_mut()
        }
    }
}

/// Reads a plan, or returns that of a qdisc to which nothing was sent. It is not inlined: where a tree is
/// built, the stack has no plan.
#[inline(never)]
fn read(bytes: Option<&[u8]>) -> Result<Box<Plan>, Refused> {
    let plan = bytes.map_or_else(|| Ok(Plan::default_plan()), Plan::from_bytes);
    plan.map(Box::new)
}

/// Writes an error: the text ends with a zero byte.
fn tell(refused: &Refused, into: &mut FgkRefusal) {
    let (text, into_text) = (refused.text.as_bytes(), &mut into.text);
    let length = text.len().min(into_text.len() - 1);
    into_text[..length].copy_from_slice(&text[..length]);
    into_text[length] = 0;
    into.node = refused.node.unwrap_or(u32::MAX);
}

/// Releases what a change to `prepared` has replaced, and what ran before it.
///
/// # Safety
/// Both are from [`fgk_prepare`], and nothing else uses them meanwhile. `before` is not used afterwards.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn fgk_settle(prepared: *mut Prepared, before: *mut Prepared) {
    // SAFETY: by this function's contract.
    drop(unsafe { Box::from_raw(before) });
    // SAFETY: by this function's contract.
    unsafe { (*prepared).settle() }
}

/// Makes a queue of a tree. What was prepared stays, for the next change.
///
/// # Safety
/// As of [`fgk_settle`]. `key` has two numbers.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn fgk_start(prepared: *mut Prepared, key: *const [u64; 2]) -> *mut Queue {
    // SAFETY: by this function's contract.
    let (prepared, key) = unsafe { (&mut *prepared, *key) };
    Box::into_raw(Box::new(Queue::new(prepared, key)))
}

/// Returns the number of slots.
///
/// # Safety
/// As of [`fgk_needs`].
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn fgk_slots(queue: *const Queue) -> u32 {
    // SAFETY: by this function's contract.
    unsafe { (*queue).slots() }
}

/// What the tree needs: `FGK_CUTS` if merged packets are to be cut, `FGK_READS` if headers are read.
///
/// # Safety
/// `queue` is from [`fgk_start`], and no other call uses it. So it is for all functions below.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn fgk_needs(queue: *const Queue) -> i64 {
    // SAFETY: by this function's contract.
    let queue = unsafe { &*queue };
    i64::from(queue.cuts()) | i64::from(queue.reads_headers()) << 1
}

/// Releases a queue, and what it runs.
///
/// # Safety
/// As of [`fgk_needs`] and [`fgk_settle`]. Both are not used afterwards.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn fgk_stop(queue: *mut Queue, running: *mut Prepared) {
    // SAFETY: by this function's contract.
    drop(unsafe { Box::from_raw(queue) });
    // SAFETY: by this function's contract.
    drop(unsafe { Box::from_raw(running) });
}

/// Added to a result if packets were dropped: `FGK_DROPS`.
const DROPS: i64 = 4;

/// Added to the result of a dequeue if bytes of the packet are to be changed: `FGK_CHANGED`.
const CHANGED: i64 = 8;

/// Enqueues the copies that the call has asked for, and says whether packets were dropped.
#[inline]
fn finish(queue: &mut Queue, now: Time) -> i64 {
    // SAFETY: the cookie is the address of an skb that is queued, or is on its way out.
    queue.enqueue_copies(now, |skb| {
        Some(unsafe { fgk_copy(skb) }).filter(|copy| *copy != 0)
    });
    if queue.has_dropped() { DROPS } else { 0 }
}

/// Returns 0 if all slots are in use, else 1.
///
/// # Safety
/// As of [`fgk_needs`]. `packet` is valid, and so are the bytes that it names, unless headers are not read.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn fgk_enqueue(queue: *mut Queue, packet: *const FgkPacket, now: u64) -> i64 {
    // SAFETY: by this function's contract.
    let (queue, packet) = unsafe { (&mut *queue, &*packet) };
    let now = Time::from_nanos(now);
    let descriptor = Packet {
        cookie: packet.skb,
        stamp: packet.stamp,
        memory: packet.memory,
        mark: packet.mark,
        ..Packet::of_length(packet.length)
    };
    let is_queued = match queue.reads_headers() {
        true => {
            // SAFETY: by this function's contract.
            let head = unsafe { slice::from_raw_parts(packet.head, packet.head_length as usize) };
            let arriving = Arriving {
                head,
                ethertype: packet.ethertype,
                outer_ethertype: packet.outer_ethertype,
                vlan: packet.vlan,
                priority: packet.priority,
                packet: descriptor,
            };
            queue.enqueue(&arriving, now)
        }
        false => queue.enqueue_unread(descriptor, packet.priority, now),
    };
    match is_queued {
        true => 1 + finish(queue, now),
        false => 0,
    }
}

/// Returns the result of the dequeue.
#[inline(always)]
fn leave(slot: &Slot, into: &mut FgkLeaving) -> i64 {
    into.skb = slot.cookie;
    match slot.is_marked() | slot.is_remarked() | slot.is_corrupted() {
        true => 1 + changes(slot, into),
        false => 1,
    }
}

// Inlined, because a slot that is passed is copied.
#[inline(always)]
fn changes(slot: &Slot, into: &mut FgkLeaving) -> i64 {
    into.marked = slot.is_marked();
    into.remarked = slot.is_remarked();
    into.traffic_class = slot.traffic_class();
    into.corrupted = slot.is_corrupted();
    if into.corrupted {
        into.corrupted_bit = slot.corrupted_bit(1 << 32).unwrap_or(0);
    }
    CHANGED
}

/// Returns 0 if nothing is queued, 1 with a packet, 2 if `until` is to be waited for. Other fields of `into`
/// are written only with `FGK_CHANGED`.
///
/// # Safety
/// As of [`fgk_needs`].
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn fgk_dequeue(queue: *mut Queue, into: *mut FgkLeaving, now: u64) -> i64 {
    // SAFETY: by this function's contract.
    let (queue, into) = unsafe { (&mut *queue, &mut *into) };
    let now = Time::from_nanos(now);
    let result = match queue.dequeue(now) {
        Next::Packet(departure) => leave(&departure.slot, into),
        Next::Wait(until) => {
            into.until = until.nanos();
            2
        }
        Next::Idle => 0,
    };
    result + finish(queue, now)
}

/// Takes the next packet that the last call dropped. Returns 1, or 0 if there is none.
///
/// # Safety
/// As of [`fgk_needs`].
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn fgk_take_dropped(queue: *mut Queue, into: *mut FgkLeaving, _: u64) -> i64 {
    // SAFETY: by this function's contract.
    let (queue, into) = unsafe { (&mut *queue, &mut *into) };
    match queue.take_dropped() {
        Some(dropped) => {
            into.skb = dropped.slot.cookie;
            into.reason = dropped.reason as u8;
            1
        }
        None => 0,
    }
}

/// Gives all packets back.
///
/// # Safety
/// As of [`fgk_needs`].
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn fgk_flush(queue: *mut Queue) {
    // SAFETY: by this function's contract.
    unsafe { (*queue).flush() }
}

/// Changes the running tree as prepared. Returns 0 if a discipline refuses; then nothing has changed.
///
/// # Safety
/// As of [`fgk_needs`] and [`fgk_settle`].
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn fgk_succeed(queue: *mut Queue, prepared: *mut Prepared, now: u64) -> i64 {
    // SAFETY: by this function's contract.
    let (queue, prepared) = unsafe { (&mut *queue, &mut *prepared) };
    queue.succeed(prepared, Time::from_nanos(now)).is_ok().into()
}

/// Reads the statistics of the root.
///
/// # Safety
/// As of [`fgk_needs`].
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn fgk_statistics(queue: *const Queue, into: *mut FgkCounts) {
    // SAFETY: by this function's contract.
    let (queue, into) = unsafe { (&*queue, &mut *into) };
    counts(&queue.statistics(), into);
}

/// A class: `struct fgk_class`.
#[repr(C)]
pub(crate) struct FgkClass {
    /// The least number that is wanted, and then that of the class, or 0.
    number: u32,
    /// The number of the class above it, or 0.
    parent: u32,
    counts: FgkCounts,
}

/// Finds the first class whose number is at least that in `class`.
///
/// # Safety
/// As of [`fgk_needs`]. `running` is what the queue runs, and `class` is valid.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn fgk_class(
    queue: *const Queue,
    running: *const Prepared,
    class: *mut FgkClass,
) {
    // SAFETY: by this function's contract.
    let (queue, parents, class) = unsafe { (&*queue, (*running).parents(), &mut *class) };
    let found = parents.first(queue.root(), class.number.into());
    class.number = found.unwrap_or(0).into();
    if let Some(found) = found {
        class.parent = parents.parent(found).unwrap_or(0).into();
        counts(&parents.statistics(queue.root(), found), &mut class.counts);
    }
}

/// Returns what reads the tree in parts, with all its memory.
///
/// # Safety
/// As of [`fgk_needs`].
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn fgk_read(queue: *const Queue) -> *mut Reading {
    // SAFETY: by this function's contract.
    Box::into_raw(Box::new(Reading::new(unsafe { &*queue })))
}

/// A part of what is read: `struct fgk_part`.
#[repr(C)]
pub(crate) struct FgkPart {
    bytes: *const u8,
    length: u32,
    now: u64,
}

/// Reads the next part, at the time in `part`. Its length is 0 behind the last one. The bytes are there until
/// the next call.
///
/// # Safety
/// As of [`fgk_needs`]. `reading` is from [`fgk_read`] with this queue, whose tree is the same.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn fgk_read_part(
    reading: *mut Reading,
    queue: *const Queue,
    part: *mut FgkPart,
) -> i64 {
    // SAFETY: by this function's contract.
    let (reading, queue, part) = unsafe { (&mut *reading, &*queue, &mut *part) };
    let read = reading.part(queue, Time::from_nanos(part.now));
    part.bytes = read.as_ptr();
    part.length = read.len() as u32;
    0
}

/// Returns the skb of the first slot from `*next` on that holds one, and advances `*next`. `at` becomes the
/// time since which it waits. Returns 0 behind the last.
///
/// # Safety
/// As of [`fgk_needs`]. A panic may have left the queue in any state.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn fgk_salvage(queue: *const Queue, next: *mut u32, at: *mut u64) -> u64 {
    // SAFETY: by this function's contract.
    let (queue, next, at) = unsafe { (&*queue, &mut *next, &mut *at) };
    match queue.salvage(*next) {
        Some((slot, following)) => {
            *next = following;
            *at = slot.enqueued_at.nanos();
            slot.cookie
        }
        None => 0,
    }
}

/// Panics, for tests of what the module does then.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn fgk_provoke() {
    let three = [1u8, 2, 3];
    // Not known to the compiler.
    let index = core::hint::black_box(7);
    core::hint::black_box(three[index]);
}
