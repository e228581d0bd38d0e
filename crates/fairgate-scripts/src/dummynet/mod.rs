//! The language of dummynet: `pipe`, `queue` and `sched` lines of ipfw(8) or dnctl(8), and the rules that
//! send packets to them. They are translated into the same description as a configuration file.
//!
//! ```text
//!   command     a line's words -> "configure this", "add this rule", options left as words
//!   units       quantities in ipfw's notation: 10Mbit/s, 50 slots, 100KBytes, 5 (ms)
//!   mask        the fields that distinguish hosts with a pipe or a queue each
//!   profile     the file of a pipe's `profile`: extra delays as a distribution
//!   object      the options of a pipe, a queue or a scheduler
//!   pf          rules of pf with dnpipe or dnqueue -> rules of ipfw
//!   tables      tables of addresses
//!   rule        a rule's conditions, direction and interface
//!   script      runs the lines in order, and determines the trees
//!   translate   a tree: a shaper for each pipe, its scheduler with the queues as classes, rules as filters
//! ```
//!
//! The translation of a script:
//!
//! * A pipe with a bandwidth becomes a `tbf`. Its burst is 4 ms at the bandwidth or three of the longest
//!   frames, whichever is larger, plus the pipe's `burst`. Like dummynet, it sends what is due since the last
//!   tick, however late the tick is. A pipe without a bandwidth shapes nothing.
//! * A pipe that rules name holds its own queue: a `fifo` or the AQM that the pipe names. A pipe with queues
//!   holds the scheduler of the same number: WF2Q+, unless a `sched` line names another one. If a pipe has
//!   both, each gets the full bandwidth, as in dummynet.
//! * A `mask` becomes a class with `each`: a pipe's mask in `htb`, at the rate of the pipe; a queue's mask in
//!   the scheduler. As many hosts can have a class at the same time as dummynet keeps before it forgets idle
//!   ones: 16 for each of its `buckets`. All other hosts share one more class.
//! * `delay` and `plr` become a `netem` around the tree of the pipe. The delay is before the queue there, and
//!   after it in dummynet: packets leave at the same times.
//! * A pipe with a `profile` becomes a `busy_link` instead: a link that is busy for an extra time with each
//!   packet. Without a bandwidth only the losses of the profile remain, because dummynet counts its delays in
//!   bits at the bandwidth.
//! * The `type` of a pipe is that of the scheduler of its queues, as in dummynet. Packets that rules send to
//!   the pipe itself pass through its own queue.
//! * Packets that no rule sends to a pipe are sent first, without shaping. Packets that a rule denies are
//!   dropped by a `netem` that loses all.
//! * dummynet counts the length of the IP packet. Here the link-layer header is included.
//!
//! An option that can't be translated is an error at its location. It is never ignored. These can't be:
//! rules that do more than select packets, and masks that no class can express. What has no effect in
//! dummynet has none here, with a warning: objects that no rule leads to, rules after one for all packets,
//! options of queues that a scheduler ignores. `me` is no address of a bridge, so a rule from or to it
//! matches nothing, with a warning.

pub(crate) mod command;
mod complement;
mod mask;
mod object;
pub(crate) mod pf;
mod profile;
pub(crate) mod rule;
mod script;
pub(crate) mod tables;
mod translate;
pub(crate) mod trees;
mod units;

#[cfg(test)]
mod tests;

pub use crate::script::notes::Note;
pub use rule::Direction;
pub use script::Script;
pub use trees::Tree;
