//! The reservations of a tree, and the changes that put them there.

use std::collections::{BTreeMap, BTreeSet};

use fairgate::LAST_CLASS;
use fairgate::Time;
use fairgate_config::{Registry, Spec};

use super::admission::{Rest, Wish, admit};
use super::refusal::Refusal;
use super::reservable::{ReservableTree, SCHEDULER};
use super::{Excess, NoErrorTerms, Reservation, SHORTEST, Terms};

/// The number of the first reserved class. Lower ones are for classes of the file.
const FIRST_CLASS: u32 = 40_000;
/// The reservations of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservations {
    by_name: BTreeMap<String, Reservation>,
    /// The longest packet of the link, bytes.
    longest: u32,
}

/// New reservations, and the tree with them.
type Changed = (Reservations, Spec);

impl Reservations {
    /// Returns no reservations, for a link whose packets have up to `longest` bytes.
    pub fn new(longest: u32) -> Reservations {
        Reservations {
            by_name: BTreeMap::new(),
            longest,
        }
    }

    /// Returns the reservations by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Reservation)> {
        self.by_name
            .iter()
            .map(|(name, reservation)| (name.as_str(), reservation))
    }

    /// Returns a reservation.
    pub fn get(&self, name: &str) -> Option<&Reservation> {
        self.by_name.get(name)
    }

    /// Returns the path of classes to a reserved class.
    pub fn path(class: u32) -> String {
        format!("{SCHEDULER}/{class}")
    }

    /// Returns the longest packet of the link, bytes.
    pub fn longest(&self) -> u32 {
        self.longest
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// Adds a reservation at `now`.
    ///
    /// # Errors
    /// If the name is in use, or the terms can't be kept, or another reservation could no longer be kept.
    pub fn add(
        &self,
        tree: &Spec,
        registry: &Registry,
        name: &str,
        terms: Terms,
        now: Time,
    ) -> Result<Changed, Refusal> {
        if self.by_name.contains_key(name) {
            return Err(Refusal::Exists {
                name: name.to_owned(),
            });
        }
        let taken = ReservableTree::find(tree)?.classes();
        let is_free = |class: &u32| !taken.contains(class);
        let class = (FIRST_CLASS..=LAST_CLASS).find(is_free);
        let class = class.ok_or(Refusal::Full { first: FIRST_CLASS })?;
        self.with(tree, registry, name, class, terms, now)
    }

    /// Gives a reservation other terms. It keeps its class and its packets.
    ///
    /// # Errors
    /// If there is none of this name, or the terms can't be kept. Then the old terms hold.
    pub fn change(
        &self,
        tree: &Spec,
        registry: &Registry,
        name: &str,
        terms: Terms,
        now: Time,
    ) -> Result<Changed, Refusal> {
        let class = self.known(name)?.class;
        self.with(tree, registry, name, class, terms, now)
    }

    fn with(
        &self,
        tree: &Spec,
        registry: &Registry,
        name: &str,
        class: u32,
        terms: Terms,
        now: Time,
    ) -> Result<Changed, Refusal> {
        let mut new = self.clone();
        let reservation = Reservation {
            class,
            grant: super::Grant {
                rate: 0,
                delay: std::time::Duration::ZERO,
                error_terms: Err(NoErrorTerms::OtherForm),
                settings: String::new(),
            },
            expires: now + terms.lifetime.as_nanos() as u64,
            terms,
        };
        new.by_name.insert(name.to_owned(), reservation);
        new.placed(self, tree, registry, name)
    }

    /// Withdraws a reservation. Packets in its queue are dropped, or go to the class for the rest.
    ///
    /// # Errors
    /// If there is none of this name.
    pub fn withdraw(&self, tree: &Spec, registry: &Registry, name: &str) -> Result<Changed, Refusal> {
        self.known(name)?;
        let mut new = self.clone();
        new.by_name.remove(name);
        new.placed(self, tree, registry, "")
    }

    /// Lets a reservation exist for another lifetime from `now` on.
    ///
    /// # Errors
    /// If there is none of this name.
    pub fn refresh(&mut self, name: &str, now: Time) -> Result<&Reservation, Refusal> {
        self.known(name)?;
        let found = self.by_name.get_mut(name).expect("it is known");
        found.expires = now + found.terms.lifetime.as_nanos() as u64;
        Ok(found)
    }

    /// Returns the time at which the next reservation ends.
    pub fn next_expiry(&self) -> Option<Time> {
        self.by_name.values().map(|reservation| reservation.expires).min()
    }

    /// Withdraws the reservations that have ended by `now`. Returns `None` if there is none.
    ///
    /// # Errors
    /// If the tree was changed so that the others can't be kept in it.
    pub fn expired(&self, tree: &Spec, registry: &Registry, now: Time) -> Option<Result<Changed, Refusal>> {
        let mut new = self.clone();
        new.forget_expired(now);
        (new != *self).then(|| new.placed(self, tree, registry, ""))
    }

    /// Forgets the reservations that have ended by `now`, for a tree that does not exist any more.
    pub fn forget_expired(&mut self, now: Time) {
        self.by_name.retain(|_, reservation| reservation.expires > now);
    }

    /// Puts all reservations into another tree, for example one that was read from a file again.
    ///
    /// # Errors
    /// If they can't be kept there.
    pub fn moved(&self, tree: &Spec, registry: &Registry) -> Result<Changed, Refusal> {
        match self.is_empty() {
            true => Ok((self.clone(), tree.clone())),
            false => self.clone().placed(self, tree, registry, ""),
        }
    }

    /// Checks that a change of the tree leaves the classes and filters of all reservations as they are, and
    /// lets them be kept. The other classes have new weights perhaps; then the tree returned has the weights
    /// that reservations need now.
    ///
    /// # Errors
    /// If the change disturbs a reservation.
    pub fn after(&self, old: &Spec, new: &Spec, registry: &Registry) -> Result<Changed, Refusal> {
        if self.is_empty() {
            return Ok((self.clone(), new.clone()));
        }
        let (was, is) = (ReservableTree::find(old)?, ReservableTree::find(new)?);
        for (name, reservation) in &self.by_name {
            if !was.has(reservation.class, &is) {
                return Err(Refusal::Disturbed {
                    name: name.clone(),
                    class: reservation.class,
                });
            }
        }
        self.moved(new, registry)
    }

    /// Returns the classes of all reservations.
    fn classes(&self) -> impl Iterator<Item = u32> {
        self.by_name.values().map(|reservation| reservation.class)
    }

    fn known(&self, name: &str) -> Result<&Reservation, Refusal> {
        self.by_name.get(name).ok_or_else(|| Refusal::Unknown {
            name: name.to_owned(),
            known: self.by_name.keys().cloned().collect(),
        })
    }

    /// Admits all reservations, and puts them into the tree in place of those of `old`.
    fn placed(
        mut self,
        old: &Reservations,
        tree: &Spec,
        registry: &Registry,
        asking: &str,
    ) -> Result<Changed, Refusal> {
        let place = ReservableTree::find(tree)?;
        let default = place.scheduler.classifier().default;
        let disturbed = self.by_name.iter().find(|(_, own)| Some(own.class) == default);
        if let Some((name, own)) = disturbed {
            return Err(Refusal::Disturbed {
                name: name.clone(),
                class: own.class,
            });
        }
        let wishes: Vec<Wish<'_>> = self
            .by_name
            .iter()
            .map(|(name, reservation)| Wish {
                name,
                terms: &reservation.terms,
            })
            .collect();
        let rest = Rest {
            tree: &place,
            reserved: self.classes().chain(old.classes()).collect(),
            longest: self.longest,
        };
        let grants = admit(&rest, &wishes, asking)?;
        for (reservation, grant) in self.by_name.values_mut().zip(grants) {
            reservation.grant = grant;
        }
        let lines = self.lines(old, &place);
        let tree = tree.edited(&lines, registry).map_err(Refusal::Tree)?;
        Ok((self, tree))
    }

    /// Returns the changes in words that put these reservations in place of the old ones.
    fn lines(&self, old: &Reservations, place: &ReservableTree<'_>) -> String {
        let existing = place.classes();
        let own: BTreeSet<u32> = self.classes().collect();
        let old: BTreeSet<u32> = old.classes().collect();
        let both: BTreeSet<u32> = own.union(&old).copied().collect();
        let mut lines = String::new();
        // From the last one on, so that the numbers of the others stay as they are.
        for number in place.filters_to(&both).into_iter().rev() {
            lines.push_str(&format!("filter delete in={SCHEDULER} {number}\n"));
        }
        for class in old.difference(&own).filter(|class| existing.contains(class)) {
            lines.push_str(&format!("class delete {SCHEDULER}/{class}\n"));
        }
        let kept = place.scheduler.classifier().filters.len() - place.filters_to(&both).len();
        for reservation in self.by_name.values() {
            let Reservation {
                terms, class, grant, ..
            } = reservation;
            let how = match existing.contains(class) {
                true => "change",
                false => "add",
            };
            let in_delay = terms.arrivals().in_long(grant.delay.as_nanos() as u64).ceil();
            let in_delay = u64::try_from(in_delay.to_integer()).unwrap_or(u64::MAX);
            let bytes = in_delay.saturating_add(terms.max_packet.into());
            lines.push_str(&format!(
                "class {how} {SCHEDULER}/{class} {} / fifo limit={} limit_bytes={bytes}\n",
                grant.settings,
                bytes / u64::from(SHORTEST) + 1,
            ));
        }
        // Reservations are found first: a filter for everything may be among the others.
        for (place, reservation) in self.by_name.values().enumerate() {
            let Reservation { terms, class, .. } = reservation;
            let (filter, last) = (terms.filter.trim(), kept + place + 1);
            let police = police(terms);
            lines.push_str(&format!(
                "filter add in={SCHEDULER} class={class} {filter} {police}\n"
            ));
            lines.push_str(&format!("filter move in={SCHEDULER} {last} {}\n", place + 1));
        }
        lines
    }
}

/// Returns the policer of a reservation's filter, in words. It counts without rounding: what is promised
/// holds for what conforms, and for nothing more.
fn police(terms: &Terms) -> String {
    let arrivals = terms.arrivals();
    let mut words = format!(
        "police.rate={}bit police.burst={}b police.mpu={}b police.longest={}b police.exact=true",
        arrivals.rate().bits_per_second(),
        arrivals.burst(),
        terms.min_packet,
        terms.max_packet,
    );
    if let Some((peak, packet)) = arrivals.peak() {
        words.push_str(&format!(
            " police.peakrate={}bit police.mtu={packet}b",
            peak.bits_per_second()
        ));
    }
    if terms.excess == Excess::BestEffort {
        words.push_str(" police.exceed=default");
    }
    words
}
