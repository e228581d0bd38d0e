//! The lines of a `gred`: the first one says how many virtual queues there are (`setup vqs 3 default 0`), and
//! each later one (`change ... gred limit 60KB ... DP 1`) sets one up (q_gred.c, `gred_change` in
//! sch_gred.c).

use std::slice;

use fairgate::gred::MOST;
use fairgate::registry::units::{parse_probability, parse_rate, parse_size};
use fairgate_config::language::{Given, Written};

use super::Translation;
use crate::script::{Word, no_value, number, setting};
use crate::tc::kinds;
use crate::tc::objects::Qdisc;

const FORM: &str = "write gred setup vqs 3 default 0 [grio] [limit BYTES] [ecn] [harddrop], and then for \
    each virtual queue a line qdisc change ... gred limit BYTES min BYTES max BYTES avpkt BYTES \
    burst N DP N [prio N] [probability P] [bandwidth RATE]";

/// The names of the lists, and the value of a virtual queue that is not set up or has no such word. tc's
/// defaults for the last three but one.
const LISTS: [(&str, u32); 8] = [
    ("limits", 0),
    ("min", 0),
    ("max", 0),
    ("avpkt", 1000),
    ("burst", 0),
    ("probability", 20_000),
    ("bandwidth", 10_000),
    ("priority", 0),
];

/// What is known after some lines.
#[derive(Default)]
struct Table {
    queues: usize,
    default: usize,
    limit: Option<u64>,
    grio: bool,
    ecn: bool,
    harddrop: bool,
    /// The numbers of each virtual queue in the order of [`LISTS`].
    set_up: [Option<[u32; 8]>; MOST],
}

impl Table {
    /// The priority of a virtual queue that has none: that of the default one, or 8 (`GRED_DEF_PRIO`).
    fn priority(&self) -> u32 {
        self.set_up[self.default].map_or(MOST as u32 / 2, |queue| queue[7])
    }
}

impl<'a> Translation<'a> {
    /// Returns the settings of a `gred`.
    pub(super) fn virtual_queues(&mut self, qdisc: &'a Qdisc) -> Vec<Written> {
        let location = qdisc.kind.span();
        let mut table = Table::default();
        for words in &qdisc.options {
            let is_setup = words.iter().any(|word| word.get_ref() == "setup");
            let read = match (is_setup, table.queues) {
                (true, _) => self.setup(words, &mut table),
                (false, 0) => {
                    let place = words.first().map_or(location.clone(), |word| word.span());
                    let message = "the first line of a `gred` says how many virtual queues there are";
                    self.problems.add(place, message, "no `setup`", FORM);
                    None
                }
                (false, _) => self.virtual_queue(words, &mut table),
            };
            if read.is_none() {
                return Vec::new();
            }
        }
        if table.queues == 0 {
            let message = "the virtual queues of the `gred` are missing";
            self.problems.add(location, message, "no `setup`", FORM);
            return Vec::new();
        }
        let plain = |number: u64| Given::Integer(number.into());
        let device = &self.script.device;
        let all = u64::from(device.txqueuelen) * u64::from(kinds::frame(device));
        let mut settings = vec![
            setting(
                &location,
                "limit",
                plain(table.limit.unwrap_or(all.clamp(1, u32::MAX.into()))),
            ),
            setting(&location, "queues", plain(table.queues as u64)),
            setting(&location, "default_queue", plain(table.default as u64)),
            setting(&location, "grio", Given::Flag(table.grio)),
            setting(&location, "ecn", Given::Flag(table.ecn)),
            setting(&location, "harddrop", Given::Flag(table.harddrop)),
        ];
        for (index, (name, default)) in LISTS.iter().enumerate() {
            let of = |queue: &Option<[u32; 8]>| queue.map_or(*default, |queue| queue[index]);
            let numbers = table.set_up[..table.queues].iter().map(of);
            let numbers = numbers.map(|number| toml::Spanned::new(location.clone(), plain(number.into())));
            settings.push(setting(&location, name, Given::List(numbers.collect())));
        }
        let text = "the kernel reads the virtual queue from tc_index, which its dsmark sets: here all \
            packets belong to queue 0, or to the default one, \
            unless `precedence` names another one for a DSCP";
        self.notes.add(location, text.to_owned());
        settings
    }

    fn setup(&mut self, words: &'a [Word], table: &mut Table) -> Option<()> {
        let mut words = words.iter();
        let mut at = words.as_slice().first()?.span();
        while let Some(word) = words.next() {
            match word.get_ref().as_str() {
                "setup" => {}
                "vqs" | "DPs" => {
                    let count = self.whole(word, &mut words)?;
                    if !(1..=MOST).contains(&(count as usize)) {
                        return self.wrong(word, "a gred has 1 to 16 virtual queues");
                    }
                    table.queues = count as usize;
                }
                "default" | "default_DP" => {
                    at = word.span();
                    table.default = self.whole(word, &mut words)? as usize;
                }
                "grio" => table.grio = true,
                "limit" => table.limit = Some(self.size(word, &mut words)?.into()),
                "ecn" => table.ecn = true,
                "harddrop" => table.harddrop = true,
                _ => return self.wrong(word, "this is no word of `gred setup`"),
            }
        }
        if table.default >= table.queues {
            let message = format!(
                "the default virtual queue is {}, but there are {}",
                table.default, table.queues
            );
            self.problems.add(at, message, "counted from 0", FORM);
            return None;
        }
        // Those that a lower number hides are gone.
        table.set_up[table.queues..].fill(None);
        Some(())
    }

    fn virtual_queue(&mut self, words: &'a [Word], table: &mut Table) -> Option<()> {
        let mut queue = LISTS.map(|(_, default)| default);
        let mut index = None;
        let mut words = words.iter();
        let first = words.as_slice().first()?;
        while let Some(word) = words.next() {
            match word.get_ref().as_str() {
                "limit" => queue[0] = self.size(word, &mut words)?,
                "min" => queue[1] = self.size(word, &mut words)?,
                "max" => queue[2] = self.size(word, &mut words)?,
                "avpkt" => queue[3] = self.size(word, &mut words)?,
                "burst" => queue[4] = self.whole(word, &mut words)?,
                "probability" => queue[5] = self.millionths(word, &mut words)?,
                "bandwidth" => queue[6] = self.kilobits(word, &mut words)?,
                "prio" => queue[7] = self.whole(word, &mut words)?,
                "DP" | "vq" => index = Some((word, self.whole(word, &mut words)? as usize)),
                "ecn" | "harddrop" => {
                    let message = "flags of a single virtual queue can't be carried over";
                    self.problems
                        .add(word.span(), message, "of all queues", "write it after setup");
                    return None;
                }
                _ => return self.wrong(word, "this is no word of a virtual queue of `gred`"),
            }
        }
        let Some((word, index)) = index else {
            return self.wrong(first, "the number of the virtual queue (DP) is missing");
        };
        if index >= table.queues {
            return self.wrong(word, "there is no such virtual queue: they are counted from 0");
        }
        if queue[0] == 0 {
            return self.wrong(first, "the limit of the virtual queue is missing");
        }
        if table.grio && queue[7] == 0 {
            queue[7] = table.priority();
        }
        table.set_up[index] = Some(queue);
        Some(())
    }

    fn wrong(&mut self, word: &Word, message: &str) -> Option<()> {
        self.problems.add(word.span(), message, "not here", FORM);
        None
    }

    fn read<T>(
        &mut self,
        word: &Word,
        words: &mut slice::Iter<'a, Word>,
        what: &str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        let Some(value) = words.next() else {
            no_value(word, self.problems);
            return None;
        };
        let found = read(value.get_ref());
        if found.is_none() {
            let message = format!("`{}` is not {what}", value.get_ref());
            self.problems.add(value.span(), message, "not understood", FORM);
        }
        found
    }

    fn whole(&mut self, word: &Word, words: &mut slice::Iter<'a, Word>) -> Option<u32> {
        self.read(word, words, "a number", number)
    }

    fn size(&mut self, word: &Word, words: &mut slice::Iter<'a, Word>) -> Option<u32> {
        self.read(word, words, "a number of bytes", |text| {
            u32::try_from(parse_size(text).ok()?).ok()
        })
    }

    fn millionths(&mut self, word: &Word, words: &mut slice::Iter<'a, Word>) -> Option<u32> {
        self.read(word, words, "a probability", |text| {
            let parts = parse_probability(text).ok()?.parts();
            Some(((parts * 1_000_000 + (1 << 31)) >> 32) as u32)
        })
    }

    fn kilobits(&mut self, word: &Word, words: &mut slice::Iter<'a, Word>) -> Option<u32> {
        self.read(word, words, "a rate from 1kbit", |text| {
            let bits = parse_rate(text).ok()?.bits_per_second();
            u32::try_from(bits / 1000).ok().filter(|kilobits| *kilobits > 0)
        })
    }
}
