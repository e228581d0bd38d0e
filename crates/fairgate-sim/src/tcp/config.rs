//! The parameters of a connection, with Linux's defaults and names.

use fairgate::Ecn;
use serde::Deserialize;

/// The congestion control algorithm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CongestionControl {
    /// NewReno, RFC 5681 and RFC 6582.
    Reno,
    /// CUBIC, RFC 9438, with HyStart. Linux's default.
    #[default]
    Cubic,
    /// DCTCP, RFC 8257, as a scalable sender of L4S. It always requests ECN.
    Dctcp,
    /// LEDBAT, RFC 6817: less than best effort, limited by the delay that it causes.
    Ledbat,
}

impl CongestionControl {
    /// Returns the name in configuration and results.
    pub const fn name(self) -> &'static str {
        match self {
            CongestionControl::Reno => "reno",
            CongestionControl::Cubic => "cubic",
            CongestionControl::Dctcp => "dctcp",
            CongestionControl::Ledbat => "ledbat",
        }
    }

    /// Returns whether the algorithm uses the share of marked segments. Then the receiver echoes each mark
    /// (RFC 8257, section 3.2). Otherwise it echoes the first mark until it is answered.
    pub const fn is_scalable(self) -> bool {
        matches!(self, CongestionControl::Dctcp)
    }

    /// Returns the ECN codepoint of segments that may be marked.
    pub(super) const fn codepoint(self) -> Ecn {
        match self.is_scalable() {
            true => Ecn::Ect1,
            false => Ecn::Ect0,
        }
    }
}

/// The parameters of a connection. Both ends must have the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The congestion control algorithm.
    pub congestion_control: CongestionControl,
    /// Whether slow start ends when the delay grows or a train of acknowledgements is long (HyStart; CUBIC
    /// only).
    pub hystart: bool,
    /// Whether the connection requests ECN and reacts to marks (`tcp_ecn` = 1).
    pub ecn: bool,
    /// The bytes of each write of the application. The segment in which a write ends asks to be acknowledged
    /// at once.
    pub write_size: u32,
    /// The payload of a full segment, bytes: the MTU minus 40 for headers and 12 for timestamps.
    pub mss: u32,
    /// The initial congestion window, segments (RFC 6928).
    pub initial_window: u32,
    /// Whether the window is reduced after an idle time (`tcp_slow_start_after_idle`).
    pub slow_start_after_idle: bool,
    /// The initial receive buffer, bytes (`tcp_rmem`, second value). Half of it is offered as window.
    pub receive_buffer: u32,
    /// The maximum of the receive buffer's automatic growth, bytes (`tcp_rmem`, third value).
    pub receive_buffer_max: u32,
    /// The maximum of the send buffer's automatic growth, bytes (`tcp_wmem`, third value).
    pub send_buffer_max: u32,
    /// The frequency of the kernel's timer tick, 1/s. It is the granularity of all timers and of CUBIC's
    /// clock. It divides 10^9.
    pub hz: u32,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            congestion_control: CongestionControl::default(),
            hystart: true,
            ecn: false,
            write_size: 262_144,
            mss: 1448,
            initial_window: 10,
            slow_start_after_idle: true,
            receive_buffer: 131_072,
            receive_buffer_max: 6_291_456,
            send_buffer_max: 4_194_304,
            hz: 250,
        }
    }
}

impl Config {
    /// Panics if no connection can work with these parameters. That is a bug of the caller; user input is
    /// checked before.
    pub(super) fn assert_sound(&self) {
        assert!(self.mss > 0, "`mss` is 0: no segment would carry anything");
        assert!(self.write_size > 0, "`write_size` is 0: nothing would be written");
        assert!(
            self.initial_window > 0,
            "`initial_window` is 0: nothing would be sent"
        );
        assert!(
            self.receive_buffer > 1,
            "`receive_buffer` is too small to offer a window"
        );
        assert!(
            (1..=1_000_000_000).contains(&self.hz),
            "`hz` is {}, but must be from 1 to 10^9",
            self.hz
        );
    }
}
