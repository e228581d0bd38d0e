//! The depths of buckets as tc writes them, from those that it shows.
//!
//! The kernel keeps the time that it takes to fill a bucket, in ticks, and tc shows this time as bytes again.
//! Both round down, and a tbf adds what its link layer adds to a packet. So what is shown is not what was
//! written, and written again it would shrink or grow. The depth here is one that is shown like that.

use fairgate::{Cells, LinkLayer, Rate};
use fairgate_config::units::{parse_rate, parse_size};

use crate::tc::display::{Amount, bucket};

/// What a bucket is filled with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Filling {
    rate: Rate,
    /// What the kernel adds to a packet before it computes the time. htb adds nothing.
    link: Option<LinkLayer>,
}

impl Filling {
    /// Returns how the bucket `word` of this kind is filled, from the other options.
    pub(super) fn of(kind: &str, word: &str, options: &[&str]) -> Option<Filling> {
        let after = |name: &str| {
            let at = options.iter().position(|option| *option == name)?;
            options.get(at + 1).copied()
        };
        let rate = match (kind, word) {
            ("htb", "burst") | ("tbf", "burst") => "rate",
            ("htb", "cburst") => "ceil",
            ("tbf", "mtu" | "minburst") => "peakrate",
            _ => return None,
        };
        let rate = parse_rate(&after(rate)?.to_lowercase()).ok()?;
        let number = |name: &str| after(name).and_then(|text| parse_size(text).ok()).unwrap_or(0);
        let link = LinkLayer {
            overhead: number("overhead") as u16,
            mpu: number("mpu") as u16,
            cells: match after("linklayer") {
                Some("atm") => Cells::Atm,
                _ => Cells::None,
            },
            ..LinkLayer::NONE
        };
        let link = (kind == "tbf").then_some(link);
        Some(Filling { rate, link })
    }

    /// Returns the bytes that tc shows for a bucket of so many bytes.
    fn shown(self, bytes: u32) -> u64 {
        let nanos = match self.link {
            Some(link) => self.rate.meter().nanos(link.count(bytes).into()),
            // tc sends whole microseconds.
            None => u64::from(bytes) * 1_000_000 / (self.rate.bits_per_second() / 8).max(1) * 1000,
        };
        bucket(self.rate, nanos)
    }

    /// Returns a depth that is shown as `text`, or `text` if there is none.
    pub(super) fn written(self, text: &str) -> String {
        let (size, _) = text.split_once('/').unwrap_or((text, ""));
        let Ok(bytes) = parse_size(&size.to_lowercase()) else {
            return text.to_owned();
        };
        // The least depth that is shown as so many bytes, or more. 0 would be "not given".
        let (mut low, mut high) = (1, u32::MAX);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.shown(middle) < bytes {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        // Text rounds the number of bytes: 1048575 is "1024Kb", and 1048576 is "1Mb". JSON has the number.
        let depths = || [low, low.saturating_sub(1).max(1)].into_iter();
        let has_text = |depth: &u32| Amount::Size(self.shown(*depth)).text().as_deref() == Some(size);
        let has_bytes = |depth: &u32| self.shown(*depth) == bytes;
        let found = depths().find(has_text).or_else(|| depths().find(has_bytes));
        found.map_or(text.to_owned(), |depth| format!("{depth}b"))
    }
}
