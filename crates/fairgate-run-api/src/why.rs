//! Why a direction of a subscriber is slow: the first cause on the path of its packets.

use serde::{Deserialize, Serialize};

use crate::flows::{FlowStatus, LossStatus};

/// From this share of its limit on something counts as full: rates are those of a second, and a shaper has
/// bursts.
const FULL: f64 = 0.95;
/// A queue that adds less, ms, is felt by nobody: of an interactive program's 100 ms it is a fifth.
const LONG_MS: f64 = 20.0;
/// A round trip beyond this machine that is felt, ms.
const FAR_MS: f64 = 100.0;
/// From this share of losses on a connection is slow, whatever the line: with round trips of 50 ms, Reno gets
/// 2.9 Mbit/s (Mathis, Semke, Mahdavi, Ott 1997). A few are needed to tell.
const LOSSY: f64 = 0.01;
const LEAST_LOST: u64 = 3;

/// What a class or a node of the network does just now.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load<'n> {
    /// What people call it.
    pub name: &'n str,
    /// What leaves it, bit/s.
    pub rate_bps: f64,
    /// The most that it may send, bit/s.
    pub limit_bps: Option<u64>,
    /// The mean time that the packets which leave it have spent in it, ms. None: none leave it.
    pub delay_ms: Option<f64>,
}

impl Load<'_> {
    /// Returns whether it sends what it may send.
    pub fn is_full(&self) -> bool {
        self.limit_bps
            .is_some_and(|limit| self.rate_bps >= FULL * limit as f64)
    }

    /// Returns its rate and its limit as text.
    pub fn use_text(&self) -> String {
        let limit = self.limit_bps.unwrap_or_default() as f64;
        format!("{} of {}", rate(self.rate_bps), rate(limit))
    }
}

/// What a cause is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// No packet leaves its class.
    Idle,
    /// It sends what its plan lets it send.
    Plan,
    /// A node of the network that it shares with others is full.
    Node,
    /// Packets wait in its class for long, though nothing is full.
    Bursts,
    /// Packets are lost before they get here.
    Loss,
    /// Round trips to its devices are long: its Wi-Fi, or another queue behind this machine.
    Devices,
    /// Round trips to servers are long.
    Servers,
    /// Nothing here slows it.
    Nothing,
}

/// Why a direction is slow, or that nothing here slows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Why {
    /// The first cause on the path of its packets.
    pub cause: Cause,
    /// The node that is full.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The cause with its figures, a sentence or two.
    pub text: String,
}

impl Why {
    /// Finds the first cause. `own` is the class of the subscriber; none if no packet has come to it.
    /// `shared` are the nodes above it, the nearest one first. `flows` are its own in this direction, whose
    /// round trips are beyond this machine: to its devices if packets go down to them, else to servers.
    pub fn find<'n>(
        goes_down: bool,
        own: Option<Load<'n>>,
        shared: impl IntoIterator<Item = Load<'n>>,
        flows: &[&FlowStatus],
    ) -> Why {
        let because = |cause, node: Option<&str>, text: String| Why {
            cause,
            node: node.map(str::to_owned),
            text,
        };
        let Some((own, delay_ms)) = own.and_then(|own| Some((own, own.delay_ms?))) else {
            return because(Cause::Idle, None, "Nothing passes just now.".to_owned());
        };
        let waits = format!("A packet waits {} here.", delay(delay_ms));
        if own.is_full() {
            let text = format!("Its plan is used up: {}. {waits}", own.use_text());
            return because(Cause::Plan, None, text);
        }
        if let Some(full) = shared.into_iter().find(Load::is_full) {
            let text = format!(
                "{} is full: {} for all who share it. {waits}",
                full.name,
                full.use_text()
            );
            return because(Cause::Node, Some(full.name), text);
        }
        if delay_ms >= LONG_MS {
            let text = format!("Bursts wait here though nothing is full. {waits}");
            return because(Cause::Bursts, None, text);
        }
        let LossStatus { segments, lost } = lost_before(flows);
        if lost >= LEAST_LOST && lost as f64 >= LOSSY * segments as f64 {
            let share = three_digits(100.0 * lost as f64 / segments as f64);
            let [where_, look] = match goes_down {
                true => ["On the way here", "Look at what is before this machine."],
                false => [
                    "Between its devices and here",
                    "Look at its Wi-Fi and its radio link.",
                ],
            };
            let text =
                format!("{where_} {share} % of its TCP segments are lost ({lost} of {segments}). {look}");
            return because(Cause::Loss, None, text);
        }
        let trips = flows.iter().filter_map(|flow| Some(flow.round_trip_ms?.median));
        let mut round_trips_ms: Vec<f64> = trips.collect();
        round_trips_ms.sort_by(f64::total_cmp);
        let Some(&far) = round_trips_ms
            .get(round_trips_ms.len() / 2)
            .filter(|median| **median >= FAR_MS)
        else {
            return because(Cause::Nothing, None, format!("Nothing here slows it. {waits}"));
        };
        let flows = round_trips_ms.len();
        let trip = format!("{} (median of {flows} flow{})", delay(far), plural(flows));
        match goes_down {
            true => because(
                Cause::Devices,
                None,
                format!(
                    "Slow behind its connection: to its devices and back takes {trip}. Look at its Wi-Fi."
                ),
            ),
            false => because(
                Cause::Servers,
                None,
                format!("Far servers: there and back takes {trip}."),
            ),
        }
    }
}

/// Returns what was lost of all flows before they got here.
fn lost_before(flows: &[&FlowStatus]) -> LossStatus {
    let mut all = LossStatus::default();
    for losses in flows.iter().filter_map(|flow| flow.lost_before) {
        all.segments += losses.segments;
        all.lost += losses.lost;
    }
    all
}

fn plural(count: usize) -> &'static str {
    match count {
        1 => "",
        _ => "s",
    }
}

/// Three digits, as many as a person compares.
fn three_digits(value: f64) -> String {
    match value {
        // What would be rounded to one digit more has one decimal less.
        ..9.995 => format!("{value:.2}"),
        ..99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

fn rate(bps: f64) -> String {
    let (divisor, unit) = match bps {
        ..999_500.0 => (1e3, "kbit/s"),
        ..999_500_000.0 => (1e6, "Mbit/s"),
        _ => (1e9, "Gbit/s"),
    };
    format!("{} {unit}", three_digits(bps / divisor))
}

fn delay(ms: f64) -> String {
    match ms {
        ..999.5 => format!("{} ms", three_digits(ms)),
        _ => format!("{} s", three_digits(ms / 1e3)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flows::RoundTripStatus;

    const CALM: Load<'_> = Load {
        name: "its class",
        rate_bps: 5e6,
        limit_bps: Some(20_000_000),
        delay_ms: Some(2.0),
    };

    fn mast(rate_bps: f64) -> Load<'static> {
        Load {
            name: "Mast",
            rate_bps,
            limit_bps: Some(100_000_000),
            delay_ms: Some(1.0),
        }
    }

    fn find(own: Option<Load<'static>>, mast_bps: f64, round_trips_ms: &[f64]) -> [Why; 2] {
        let flow = |median: &f64| FlowStatus {
            round_trip_ms: Some(RoundTripStatus {
                latest: *median,
                minimum: *median,
                median: *median,
            }),
            ..FlowStatus::default()
        };
        find_with(
            own,
            mast_bps,
            &round_trips_ms.iter().map(flow).collect::<Vec<_>>(),
        )
    }

    fn find_with(own: Option<Load<'static>>, mast_bps: f64, flows: &[FlowStatus]) -> [Why; 2] {
        let flows: Vec<&FlowStatus> = flows.iter().collect();
        [true, false].map(|goes_down| Why::find(goes_down, own, [mast(mast_bps)], &flows))
    }

    #[test]
    fn losses_before_this_machine_are_told_apart_by_their_side() {
        let flow = |segments, lost| FlowStatus {
            lost_before: Some(LossStatus { segments, lost }),
            round_trip_ms: Some(RoundTripStatus {
                latest: 300.0,
                minimum: 300.0,
                median: 300.0,
            }),
            ..FlowStatus::default()
        };
        let [down, up] = find_with(Some(CALM), 0.0, &[flow(1200, 20), flow(40, 3)]);
        assert_eq!([down.cause, up.cause], [Cause::Loss; 2]);
        assert_eq!(
            down.text,
            "On the way here 1.85 % of its TCP segments are lost (23 of 1240). Look at what is before this \
             machine."
        );
        assert!(
            up.text.starts_with("Between its devices and here 1.85 %"),
            "{}",
            up.text
        );
        // Too few, or too small a share; and a node that is full comes first.
        for flows in [[flow(20, 2), flow(0, 0)], [flow(1200, 11), flow(0, 0)]] {
            assert_eq!(find_with(Some(CALM), 0.0, &flows)[0].cause, Cause::Devices);
        }
        assert_eq!(
            find_with(Some(CALM), 99e6, &[flow(100, 20)])[0].cause,
            Cause::Node
        );
    }

    #[test]
    fn the_first_cause_on_the_path_is_named() {
        let full = Load {
            rate_bps: 19.2e6,
            delay_ms: Some(12.0),
            ..CALM
        };
        let waiting = Load {
            delay_ms: Some(1234.0),
            ..CALM
        };
        let idle = Load {
            delay_ms: None,
            ..full
        };
        let far = [300.0, 20.0, 150.0];
        // Each row has the causes of those below it, too.
        for (own, mast_bps, trips, causes, text) in [
            (None, 99e6, &far[..], [Cause::Idle; 2], "Nothing passes just now."),
            (
                Some(idle),
                99e6,
                &far,
                [Cause::Idle; 2],
                "Nothing passes just now.",
            ),
            (
                Some(full),
                99e6,
                &far,
                [Cause::Plan; 2],
                "Its plan is used up: 19.2 Mbit/s of 20.0 Mbit/s. A packet waits 12.0 ms here.",
            ),
            (
                Some(waiting),
                95e6,
                &far,
                [Cause::Node; 2],
                "Mast is full: 95.0 Mbit/s of 100 Mbit/s for all who share it. A packet waits 1.23 s here.",
            ),
            (
                Some(waiting),
                94e6,
                &far,
                [Cause::Bursts; 2],
                "Bursts wait here though nothing is full. A packet waits 1.23 s here.",
            ),
            (
                Some(CALM),
                94e6,
                &far,
                [Cause::Devices, Cause::Servers],
                "Slow behind its connection: to its devices and back takes 150 ms (median of 3 flows). Look \
                 at its Wi-Fi.",
            ),
            (
                Some(CALM),
                94e6,
                &[99.0],
                [Cause::Nothing; 2],
                "Nothing here slows it. A packet waits 2.00 ms here.",
            ),
            (
                Some(CALM),
                94e6,
                &[],
                [Cause::Nothing; 2],
                "Nothing here slows it. A packet waits 2.00 ms here.",
            ),
        ] {
            let [down, up] = find(own, mast_bps, trips);
            assert_eq!([down.cause, up.cause], causes, "{text}");
            assert_eq!(down.text, text);
            assert_eq!(
                down.node.as_deref(),
                (down.cause == Cause::Node).then_some("Mast")
            );
        }
        let [_, up] = find(Some(CALM), 0.0, &[250.0]);
        assert_eq!(
            up.text,
            "Far servers: there and back takes 250 ms (median of 1 flow)."
        );
    }

    #[test]
    fn without_a_limit_nothing_is_full() {
        let endless = Load {
            rate_bps: 1e12,
            limit_bps: None,
            ..CALM
        };
        assert!(!endless.is_full());
        assert_eq!(find(Some(endless), 0.0, &[])[0].cause, Cause::Nothing);
    }
}
