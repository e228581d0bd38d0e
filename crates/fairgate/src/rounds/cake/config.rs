//! The parameters of CAKE.

use core::time::Duration;

use super::framing::Framing;
use super::hosts::Isolation;
use super::tins::Tins;
use crate::classify::Classifier;
use crate::error::{ConfigError, check_within};
use crate::rate::Rate;

/// Parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The rate of the line, by what [`framing`](Config::framing) counts; `None` where something else limits what is sent.
    pub bandwidth: Option<Rate>,
    /// What the line adds to a packet.
    pub framing: Framing,
    /// How much of [`Packet::length`](crate::Packet::length) comes before the IP header, bytes. Of meaning where `framing` has
    /// an overhead, which is added to the IP packet.
    pub link_header: u16,
    /// Into which tins packets are sorted.
    pub tins: Tins,
    /// Chooses the tin before the DSCP does: `handle:n`, a filter's class `n` or a default `n` is the tin with number `n`, counted
    /// from 1, bulk first.
    pub classifier: Classifier,
    /// The bits of a packet's mark that number its tin, from 1; 0 for none. Goes before the classifier.
    pub fwmark: u32,
    /// What has a queue of its own, and between whom the line is shared.
    pub isolation: Isolation,
    /// Whether every packet leaves with DSCP 0.
    pub wash: bool,
    /// Whether packets that are dropped count for the shaper: where this comes after the bottleneck, they have used it.
    pub ingress: bool,
    /// Round-trip time of usual connections: the delay that is tolerated for so long. The target is a twentieth of it.
    pub rtt: Duration,
    /// Most memory occupied by queued packets ([`Packet::memory`](crate::Packet::memory)), bytes. `None`: for four `rtt` of
    /// `bandwidth`, 4 MiB at least and 10240 packets of `mtu` at most.
    pub memory_limit: Option<u64>,
    /// Length of the longest packet, bytes: for the target, and for the limit on memory.
    pub mtu: u32,
}

/// As in Linux: no bandwidth, lengths as they are, three tins, triple isolation, a round-trip time of 100 ms; Ethernet.
impl Default for Config {
    fn default() -> Config {
        Config {
            bandwidth: None,
            framing: Framing::RAW,
            link_header: 14,
            tins: Tins::default(),
            classifier: Classifier::default(),
            fwmark: 0,
            isolation: Isolation::default(),
            wash: false,
            ingress: false,
            rtt: Duration::from_millis(100),
            memory_limit: None,
            mtu: 1514,
        }
    }
}

/// Least bandwidth, bit/s: the least part of it, a sixteenth, is 64 bytes a second, the slowest that Linux counts with.
const LEAST_BANDWIDTH: u64 = 8192;
/// Least and longest round-trip time: a microsecond, and 3600 s, to Jupiter and back.
const LEAST_RTT: Duration = Duration::from_micros(1);
const LONGEST_RTT: Duration = Duration::from_secs(3600);

impl Config {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        self.framing.check()?;
        check_within("link_header", self.link_header.into(), 0, 256)?;
        check_within("mtu", self.mtu, 64, 1 << 20)?;
        if let Some(bandwidth) = self.bandwidth
            && bandwidth.bits_per_second() < LEAST_BANDWIDTH
        {
            return Err(ConfigError::out_of_range(
                "bandwidth",
                bandwidth,
                "at least 8192bit",
                "give the rate of the line, or none where something else shapes",
            ));
        }
        if !(LEAST_RTT..=LONGEST_RTT).contains(&self.rtt) {
            return Err(ConfigError::out_of_range(
                "rtt",
                format!("{:?}", self.rtt),
                "1us to 3600s",
                "100ms, the default, suits what is connected to the Internet",
            ));
        }
        if self.memory_limit == Some(0) {
            return Err(ConfigError::out_of_range(
                "memory_limit",
                0,
                "at least 1 byte",
                "leave it out for a limit that fits the bandwidth",
            ));
        }
        Ok(())
    }

    /// Bytes per second; 0 for no bandwidth.
    pub(super) fn bytes_per_second(&self) -> u64 {
        self.bandwidth.map_or(0, |rate| rate.bits_per_second() / 8)
    }

    /// Most memory that queued packets may occupy, given or derived.
    pub fn memory(&self) -> u64 {
        if let Some(given) = self.memory_limit {
            return given;
        }
        let most = 10_240 * u64::from(self.mtu);
        if self.bandwidth.is_none() {
            return most;
        }
        let of_four_rtt = u128::from(self.bytes_per_second()) * self.rtt.as_micros() / 250_000;
        (of_four_rtt.min(most.into()) as u64).max(4 << 20).min(most)
    }
}
