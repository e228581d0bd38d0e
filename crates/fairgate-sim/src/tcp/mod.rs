//! TCP as a protocol engine without I/O: segments and times are inputs, segments and timers are outputs.
//!
//! It follows Linux 6.1, and its behaviour is checked against Linux. A connection carries data one way, from
//! a [`Sender`] to a [`Receiver`]. The sender opens it. Both ends are driven in the same way:
//!
//! * Create them by `new(Config, now)`. Give the sender work by `write(bytes, now)` (or `write_forever(now)`)
//!   and `close(now)`.
//! * Call `on_segment(&Segment, now)` for each segment that arrives, and `on_timer(now)` when `timer() ->
//!   Option<Time>` is due.
//! * After any of these calls, send each segment of `while let Some(segment) = end.poll_transmit(now)`, and
//!   read `timer()` again.
//! * The receiver's `delivered() -> u64` counts the payload delivered in order to its application, which
//!   reads at once.
//!
//! Both ends consist of plain data. A clone continues from the same state.

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
