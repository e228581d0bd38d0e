//! Two hosts and a router on one machine: network namespaces, links between them, a bridge in the router, and
//! real traffic through it.
//!
//! ```text
//!   host "left"                    router                        host "right"
//!   10.77.0.1  eth0 ---veth--- left [ fairgate run ] right ---veth--- eth0  10.77.0.2
//!              iperf3, ping                                      iperf3 server
//! ```
//!
//! The router has no addresses. The bridge in it connects the hosts as one link. The shaper sets the link's
//! rate, and the bridge's own delay line sets its delay, so that the kernel does not need netem. The hosts
//! keep their offloads enabled. What works here therefore works between unmodified containers.
//!
//! Everything is taken down on drop, after an error, after a panic, and after Ctrl-C, which is reported as an
//! error here. Namespaces are named by process id and number, `fg-PID-N-...`, so that several testbeds can
//! run at the same time.

mod attack;
mod awake;
mod bridged;
mod error;
mod experiment;
mod flood;
mod namespace;
mod network;
mod plain;
mod precision;
mod process;
mod scenario;
mod sockets;
mod source;
mod traffic;

pub use attack::{Attack, attack};
pub use awake::Awake;
pub use error::TestbedError;
pub use experiment::{Experiment, FlowOutcome, Outcome, Stage};
pub use flood::{Flood, Forwarder, flood};
pub use namespace::{Namespace, check_privileges, connect};
pub use network::Network;
pub use precision::{Precision, idle, precision};
pub use process::{Busy, Interrupt, Process};
pub use scenario::{Scenario, plan_of};
pub use sockets::{TcpFigures, clamp_window, limit_unsent, prioritise, send_whole, tcp_figures};
pub use source::Source;
pub use traffic::PingTimes;
