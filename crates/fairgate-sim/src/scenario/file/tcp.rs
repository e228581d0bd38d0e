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

use std::ops::Range;
use std::time::Duration;

use fairgate_config::FileError;
use fairgate_config::units::parse_size;
use toml::Spanned;

use super::traffic::{DelayedAck, TcpSection};
use super::{Reader, span};
use crate::tcp;

const SECOND: u128 = 1_000_000_000;

impl TcpSection {
    /// Reads the settings of the connection.
    pub(super) fn config(&self, reader: &Reader<'_>) -> Result<tcp::Config, FileError> {
        fn value<T: Copy>(setting: &Option<Spanned<T>>) -> Option<T> {
            setting.as_ref().map(|setting| *setting.get_ref())
        }
        let plain = self.profile.unwrap_or_default().config();
        let duration = |text: &Option<Spanned<String>>, plain: Duration| {
            text.as_ref().map_or(Ok(plain), |text| reader.duration(text))
        };
        if let (Some(window), Some(_)) = (&self.fixed_window, &self.congestion_control) {
            return Err(reader.document.error(
                window.span(),
                "a connection has either a fixed window or a congestion control",
                "remove `fixed_window` or `congestion_control`",
            ));
        }
        let mut config = tcp::Config {
            congestion_control: value(&self.congestion_control).unwrap_or(plain.congestion_control),
            fixed_window: value(&self.fixed_window),
            hystart: value(&self.hystart).unwrap_or(plain.hystart),
            sack: self.sack.unwrap_or(plain.sack),
            no_delay: self.no_delay.unwrap_or(plain.no_delay),
            pacing: value(&self.pacing),
            mss: value(&self.mss).unwrap_or(plain.mss),
            initial_window: value(&self.initial_window).unwrap_or(plain.initial_window),
            slow_start_after_idle: self.slow_start_after_idle.unwrap_or(plain.slow_start_after_idle),
            delayed_ack: self.delayed_ack(reader, plain.delayed_ack)?,
            min_rto: duration(&self.min_rto, plain.min_rto)?,
            initial_rto: duration(&self.initial_rto, plain.initial_rto)?,
            hz: self.hz(reader, plain.hz)?,
            ..plain
        };
        if let Some(hystart) = &self.hystart
            && (config.fixed_window.is_some() || config.congestion_control != tcp::CongestionControl::Cubic)
        {
            return Err(reader.document.error(
                hystart.span(),
                format!(
                    "`hystart` is a part of CUBIC, but this connection has {}",
                    config.control_name()
                ),
                "remove `hystart`",
            ));
        }
        if let Some(bytes) = &self.send_buffer {
            config.fix_send_buffer(self.buffer(reader, bytes)?);
        }
        if let Some(bytes) = &self.receive_buffer {
            config.fix_receive_buffer(self.buffer(reader, bytes)?);
        }
        config.check().map_err(|mistake| {
            let (what, remedy) = mistake
                .what
                .rsplit_once("; ")
                .unwrap_or((&mistake.what, "correct this value"));
            let place = self.place(mistake.field).unwrap_or(0..0);
            reader.document.error(place, what, remedy)
        })?;
        Ok(config)
    }

    fn delayed_ack(
        &self,
        reader: &Reader<'_>,
        plain: Option<Duration>,
    ) -> Result<Option<Duration>, FileError> {
        let Some(setting) = &self.delayed_ack else {
            return Ok(plain);
        };
        match setting.get_ref() {
            DelayedAck::Switch(false) => Ok(None),
            DelayedAck::Switch(true) => Err(reader.document.error(
                setting.span(),
                "`delayed_ack` is a duration, or false",
                "write delayed_ack = \"40ms\", which is the default",
            )),
            DelayedAck::After(text) => {
                let parsed = fairgate_config::units::parse_duration(text);
                reader.unit(&setting.span(), parsed).map(Some)
            }
        }
    }

    /// Reads the length of a tick as a frequency.
    fn hz(&self, reader: &Reader<'_>, plain: u32) -> Result<u32, FileError> {
        let Some(text) = &self.tick else {
            return Ok(plain);
        };
        let tick = reader.duration(text)?.as_nanos();
        let is_whole = tick > 0 && SECOND.is_multiple_of(tick);
        match u32::try_from(SECOND.checked_div(tick).unwrap_or(0)) {
            Ok(hz) if is_whole => Ok(hz),
            _ => Err(reader.document.error(
                text.span(),
                format!(
                    "a whole number of ticks must make a second, but `{}` does not",
                    text.get_ref()
                ),
                "write \"1ms\", \"4ms\" or \"10ms\", as Linux has it",
            )),
        }
    }

    /// Reads the size of a buffer, which the configuration doubles.
    fn buffer(&self, reader: &Reader<'_>, text: &Spanned<String>) -> Result<u32, FileError> {
        let bytes = reader.unit(&text.span(), parse_size(text.get_ref()))?;
        match u32::try_from(bytes) {
            Ok(bytes) if bytes <= 1 << 30 => Ok(bytes),
            _ => Err(reader.document.error(
                text.span(),
                format!(
                    "the buffer has {bytes} bytes, but TCP's largest window is {} (RFC 7323)",
                    1 << 30
                ),
                "write a smaller size, or omit it, and it grows as needed",
            )),
        }
    }

    /// Returns where a parameter is written.
    fn place(&self, field: &str) -> Option<Range<usize>> {
        match field {
            "mss" => span(&self.mss),
            "initial_window" => span(&self.initial_window),
            "fixed_window" => span(&self.fixed_window),
            "pacing" => span(&self.pacing),
            "tick" => span(&self.tick),
            "delayed_ack" => span(&self.delayed_ack),
            "min_rto" => span(&self.min_rto),
            "initial_rto" => span(&self.initial_rto),
            "receive_buffer" => span(&self.receive_buffer).or(span(&self.mss)),
            "send_buffer" => span(&self.send_buffer).or(span(&self.mss)),
            _ => None,
        }
    }
}
