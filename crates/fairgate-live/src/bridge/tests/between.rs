//! What is forwarded between the changes of the two trees.

use std::iter;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use fairgate::registry::{About, Description, Parameter, Registry, Unit};
use fairgate::{Algorithm, ConfigError, Node, PacketId, PacketQueue, Pool, Time, Verdict};
use fairgate_config::Document;

use super::{open_host, tagged, with_bridge};
use crate::config::Plan;
use crate::outgoing::Outgoing;
use crate::testing::{live, until};
use crate::vlan::Tag;

/// How long a change of a tree takes.
const LENGTH: Duration = Duration::from_millis(200);

/// The packets that came to any tree, and how many there had been at the end of each change.
static ENQUEUED: AtomicU64 = AtomicU64::new(0);
static CHANGES: Mutex<Vec<u64>> = Mutex::new(Vec::new());

#[derive(Clone, Debug, PartialEq, Eq)]
struct Config {
    number: u32,
}

/// A queue whose changes take long.
struct Slow {
    queue: PacketQueue,
    config: Config,
}

static DESCRIPTION: Description<Config> = Description::new(
    About::new(Slow::NAME, "A queue whose changes take long", "For a test."),
    &[Parameter::new(
        "number",
        Unit::Count("changes"),
        0..=9,
        "Another one is another queue.",
        |config, _| &mut config.number,
    )],
    |_| Config { number: 0 },
    |config, _| {
        let queue = PacketQueue::new();
        Ok(Box::new(Node::new(Slow { queue, config })))
    },
);

impl Algorithm for Slow {
    const NAME: &'static str = "slow";
    type Config = Config;

    fn enqueue(&mut self, id: PacketId, _now: Time, pool: &mut Pool) -> Verdict {
        ENQUEUED.fetch_add(1, Ordering::Relaxed);
        self.queue.push_back(id, pool);
        Verdict::Queued
    }

    fn dequeue(&mut self, _now: Time, pool: &mut Pool) -> Option<PacketId> {
        self.queue.pop_front(pool)
    }

    fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        self.queue.append_to(into, pool);
    }

    fn config(&self) -> Config {
        self.config.clone()
    }

    fn reconfigure(&mut self, config: Config, _now: Time, _pool: &mut Pool) -> Result<(), ConfigError> {
        self.config = config;
        thread::sleep(LENGTH);
        CHANGES.lock().unwrap().push(ENQUEUED.load(Ordering::Relaxed));
        Ok(())
    }
}

fn plan(number: u32) -> Plan {
    let mut registry = Registry::builtin();
    registry.add(&DESCRIPTION).unwrap();
    let text = format!(
        "[queue.slow]\ndiscipline = \"slow\"\nnumber = {number}\n[run]\nleft = \"left\"\nright = \"right\"\n\
         left_to_right = \"slow\"\nright_to_left = \"slow\"\n"
    );
    Plan::read(&Document::parse_with("test.toml", &text, &registry).unwrap()).unwrap()
}

/// Both trees change, each for 200 ms. What has come in the first of them is in the trees when the second one
/// begins.
#[test]
fn what_has_arrived_is_forwarded_between_the_changes_of_two_trees() {
    let Some(_watched) = live("what_has_arrived_is_forwarded_between_the_changes_of_two_trees") else {
        return;
    };
    with_bridge(&plan(0), |network, changer| {
        let mut source = open_host(&network.left);
        let frame = tagged(
            Tag {
                tpid: Tag::CUSTOMER,
                tci: 7,
            },
            [0x12, 0x34, 9, 9],
            58,
        );
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..60_000 {
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                    let _ = source.send(iter::once(Outgoing::whole(&frame)));
                    thread::sleep(Duration::from_millis(1));
                }
            });
            until("frames are forwarded", || ENQUEUED.load(Ordering::Relaxed) > 0);
            let changed = changer.reload(plan(1));
            is_over.store(true, Ordering::Relaxed);
            assert!(changed.unwrap().pause >= LENGTH);
        });
    });
    // Before that, each change was rehearsed.
    let changes = CHANGES.lock().unwrap();
    let [.., first, second] = changes[..] else {
        panic!("two trees have changed: {changes:?}");
    };
    assert!(second > first, "{changes:?}");
}
