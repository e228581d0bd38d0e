//! The settings of TCP as they were when a paper was written.
//!
//! A paper names its simulator or kernel, and rarely its TCP. What was usual then differs from today in what
//! decides such a comparison: the congestion control, the size of segments, the first window, and when an
//! acknowledgement waits.

use std::time::Duration;

use super::config::{Config, CongestionControl};

/// A TCP of a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Profile {
    /// Linux 6.1: CUBIC, SACK, ten segments at first. The default.
    #[default]
    Linux6,
    /// Linux 2.6.30 to 2.6.38: CUBIC and SACK as today, but three segments at first (RFC 3390 in
    /// `tcp_init_cwnd`; ten came with 2.6.39), 3 s before the first measurement of the RTT (RFC 2988; 1 s
    /// came with 3.1), and receive buffers from 87,380 bytes to 4 MiB (`tcp_rmem`).
    Linux26,
    /// ns-2 of early 2004, `Agent/TCP/Newreno` to `Agent/TCPSink`, with the defaults of its `ns-default.tcl`:
    /// packets of 1,000 bytes and 40 of headers (`packetSize_`, `useHeaders_`; as our headers have 52 bytes,
    /// segments of 988), two segments at first (`windowInit_`), at most 20 (`window_`), no SACK, each segment
    /// acknowledged at once, no new slow start after an idle time, ticks of 10 ms (`tcpTick_`), and a timeout
    /// of at least 1 s (`minrto_`; 200 ms from October 2004 on) and of 6 s at first (`rtxcur_init_`; 3 s from
    /// 2006 on). Its packets are counted, so Nagle's rule never applies.
    Ns2,
    /// ns-3.24 and ns-3.25 of 2015 and 2016, with the defaults of `TcpSocket` and `RttEstimator`: NewReno
    /// without SACK, segments of 536 bytes, one at first (`InitialCwnd`), buffers of 128 KiB, an
    /// acknowledgement that waits for a second segment or 200 ms (`DelAckTimeout`), a timeout of at least 1 s
    /// (`MinRto`) and of 3 s at first (`ConnTimeout`), and `TcpNoDelay`.
    Ns3,
}

fairgate::words!(Profile {
    "ns2-2004" => Profile::Ns2,
    "linux-2.6.3x" => Profile::Linux26,
    "ns3-2016" => Profile::Ns3,
    "linux-6.1" => Profile::Linux6,
});

impl Profile {
    /// Returns the settings of its connections.
    pub fn config(self) -> Config {
        let today = Config::default();
        match self {
            Profile::Linux6 => today,
            Profile::Linux26 => Config {
                initial_window: 3,
                initial_rto: Duration::from_secs(3),
                receive_buffer: 87_380,
                receive_buffer_max: 4 << 20,
                ..today
            },
            Profile::Ns2 => {
                let mss = 988;
                let mut config = Config {
                    congestion_control: CongestionControl::Reno,
                    sack: false,
                    no_delay: true,
                    mss,
                    initial_window: 2,
                    slow_start_after_idle: false,
                    delayed_ack: None,
                    min_rto: Duration::from_secs(1),
                    initial_rto: Duration::from_secs(6),
                    hz: 100,
                    ..today
                };
                // The window is the buffer less one segment.
                config.fix_receive_buffer(21 * mss);
                config
            }
            Profile::Ns3 => {
                let mut config = Config {
                    congestion_control: CongestionControl::Reno,
                    sack: false,
                    no_delay: true,
                    mss: 536,
                    initial_window: 1,
                    slow_start_after_idle: false,
                    delayed_ack: Some(Duration::from_millis(200)),
                    min_rto: Duration::from_secs(1),
                    initial_rto: Duration::from_secs(3),
                    hz: 1_000,
                    ..today
                };
                config.fix_receive_buffer(131_072);
                config.fix_send_buffer(131_072);
                config
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_profile_is_sound() {
        for profile in Profile::ALL {
            assert_eq!(profile.config().check(), Ok(()), "{profile:?}");
        }
        assert_eq!(Profile::default().config(), Config::default());
    }
}
