//! The history as the bytes of a file.
//!
//! ```text
//! "fairgate history 1\n"  block  block  ...
//! block    = length of the content (u32), its CRC-32 (u32), content
//! content  = when it was written, then for each direction: its interfaces,
//!            the new times of each ring, the new points of the busiest classes at these times;
//!            the new times of five minutes, and if there are some the points of all classes
//! ```
//!
//! The first block has the whole history, and each further one what was new. All are of the same run: times
//! are seconds since its start. The last block says what the machine's clocks showed at such a time, so that
//! the next run knows how long ago it was. Numbers are little-endian.
//!
//! A file is read as bytes from outside: whatever it says, nothing is taken that a run could not have
//! written, and no more memory than its rings may have.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::time::{ClockId, clock_gettime};
use thiserror::Error;

use super::coarse::{self, Coarse, CoarseAxis, CoarsePoint, POINT_BYTES};
use super::rings::{Axis, FIGURES, KEPT, Point, Rings, most};

/// How every version of the file begins.
const NAME: &[u8] = b"fairgate history ";

/// How the file of this version begins.
pub(super) const HEAD: &[u8] = b"fairgate history 1\n";

/// The largest file, bytes. A whole history has 8 MB, and 57 MB if there are as many classes as may have
/// points of five minutes; names come to that. The file may grow by half of it and one block.
pub(super) const LARGEST: usize = 256 << 20;

/// The most directions of a run, and classes of a direction with a history, the root among them.
const MOST_DIRECTIONS: usize = 2;
const MOST_CLASSES: usize = super::MOST_SERIES + 1;

/// The longest name of an interface or a class, bytes.
const LONGEST_NAME: usize = 4096;

/// The longest time, seconds: 317 years.
const LONGEST_S: f64 = 1e10;

/// The shortest time between two points, seconds. Less could be lost when another run counts from its start.
const LEAST_STEP_S: f64 = 0.001;

/// What the machine's clocks show.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Clocks {
    /// Since 1970. It may be set.
    unix_s: f64,
    /// Since the machine was started, also while it slept.
    boot_s: f64,
    /// What tells this start of the machine from all others. Zeros if it can't be read.
    boot: [u8; 16],
}

/// The history of a file.
#[derive(Debug)]
pub(super) struct Saved {
    /// A time of its run, and what the clocks showed then.
    pub(super) at_s: f64,
    pub(super) clocks: Clocks,
    pub(super) directions: Vec<SavedDirection>,
}

/// The history of a direction of a file.
#[derive(Debug)]
pub(super) struct SavedDirection {
    pub(super) from: String,
    pub(super) to: String,
    pub(super) axis: Axis,
    /// By what tells a class from others, in this run and in the next one.
    pub(super) series: BTreeMap<String, Rings>,
    pub(super) coarse_axis: CoarseAxis,
    pub(super) coarse: BTreeMap<String, Coarse>,
}

/// The time of the last point of each ring that a file has, for each direction. That of the points of five
/// minutes is in the place of the ring that is not kept.
pub(super) type Marks = Vec<[f64; KEPT.end]>;
const COARSE: usize = 0;

/// What a block says of a direction.
pub(super) struct DirectionToSave<'h> {
    pub(super) from: &'h str,
    pub(super) to: &'h str,
    pub(super) axis: &'h Axis,
    pub(super) series: Vec<(&'h str, &'h Rings)>,
    pub(super) coarse_axis: &'h CoarseAxis,
    pub(super) coarse: Vec<&'h Coarse>,
}

/// Why a file, or the rest of it, is not used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum Unusable {
    #[error("it is no history of a run of Fairgate")]
    Foreign,
    #[error("another version of Fairgate has written it")]
    OtherVersion,
    #[error("byte {at}: {why}")]
    Damaged { at: usize, why: &'static str },
}

impl Clocks {
    /// Reads them. `boot` is the text of the kernel that tells this start of the machine from others.
    pub(super) fn now(boot: &str) -> Clocks {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH);
        let since_boot = clock_gettime(ClockId::CLOCK_BOOTTIME);
        let digits: String = boot.chars().filter(char::is_ascii_hexdigit).collect();
        Clocks {
            unix_s: unix.as_ref().map_or(0.0, Duration::as_secs_f64),
            boot_s: since_boot.map_or(0.0, |time| Duration::from(time).as_secs_f64()),
            boot: u128::from_str_radix(&digits, 16).unwrap_or(0).to_le_bytes(),
        }
    }

    /// Returns the seconds since these clocks were read, until they showed `now`. There are none if the
    /// calendar was set back between two starts of the machine.
    pub(super) fn seconds_until(&self, now: &Clocks) -> Option<f64> {
        let seconds = match self.boot != [0; 16] && self.boot == now.boot {
            true => now.boot_s - self.boot_s,
            false => now.unix_s - self.unix_s,
        };
        (seconds >= 0.0).then_some(seconds)
    }
}

/// Returns the content of a block of what has come after these marks, and its marks. Without marks, it is a
/// first block.
pub(super) fn content(
    at_s: f64,
    clocks: &Clocks,
    directions: &[DirectionToSave<'_>],
    marks: Option<&Marks>,
) -> (Vec<u8>, Marks) {
    let mut content = Vec::new();
    for number in [at_s, clocks.unix_s, clocks.boot_s] {
        content.extend(number.to_le_bytes());
    }
    content.extend(clocks.boot);
    content.push(directions.len() as u8);
    let mut made = Marks::new();
    for (place, direction) in directions.iter().enumerate() {
        let before = marks.and_then(|marks| marks.get(place)).copied();
        let mut mark = before.unwrap_or([f64::MIN; KEPT.end]);
        put_name(&mut content, direction.from);
        put_name(&mut content, direction.to);
        let mut counts = [0; KEPT.end];
        for tier in KEPT {
            let times = direction.axis.times(tier, mark[tier]);
            put_count(&mut content, times.len());
            times.iter().for_each(|time| content.extend(time.to_le_bytes()));
            counts[tier] = times.len();
            mark[tier] = times.last().copied().unwrap_or(mark[tier]);
        }
        put_count(&mut content, direction.series.len());
        for (class, rings) in &direction.series {
            put_name(&mut content, class);
            for tier in KEPT {
                let points = rings.latest(tier, counts[tier]);
                put_count(&mut content, points.len());
                for figure in points.flat_map(Point::figures) {
                    content.extend(figure.to_le_bytes());
                }
            }
        }
        let times = direction.coarse_axis.times(mark[COARSE]);
        put_count(&mut content, times.len());
        times.iter().for_each(|time| content.extend(time.to_le_bytes()));
        if let Some(last) = times.last() {
            mark[COARSE] = *last;
            put_count(&mut content, direction.coarse.len());
            for coarse in &direction.coarse {
                put_name(&mut content, &coarse.identity);
                let points = coarse.latest(times.len());
                put_count(&mut content, points.len());
                points.for_each(|point| content.extend(point.to_bytes()));
            }
        }
        made.push(mark);
    }
    (content, made)
}

/// Returns a block with this content.
pub(super) fn framed(content: &[u8]) -> Vec<u8> {
    let mut block = Vec::with_capacity(content.len() + 8);
    block.extend((content.len() as u32).to_le_bytes());
    block.extend(crc(content).to_le_bytes());
    block.extend(content);
    block
}

/// Lists are shorter than this: rings by their length, classes by their number.
fn put_count(content: &mut Vec<u8>, count: usize) {
    content.extend((count as u16).to_le_bytes());
}

/// Names that are too long for a file are cut. Such a class is not found again.
fn put_name(content: &mut Vec<u8>, name: &str) {
    let name = &name[..name.floor_char_boundary(LONGEST_NAME)];
    put_count(content, name.len());
    content.extend(name.as_bytes());
}

/// Reads a file. Returns what its whole blocks say, and what is wrong with the first one that is not whole.
pub(super) fn read(file: &[u8]) -> (Option<Saved>, Option<Unusable>) {
    let Some(mut rest) = file.strip_prefix(HEAD) else {
        // A file without anything is what a full disk leaves.
        let is_damaged = file.len() < HEAD.len() && HEAD.starts_with(file);
        return (
            None,
            Some(match file.starts_with(NAME) {
                _ if is_damaged => Unusable::Damaged {
                    at: file.len(),
                    why: "it ends here",
                },
                true => Unusable::OtherVersion,
                false => Unusable::Foreign,
            }),
        );
    };
    let mut saved = None;
    while !rest.is_empty() {
        let at = file.len() - rest.len();
        let damaged = |why| Some(Unusable::Damaged { at, why });
        let Some((content, behind)) = unframed(rest) else {
            return (saved, damaged("the block that begins here is not whole"));
        };
        if let Err(why) = take(&mut saved, content) {
            return (saved, damaged(why));
        }
        rest = behind;
    }
    (saved, None)
}

/// Returns the content of the first block, and what is behind it.
fn unframed(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    let (sum, rest) = rest.split_first_chunk()?;
    let (content, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    (u32::from_le_bytes(*sum) == crc(content)).then_some((content, rest))
}

/// What a block says of a direction, before any of it is taken.
struct Part<'b> {
    from: &'b str,
    to: &'b str,
    times: [Vec<f64>; KEPT.end],
    series: BTreeMap<&'b str, [Vec<Point>; KEPT.end]>,
    coarse_times: Vec<f64>,
    coarse: BTreeMap<&'b str, Vec<CoarsePoint>>,
}

/// Adds a block to what those before it say. A block that is refused has changed nothing.
fn take(saved: &mut Option<Saved>, content: &[u8]) -> Result<(), &'static str> {
    let mut bytes = Bytes(content);
    let [at_s, unix_s, boot_s] = [bytes.time()?, bytes.time()?, bytes.time()?];
    let boot = *bytes.array()?;
    let clocks = Clocks { unix_s, boot_s, boot };
    let count = usize::from(bytes.array::<1>()?[0]);
    if count > MOST_DIRECTIONS {
        return Err("it has more than two directions");
    }
    let parts = (0..count)
        .map(|_| part(&mut bytes, at_s))
        .collect::<Result<Vec<_>, _>>()?;
    if !bytes.0.is_empty() {
        return Err("it goes on behind its end");
    }
    let known = saved.get_or_insert_with(|| Saved {
        at_s,
        clocks,
        directions: parts.iter().map(Part::begin).collect(),
    });
    if known.at_s > at_s || !known.directions.iter().eq(&parts) {
        return Err("it does not follow the one before it");
    }
    (known.at_s, known.clocks) = (at_s, clocks);
    for (direction, part) in known.directions.iter_mut().zip(parts) {
        part.add_to(direction);
    }
    Ok(())
}

/// Whether the times of a part follow those of its direction.
impl PartialEq<&Part<'_>> for &SavedDirection {
    fn eq(&self, part: &&Part<'_>) -> bool {
        let follows = |last: Option<f64>, times: &[f64]| {
            let pair = last.zip(times.first());
            pair.is_none_or(|(last, first)| first - last >= LEAST_STEP_S)
        };
        self.from == part.from
            && self.to == part.to
            && KEPT
                .into_iter()
                .all(|tier| follows(self.axis.last(tier), &part.times[tier]))
            && follows(self.coarse_axis.last(), &part.coarse_times)
    }
}

fn part<'b>(bytes: &mut Bytes<'b>, at_s: f64) -> Result<Part<'b>, &'static str> {
    let [from, to] = [bytes.name()?, bytes.name()?];
    let mut times: [Vec<f64>; KEPT.end] = Default::default();
    for tier in KEPT {
        times[tier] = bytes.times(most(tier), at_s)?;
    }
    let mut series = BTreeMap::new();
    for _ in 0..bytes.count(MOST_CLASSES)? {
        let class = bytes.name()?;
        let mut points: [Vec<Point>; KEPT.end] = Default::default();
        for tier in KEPT {
            for _ in 0..bytes.count(times[tier].len())? {
                let mut figures = [0.0; FIGURES];
                for figure in &mut figures {
                    *figure = f32::from_le_bytes(*bytes.array()?);
                }
                points[tier].push(Point::of_figures(figures));
            }
        }
        series.insert(class, points);
    }
    let coarse_times = bytes.times(coarse::MOST_POINTS, at_s)?;
    let mut coarse = BTreeMap::new();
    let most = match coarse_times.is_empty() {
        true => None,
        false => Some(bytes.count(coarse::MOST_CLASSES)?),
    };
    for _ in 0..most.unwrap_or(0) {
        let class = bytes.name()?;
        let count = bytes.count(coarse_times.len())?;
        let (points, _) = bytes.take(count * POINT_BYTES)?.as_chunks();
        coarse.insert(
            class,
            points.iter().map(|point| CoarsePoint::of_bytes(*point)).collect(),
        );
    }
    Ok(Part {
        from,
        to,
        times,
        series,
        coarse_times,
        coarse,
    })
}

impl Part<'_> {
    /// Returns its direction, without any points yet.
    fn begin(&self) -> SavedDirection {
        SavedDirection {
            from: self.from.to_owned(),
            to: self.to.to_owned(),
            axis: Axis::default(),
            series: BTreeMap::new(),
            coarse_axis: CoarseAxis::default(),
            coarse: BTreeMap::new(),
        }
    }

    fn add_to(self, direction: &mut SavedDirection) {
        // The others have lost their places.
        direction
            .series
            .retain(|class, _| self.series.contains_key(class.as_str()));
        for tier in KEPT {
            direction.axis.extend(tier, &self.times[tier]);
        }
        for (class, points) in self.series {
            let rings = direction.series.entry(class.to_owned()).or_default();
            for (tier, points) in points.into_iter().enumerate().skip(KEPT.start) {
                rings.extend(tier, self.times[tier].len(), points.into_iter());
            }
        }
        if self.coarse_times.is_empty() {
            return;
        }
        direction.coarse_axis.extend(&self.coarse_times);
        direction
            .coarse
            .retain(|class, _| self.coarse.contains_key(class.as_str()));
        for (class, points) in self.coarse {
            let coarse = direction.coarse.entry(class.to_owned());
            let coarse = coarse.or_insert_with(|| Coarse::new(class.to_owned()));
            coarse.extend(self.coarse_times.len(), points.into_iter());
        }
    }
}

/// What is left of a block.
struct Bytes<'b>(&'b [u8]);

impl<'b> Bytes<'b> {
    fn take(&mut self, count: usize) -> Result<&'b [u8], &'static str> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or("it ends too early")?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<&'b [u8; N], &'static str> {
        let taken = self.take(N)?;
        Ok(taken.first_chunk().expect("it has this length"))
    }

    fn time(&mut self) -> Result<f64, &'static str> {
        let time = f64::from_le_bytes(*self.array()?);
        match time.abs() < LONGEST_S {
            true => Ok(time),
            false => Err("a time in it is none"),
        }
    }

    /// Reads times in their order, until that of the block.
    fn times(&mut self, most: usize, at_s: f64) -> Result<Vec<f64>, &'static str> {
        let mut times: Vec<f64> = Vec::new();
        for _ in 0..self.count(most)? {
            let time = self.time()?;
            if time > at_s || times.last().is_some_and(|last| time - last < LEAST_STEP_S) {
                return Err("its times are in no order");
            }
            times.push(time);
        }
        Ok(times)
    }

    fn count(&mut self, most: usize) -> Result<usize, &'static str> {
        match usize::from(u16::from_le_bytes(*self.array()?)) {
            count if count <= most => Ok(count),
            _ => Err("a list in it is too long"),
        }
    }

    fn name(&mut self) -> Result<&'b str, &'static str> {
        let length = self.count(LONGEST_NAME)?;
        std::str::from_utf8(self.take(length)?).map_err(|_| "a name in it is no text")
    }
}

/// The CRC-32 of Ethernet (IEEE 802.3, 3.2.9), with the lowest bit first.
fn crc(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = {
        let mut table = [0; 256];
        let mut byte = 0;
        while byte < 256 {
            let mut value = byte as u32;
            let mut bit = 0;
            while bit < 8 {
                value = (value >> 1) ^ (0xedb8_8320 * (value & 1));
                bit += 1;
            }
            table[byte] = value;
            byte += 1;
        }
        table
    };
    !bytes.iter().fold(u32::MAX, |sum, byte| {
        (sum >> 8) ^ TABLE[((sum ^ u32::from(*byte)) & 0xff) as usize]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_ethernet() {
        // The check value of all catalogues of CRCs.
        assert_eq!(crc(b"123456789"), 0xcbf4_3926);
        assert_eq!(crc(b""), 0);
    }

    fn clocks(unix_s: f64, boot_s: f64, boot: u8) -> Clocks {
        Clocks {
            unix_s,
            boot_s,
            boot: [boot; 16],
        }
    }

    /// While the machine runs, its calendar may be set to anything.
    #[test]
    fn the_time_away_does_not_depend_on_a_calendar_that_is_set() {
        let before = clocks(1e9, 100.0, 7);
        let away = |now: Clocks| before.seconds_until(&now);
        assert_eq!(away(clocks(5e8, 103.0, 7)), Some(3.0));
        assert_eq!(away(clocks(2e9, 103.0, 7)), Some(3.0));
        // Another start of the machine, and one that can't be told from others.
        assert_eq!(away(clocks(1e9 + 60.0, 5.0, 8)), Some(60.0));
        assert_eq!(
            clocks(1e9, 100.0, 0).seconds_until(&clocks(1e9 + 9.0, 1.0, 0)),
            Some(9.0)
        );
        assert_eq!(away(clocks(5e8, 5.0, 8)), None);
        let now = Clocks::now("a1b2c3d4-0000-4000-8000-00000000002a\n");
        assert!(now.unix_s > 1.7e9 && now.boot_s > 0.0);
        assert_eq!(now.boot[0], 0x2a);
    }
}
