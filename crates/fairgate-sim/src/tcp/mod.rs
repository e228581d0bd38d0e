//! TCP as a protocol engine without I/O: segments and times are inputs, segments and timers are outputs.
//!
//! It follows Linux 6.1, and its behaviour is checked against Linux. A stream goes one way, from a [`Sender`]
//! to a [`Receiver`]. The sender opens it. Both ends are driven in the same way:
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
//! A connection that carries data both ways is a second stream in the opposite direction, without a
//! handshake: [`Sender::passive`] at the end that accepts, and [`Receiver::accept`] at the end that opens.
//! The driver passes each segment to both parts of an end, and lets the receiver write its acknowledgement
//! into the sender's segments ([`Receiver::piggyback`]).
//!
//! Both ends consist of plain data. A clone continues from the same state.

mod accurate_ecn;
mod clock;
mod config;
mod congestion;
mod delivery_rate;
mod pacing;
mod profile;
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

pub use accurate_ecn::AccurateEcn;
pub use config::{Config, ConfigMistake, CongestionControl};
pub(crate) use config::{MOST_PAYLOAD, MOST_SEGMENTS, MOST_WINDOW};
pub use profile::Profile;
pub use receiver::Receiver;
pub use segment::{Flags, MAX_SACK_BLOCKS, Range, SackBlocks, Segment};
pub use sender::{Sender, SenderCounters};
