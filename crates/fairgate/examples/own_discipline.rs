//! A discipline of one's own, last in first out: `cargo run -p fairgate --example own_discipline`.
//!
//! `Node` adds statistics, conservation and peek. `examples/own-discipline` in the repository shows
//! one with parameters
//! that the program `fairgate` configures, simulates and runs.

use std::error::Error;

use fairgate::{
    Algorithm, ConfigError, DropReason, Link, Node, Packet, PacketId, PacketQueue, Pool, Time, Verdict,
};

/// Last in, first out. At the limit the oldest packet is dropped.
struct Lifo {
    queue: PacketQueue,
    limit: u32,
}

impl Algorithm for Lifo {
    const NAME: &'static str = "lifo";
    /// Most packets queued.
    type Config = u32;

    fn enqueue(&mut self, packet: PacketId, _now: Time, pool: &mut Pool) -> Verdict {
        self.queue.push_back(packet, pool);
        if self.queue.len() <= self.limit {
            return Verdict::Queued;
        }
        let oldest = self.queue.pop_front(pool).expect("it was just filled");
        pool.give_back(oldest, DropReason::HeadDrop);
        Verdict::Congested
    }

    fn dequeue(&mut self, _now: Time, pool: &mut Pool) -> Option<PacketId> {
        self.queue.pop_back(pool)
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        self.queue.append_to(into, pool);
    }

    fn config(&self) -> u32 {
        self.limit
    }

    fn reconfigure(&mut self, limit: u32, _now: Time, pool: &mut Pool) -> Result<(), ConfigError> {
        self.limit = limit;
        while self.queue.len() > self.limit {
            let oldest = self.queue.pop_front(pool).expect("it is longer than its limit");
            pool.give_back(oldest, DropReason::Reconfigured);
        }
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let lifo = Node::new(Lifo {
        queue: PacketQueue::new(),
        limit: 3,
    });
    let mut link = Link::new(lifo, 10);
    for number in 0..5 {
        link.enqueue(Packet::of_length(100), number, Time::ZERO)?;
    }
    let dropped: Vec<u32> = std::iter::from_fn(|| link.take_dropped())
        .map(|it| it.payload)
        .collect();
    let sent: Vec<u32> = std::iter::from_fn(|| link.dequeue(Time::ZERO).packet())
        .map(|it| it.payload)
        .collect();
    println!("dropped {dropped:?}, sent {sent:?}");
    assert_eq!((dropped, sent), (vec![0, 1], vec![4, 3, 2]));

    let statistics = link.root().statistics();
    assert_eq!(statistics.dropped_for(DropReason::HeadDrop), 2);
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn runs() {
        super::main().unwrap();
    }
}
