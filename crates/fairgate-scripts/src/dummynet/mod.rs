//! The language of dummynet: `pipe`, `queue` and `sched` lines of ipfw(8) or dnctl(8), and the rules that lead packets to them,
//! read into the same description as a configuration file.
//!
//! ```text
//!   command     a line's words -> "configure this", "add this rule", options left as words
//!   units       quantities as ipfw reads them: 10Mbit/s, 50 slots, 100KBytes, 5 (ms)
//!   mask        what tells hosts apart that get a pipe or a queue each
//!   object      options of a pipe, a queue or a scheduler
//!   rule        what a rule asks of a packet, in which direction, on which interface
//!   script      the lines one after the other: what there is when all are done, and which trees that makes
//!   translate   a tree: a shaper for each pipe, its scheduler with the queues as classes, rules as filters
//! ```
//!
//! What a script becomes:
//!
//! * A pipe of some bandwidth is a `tbf`, as deep as 4 ms of it or three of the longest frames, whichever is more, and its `burst` on
//!   top: dummynet too sends what is due since its last tick, however late the tick comes. A pipe without one shapes nothing.
//! * In a pipe that rules lead to is its queue, a `fifo` or what the pipe names for it. In one that queues are connected to is the
//!   scheduler of the same number: WF2Q+ if no `sched` line says another. As in dummynet the two do not share the bandwidth.
//! * What has a `mask` is a class with `each`: a pipe's in `htb`, at the rate of the pipe, a queue's in the scheduler. As many hosts
//!   at once have one as dummynet keeps before it forgets idle ones: 16 for each of its `buckets`; others share one more.
//! * Packets that no rule leads to a pipe pass first, and unshaped.
//! * dummynet counts packets as IP does; here the link-layer header is counted too.
//!
//! What can't be carried over is an error at its place, never left out: `delay` and `plr`, which emulate a link and schedule
//! nothing; a `mask` of what holds queues; a `w_q` of RED that is no power of two; rules that do more than to choose.

mod command;
mod mask;
mod object;
mod rule;
mod script;
mod translate;
mod units;

#[cfg(test)]
mod tests;

pub use script::{Direction, Script, Tree};
