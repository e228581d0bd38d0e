//! TCP as a protocol engine without I/O: segments and times in, segments and timers out.
//!
//! It follows Linux 6.1, whose behaviour it is checked against. A connection carries data one way, from a [`Sender`]
//! to a [`Receiver`]; the sender opens it. Both ends are driven alike:
//!
//! * `new(Config, now)`; the sender then gets work by `write(bytes, now)` (or `write_forever(now)`) and `close(now)`.
//! * `on_segment(&Segment, now)` for each segment that arrives, `on_timer(now)` when `timer() -> Option<Time>` is due.
//! * After any of these calls: `while let Some(segment) = end.poll_transmit(now)`, send it, and look at `timer()` anew.
//! * The receiver's `delivered() -> u64` counts payload handed to its application in order, which reads at once.
//!
//! The two ends are values of plain data: a clone goes on from the same state.

mod clock;
mod config;
mod congestion;
mod prr;
mod rack;
mod reassembly;
mod receive_window;
mod receiver;
mod rtt;
mod scoreboard;
mod segment;
mod sender;
mod usage;

pub use config::{Config, CongestionControl};
pub use receiver::Receiver;
pub use segment::{Flags, MAX_SACK_BLOCKS, Range, SackBlocks, Segment};
pub use sender::{Sender, SenderCounters};
