//! A video and n greedy flows on a line whose buffer is full: what the analysis of [`sqf`](crate::sqf) assumes, played through
//! with a real discipline.
//!
//! The line sends packets of one length, one after the other. The greedy flows fill whatever room the buffer has, the one with
//! the fewest packets first, so that they keep equal parts; the video's packets arrive in a Poisson process. The discipline
//! decides who is sent, and who loses a packet when one too many comes.

use fairgate::{Discipline, FlowHash, Link, Packet, Time};

use crate::measured::Dice;
use crate::sqf::Sharing;

/// Bytes of a packet: as all have the same, the number does not matter.
const LENGTH: u32 = 1250;
/// The flow of the video; the greedy ones follow. Spread over 64 bits, as hashes are.
const VIDEO: u32 = 0;

/// The line while it runs.
pub struct Shared<'a> {
    sharing: Sharing,
    /// Arrivals of the video in one transmission.
    arrivals: f64,
    /// A packet's payload is its flow.
    link: Link<u32, &'a mut dyn Discipline>,
    dice: Dice,
    /// Packets queued, by flow.
    queued: Vec<u32>,
    total: u32,
    buffer: u32,
    transmissions: u64,
    video_dropped: u64,
}

/// When the video first lost its priority, in transmissions. `None`: not in the time that was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// It had no longer fewer packets than its part of the buffer: `x >= B / (n + 1)`, if only until the discipline dropped one of
    /// them, as it does where a flow of the greatest length loses and the video's is one.
    pub beyond_limit: Option<u64>,
    /// A greedy flow's packet was sent though one of the video's waited.
    pub passed_over: Option<u64>,
    /// Packets of the video that were dropped until then.
    pub video_dropped: u64,
}

impl<'a> Shared<'a> {
    /// A line with an empty `discipline`, which holds at least `sharing`'s buffer and drops the packets beyond itself. The video sends
    /// `rate` packets a second.
    pub fn new(sharing: Sharing, rate: f64, discipline: &'a mut dyn Discipline, dice: Dice) -> Shared<'a> {
        let buffer = sharing.buffer();
        Shared {
            arrivals: rate / sharing.capacity(),
            link: Link::new(discipline, buffer + 64),
            dice,
            queued: vec![0; sharing.flows() as usize + 1],
            total: 0,
            buffer,
            transmissions: 0,
            video_dropped: 0,
            sharing,
        }
    }

    /// Begins anew with a buffer of nothing but greedy packets and plays until the video has lost its priority in both
    /// senses, for at most `most` transmissions.
    pub fn play(&mut self, most: u64) -> Losses {
        self.begin();
        let mut losses = Losses::default();
        for passed in 0..most {
            let waiting = self.queued[VIDEO as usize];
            let beyond = self.video_dropped > 0 || f64::from(waiting) >= self.sharing.limit();
            if losses.beyond_limit.is_none() && beyond {
                losses.beyond_limit = Some(passed);
            }
            let sent = self.transmit();
            if losses.passed_over.is_none() && waiting > 0 && sent != Some(VIDEO) {
                losses.passed_over = Some(passed);
            }
            if losses.beyond_limit.is_some() && losses.passed_over.is_some() {
                break;
            }
            for _ in 0..self.dice.poisson(self.arrivals) {
                self.offer(VIDEO);
            }
            self.fill();
        }
        losses.video_dropped = self.video_dropped;
        losses
    }

    fn begin(&mut self) {
        self.link.change(|discipline, pool| discipline.flush(pool));
        self.count_drops();
        self.video_dropped = 0;
        self.fill();
    }

    /// The greedy flows take the room there is.
    fn fill(&mut self) {
        while self.total < self.buffer {
            let fewest = (1..self.queued.len()).min_by_key(|&flow| self.queued[flow]);
            self.offer(fewest.expect("there is a greedy flow") as u32);
        }
    }

    fn offer(&mut self, flow: u32) {
        let packet = Packet {
            flow: FlowHash::from_raw(u64::from(flow + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)),
            ..Packet::of_length(LENGTH)
        };
        let now = self.now();
        self.link
            .enqueue(packet, flow, now)
            .expect("more slots than the buffer has packets");
        self.queued[flow as usize] += 1;
        self.total += 1;
        self.count_drops();
    }

    /// The flow whose packet is sent.
    fn transmit(&mut self) -> Option<u32> {
        self.transmissions += 1;
        let now = self.now();
        let next = self.link.dequeue(now);
        self.count_drops();
        let flow = next.packet()?.payload;
        self.queued[flow as usize] -= 1;
        self.total -= 1;
        Some(flow)
    }

    fn count_drops(&mut self) {
        while let Some(dropped) = self.link.take_dropped() {
            let flow = dropped.payload;
            self.queued[flow as usize] -= 1;
            self.total -= 1;
            self.video_dropped += u64::from(flow == VIDEO);
        }
    }

    fn now(&self) -> Time {
        let nanos = 1e9 / self.sharing.capacity();
        Time::from_nanos((self.transmissions as f64 * nanos) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqf::Exact;
    use fairgate::implicit::sqf::{Config, Sqf};

    /// Mean transmissions, over `runs`, until a video of 900 packets a second reaches its part of the buffer beside 20 flows,
    /// and until it is passed over.
    fn mean_losses(buffer: u32, runs: usize) -> [f64; 2] {
        let sharing = Sharing::new(1000.0, buffer, 20).unwrap();
        let config = Config {
            limit: buffer,
            ..Config::default()
        };
        let mut sqf = Sqf::node(config, 1).unwrap();
        let mut shared = Shared::new(sharing, 900.0, &mut sqf, Dice::new(1, "video"));
        let mut sums = [0; 2];
        for _ in 0..runs {
            let losses = shared.play(1_000_000);
            sums[0] += losses.beyond_limit.expect("a million transmissions are enough");
            sums[1] += losses.passed_over.expect("a million transmissions are enough");
        }
        sums.map(|sum| sum as f64 / runs as f64)
    }

    /// The same after the chain.
    fn chain(buffer: u32) -> f64 {
        Exact::new(&Sharing::new(1000.0, buffer, 20).unwrap(), 900.0).mean_time() * 1000.0
    }

    #[test]
    fn shortest_queue_first_loses_when_the_chain_says_where_queues_cannot_tie() {
        // 209 = 9 + 20 * 10: while the video has 9 packets, below its part, every greedy flow has 10.
        let [beyond, passed] = mean_losses(209, 2000);
        let exact = chain(209);
        assert!((beyond / exact - 1.0).abs() < 0.1, "{beyond} instead of {exact}");
        // What would take it beyond its part is dropped, and so it keeps its priority for a while more.
        assert!(passed > beyond, "{passed} {beyond}");
    }

    #[test]
    fn ties_are_lost_before_the_chain_says_but_nothing_below_them() {
        // 200 = 9 + 9 * 9 + 11 * 10: beside a video with 9 packets some greedy flows have 9, too. A buffer of 189 puts the
        // chain's end there.
        let [beyond, passed] = mean_losses(200, 2000);
        let (ties_lost, ties_won) = (chain(189), chain(200));
        assert!(
            beyond > ties_lost && beyond < ties_won * 0.9,
            "{beyond} not in {ties_lost}..{ties_won}"
        );
        assert!(
            passed > ties_lost * 0.9 && passed < beyond,
            "{passed} not in {ties_lost}..{beyond}"
        );
    }

    #[test]
    fn deficit_round_robin_passes_a_video_over_at_once() {
        let sharing = Sharing::new(1000.0, 200, 20).unwrap();
        let spec = fairgate_config::Spec::inline("drr limit=200").unwrap();
        let mut drr = spec.build(1).unwrap();
        let mut shared = Shared::new(sharing, 100.0, drr.as_mut(), Dice::new(1, "video"));
        // Above the fair rate of 47.6 packets a second: within a fraction of a second.
        let passed = shared
            .play(100_000)
            .passed_over
            .expect("the video waits for its turn");
        assert!(passed < 1_000, "{passed}");
    }
}
