//! The settings of a TCP connection: keys of `tcp = { ... }`.
//!
//! ```toml
//! tcp = { congestion_control = "cubic" }    # reno, cubic (the default), dctcp, ledbat, bbr, bbr3, prague
//! tcp = { profile = "ns2-2004" }           # linux-6.1 (the default), ns3-2016, linux-2.6.3x, ns2-2004
//! tcp = { fixed_window = 20 }               # segments; no congestion control
//! tcp = { hystart = false, slow_start_after_idle = false, pacing = true, sack = false, no_delay = true }
//! tcp = { mss = 1448, initial_window = 10 } # bytes of payload; segments
//! tcp = { delayed_ack = "40ms", min_rto = "200ms", initial_rto = "1s", tick = "4ms" }
//! tcp = { delayed_ack = false }             # every segment is acknowledged at once
//! tcp = { send_buffer = "1mb", receive_buffer = "64kb" } # fixed; otherwise they grow as needed
//! ```

use fairgate::Rate;
use fairgate::registry::{Parameter, ParameterInfo, Smallest, Unit, Value};
use fairgate_config::{FileError, Table};

use super::{Reader, TIMES, place};
use crate::tcp::{self, CongestionControl, MOST_PAYLOAD, MOST_SEGMENTS, MOST_WINDOW, Profile};

const SECOND: u64 = 1_000_000_000;

/// How the sending goes on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PatternName {
    Constant,
    Poisson,
    OnOff,
}

fairgate::words!(PatternName {
    "constant" => PatternName::Constant,
    "poisson" => PatternName::Poisson,
    "on_off" => PatternName::OnOff,
});

impl Smallest for PatternName {
    const SMALLEST: PatternName = PatternName::Constant;
}

/// The values of a connection, and those of the program that writes.
pub(super) struct TcpKeys {
    profile: Profile,
    config: tcp::Config,
    send_buffer: Option<u32>,
    receive_buffer: Option<u32>,
    tick: Option<u64>,
    pub(super) rate: Option<Rate>,
    pub(super) transfers: Option<u64>,
    pub(super) pattern: Option<PatternName>,
    /// The size of a send buffer that a burst of a duration leaves full.
    pub(super) buffered: u64,
}

impl TcpKeys {
    fn of(config: tcp::Config) -> TcpKeys {
        TcpKeys {
            profile: Profile::default(),
            config,
            send_buffer: None,
            receive_buffer: None,
            tick: None,
            rate: None,
            transfers: None,
            pattern: None,
            buffered: 0,
        }
    }

    pub(super) fn read(tcp: &Table) -> TcpKeys {
        let profile = tcp.read(&KEYS, TcpKeys::of(tcp::Config::default())).profile;
        tcp.read(&KEYS, TcpKeys::of(profile.config()))
    }
}

/// Describes the keys, with the defaults of a connection.
pub(super) fn keys(config: tcp::Config) -> Vec<ParameterInfo> {
    Parameter::infos(&KEYS, TcpKeys::of(config))
}

/// The settings of the connection first, then those of the program.
static KEYS: [Parameter<TcpKeys>; 20] = [
    Parameter::word(
        "profile",
        Unit::Choice(Profile::WORDS),
        "The TCP of a time: it has other defaults.",
        |keys, _| &mut keys.profile,
    ),
    Parameter::word(
        "congestion_control",
        Unit::Choice(CongestionControl::WORDS),
        "The congestion control.",
        |keys, _| &mut keys.config.congestion_control,
    ),
    Parameter::new(
        "fixed_window",
        Unit::Count("segments"),
        1..=MOST_WINDOW as u64,
        "Instead: a window that never changes.",
        |keys, _| &mut keys.config.fixed_window,
    ),
    Parameter::word(
        "hystart",
        Unit::Flag,
        "With CUBIC: whether slow start ends when the delay grows.",
        |keys, _| &mut keys.config.hystart,
    ),
    Parameter::word(
        "sack",
        Unit::Flag,
        "Whether the receiver reports what arrived behind a hole.",
        |keys, _| &mut keys.config.sack,
    ),
    Parameter::word(
        "no_delay",
        Unit::Flag,
        "Whether small writes leave at once.",
        |keys, _| &mut keys.config.no_delay,
    ),
    Parameter::word(
        "pacing",
        Unit::Flag,
        "Whether segments leave evenly spaced; default: if the congestion control needs it.",
        |keys, _| &mut keys.config.pacing,
    ),
    Parameter::new(
        "mss",
        Unit::Count("bytes"),
        1..=MOST_PAYLOAD as u64,
        "The payload of a full segment.",
        |keys, _| &mut keys.config.mss,
    ),
    Parameter::new(
        "initial_window",
        Unit::Count("segments"),
        1..=MOST_SEGMENTS as u64,
        "The window at the start.",
        |keys, _| &mut keys.config.initial_window,
    ),
    Parameter::word(
        "slow_start_after_idle",
        Unit::Flag,
        "Whether the window is reduced after an idle time.",
        |keys, _| &mut keys.config.slow_start_after_idle,
    ),
    Parameter::new(
        "delayed_ack",
        Unit::TimeOrFalse,
        TIMES,
        "How long an acknowledgement of one segment waits, at most 500ms; `false`: all are sent at once.",
        |keys, _| &mut keys.config.delayed_ack,
    ),
    Parameter::new(
        "min_rto",
        Unit::Time,
        TIMES,
        "The least of the timeout's deviation, 1us to 120s.",
        |keys, _| &mut keys.config.min_rto,
    ),
    Parameter::new(
        "initial_rto",
        Unit::Time,
        TIMES,
        "The timeout before the first measurement, 1us to 120s.",
        |keys, _| &mut keys.config.initial_rto,
    ),
    Parameter::new(
        "send_buffer",
        Unit::Bytes,
        0..=MOST_WINDOW as u64,
        "A fixed buffer, as `SO_SNDBUF` sets it; default: it grows as needed.",
        |keys, _| &mut keys.send_buffer,
    ),
    Parameter::new(
        "receive_buffer",
        Unit::Bytes,
        0..=MOST_WINDOW as u64,
        "A fixed buffer, as `SO_RCVBUF` sets it; default: it grows as needed.",
        |keys, _| &mut keys.receive_buffer,
    ),
    Parameter::new(
        "tick",
        Unit::Time,
        TIMES,
        "The length of a tick, the unit of all timers; default: 4ms, and 10ms or 1ms in other profiles.",
        |keys, _| &mut keys.tick,
    ),
    Parameter::word(
        "rate",
        Unit::Rate,
        "The rate at which the program writes; default: as fast as the connection takes it.",
        |keys, _| &mut keys.rate,
    ),
    Parameter::new(
        "transfers",
        Unit::Count("transfers"),
        0..=u64::MAX,
        "How many transfers of a `size` follow one another; default: without end.",
        |keys, _| &mut keys.transfers,
    ),
    Parameter::word(
        "pattern",
        Unit::Choice(PatternName::WORDS),
        "With `on_off`: bursts and silences, whether or not earlier bursts have arrived.",
        |keys, _| &mut keys.pattern,
    ),
    Parameter::new(
        "buffered",
        Unit::Bytes,
        0..=u32::MAX as u64,
        "With `on` and without a `rate`: the size of a send buffer that is full when a burst ends.",
        |keys, _| &mut keys.buffered,
    ),
];

impl Reader<'_> {
    /// Reads the settings of the connection.
    pub(super) fn config(&self, tcp: &Table, keys: &TcpKeys) -> Result<tcp::Config, FileError> {
        let mut config = keys.config.clone();
        if config.fixed_window.is_some() && tcp.span_of("congestion_control").is_some() {
            return Err(self.document.error(
                place(tcp, "fixed_window"),
                "a connection has either a fixed window or a congestion control",
                "remove `fixed_window` or `congestion_control`",
            ));
        }
        if let Some(tick) = keys.tick {
            config.hz = self.hz(tcp, tick)?;
        }
        if let Some(hystart) = tcp.span_of("hystart")
            && (config.fixed_window.is_some() || config.congestion_control != CongestionControl::Cubic)
        {
            return Err(self.document.error(
                hystart,
                format!(
                    "`hystart` is a part of CUBIC, but this connection has {}",
                    config.control_name()
                ),
                "remove `hystart`",
            ));
        }
        if let Some(bytes) = keys.send_buffer {
            config.fix_send_buffer(bytes);
        }
        if let Some(bytes) = keys.receive_buffer {
            config.fix_receive_buffer(bytes);
        }
        config.check().map_err(|mistake| {
            // A buffer that is not written is too small for the segments.
            let written = tcp.span_of(mistake.field).or_else(|| tcp.span_of("mss"));
            self.refusal(written.unwrap_or(0..0), &mistake.what)
        })?;
        Ok(config)
    }

    /// Reads the length of a tick, ns, as a frequency.
    fn hz(&self, tcp: &Table, tick: u64) -> Result<u32, FileError> {
        let is_whole = tick > 0 && SECOND.is_multiple_of(tick);
        match u32::try_from(SECOND.checked_div(tick).unwrap_or(0)) {
            Ok(hz) if is_whole => Ok(hz),
            _ => Err(self.document.error(
                place(tcp, "tick"),
                format!(
                    "a whole number of ticks must make a second, but `{}` does not",
                    Unit::Time.show(&Value::Number(tick))
                ),
                "write \"1ms\", \"4ms\" or \"10ms\", as Linux has it",
            )),
        }
    }
}
