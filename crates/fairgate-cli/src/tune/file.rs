//! The configuration of a run on a measured line: a cake for each direction, below its capacity.

use std::net::IpAddr;

use fairgate::Rate;
use fairgate_config::units::format_rate;

use crate::tune::estimate::Framing;
use crate::tune::measured::{Direction, Figures, Measured};
use crate::tune::shown::mbit;

/// The share of the capacity that a shaper gets before anything else was tried.
pub(crate) const SHARE: f64 = 0.95;

/// The rates of a direction that varies, as shares of what was measured: the lowest of its slowest tenth, the
/// base of its median, the highest of its fastest tenth. A measurement is short, so the line does worse at
/// times, and a little better.
const LOWEST: f64 = 0.5;
const BASE: f64 = 0.8;
const HIGHEST: f64 = 1.05;

/// The lowest rate that a cake takes, with room, and one above all lines, bit/s.
const LEAST_BPS: f64 = 16_384.0;
const MOST_BPS: f64 = 1e13;

/// What a run needs besides the measurement.
#[derive(Clone, Debug)]
pub(crate) struct Endpoint<'a> {
    /// The interface of the line.
    pub(crate) device: &'a str,
    /// The server, which answers pings if rates follow the line.
    pub(crate) server: IpAddr,
}

/// Returns the rate of a shaper, in what the line sends.
pub(crate) fn rate(direction: &Figures, share: f64) -> Rate {
    // Whole kbit/s are enough, and can be read.
    let bps = (direction.line_bps * share).clamp(LEAST_BPS, MOST_BPS) / 1e3;
    Rate::from_bits_per_second(bps.floor() as u64 * 1000).expect("it is above 0")
}

/// Returns the file. `shares` are those of the capacity, down and up, of directions that do not vary.
pub(crate) fn text(measured: &Measured, place: &Endpoint<'_>, shares: [f64; 2]) -> String {
    let ways = [Direction::Down, Direction::Up].into_iter().zip(shares);
    let mut text = format!(
        "# Measured by `fairgate tune` against {}: {} down and {} up on the line.\n\
         # Check it:  fairgate check FILE\n\
         # Run it:    fairgate run FILE\n",
        measured.server,
        mbit(measured.down.line_bps),
        mbit(measured.up.line_bps)
    );
    for (way, share) in ways {
        text += &queue(measured.of(way), way, share);
    }
    let device = toml::Value::from(place.device);
    text += &format!(
        "\n[run]\ndevice = {device}            # the interface of the line\n\
         ingress = \"down\"\negress = \"up\"\n"
    );
    let varying: Vec<Direction> = [Direction::Down, Direction::Up]
        .into_iter()
        .filter(|way| measured.of(*way).varies)
        .collect();
    if !varying.is_empty() {
        text += &format!(
            "\n# The capacity varies, so the rate follows it: docs/autorate.md. The server must answer\n\
             # pings.\n[run.autorate]\nreflectors = [\"{}\"]\n",
            place.server
        );
    }
    for way in varying {
        let key = match way {
            Direction::Down => "ingress",
            Direction::Up => "egress",
        };
        let [min, base, max] = bounds(measured.of(way)).map(format_rate);
        text += &format!("{key} = {{ min = \"{min}\", base = \"{base}\", max = \"{max}\" }}\n");
    }
    text
}

/// Returns the section of a direction.
fn queue(direction: &Figures, way: Direction, share: f64) -> String {
    let name = way.name();
    let bandwidth = match direction.varies {
        true => bounds(direction)[1],
        false => rate(direction, share),
    };
    let mut text = format!(
        "\n[queue.{name}]\ndiscipline = \"cake\"\nbandwidth = \"{}\"\n",
        format_rate(bandwidth)
    );
    match direction.framing {
        Some(Framing { line: Some(line), .. }) => text += &format!("line = \"{line}\"\n"),
        Some(framing) => {
            text += &format!(
                "cells = \"{}\"                 # seen in the delay of packets by their length\n\
                 overhead = {}\n",
                framing.cells, framing.overhead
            );
        }
        None => {}
    }
    if way == Direction::Down {
        text += "ingress = true                # the line was before it, so what it drops counts\n";
    }
    text
}

/// Returns the lowest rate, the base and the highest rate of a direction that varies.
fn bounds(direction: &Figures) -> [Rate; 3] {
    let on_line = direction.line_bps / direction.capacity_bps;
    let kbit = |bps: f64| (bps * on_line).clamp(LEAST_BPS, MOST_BPS) as u64 / 1000;
    let min = kbit(direction.low_bps * LOWEST);
    let base = kbit(direction.capacity_bps * BASE).max(min);
    let max = kbit(direction.high_bps * HIGHEST).max(base);
    [min, base, max].map(|kbit| Rate::from_bits_per_second(kbit * 1000).expect("it is above 0"))
}

#[cfg(test)]
mod tests {
    use fairgate::cake::Line;
    use fairgate_config::Document;
    use fairgate_live::Plan;
    use proptest::prelude::*;

    use super::*;
    use crate::tune::measured::{Delays, OverTime};

    fn direction(bps: f64, low: f64, varies: bool, framing: Option<Framing>) -> Figures {
        Figures {
            capacity_bps: bps,
            low_bps: bps * low,
            high_bps: bps * 1.2,
            varies,
            line_bps: bps * 1.1,
            framing,
            idle_ms: Delays::default(),
            loaded_ms: Delays::default(),
            loss_idle: 0.0,
            loss_loaded: 0.0,
            rpm: Some(100.0),
            over_time: OverTime::default(),
        }
    }

    /// Generates what was found or given.
    fn framing() -> impl Strategy<Value = Option<Framing>> {
        prop_oneof![
            Just(None),
            (0..48usize).prop_map(|overhead| Some(Framing::atm(overhead))),
            prop::sample::select(Line::ALL).prop_map(|line| Some(Framing::of(line))),
        ]
    }

    proptest! {
        /// Whatever was measured, the file is one that a run takes, with the rates and the framing.
        #[test]
        fn the_file_is_valid(
            rates in (1e3..1e20f64, 1e3..1e10f64), low in 0.0..1.0f64, varies: [bool; 2],
            framing in framing(), device in "[a-z]{1,8}[0-9.]{0,4}"
        ) {
            let measured = Measured {
                server: "192.0.2.1:4757".to_owned(),
                connections: 8,
                load_s: 8.0,
                mtu: Some(1500),
                packet: 1500,
                one_way: true,
                not_measured: Vec::new(),
                congestion_down: None,
                round_trip_ms: Delays::default(),
                down: direction(rates.0, low, varies[0], None),
                up: direction(rates.1, low, varies[1], framing),
            };
            let server = IpAddr::from([192, 0, 2, 1]);
            let text = text(&measured, &Endpoint { device: &device, server }, [SHARE, SHARE]);
            let document = Document::parse("home.toml", &text).map_err(|error| format!("{error}: {text}"));
            let plan = Plan::read(&document.unwrap()).map_err(|error| format!("{error}: {text}")).unwrap();
            prop_assert!(plan.is_on_one_interface());
            prop_assert_eq!(plan.autorate.is_some(), varies[0] || varies[1]);
            for (queue, framing) in plan.queues.iter().zip([None, framing]) {
                prop_assert_eq!(queue.discipline(), "cake");
                let word = framing.map_or("bandwidth", |framing| framing.line.unwrap_or("atm"));
                prop_assert!(queue.to_string().contains(word), "{}", queue);
                prop_assert!(framing.is_some() || !queue.to_string().contains("atm"), "{}", queue);
            }
        }
    }
}
