//! Runs a video and n greedy flows through a real discipline on a link with a full buffer. This is what the
//! analysis of [`sqf`](crate::sqf) assumes.
//!
//! The link sends packets of one length back to back. The greedy flows fill the buffer. The flow with the
//! fewest packets enqueues first, so that all of them keep equal parts. The video's packets arrive in a
//! Poisson process. The discipline decides which flow sends, and which flow loses a packet when the buffer
//! overflows.

use fairgate::{Discipline, FlowHash, Link, Packet, Pool, Time};

use crate::measured::Dice;
use crate::sqf::Sharing;

/// The length of each packet, bytes. All packets have this length, so the number does not matter.
const LENGTH: u32 = 1250;
/// The number of the video's flow. The greedy flows follow.
const VIDEO: u32 = 0;

/// The link during a run.
#[derive(Debug)]
pub struct Shared<'a> {
    sharing: Sharing,
    /// The mean number of video packets that arrive during one transmission.
    arrivals: f64,
    /// A packet's payload is its flow.
    link: Link<u32, &'a mut dyn Discipline>,
    dice: Dice,
    /// The number of queued packets, by flow.
    queued: Vec<u32>,
    total: u32,
    buffer: u32,
    transmissions: u64,
    video_dropped: u64,
}

/// The times at which the video first lost its priority, in transmissions. `None`: not within the requested
/// time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// When the video's queue reached its part of the buffer: `x >= B / (n + 1)`. This is counted even if the
    /// discipline dropped one of the packets at once. It does so if one of the longest queues loses a packet
    /// and the video's is among them.
    pub beyond_limit: Option<u64>,
    /// When a greedy flow's packet was sent although a packet of the video was queued.
    pub passed_over: Option<u64>,
    /// The number of the video's packets that were dropped until then.
    pub video_dropped: u64,
}

impl<'a> Shared<'a> {
    /// Creates a link with an empty `discipline`. The discipline must hold at least `sharing`'s buffer and
    /// drop the packets beyond that itself. The video sends `rate` packets a second.
    pub fn new(sharing: Sharing, rate: f64, discipline: &'a mut dyn Discipline, dice: Dice) -> Shared<'a> {
        let buffer = sharing.buffer();
        Shared {
            arrivals: rate / sharing.capacity(),
            link: Link::with_pool(discipline, Pool::with_capacity(buffer + 64)),
            dice,
            queued: vec![0; sharing.flows() as usize + 1],
            total: 0,
            buffer,
            transmissions: 0,
            video_dropped: 0,
            sharing,
        }
    }

    /// Starts with a buffer full of greedy packets, and runs until the video has lost its priority in both
    /// senses. It runs for at most `most` transmissions.
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

    /// Lets the greedy flows fill the buffer.
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

    /// Sends one packet and returns its flow.
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

    /// Returns the mean number of transmissions until a video of 900 packets a second reaches its part of the
    /// buffer beside 20 flows, and until it is passed over. The mean is over `runs`.
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

    /// Returns the mean number of transmissions that the Markov chain gives.
    fn chain(buffer: u32) -> f64 {
        Exact::new(&Sharing::new(1000.0, buffer, 20).unwrap(), 900.0).mean_time() * 1000.0
    }

    #[test]
    fn without_ties_shortest_queue_first_loses_priority_when_the_chain_says() {
        // 209 = 9 + 20 * 10: while the video has 9 packets, below its part, every greedy flow has 10.
        let [beyond, passed] = mean_losses(209, 2000);
        let exact = chain(209);
        assert!((beyond / exact - 1.0).abs() < 0.1, "{beyond} instead of {exact}");
        // The packet that exceeds the video's part is dropped, so the video keeps its priority a little
        // longer.
        assert!(passed > beyond, "{passed} {beyond}");
    }

    #[test]
    fn with_ties_priority_is_lost_earlier_but_not_below_the_shortest_queue() {
        // 200 = 9 + 9 * 9 + 11 * 10: beside a video with 9 packets some greedy flows have 9, too. A buffer of
        // 189 has its limit at 9.
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
        // The rate is above the fair rate of 47.6 packets a second, so this happens within a fraction of a
        // second.
        let passed = shared
            .play(100_000)
            .passed_over
            .expect("the video waits for its turn");
        assert!(passed < 1_000, "{passed}");
    }
}
