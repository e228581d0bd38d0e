//! Who has a place at a door. Without a place no connection is served.
//!
//! Nobody knows who connects until the first request is read. So a client is a stranger at first. When all
//! places of strangers are taken, a stranger of the address that has the most loses its own: first one that
//! says nothing, then the one that has not got on for longest. A client that asks at once is known before
//! that. Those who are known have places of their own, which no stranger takes.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

/// How many clients a door has at the same time. The more strangers there are, the longer a client has until
/// newcomers of its own address take its place. All doors together must stay below the usual limit of 1024
/// open files.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    strangers: usize,
    /// How many of them are of one address or user.
    strangers_of_one: usize,
    known: usize,
    /// How many of them are of one token or user. Further ones stay strangers.
    known_of_one: usize,
}

impl Room {
    /// That of the API, and that of the metrics.
    pub(crate) const ENDPOINT: Room = Room {
        strangers: 256,
        strangers_of_one: 192,
        known: 64,
        known_of_one: 32,
    };

    /// That of a status socket: nobody but root and the user of the run comes there.
    pub(crate) const STATUS: Room = Room {
        strangers: 32,
        strangers_of_one: 24,
        known: 32,
        known_of_one: 24,
    };
}

/// How long the log is silent about refused clients of a door after a line about one.
const SILENCE: Duration = Duration::from_secs(10);

/// Where a client comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Origin {
    User(u32),
    /// An address of IPv4, or 64 bits of one of IPv6: whoever has one of these has all.
    Network(u128),
}

impl Origin {
    pub(crate) fn of(address: IpAddr) -> Origin {
        Origin::Network(match address.to_canonical() {
            IpAddr::V4(address) => address.to_bits().into(),
            IpAddr::V6(address) => address.to_bits() >> 64 << 64,
        })
    }
}

/// The places of a door. Copies are the same door's.
#[derive(Clone, Debug)]
pub(crate) struct Places(Arc<Mutex<Guests>>);

#[derive(Debug)]
struct Guests {
    room: Room,
    next: u64,
    present: BTreeMap<u64, Guest>,
}

#[derive(Debug)]
struct Guest {
    origin: Origin,
    /// The number of when it came, or last got on: by its first byte, a handshake, a request.
    since: u64,
    /// The token or user by which it is known.
    who: Option<Arc<str>>,
    /// Whether it says something, or waits for an answer.
    is_active: bool,
    leave: Arc<Notify>,
}

/// A place, which is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    places: Places,
    number: u64,
    leave: Arc<Notify>,
}

impl Places {
    pub(crate) fn new(room: Room) -> Places {
        Places(Arc::new(Mutex::new(Guests {
            room,
            next: 0,
            present: BTreeMap::new(),
        })))
    }

    fn lock(&self) -> MutexGuard<'_, Guests> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a client a place among the strangers. Another one may lose its place.
    pub(crate) fn enter(&self, origin: Origin) -> Place {
        let mut guests = self.lock();
        guests.make_room_for(origin);
        let (number, leave) = (guests.next, Arc::new(Notify::new()));
        guests.next += 1;
        let guest = Guest {
            origin,
            since: number,
            who: None,
            is_active: false,
            leave: Arc::clone(&leave),
        };
        guests.present.insert(number, guest);
        Place {
            places: self.clone(),
            number,
            leave,
        }
    }
}

impl Guests {
    fn strangers(&self) -> impl Iterator<Item = (u64, &Guest)> {
        let numbered = self.present.iter().map(|(number, guest)| (*number, guest));
        numbered.filter(|(_, guest)| guest.who.is_none())
    }

    fn make_room_for(&mut self, newcomer: Origin) {
        // The newcomer is one of its address.
        let mut of_origin = BTreeMap::from([(newcomer, 1_usize)]);
        for (_, guest) in self.strangers() {
            *of_origin.entry(guest.origin).or_default() += 1;
        }
        let all: usize = of_origin.values().sum();
        let most_of_one = self.room.strangers_of_one;
        if all <= self.room.strangers && of_origin[&newcomer] <= most_of_one {
            return;
        }
        let only = (of_origin[&newcomer] > most_of_one).then_some(newcomer);
        let candidates = self
            .strangers()
            .filter(|(_, guest)| only.is_none_or(|only| guest.origin == only));
        let first = candidates.min_by_key(|(_, guest)| {
            let fewer = usize::MAX - of_origin[&guest.origin];
            (fewer, guest.is_active, guest.since)
        });
        if let Some((number, _)) = first
            && let Some(guest) = self.present.remove(&number)
        {
            guest.leave.notify_one();
        }
    }
}

impl Place {
    /// Waits until the place is lost.
    pub(crate) async fn lost(&self) {
        self.leave.notified().await;
    }

    /// Notes that the client has got on, and whether it says something or waits for an answer.
    pub(crate) fn set_active(&self, is_active: bool) {
        let mut guests = self.places.lock();
        let now = guests.next;
        guests.next += 1;
        if let Some(guest) = guests.present.get_mut(&self.number) {
            guest.is_active = is_active;
            guest.since = now;
        }
    }

    /// Gives the client one of the places for those who are known, if there is one.
    pub(crate) fn know(&self, who: &Arc<str>) {
        let mut guests = self.places.lock();
        let known = guests.present.values().filter_map(|guest| guest.who.as_ref());
        let (all, own) = known.fold((0, 0), |(all, own), other| {
            (all + 1, own + usize::from(other == who))
        });
        if all < guests.room.known
            && own < guests.room.known_of_one
            && let Some(guest) = guests.present.get_mut(&self.number)
            && guest.who.is_none()
        {
            guest.who = Some(Arc::clone(who));
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.lock().present.remove(&self.number);
    }
}

/// What the log says about clients that are refused at a door: a line, and later how many there were.
#[derive(Debug, Default)]
pub(crate) struct Refusals(Mutex<(Option<Instant>, u64)>);

impl Refusals {
    /// Counts a refusal. Returns how many went unsaid before, if the log is to have a line now.
    pub(crate) fn count(&self, now: Instant) -> Option<u64> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (last, unsaid) = &mut *state;
        if last.is_some_and(|last| now.saturating_duration_since(last) < SILENCE) {
            *unsaid += 1;
            return None;
        }
        *last = Some(now);
        Some(std::mem::take(unsaid))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn has(places: &Places, place: &Place) -> bool {
        places.lock().present.contains_key(&place.number)
    }

    /// What happens at a door.
    #[derive(Clone, Debug)]
    enum Event {
        Enter(u32),
        Active(usize, bool),
        Know(usize, u8),
        Leave(usize),
    }

    fn event() -> impl Strategy<Value = Event> {
        prop_oneof![
            6 => (0..4_u32).prop_map(Event::Enter),
            2 => (any::<usize>(), any::<bool>()).prop_map(|(place, active)| Event::Active(place, active)),
            1 => (any::<usize>(), 0..3_u8).prop_map(|(place, who)| Event::Know(place, who)),
            1 => any::<usize>().prop_map(Event::Leave),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Whatever comes: the newcomer has a place, all limits hold, and who is known keeps its place.
        #[test]
        fn newcomers_have_a_place_and_the_known_keep_theirs(
            events in proptest::collection::vec(event(), 0..600),
        ) {
            let room = Room::ENDPOINT;
            let places = Places::new(room);
            let mut own: Vec<Place> = Vec::new();
            let mut known: Vec<u64> = Vec::new();
            for event in events {
                let count = own.len().max(1);
                match event {
                    Event::Enter(user) => {
                        let place = places.enter(Origin::User(user));
                        prop_assert!(has(&places, &place));
                        own.push(place);
                    }
                    Event::Active(place, active) => {
                        if let Some(place) = own.get(place % count) {
                            place.set_active(active);
                        }
                    }
                    Event::Know(place, who) => {
                        if let Some(place) = own.get(place % count) {
                            place.know(&who.to_string().into());
                            let guests = places.lock();
                            if guests.present.get(&place.number).is_some_and(|guest| guest.who.is_some()) {
                                known.push(place.number);
                            }
                        }
                    }
                    Event::Leave(place) => {
                        if place % count < own.len() {
                            let place = own.swap_remove(place % count);
                            known.retain(|number| *number != place.number);
                        }
                    }
                }
                let guests = places.lock();
                prop_assert!(known.iter().all(|number| guests.present.contains_key(number)));
                let mut of_origin = BTreeMap::new();
                for (_, guest) in guests.strangers() {
                    *of_origin.entry(guest.origin).or_insert(0) += 1;
                }
                prop_assert!(of_origin.values().all(|count| *count <= room.strangers_of_one));
                prop_assert!(of_origin.values().sum::<usize>() <= room.strangers);
                prop_assert!(guests.present.len() <= room.strangers + room.known);
            }
        }

        /// However many come from one network, they do not take the place of a client of another.
        #[test]
        fn a_crowd_of_one_address_displaces_only_itself(crowd in 1..500_usize) {
            let places = Places::new(Room::ENDPOINT);
            let alone = places.enter(Origin::of("192.0.2.1".parse().unwrap()));
            let network = |number: usize| -> IpAddr { format!("2001:db8::{number:x}").parse().unwrap() };
            let others: Vec<Place> = (0..crowd).map(|one| places.enter(Origin::of(network(one)))).collect();
            prop_assert!(has(&places, &alone));
            prop_assert!(has(&places, others.last().unwrap()));
        }
    }

    #[test]
    fn the_silent_leave_first() {
        let places = Places::new(Room::ENDPOINT);
        let talker = places.enter(Origin::User(1));
        talker.set_active(true);
        let silent: Vec<Place> = (0..200).map(|_| places.enter(Origin::User(1))).collect();
        assert!(has(&places, &talker));
        assert!(!has(&places, &silent[0]));
    }

    /// Each step of a client, the handshake and then the request, may take as long as a crowd needs to come.
    #[test]
    fn who_gets_on_stays() {
        let places = Places::new(Room::ENDPOINT);
        let of_one = Room::ENDPOINT.strangers_of_one;
        let enter = || {
            let place = places.enter(Origin::User(1));
            place.set_active(true);
            place
        };
        let operator = enter();
        let mut crowd = Vec::new();
        for _ in 0..3 {
            crowd.extend((1..of_one).map(|_| enter()));
            assert!(has(&places, &operator));
            operator.set_active(true);
        }
        crowd.extend((0..of_one).map(|_| enter()));
        assert!(!has(&places, &operator));
    }

    #[test]
    fn refusals_are_summed() {
        let refusals = Refusals::default();
        let began = Instant::now();
        assert_eq!(refusals.count(began), Some(0));
        for _ in 0..7 {
            assert_eq!(refusals.count(began + SILENCE / 2), None);
        }
        assert_eq!(refusals.count(began + SILENCE), Some(7));
    }
}
