//! Real traffic: runs iperf3 and ping and parses their output.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::testbed::error::TestbedError;
use crate::testbed::namespace::Namespace;
use crate::testbed::network::Network;
use crate::testbed::process::{Interrupt, Process};

/// The time between two echo requests.
const PING_INTERVAL: Duration = Duration::from_millis(50);

/// How long to wait for the iperf3 server to listen, and for ping to give up on its last answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Round-trip times in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PingTimes {
    /// The number of requests sent.
    pub sent: u64,
    /// The number of answers received.
    pub received: u64,
    /// The minimum.
    pub min_ms: f64,
    /// The mean.
    pub mean_ms: f64,
    /// The median.
    pub p50_ms: f64,
    /// The 95th percentile.
    pub p95_ms: f64,
    /// The maximum.
    pub max_ms: f64,
}

/// A running ping.
#[derive(Debug)]
pub(crate) struct Ping {
    process: Process,
    duration: Duration,
}

impl Ping {
    /// Sends requests from the host `from` to the right host for `duration`.
    pub(crate) fn start(from: &Namespace, duration: Duration) -> Result<Ping, TestbedError> {
        let interval = PING_INTERVAL.as_secs_f64();
        let count = (duration.as_secs_f64() / interval).ceil().max(1.0) as u64;
        let mut command = from.command("ping");
        command.args(["-n", "-i", &interval.to_string(), "-c", &count.to_string()]);
        command.args(["-W", "2", Network::RIGHT]);
        let process = Process::spawn(command, "ping", "iputils-ping")?;
        Ok(Ping { process, duration })
    }

    /// Waits until ping ends, and returns its result.
    pub(crate) fn finish(mut self, interrupt: &Interrupt) -> Result<PingTimes, TestbedError> {
        interrupt.wait_for(self.duration + PATIENCE, || self.process.has_ended())?;
        // Exit code 1 means that answers are missing. That is a result, not a failure.
        PingTimes::parse(&self.process.output()).ok_or_else(|| self.process.failure())
    }
}

impl PingTimes {
    fn parse(output: &str) -> Option<PingTimes> {
        let summary = output.lines().find(|line| line.contains("packets transmitted"))?;
        let mut words = summary.split_whitespace();
        let sent = words.next()?.parse().ok()?;
        let received = words.nth(2)?.parse().ok()?;
        let mut times: Vec<f64> = output
            .lines()
            .filter_map(|line| {
                line.split("time=")
                    .nth(1)?
                    .split_whitespace()
                    .next()?
                    .parse()
                    .ok()
            })
            .collect();
        times.sort_by(f64::total_cmp);
        let at = |quantile: f64| {
            times
                .get((quantile * (times.len() - 1) as f64).round() as usize)
                .copied()
        };
        if times.is_empty() {
            return Some(PingTimes {
                sent,
                received,
                min_ms: f64::NAN,
                mean_ms: f64::NAN,
                p50_ms: f64::NAN,
                p95_ms: f64::NAN,
                max_ms: f64::NAN,
            });
        }
        Some(PingTimes {
            sent,
            received,
            min_ms: at(0.0)?,
            mean_ms: times.iter().sum::<f64>() / times.len() as f64,
            p50_ms: at(0.5)?,
            p95_ms: at(0.95)?,
            max_ms: at(1.0)?,
        })
    }

    /// Returns the share of requests without an answer.
    pub fn loss(&self) -> f64 {
        if self.sent == 0 {
            0.0
        } else {
            1.0 - self.received as f64 / self.sent as f64
        }
    }
}

/// The result of one TCP connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Connection {
    /// The payload at the receiver, bits per second.
    pub(crate) bits_per_second: f64,
    /// The number of retransmitted segments.
    pub(crate) retransmits: u64,
}

/// How many connections, for how long, and with which congestion control.
#[derive(Debug)]
pub(crate) struct Load<'a> {
    pub(crate) flows: u32,
    pub(crate) duration: Duration,
    pub(crate) congestion: &'a str,
}

/// TCP connections from the left host to the right one.
#[derive(Debug)]
pub(crate) struct Downloads {
    client: Process,
    _server: Process,
}

impl Downloads {
    /// Starts the connections. They are measured for `load.duration`, after a `warm_up`.
    pub(crate) fn start(
        network: &Network,
        load: &Load<'_>,
        warm_up: Duration,
        interrupt: &Interrupt,
    ) -> Result<Downloads, TestbedError> {
        let mut command = network.right.command("iperf3");
        command.args(["--server", "--one-off", "--forceflush"]);
        let mut server = Process::spawn(command, "iperf3", "iperf3")?;
        let listening = interrupt.wait_for(PATIENCE, || {
            server.output().contains("listening") || server.has_ended()
        })?;
        if !listening || server.has_ended() {
            return Err(server.failure());
        }
        let mut command = network.left.command("iperf3");
        command.args(["--client", Network::RIGHT, "--json"]);
        command.args(["--parallel", &load.flows.to_string()]);
        command.args(["--congestion", load.congestion]);
        command.args(["--omit", &warm_up.as_secs().to_string()]);
        command.args(["--time", &load.duration.as_secs().to_string()]);
        Ok(Downloads {
            client: Process::spawn(command, "iperf3", "iperf3")?,
            _server: server,
        })
    }

    /// Waits until the connections end, and returns their results.
    pub(crate) fn finish(self, interrupt: &Interrupt) -> Result<Vec<Connection>, TestbedError> {
        parse_connections(&self.client.finish(interrupt)?)
    }
}

fn parse_connections(text: &str) -> Result<Vec<Connection>, TestbedError> {
    #[derive(Deserialize)]
    struct Report {
        end: End,
    }
    #[derive(Deserialize)]
    struct End {
        streams: Vec<Stream>,
    }
    #[derive(Deserialize)]
    struct Stream {
        sender: Sender,
        receiver: Receiver,
    }
    #[derive(Deserialize)]
    struct Sender {
        retransmits: u64,
    }
    #[derive(Deserialize)]
    struct Receiver {
        bits_per_second: f64,
    }
    let report: Report = serde_json::from_str(text).map_err(|error| TestbedError::Output {
        program: "iperf3",
        what: format!("the result of each stream ({error})"),
    })?;
    let connection = |stream: &Stream| Connection {
        bits_per_second: stream.receiver.bits_per_second,
        retransmits: stream.sender.retransmits,
    };
    Ok(report.end.streams.iter().map(connection).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ping_output_is_parsed_with_losses() {
        let output = "\
PING 10.77.0.2 (10.77.0.2) 56(84) bytes of data.
64 bytes from 10.77.0.2: icmp_seq=1 ttl=64 time=10.2 ms
64 bytes from 10.77.0.2: icmp_seq=3 ttl=64 time=30.0 ms
64 bytes from 10.77.0.2: icmp_seq=4 ttl=64 time=20.4 ms

--- 10.77.0.2 ping statistics ---
4 packets transmitted, 3 received, 25% packet loss, time 152ms
rtt min/avg/max/mdev = 10.200/20.200/30.000/8.086 ms
";
        let times = PingTimes::parse(output).unwrap();
        assert_eq!((times.sent, times.received, times.loss()), (4, 3, 0.25));
        assert_eq!((times.min_ms, times.p50_ms, times.max_ms), (10.2, 20.4, 30.0));
        assert_eq!(PingTimes::parse("ping: connect: Network is unreachable"), None);
    }

    #[test]
    fn the_result_of_each_connection_is_parsed() {
        let text = r#"{"end": {"streams": [
            {"sender": {"retransmits": 3}, "receiver": {"bits_per_second": 4.5e6}},
            {"sender": {"retransmits": 0}, "receiver": {"bits_per_second": 5.5e6}}]}}"#;
        let connections = parse_connections(text).unwrap();
        assert_eq!(
            connections[0],
            Connection {
                bits_per_second: 4.5e6,
                retransmits: 3
            }
        );
        assert_eq!(connections.len(), 2);
        assert!(parse_connections(r#"{"error": "no route to host"}"#).is_err());
    }
}
