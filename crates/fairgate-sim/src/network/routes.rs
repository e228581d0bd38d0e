//! The routes of all flows, in one array.
//!
//! ```text
//!   line:   interface, interface, ..., DESTINATION
//!   fork:   FORK | n, salt, salt, interface, position, interface, position, ...     n choices
//! ```
//!
//! A packet carries the position of its next hop. [`DESTINATION`] is a fork without choices.

use fairgate::FlowHash;

/// The bit that no interface has.
const FORK: u32 = 1 << 31;
/// The end of a route: the packet has arrived.
const DESTINATION: u32 = FORK;

/// The routes of all flows.
#[derive(Debug, Default)]
pub(crate) struct Routes(Vec<u32>);

impl Routes {
    /// Adds a route over these interfaces. Returns its position.
    pub(crate) fn add_line(&mut self, interfaces: impl IntoIterator<Item = u32>) -> u32 {
        let start = self.0.len() as u32;
        self.0.extend(interfaces);
        self.0.push(DESTINATION);
        start
    }

    /// Adds a place at which a packet takes one of several interfaces, each with the position of the rest of
    /// the route. Without choices the packet has arrived. Returns its position.
    pub(crate) fn add_fork(&mut self, salt: u64, choices: &[(u32, u32)]) -> u32 {
        let start = self.0.len() as u32;
        self.0.push(FORK | choices.len() as u32);
        if !choices.is_empty() {
            self.0.extend([(salt >> 32) as u32, salt as u32]);
            self.0
                .extend(choices.iter().flat_map(|&(interface, rest)| [interface, rest]));
        }
        start
    }

    /// Returns the next interface of a packet at `position`, and the position after it. `None`: the packet
    /// has arrived. `flow` is read only at forks.
    #[inline]
    pub(crate) fn next(&self, position: u32, flow: impl FnOnce() -> FlowHash) -> Option<(u32, u32)> {
        let step = self.0[position as usize];
        match step & FORK {
            0 => Some((step, position + 1)),
            _ if step == DESTINATION => None,
            _ => Some(self.choose(position as usize, flow())),
        }
    }

    /// Whether a packet at `position` has arrived.
    #[inline]
    pub(crate) fn is_end(&self, position: u32) -> bool {
        self.0[position as usize] == DESTINATION
    }

    #[cold]
    fn choose(&self, position: usize, flow: FlowHash) -> (u32, u32) {
        let [fork, high, low] = [0, 1, 2].map(|offset| self.0[position + offset]);
        let salt = u64::from(high) << 32 | u64::from(low);
        let choice = position + 3 + 2 * flow.bucket(salt, fork & !FORK) as usize;
        (self.0[choice], self.0[choice + 1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fork_chooses_by_the_flow_and_its_salt() {
        let mut routes = Routes::default();
        let end = routes.add_fork(0, &[]);
        let rest = routes.add_line([7]);
        let [one, other] = [1, 2].map(|salt| routes.add_fork(salt, &[(4, end), (5, rest)]));
        let mut counts = [0; 2];
        let mut differ = 0;
        for flow in 0..1000 {
            let flow = FlowHash::from_raw(flow << 32 | flow);
            let choice = routes.next(one, || flow);
            assert_eq!(choice, routes.next(one, || flow));
            counts[usize::from(choice == Some((5, rest)))] += 1;
            differ += u32::from(choice != routes.next(other, || flow));
        }
        assert!(
            counts.iter().all(|count| (400..600).contains(count)),
            "{counts:?}"
        );
        assert!((400..600).contains(&differ), "{differ}");
        assert!(routes.is_end(end) && !routes.is_end(rest) && routes.is_end(rest + 1));
        assert_eq!(routes.next(rest, || FlowHash::NONE), Some((7, rest + 1)));
        assert_eq!(routes.next(end, || FlowHash::NONE), None);
    }
}
