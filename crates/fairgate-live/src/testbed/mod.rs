//! Two hosts and a router on one machine: network namespaces, links between them, a bridge in the middle, and real
//! traffic through it.
//!
//! ```text
//!   host "left"                    router                        host "right"
//!   10.77.0.1  eth0 ---veth--- left [ fairgate run ] right ---veth--- eth0  10.77.0.2
//!              iperf3, ping                                      iperf3 server
//! ```
//!
//! The router has no addresses: the hosts are on one wire, with the bridge as the bump in it. The link's rate is the
//! shaper's, its delay the bridge's own delay line (a kernel need not have netem for it). Offloads of the hosts stay
//! as they are, so that what works here works between unmodified containers.
//!
//! Everything built is taken down on drop: after an error, a panic, and after Ctrl-C, which becomes an error here.
//! Namespaces are named by process and number, `fg-PID-N-...`, so that testbeds run beside each other.

mod error;
mod experiment;
mod flood;
mod namespace;
mod network;
mod process;
mod scenario;
mod traffic;

pub use error::TestbedError;
pub use experiment::{Experiment, FlowOutcome, Outcome, Stage};
pub use flood::{Flood, flood};
pub use namespace::Namespace;
pub use network::Network;
pub use process::{Interrupt, Process};
pub use scenario::Scenario;
pub use traffic::PingTimes;
