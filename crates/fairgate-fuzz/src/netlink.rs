//! Checks what a qdisc of the kernel is sent by netlink: the compact form of a plan. Anyone who may set up a
//! network interface may send any bytes, and nothing of them may hurt the kernel.

use fairgate::{Packet, Time};
use fairgate_kernel::{Arriving, Plan, Prepared, Queue, Reading, records};

/// The most slots here: only the size of the pool depends on them.
const SLOTS: u32 = 32;

/// Builds the tree of a plan that is accepted, has it forward a few packets and take over those of another
/// tree, and reads it. The same bytes are also read as what the program gets from the kernel.
pub fn netlink(bytes: &[u8]) {
    let _ = records(bytes);
    let Ok(mut plan) = Plan::from_bytes(bytes) else {
        return;
    };
    let again = Plan::from_bytes(&plan.to_bytes());
    assert_eq!(again.as_ref(), Ok(&plan), "a plan is read back as it was written");
    plan.slots = plan.slots.min(SLOTS);
    let Ok(mut running) = Prepared::new(plan.clone(), 1) else {
        return;
    };
    let mut queue = Queue::new(&mut running, [1, 2]);
    let mut now = Time::ZERO;
    // The packets' fields are those of the plan's own bytes, so that filters match some of them.
    for (number, head) in (1..).zip(bytes.chunks(40).take(8)) {
        forward(&mut queue, number, head, now);
        check(&mut queue);
        now = Time::from_nanos(now.nanos() + 700_000 * number);
    }
    read(&queue, now);

    let mut default = Plan::default_plan();
    default.slots = plan.slots;
    // To itself, to another tree and back again.
    for wanted in [&plan, &default, &plan] {
        if let Ok(mut next) = running.change_to(wanted.clone(), 2) {
            queue.succeed(&mut next, now).expect("a change is rehearsed");
            next.settle();
            running = next;
            check(&mut queue);
        }
    }
    queue.flush();
    check(&mut queue);
    assert_eq!(queue.len(), 0, "nothing is left of what was flushed");
}

/// Enqueues a packet, and perhaps dequeues one.
fn forward(queue: &mut Queue, number: u64, head: &[u8], now: Time) {
    let versions = [0x0800, 0x86dd, 0x0806];
    let arriving = Arriving {
        head,
        ethertype: versions[usize::from(head[0] & 1)],
        outer_ethertype: versions[usize::from(head[0] % 3)],
        vlan: u16::from(head[0]) << 3,
        priority: u32::from_le_bytes(*head.first_chunk().unwrap_or(&[0; 4])),
        packet: Packet {
            cookie: number,
            mark: number as u32,
            ..Packet::of_length(40 + 14 * 100 * (number as u32 % 2))
        },
    };
    let before = queue.len();
    assert!(
        queue.enqueue(&arriving, now) || before == queue.slots(),
        "a free slot takes a packet"
    );
    queue.enqueue_copies(now, |cookie| Some(cookie | 1 << 63));
    if !number.is_multiple_of(3) {
        queue.dequeue(now);
        queue.enqueue_copies(now, |cookie| Some(cookie | 1 << 63));
    }
}

/// Takes what was dropped. Then each packet is counted once.
fn check(queue: &mut Queue) {
    while queue.take_dropped().is_some() {}
    let statistics = queue.statistics();
    let backlog = statistics.backlog();
    statistics.check("the tree", backlog).expect("drops have reasons");
    assert_eq!(
        u64::from(queue.len()),
        backlog.packets,
        "queued packets are in the pool"
    );
}

/// Reads everything in the tree, as the module does, and reads that back, as the program does.
fn read(queue: &Queue, now: Time) {
    let mut reading = Reading::new(queue);
    loop {
        let part = reading.part(queue, now);
        if part.is_empty() {
            return;
        }
        assert!(!records(part).expect("what was written is read").is_empty());
    }
}
