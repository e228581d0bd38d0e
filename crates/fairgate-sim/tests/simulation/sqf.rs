//! Video beside downloads under the paper's sqf and under sqf with credit: loss of the video, and fairness
//! between the downloads.

use std::time::Duration;

use fairgate::Rate;
use fairgate_config::Spec;
use fairgate_sim::{Distribution, Flow, Link, Pattern, Queue, Scenario, Simulation, Tcp, Udp, tcp};

/// How the datagrams of a video of a mean rate leave the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Video {
    /// With exponentially distributed gaps.
    Poisson,
    /// Bursts at twice the mean rate and silences of 100 ms each on average.
    OnOff,
    /// A frame of variable length 25 times a second, at 100 Mbit/s.
    Frames,
}

const VIDEOS: [Video; 3] = [Video::Poisson, Video::OnOff, Video::Frames];

impl Video {
    fn udp(self, mean: Rate) -> Udp {
        let bits = mean.bits_per_second();
        let rate = |bits| Rate::from_bits_per_second(bits).expect("above 0");
        let exponential = |mean| Distribution::Exponential { mean };
        let pattern = match self {
            Video::Poisson => return Udp::poisson(mean, 1250),
            Video::OnOff => Pattern::OnOff {
                rate: rate(2 * bits),
                on: exponential(100_000_000),
                off: exponential(100_000_000),
            },
            Video::Frames => {
                // A frame takes `on` at 100 Mbit/s; its length varies by a third.
                let on = 40_000_000 * bits / 100_000_000;
                Pattern::OnOff {
                    rate: Rate::mbit(100),
                    on: Distribution::Normal {
                        mean: on,
                        deviation: on / 3,
                        low: on / 4,
                        high: 3 * on,
                    },
                    off: Distribution::Constant(40_000_000 - on),
                }
            }
        };
        Udp {
            size: Distribution::Constant(1250),
            pattern,
        }
    }
}

/// The mean over seeds of the video's loss and of Jain's index of the downloads.
#[derive(Debug)]
struct Outcome {
    loss: f64,
    jain: f64,
}

/// Simulates a video of this mean rate, kbit/s, and `downloads` downloads on 10 Mbit/s for a minute.
fn evening(queue: &str, video: Video, kbit: u64, downloads: u32) -> Outcome {
    const SEEDS: std::ops::Range<u64> = 1..6;
    let mut outcome = Outcome { loss: 0.0, jain: 0.0 };
    for seed in SEEDS {
        let mut scenario = Scenario::new(Duration::from_secs(70));
        scenario.seed = seed;
        scenario.measure = Duration::from_secs(10)..Duration::from_secs(70);
        let (a, b) = (scenario.node("a"), scenario.node("b"));
        let spec = Spec::inline(queue).expect("the description is valid");
        let link = Link::new(a, b, Rate::mbit(10), Duration::from_millis(10));
        scenario
            .links
            .push(link.with_queue_a(Queue::new(move |seed| spec.build(seed))));
        let mean = Rate::from_bits_per_second(kbit * 1000).expect("above 0");
        let video = Flow::new("video", a, b, video.udp(mean));
        let downloads = Flow {
            count: downloads,
            stagger: Duration::from_millis(100 + seed),
            ..Flow::new("download", a, b, Tcp::bulk(tcp::Config::default()))
        };
        scenario.flows.extend([video, downloads]);
        let results = Simulation::new(&scenario)
            .expect("the scenario is valid")
            .run()
            .expect("the simulation runs to its end");
        let of = |group: &'static str| results.flows.iter().filter(move |flow| flow.group == group);
        let video = of("video").next().expect("there is a video");
        let rates: Vec<f64> = of("download").map(|flow| flow.goodput_bps as f64).collect();
        let (sum, squares): (f64, f64) = (rates.iter().sum(), rates.iter().map(|rate| rate * rate).sum());
        let runs = SEEDS.count() as f64;
        outcome.loss += video.lost as f64 / video.sent.max(1) as f64 / runs;
        outcome.jain += sum * sum / (rates.len() as f64 * squares) / runs;
    }
    outcome
}

const PAPER: &str = "sqf limit=200";
const MENDED: &str = "sqf limit=200 credit=100kb";

/// A video whose mean rate is four fifths of its fair share loses nothing or next to nothing, however it
/// bursts and however many downloads there are, and no download starves.
#[test]
fn with_credit_a_video_below_its_fair_share_loses_nothing() {
    for downloads in [1, 5, 10, 15, 20] {
        let kbit = 8000 / (u64::from(downloads) + 1);
        for video in VIDEOS {
            let mended = evening(MENDED, video, kbit, downloads);
            let what = format!("{video:?} of {kbit} kbit/s beside {downloads}: {mended:?}");
            assert!(mended.loss < 0.002, "{what}");
            assert!(mended.jain > 0.9, "{what}");
        }
    }
}

/// Also beside a video far above its fair share no download starves. Under the paper's sqf some nearly do.
#[test]
fn with_credit_no_download_starves_beside_a_video_of_half_of_the_link() {
    for video in VIDEOS {
        let paper = evening(PAPER, video, 5000, 20);
        let mended = evening(MENDED, video, 5000, 20);
        let what = format!("{video:?}: {paper:?} and {mended:?}");
        assert!(mended.jain > 0.9 && mended.jain > paper.jain, "{what}");
    }
}

/// Prints the table of the module documentation of `sqf`.
#[test]
#[ignore = "prints a table; run it with --ignored --nocapture"]
fn table_of_loss_and_fairness() {
    for kbit in [5000, 400] {
        for video in VIDEOS {
            for downloads in [1, 5, 10, 15, 20] {
                let cell = |queue| {
                    let Outcome { loss, jain } = evening(queue, video, kbit, downloads);
                    format!("{:5.1} % {jain:.2}", loss * 100.0)
                };
                let cells = [PAPER, MENDED, "fq_codel", "drr"].map(cell);
                println!("{kbit} {video:?} n = {downloads}: {}", cells.join(" | "));
            }
        }
    }
}
