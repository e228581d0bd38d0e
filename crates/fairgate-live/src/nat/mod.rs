//! Who is behind translated addresses: the translations of this machine's own table of connections.
//!
//! ```text
//!   kernel's conntrack -> ctnetlink: a dump, then events -> a thread -> Translations
//!   forwarding thread: frame -> dissect -> Translations::lan_of -> tree
//! ```
//!
//! On one interface of a router that translates addresses (NAT), frames carry the router's address: it was
//! written over that of the host in the LAN before they come here, or is only replaced after they were here.
//! With `nat` in the configuration, trees see the address and the port in the LAN instead. The bytes of
//! frames stay as they are.
//!
//! The table is bounded and never moves. One thread writes it. The forwarding thread reads it without locks,
//! system calls and allocation, and misses an entry that is being written.

mod conntrack;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use fairgate::FlowHasher;
use fairgate::flow::FlowKey;

pub(crate) use self::conntrack::attributes;
use self::conntrack::{Connection, Subscription, Tracker};
use crate::config::Plan;
use crate::error::LiveError;
use crate::randomness::Randomness;

/// The number of entries of a set, which are searched one after the other.
const WAYS: usize = 8;
/// The number of sets. Together they have room for 131,072 translations, in 4 MB.
const SETS: usize = 1 << 14;

const ICMP: u8 = 1;
const ICMPV6: u8 = 58;

/// An end of a connection: its address, in the form of [`FlowKey`], and its port or ICMP's identifier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Endpoint {
    pub(crate) address: [u8; 16],
    pub(crate) port: u16,
}

/// A translated place beside its peer, as packets show them in front of the router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Translated {
    protocol: u8,
    peer: Endpoint,
    public: Endpoint,
}

/// The translations of a run, and the thread that follows the kernel's table.
#[derive(Debug)]
pub(crate) struct Tracking {
    translations: Arc<Translations>,
    /// The sockets, until the thread has them.
    subscription: Option<Subscription>,
    /// The thread. It ends when this is dropped.
    tracker: Option<Tracker>,
}

/// Reads the connections that there are, if `plan` wants translations.
pub(crate) fn track(plan: &Plan, randomness: &mut Randomness) -> Result<Option<Tracking>, LiveError> {
    if plan.nat == [false; 2] {
        return Ok(None);
    }
    let hasher = FlowHasher::new([randomness.seed(), randomness.seed()]);
    let subscription = conntrack::subscribe(hasher).map_err(|error| LiveError::NoConnections {
        why: error.to_string(),
    })?;
    Ok(Some(Tracking {
        translations: subscription.table(),
        subscription: Some(subscription),
        tracker: None,
    }))
}

impl Tracking {
    /// Follows the table from now on, on a thread that is confined as the calling one.
    pub(crate) fn start(&mut self) -> Result<(), LiveError> {
        if let Some(subscription) = self.subscription.take() {
            let failed = LiveError::io("following the table of connections");
            self.tracker = Some(subscription.start().map_err(failed)?);
        }
        Ok(())
    }

    /// Returns the translations.
    pub(crate) fn translations(&self) -> Arc<Translations> {
        Arc::clone(&self.translations)
    }
}

/// The translations that are known.
pub(crate) struct Translations {
    hasher: FlowHasher,
    sets: Box<[[Entry; WAYS]]>,
    known: AtomicUsize,
    no_room: AtomicU64,
}

/// Fields are read only if the version is even and the same before and after.
#[derive(Default)]
struct Entry {
    /// The keyed hash of what is translated, or 0. Two of them are equal as often as two flows are.
    key: AtomicU64,
    address: [AtomicU64; 2],
    /// The version in the upper 48 bits, and the port.
    version: AtomicU64,
}

/// An increment of the version, above the port.
const VERSION: u64 = 1 << 16;

impl std::fmt::Debug for Translations {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Translations")
            .field("known", &self.known())
            .finish_non_exhaustive()
    }
}

impl Translations {
    fn new(hasher: FlowHasher) -> Translations {
        Translations {
            hasher,
            sets: (0..SETS).map(|_| Default::default()).collect(),
            known: AtomicUsize::new(0),
            no_room: AtomicU64::new(0),
        }
    }

    /// Returns how many translations are known.
    pub(crate) fn known(&self) -> usize {
        self.known.load(Ordering::Relaxed)
    }

    /// Returns for how many translations there was no room.
    pub(crate) fn no_room(&self) -> u64 {
        self.no_room.load(Ordering::Relaxed)
    }

    /// Returns the place in the LAN whose packet this is, if the table has it. `is_received` says that the
    /// packet comes from outside, so that its destination is translated; otherwise its source is.
    #[inline]
    pub(crate) fn lan_of(&self, key: &FlowKey, is_received: bool) -> Option<Endpoint> {
        self.find(self.hash(&Translated::of_packet(key, is_received)))
    }

    /// Replaces the translated place of a packet's key by the one in the LAN, if the table has it.
    #[inline]
    pub(crate) fn undo(&self, key: &mut FlowKey, is_received: bool) {
        let Some(lan) = self.lan_of(key, is_received) else {
            return;
        };
        match is_received {
            true => key.destination = lan.address,
            false => key.source = lan.address,
        }
        match is_received && !is_icmp(key.protocol) {
            true => key.destination_port = lan.port,
            // ICMP's identifier is the source port in both directions.
            false => key.source_port = lan.port,
        }
    }

    #[inline]
    fn hash(&self, translated: &Translated) -> u64 {
        let Translated {
            protocol,
            peer,
            public,
        } = *translated;
        let key = FlowKey {
            source: peer.address,
            destination: public.address,
            source_port: peer.port,
            destination_port: public.port,
            protocol,
            ..FlowKey::default()
        };
        self.hasher.five_tuple(&key).raw().max(1)
    }

    #[inline]
    fn set(&self, key: u64) -> &[Entry; WAYS] {
        &self.sets[key as usize % SETS]
    }

    #[inline]
    fn find(&self, key: u64) -> Option<Endpoint> {
        self.set(key).iter().find_map(|entry| entry.read(key))
    }
}

fn is_icmp(protocol: u8) -> bool {
    matches!(protocol, ICMP | ICMPV6)
}

impl Translated {
    #[inline]
    fn of_packet(key: &FlowKey, is_received: bool) -> Translated {
        let ports = match is_icmp(key.protocol) {
            true if is_received => (0, key.source_port),
            true => (key.source_port, 0),
            false => (key.source_port, key.destination_port),
        };
        let (source, destination) = (
            Endpoint {
                address: key.source,
                port: ports.0,
            },
            Endpoint {
                address: key.destination,
                port: ports.1,
            },
        );
        let (peer, public) = match is_received {
            true => (source, destination),
            false => (destination, source),
        };
        Translated {
            protocol: key.protocol,
            peer,
            public,
        }
    }
}

impl Entry {
    #[inline]
    fn read(&self, key: u64) -> Option<Endpoint> {
        if self.key.load(Ordering::SeqCst) != key {
            return None;
        }
        let version = self.version.load(Ordering::SeqCst);
        let [high, low] = [0, 1].map(|half: usize| self.address[half].load(Ordering::SeqCst));
        let is_whole = version & VERSION == 0
            && self.key.load(Ordering::SeqCst) == key
            && self.version.load(Ordering::SeqCst) == version;
        is_whole.then(|| Endpoint {
            address: (u128::from(high) << 64 | u128::from(low)).to_be_bytes(),
            port: version as u16,
        })
    }

    /// Call it from one thread only.
    fn write(&self, key: u64, place: Endpoint) {
        let version = self.version.load(Ordering::SeqCst) & !u64::from(u16::MAX);
        self.version.store(version | VERSION, Ordering::SeqCst);
        self.key.store(key, Ordering::SeqCst);
        let address = u128::from_be_bytes(place.address);
        for (half, part) in self.address.iter().zip([(address >> 64) as u64, address as u64]) {
            half.store(part, Ordering::SeqCst);
        }
        let next = (version | VERSION).wrapping_add(VERSION) | u64::from(place.port);
        self.version.store(next, Ordering::SeqCst);
    }
}

/// The only writer of the table.
struct Writer {
    table: Arc<Translations>,
    /// The dump with which each entry was last seen.
    dumps: Box<[[u8; WAYS]]>,
    dump: u8,
}

impl Writer {
    fn new(table: Arc<Translations>) -> Writer {
        Writer {
            table,
            dumps: vec![[0; WAYS]; SETS].into_boxed_slice(),
            dump: 0,
        }
    }

    /// Begins with all connections that there are now.
    fn begin_dump(&mut self) {
        self.dump = self.dump.wrapping_add(1);
    }

    /// Forgets what the dump did not have, and events did not since.
    fn end_dump(&mut self) {
        let table = Arc::clone(&self.table);
        for (set, dumps) in table.sets.iter().zip(&self.dumps) {
            for (entry, dump) in set.iter().zip(dumps) {
                if *dump != self.dump {
                    self.clear(entry);
                }
            }
        }
    }

    /// Adds the translations of a connection.
    fn add(&mut self, connection: &Connection) {
        for (translated, lan) in connection.translations() {
            let key = self.table.hash(&translated);
            let place = key as usize % SETS;
            let set = &self.table.sets[place];
            let with = |wanted| {
                let is_it = |entry: &Entry| entry.key.load(Ordering::SeqCst) == wanted;
                set.iter().position(is_it)
            };
            let known = with(key);
            let Some(way) = known.or_else(|| with(0)) else {
                self.table.no_room.fetch_add(1, Ordering::Relaxed);
                continue;
            };
            set[way].write(key, lan);
            self.dumps[place][way] = self.dump;
            if known.is_none() {
                self.table.known.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Removes the translations of a connection.
    fn remove(&mut self, connection: &Connection) {
        for (translated, _) in connection.translations() {
            let key = self.table.hash(&translated);
            for entry in self.table.set(key) {
                if entry.key.load(Ordering::SeqCst) == key {
                    self.clear(entry);
                }
            }
        }
    }

    fn clear(&self, entry: &Entry) {
        if entry.key.swap(0, Ordering::SeqCst) != 0 {
            self.table.known.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests;
