//! What is wrong with a line, in two sentences, and what to do, in one.

use serde::Serialize;

use crate::output;
use crate::tune::measured::{Direction, Figures, Measured};

/// From this delay of a queue on a call notices it, and from this one on it is disturbed, ms. ITU-T G.114
/// asks for 150 ms from mouth to ear, of which the path and the devices need most.
const NOTICED_MS: f64 = 30.0;
const BAD_MS: f64 = 100.0;
/// A line that loses more than this without load has another problem than its queue.
const LOSSY: f64 = 0.01;

/// How a direction does under load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Bufferbloat {
    /// Packets hardly wait.
    None,
    /// Packets wait so long that a call or a game notices it.
    Some,
    /// Packets wait so long that a call or a game is disturbed.
    Much,
}

impl Bufferbloat {
    /// Judges a direction.
    fn of(measured: &Measured, way: Direction) -> Bufferbloat {
        match measured.avoidable_ms(way) {
            waits if waits >= BAD_MS => Bufferbloat::Much,
            waits if waits >= NOTICED_MS => Bufferbloat::Some,
            _ => Bufferbloat::None,
        }
    }
}

/// What is wrong, and what to do.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Verdict {
    pub(crate) bufferbloat_down: Bufferbloat,
    pub(crate) bufferbloat_up: Bufferbloat,
    /// Two sentences.
    pub(crate) wrong: [String; 2],
    /// One sentence.
    pub(crate) remedy: String,
}

impl Verdict {
    /// Judges a line, whose configuration was written to a file.
    pub(crate) fn of(measured: &Measured, file: Option<&str>) -> Verdict {
        let [down, up] = [Direction::Down, Direction::Up].map(|way| Bufferbloat::of(measured, way));
        Verdict {
            bufferbloat_down: down,
            bufferbloat_up: up,
            wrong: [queues(measured, down, up), rest(measured)],
            remedy: remedy(measured, down.max(up), file),
        }
    }

    /// Returns all three sentences.
    pub(crate) fn sentences(&self) -> impl Iterator<Item = &str> {
        let wrong = self.wrong.iter().chain([&self.remedy]);
        wrong.map(String::as_str)
    }

    /// Returns whether packets wait too long.
    pub(crate) fn is_bad(&self) -> bool {
        self.bufferbloat_down.max(self.bufferbloat_up) > Bufferbloat::None
    }
}

fn queues(measured: &Measured, down: Bufferbloat, up: Bufferbloat) -> String {
    let waits = |way: Direction| measured.of(way).loaded_ms.p95;
    let disturbed = |what| match what {
        Bufferbloat::Much => "calls and games are disturbed",
        _ => "calls and games notice it",
    };
    match (down, up) {
        (Bufferbloat::None, Bufferbloat::None) => format!(
            "The queue of the line is short: packets wait at most {} more under load.",
            ms(waits(Direction::Down).max(waits(Direction::Up)))
        ),
        (down, Bufferbloat::None) => format!(
            "A download fills a queue in which all packets wait {}: {} meanwhile.",
            ms(waits(Direction::Down)),
            disturbed(down)
        ),
        (Bufferbloat::None, up) => format!(
            "An upload fills a queue in which all packets wait {}: {} meanwhile.",
            ms(waits(Direction::Up)),
            disturbed(up)
        ),
        (down, up) => format!(
            "A download fills a queue in which all packets wait {}, and an upload one of {}: {} meanwhile.",
            ms(waits(Direction::Down)),
            ms(waits(Direction::Up)),
            disturbed(down.max(up))
        ),
    }
}

fn rest(measured: &Measured) -> String {
    let worst = |of: fn(&Figures) -> f64| {
        let [down, up] = [of(&measured.down), of(&measured.up)];
        if up > down {
            (Direction::Up, up)
        } else {
            (Direction::Down, down)
        }
    };
    let (way, lost) = worst(|direction| direction.loss_idle);
    if lost > LOSSY {
        let share = lost * 100.0;
        let way = match measured.one_way {
            true => way.name(),
            false => "on their way there or back",
        };
        return format!(
            "Without any load it loses {share:.1} % of the packets {way}, which no queue can mend."
        );
    }
    let varying: Vec<&str> = [Direction::Down, Direction::Up]
        .into_iter()
        .filter(|way| measured.of(*way).varies)
        .map(Direction::name)
        .collect();
    match varying.as_slice() {
        [] => "Its capacity is steady, and it loses nothing without load.".to_owned(),
        ways => format!(
            "Its capacity changes from one half second to the next ({}), so a fixed rate is at times too \
             high.",
            ways.join(" and ")
        ),
    }
}

fn remedy(measured: &Measured, worst: Bufferbloat, file: Option<&str>) -> String {
    let is_lossy = measured.down.loss_idle.max(measured.up.loss_idle) > LOSSY;
    if worst == Bufferbloat::None {
        return match is_lossy {
            true => "Look at the cable, the signal or the Wi-Fi first.".to_owned(),
            false => "Nothing needs to be done.".to_owned(),
        };
    }
    let rate = match measured.down.varies || measured.up.varies {
        true => "with a rate that follows the line",
        false => "a little below the line's rate",
    };
    match file {
        Some(file) => format!(
            "Keep the queue here, {rate}: `fairgate run {}`.",
            output::name(file)
        ),
        None => format!(
            "Keep the queue here, {rate}: write the configuration with `-o home.toml`, and run it with \
             `fairgate run home.toml`."
        ),
    }
}

/// Writes a time.
pub(crate) fn ms(millis: f64) -> String {
    match millis {
        millis if millis < 10.0 => format!("{millis:.1} ms"),
        millis => format!("{millis:.0} ms"),
    }
}
