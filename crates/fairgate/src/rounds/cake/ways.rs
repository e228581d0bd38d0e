//! A set-associative hash: which of 1024 entries belongs to a tag. Eight entries are tried.
//!
//! ```text
//!   hash    [ 10 bits: entry ]...[ 32 bits: tag ]
//!   sets    [ t  t  t  t  t  t  t  t ] [ ... ]     tags of eight entries: half a cache line
//!                       ^ home entry               tried from here on, round the set
//! ```
//!
//! With a plain hash, flows begin to share queues when their number is the square root of the number of
//! queues. Here they do so only if eight other flows are active in the same set (Høiland-Jørgensen, Täht,
//! Morton 2018, section III-D). Invariant: two entries with the same tag are in different sets, or one of
//! them is not in use.

use alloc::boxed::Box;

use crate::flow::FlowHash;

/// Entries of a set.
pub(super) const WAYS: usize = 8;
/// Entries in all.
pub(super) const ENTRIES: usize = 1024;

/// The home entry and the tag of a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) home: u16,
    pub(super) tag: u32,
}

impl Key {
    /// The key of a flow or host under a salt.
    #[inline]
    pub(super) fn new(hash: FlowHash, salt: u64) -> Key {
        let mixed = hash.salted(salt);
        Key {
            home: (mixed >> (64 - ENTRIES.trailing_zeros())) as u16,
            tag: mixed as u32,
        }
    }
}

/// The result of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// The entry that already belongs to the tag.
    Own(u16),
    /// The entry that still belongs to the tag, although it was not in use.
    Former(u16),
    /// An entry that was not in use, and now belongs to the tag.
    New(u16),
    /// All entries of the set are in use by others. The home entry is shared and now has this tag.
    Shared(u16),
}

/// The tags of all entries.
#[derive(Clone, Debug)]
pub(super) struct Ways {
    sets: Box<[[u32; WAYS]]>,
}

impl Ways {
    pub(super) fn new() -> Ways {
        Ways {
            sets: vec![[0; WAYS]; ENTRIES / WAYS].into(),
        }
    }

    /// Those of a table that is made when used.
    pub(super) fn none() -> Ways {
        Ways { sets: Box::default() }
    }

    /// Whether the home entry of `key` belongs to it, in use or not.
    #[inline]
    pub(super) fn is_at_home(&self, key: Key) -> bool {
        let home = usize::from(key.home);
        let set = self.sets.get(home / WAYS);
        set.is_some_and(|set| set[home % WAYS] == key.tag)
    }

    /// Finds or assigns an entry for `key`. `is_in_use` says whether an entry must not be given to another
    /// key.
    pub(super) fn find(&mut self, key: Key, is_in_use: impl Fn(u16) -> bool) -> Found {
        let home = usize::from(key.home);
        let first = home - home % WAYS;
        let set = &mut self.sets[home / WAYS];
        let ways = (0..WAYS).map(|step| (home + step) % WAYS);
        let entry = |way: usize| (first + way) as u16;
        if let Some(way) = ways.clone().find(|way| set[*way] == key.tag) {
            return match is_in_use(entry(way)) {
                true => Found::Own(entry(way)),
                false => Found::Former(entry(way)),
            };
        }
        if let Some(way) = ways.clone().find(|way| !is_in_use(entry(*way))) {
            set[way] = key.tag;
            return Found::New(entry(way));
        }
        set[home % WAYS] = key.tag;
        Found::Shared(key.home)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(home: u16, tag: u32) -> Key {
        Key { home, tag }
    }

    #[test]
    fn eight_keys_of_a_set_have_their_own_entries_and_the_ninth_shares() {
        let mut ways = Ways::new();
        let mut used = vec![];
        for tag in 1..=8 {
            let found = ways.find(key(19, tag), |entry| used.contains(&entry));
            let Found::New(entry) = found else {
                panic!("{found:?} for tag {tag}");
            };
            assert_eq!(entry, 16 + (3 + tag as u16 - 1) % 8);
            used.push(entry);
        }
        for tag in 1..=8 {
            let found = ways.find(key(19, tag), |entry| used.contains(&entry));
            assert_eq!(found, Found::Own(used[tag as usize - 1]));
        }
        assert!(ways.is_at_home(key(19, 1)));
        assert_eq!(ways.find(key(19, 9), |_| true), Found::Shared(19));
        assert!(ways.is_at_home(key(19, 9)));
        // The next set is independent.
        assert_eq!(ways.find(key(24, 9), |_| false), Found::New(24));
    }

    #[test]
    fn a_flow_that_returns_gets_its_old_entry_if_it_is_free() {
        let mut ways = Ways::new();
        assert_eq!(ways.find(key(8, 1), |_| false), Found::New(8));
        assert_eq!(ways.find(key(8, 2), |entry| entry == 8), Found::New(9));
        // The first has left; the second is found in its entry.
        assert_eq!(ways.find(key(8, 2), |entry| entry == 9), Found::Own(9));
        assert_eq!(ways.find(key(8, 2), |_| false), Found::Former(9));
    }
}
