//! The parameters of a connection, with Linux's defaults and names.

use std::time::Duration;

use fairgate::Ecn;
use serde::Deserialize;

/// The congestion control algorithm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(try_from = "String")]
#[non_exhaustive]
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
    /// BBR version 1, as in Linux: paces at the bandwidth that it measures.
    Bbr,
    /// BBR version 3, draft-ietf-ccwg-bbr: BBR that also reacts to losses.
    Bbr3,
    /// TCP Prague, draft-briscoe-iccrg-prague-congestion-control: DCTCP for the Internet, with pacing and
    /// accurate ECN feedback. It always requests ECN.
    Prague,
}

fairgate::words!(CongestionControl {
    "reno" => CongestionControl::Reno,
    "cubic" => CongestionControl::Cubic,
    "dctcp" => CongestionControl::Dctcp,
    "ledbat" => CongestionControl::Ledbat,
    "bbr" => CongestionControl::Bbr,
    "bbr3" => CongestionControl::Bbr3,
    "prague" => CongestionControl::Prague,
});

impl TryFrom<String> for CongestionControl {
    type Error = String;

    fn try_from(word: String) -> Result<CongestionControl, String> {
        CongestionControl::of_word(&word).ok_or_else(|| format!("unknown congestion control {word}"))
    }
}

impl CongestionControl {
    /// Returns the name in configuration and results.
    pub const fn name(self) -> &'static str {
        self.word()
    }

    /// Returns whether the algorithm uses the share of marked segments. Then the receiver reports each mark.
    /// Otherwise it echoes the first mark until it is answered.
    pub const fn is_scalable(self) -> bool {
        matches!(self, CongestionControl::Dctcp | CongestionControl::Prague)
    }

    /// Returns whether the receiver counts marks for the algorithm (AccECN, RFC 9768).
    pub const fn needs_accurate_ecn(self) -> bool {
        matches!(self, CongestionControl::Prague)
    }

    /// Returns whether the algorithm decides when segments leave, and so can't work without pacing.
    pub const fn needs_pacing(self) -> bool {
        matches!(
            self,
            CongestionControl::Bbr | CongestionControl::Bbr3 | CongestionControl::Prague
        )
    }

    /// Returns the ECN codepoint of segments that may be marked.
    pub(super) const fn codepoint(self) -> Ecn {
        match self.is_scalable() {
            true => Ecn::Ect1,
            false => Ecn::Ect0,
        }
    }
}

/// The largest window and initial window, segments. It is more than a receiver's first window holds.
pub(crate) const MOST_SEGMENTS: u32 = 1_000;
/// The largest window that a connection can offer, bytes (RFC 7323, section 2.3).
pub(crate) const MOST_WINDOW: u32 = 1 << 30;
/// The payload of a segment that fills the longest packet, bytes: 20 bytes are for IP, 60 for TCP with all
/// options.
pub(crate) const MOST_PAYLOAD: u32 = 65_535 - 80;
/// The longest timeout, as in Linux (`TCP_RTO_MAX`). Timeouts in the configuration must not be above it.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(120);
/// The longest delay of an acknowledgement (RFC 1122, section 4.2.3.2).
const LONGEST_DELAY: Duration = Duration::from_millis(500);

/// The memory that Linux counts per segment besides its payload, bytes. It limits the content of the send
/// buffer.
pub(super) const SEGMENT_OVERHEAD: u32 = 768;

/// The parameters of a connection. Both ends must have the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The congestion control algorithm.
    pub congestion_control: CongestionControl,
    /// A constant window in place of a congestion control, segments. Losses are repaired, but don't change
    /// it.
    pub fixed_window: Option<u32>,
    /// Whether slow start ends when the delay grows or a train of acknowledgements is long (HyStart; CUBIC
    /// only).
    pub hystart: bool,
    /// Whether the connection requests ECN and reacts to marks (`tcp_ecn` = 1).
    pub ecn: bool,
    /// Whether the receiver reports what arrived behind a hole (SACK, RFC 2018). Without it, losses are found
    /// by duplicate acknowledgements and repaired one per round trip (NewReno, RFC 6582).
    pub sack: bool,
    /// Whether small writes leave at once (`TCP_NODELAY`). Otherwise at most one segment that is not full is
    /// on its way (Nagle's rule in Minshall's form).
    pub no_delay: bool,
    /// Whether segments leave evenly spaced and not in bursts. `None`: if the congestion control needs it.
    pub pacing: Option<bool>,
    /// The bytes of each write of the application. The segment in which a write ends asks to be acknowledged
    /// at once.
    pub write_size: u32,
    /// The payload of a full segment, bytes: the MTU minus 40 for headers and 12 for timestamps.
    pub mss: u32,
    /// The initial congestion window, segments (RFC 6928).
    pub initial_window: u32,
    /// Whether the window is reduced after an idle time (`tcp_slow_start_after_idle`).
    pub slow_start_after_idle: bool,
    /// The shortest delay of an acknowledgement of a single segment (`TCP_DELACK_MIN`). The delay adapts to
    /// the gaps between segments, up to 200 ms or this, whichever is more. `None`: every segment is
    /// acknowledged at once.
    pub delayed_ack: Option<Duration>,
    /// The minimum of the timeout's deviation term (`TCP_RTO_MIN`).
    pub min_rto: Duration,
    /// The timeout before the first measurement of the RTT (RFC 6298, 2.1).
    pub initial_rto: Duration,
    /// The initial receive buffer, bytes (`tcp_rmem`, second value). Half of it is offered as window.
    pub receive_buffer: u32,
    /// The maximum of the receive buffer's automatic growth, bytes (`tcp_rmem`, third value).
    pub receive_buffer_max: u32,
    /// The maximum of the send buffer's automatic growth, bytes (`tcp_wmem`, third value).
    pub send_buffer_max: u32,
    /// The frequency of the kernel's timer tick, 1/s. It is the granularity of all timers and of CUBIC's
    /// clock. It divides 10^9.
    pub hz: u32,
    /// The seed of the random decisions of the congestion control (when BBR probes for bandwidth).
    pub seed: u64,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            congestion_control: CongestionControl::default(),
            fixed_window: None,
            hystart: true,
            ecn: false,
            sack: true,
            no_delay: false,
            pacing: None,
            write_size: 262_144,
            mss: 1448,
            initial_window: 10,
            slow_start_after_idle: true,
            delayed_ack: Some(Duration::from_millis(40)),
            min_rto: Duration::from_millis(200),
            initial_rto: Duration::from_secs(1),
            receive_buffer: 131_072,
            receive_buffer_max: 6_291_456,
            send_buffer_max: 4_194_304,
            hz: 250,
            seed: 0,
        }
    }
}

/// A parameter that no connection can work with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigMistake {
    /// The parameter, as scenario files name it.
    pub field: &'static str,
    /// What is wrong, and after a semicolon the remedy.
    pub what: String,
}

impl Config {
    /// Sets fixed buffers for sent data, as a program does by `SO_SNDBUF`. Linux doubles the value, because
    /// it counts its own memory for each segment, too.
    ///
    /// # Panics
    /// Panics above 2^31 - 1 bytes.
    pub fn fix_send_buffer(&mut self, bytes: u32) {
        self.send_buffer_max = bytes.checked_mul(2).expect("buffers are below 2 GiB");
    }

    /// Sets a fixed buffer for received data, as a program does by `SO_RCVBUF`. Linux doubles the value, and
    /// offers half of the buffer minus one segment as window.
    ///
    /// # Panics
    /// Panics above 2^31 - 1 bytes.
    pub fn fix_receive_buffer(&mut self, bytes: u32) {
        self.receive_buffer = bytes.checked_mul(2).expect("buffers are below 2 GiB");
        self.receive_buffer_max = self.receive_buffer;
    }

    /// Returns the name of the congestion control in results.
    pub fn control_name(&self) -> &'static str {
        match self.fixed_window {
            Some(_) => "fixed",
            None => self.congestion_control.name(),
        }
    }

    /// Returns whether segments are paced.
    pub(super) fn is_paced(&self) -> bool {
        self.pacing
            .unwrap_or(self.fixed_window.is_none() && self.congestion_control.needs_pacing())
    }

    /// Checks the ranges of all parameters, and that they fit together.
    ///
    /// # Errors
    /// Reports the first parameter that is wrong.
    pub fn check(&self) -> Result<(), ConfigMistake> {
        let mistake = |field, what: String| Err(ConfigMistake { field, what });
        if !(1..=MOST_PAYLOAD).contains(&self.mss) {
            return mistake(
                "mss",
                format!(
                    "segments have {} bytes of payload, but must have from 1 to {MOST_PAYLOAD}; 1448 bytes \
                     fill an Ethernet packet",
                    self.mss
                ),
            );
        }
        if !(1..=MOST_SEGMENTS).contains(&self.initial_window) {
            return mistake(
                "initial_window",
                format!(
                    "the initial window is {} segments, but must be from 1 to {MOST_SEGMENTS}; 10 is usual \
                     (RFC 6928)",
                    self.initial_window
                ),
            );
        }
        let most = MOST_WINDOW / self.mss;
        if let Some(window) = self.fixed_window
            && !(1..=most).contains(&window)
        {
            return mistake(
                "fixed_window",
                format!(
                    "the fixed window is {window} segments, but must be from 1 to {most}, which is the \
                     largest window of TCP; about rate x RTT / segment size fills a link"
                ),
            );
        }
        if self.pacing == Some(false) && self.fixed_window.is_none() && self.congestion_control.needs_pacing()
        {
            return mistake(
                "pacing",
                format!(
                    "{} can't work without pacing; omit `pacing`, or use another congestion control",
                    self.congestion_control.name()
                ),
            );
        }
        self.check_times()?;
        // A smaller fixed window could never hold two segments and the one that is kept in reserve. A window
        // that grows may begin with less.
        let is_fixed = self.receive_buffer == self.receive_buffer_max;
        let least = if is_fixed { 8 * self.mss.max(1460) } else { 2 };
        if !(least..=2 * MOST_WINDOW).contains(&self.receive_buffer) {
            return mistake(
                "receive_buffer",
                format!(
                    "the receive buffer is {} bytes, but must be from {} to {MOST_WINDOW}, at least four \
                     segments; omit it, and it grows as needed",
                    self.receive_buffer / 2,
                    least / 2
                ),
            );
        }
        let least = 2 * (self.mss + SEGMENT_OVERHEAD);
        if self.send_buffer_max < least {
            return mistake(
                "send_buffer",
                format!(
                    "the send buffer is {} bytes, but must be from {} (two segments with the memory that \
                     Linux counts for each) to {MOST_WINDOW}; omit it, and it grows as needed",
                    self.send_buffer_max / 2,
                    least / 2
                ),
            );
        }
        Ok(())
    }

    fn check_times(&self) -> Result<(), ConfigMistake> {
        let mistake = |field, what: String| Err(ConfigMistake { field, what });
        let tick = 1_000_000_000 / self.hz.max(1);
        if !(10..=1_000_000).contains(&self.hz) || tick * self.hz != 1_000_000_000 {
            return mistake(
                "tick",
                format!(
                    "there are {} ticks in a second, but a tick must be from 1 us to 100 ms, and a whole \
                     number of them must make a second; Linux has 1 ms, 4 ms or 10 ms",
                    self.hz
                ),
            );
        }
        if self
            .delayed_ack
            .is_some_and(|delay| delay.is_zero() || delay > LONGEST_DELAY)
        {
            return mistake(
                "delayed_ack",
                format!(
                    "the delay of acknowledgements is {:?}, but must be above 0 and at most \
                     {LONGEST_DELAY:?} (RFC 1122); 40ms is usual, and false switches it off",
                    self.delayed_ack.unwrap_or_default()
                ),
            );
        }
        for (field, value, usual) in [
            ("min_rto", self.min_rto, "200ms"),
            ("initial_rto", self.initial_rto, "1s"),
        ] {
            if value < Duration::from_micros(1) || value > LONGEST_TIMEOUT {
                return mistake(
                    field,
                    format!(
                        "`{field}` is {value:?}, but must be from 1 us to {LONGEST_TIMEOUT:?}; {usual} is \
                         usual"
                    ),
                );
            }
        }
        Ok(())
    }

    /// Panics if no connection can work with these parameters. That is a bug of the caller; user input is
    /// checked before.
    pub(super) fn assert_sound(&self) {
        assert!(self.write_size > 0, "`write_size` is 0: nothing would be written");
        if let Err(mistake) = self.check() {
            panic!("`{}`: {}", mistake.field, mistake.what);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_sound_and_each_mistake_names_its_parameter() {
        assert_eq!(Config::default().check(), Ok(()));
        type Damage = fn(&mut Config);
        let wrong: [(&str, Damage); 13] = [
            ("mss", |config| config.mss = 0),
            ("initial_window", |config| config.initial_window = 0),
            ("fixed_window", |config| config.fixed_window = Some(0)),
            ("fixed_window", |config| config.fixed_window = Some(u32::MAX)),
            ("pacing", |config| {
                config.congestion_control = CongestionControl::Bbr;
                config.pacing = Some(false);
            }),
            ("receive_buffer", |config| config.fix_receive_buffer(5_000)),
            ("send_buffer", |config| config.fix_send_buffer(2_000)),
            ("tick", |config| config.hz = 0),
            ("tick", |config| config.hz = 300),
            ("delayed_ack", |config| config.delayed_ack = Some(Duration::ZERO)),
            ("delayed_ack", |config| {
                config.delayed_ack = Some(Duration::from_secs(1))
            }),
            ("min_rto", |config| config.min_rto = Duration::ZERO),
            ("initial_rto", |config| {
                config.initial_rto = Duration::from_secs(1000)
            }),
        ];
        for (field, damage) in wrong {
            let mut config = Config::default();
            damage(&mut config);
            let mistake = config.check().expect_err(field);
            assert_eq!(mistake.field, field);
            assert!(mistake.what.contains("; "), "no remedy: {}", mistake.what);
        }
    }

    #[test]
    fn a_fixed_window_has_its_own_name_and_needs_no_pacing() {
        let config = Config {
            fixed_window: Some(20),
            congestion_control: CongestionControl::Bbr,
            ..Config::default()
        };
        assert_eq!(config.control_name(), "fixed");
        assert!(!config.is_paced());
    }
}
