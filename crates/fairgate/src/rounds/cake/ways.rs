//! Places by set-associative hash: which of 1024 places is kept for a tag, eight of them tried.
//!
//! ```text
//!   hash    [ 10 bits: place ]...[ 32 bits: tag ]
//!   sets    [ t  t  t  t  t  t  t  t ] [ ... ]     tags of eight places: half a cache line
//!                       ^ place                    tried from here on, round the set
//! ```
//!
//! With a plain hash, flows begin to share queues as soon as there are as many as the square root of the number of queues. Here
//! they do so only when eight other flows are active in the same set (Høiland-Jørgensen, Täht, Morton 2018, section
//! III-D). Invariant: two places with the same tag are in different sets, or one of them is out of use.

use alloc::boxed::Box;

use crate::flow::FlowHash;

/// Places of a set.
pub(super) const WAYS: usize = 8;
/// Places in all.
pub(super) const PLACES: usize = 1024;

/// Where a hash belongs, and by what it is known there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) home: u16,
    pub(super) tag: u32,
}

impl Key {
    /// Of a flow or a host, under a salt.
    #[inline]
    pub(super) fn new(hash: FlowHash, salt: u64) -> Key {
        let mixed = hash.salted(salt);
        Key {
            home: (mixed >> (64 - PLACES.trailing_zeros())) as u16,
            tag: mixed as u32,
        }
    }
}

/// What a search found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// The place that is kept for the tag already.
    Own(u16),
    /// One that was out of use, and is kept for the tag now.
    New(u16),
    /// All places of the set are in use by others: the home has to be shared, and is known by this tag now.
    Shared(u16),
}

/// The tags of all places.
#[derive(Clone, Debug)]
pub(super) struct Ways {
    sets: Box<[[u32; WAYS]]>,
}

impl Ways {
    pub(super) fn new() -> Ways {
        Ways {
            sets: vec![[0; WAYS]; PLACES / WAYS].into(),
        }
    }

    /// Whether `home` of `key` is kept for it, be it in use or not.
    #[inline]
    pub(super) fn is_at_home(&self, key: Key) -> bool {
        let home = usize::from(key.home);
        self.sets[home / WAYS][home % WAYS] == key.tag
    }

    /// Finds or makes a place for `key`. `is_in_use` tells of a place whether it may not be given to another.
    pub(super) fn find(&mut self, key: Key, is_in_use: impl Fn(u16) -> bool) -> Found {
        let home = usize::from(key.home);
        let first = home - home % WAYS;
        let set = &mut self.sets[home / WAYS];
        let ways = (0..WAYS).map(|step| (home + step) % WAYS);
        let place = |way: usize| (first + way) as u16;
        if let Some(way) = ways.clone().find(|way| set[*way] == key.tag) {
            return match is_in_use(place(way)) {
                true => Found::Own(place(way)),
                false => Found::New(place(way)),
            };
        }
        if let Some(way) = ways.clone().find(|way| !is_in_use(place(*way))) {
            set[way] = key.tag;
            return Found::New(place(way));
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
    fn eight_of_one_set_have_places_of_their_own_and_the_ninth_shares() {
        let mut ways = Ways::new();
        let mut used = vec![];
        for tag in 1..=8 {
            let found = ways.find(key(19, tag), |place| used.contains(&place));
            let Found::New(place) = found else {
                panic!("{found:?} for tag {tag}");
            };
            assert_eq!(place, 16 + (3 + tag as u16 - 1) % 8);
            used.push(place);
        }
        for tag in 1..=8 {
            let found = ways.find(key(19, tag), |place| used.contains(&place));
            assert_eq!(found, Found::Own(used[tag as usize - 1]));
        }
        assert!(ways.is_at_home(key(19, 1)));
        assert_eq!(ways.find(key(19, 9), |_| true), Found::Shared(19));
        assert!(ways.is_at_home(key(19, 9)));
        // The set next to it is not concerned.
        assert_eq!(ways.find(key(24, 9), |_| false), Found::New(24));
    }

    #[test]
    fn a_flow_that_comes_back_gets_its_old_place_if_no_other_took_it() {
        let mut ways = Ways::new();
        assert_eq!(ways.find(key(8, 1), |_| false), Found::New(8));
        assert_eq!(ways.find(key(8, 2), |place| place == 8), Found::New(9));
        // The first has left; the second is found where it is.
        assert_eq!(ways.find(key(8, 2), |place| place == 9), Found::Own(9));
        assert_eq!(ways.find(key(8, 2), |_| false), Found::New(9));
    }
}
