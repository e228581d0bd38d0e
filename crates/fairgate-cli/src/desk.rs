//! A run, as the clients of its API see it.

use std::time::Duration;

use fairgate_config::Registry;
use fairgate_control::{Recorder, Run, Subscribers, WhatIf, WhatIfRefused};
use fairgate_live::status::protocol::{Answer, Mistake, ReserveOrder, Reserved, TreesStatus};
use fairgate_live::status::{Detail, FlowOrder, FlowsStatus, Inside, NoPackets, RunningTrees, Status};
use miette::Report;

use crate::commands::compare::what_if;
use crate::exit;
use crate::failure::Failure;
use crate::subscribers::Book;

/// A run with its subscribers.
pub(crate) struct Desk {
    pub(crate) inside: Inside,
    pub(crate) book: Book,
    pub(crate) registry: Registry,
}

impl Run for Desk {
    fn status(&self, detail: Detail) -> Option<Status> {
        self.inside.status(detail)
    }

    fn trees(&self) -> TreesStatus {
        self.inside.trees()
    }

    fn look_at_trees(&self, look: &mut dyn FnMut(&RunningTrees<'_>)) {
        self.inside.look_at_trees(look);
    }

    fn change(&self, who: &str, from: Option<&str>, lines: &[String], if_revision: Option<u64>) -> Answer {
        self.inside.change(who, from, lines, if_revision)
    }

    fn reserve(
        &self,
        who: &str,
        from: Option<&str>,
        order: ReserveOrder,
        if_revision: Option<u64>,
    ) -> Reserved {
        self.inside.reserve(who, from, order, if_revision)
    }

    fn note(&self, who: &str, what: &str, outcome: &str) {
        self.inside.note(who, what, outcome);
    }

    fn flows(&self, order: FlowOrder, limit: usize) -> Option<FlowsStatus> {
        self.inside.flows(order, limit)
    }

    fn record(&self) -> Recorder {
        let mut recorder = self.inside.recorder();
        Box::new(move || recorder.interval())
    }

    fn keeps_packets(&self) -> bool {
        self.inside.keeps_packets()
    }

    fn last_packets(&self, last: Option<Duration>, from: Option<&str>) -> Result<Vec<u8>, NoPackets> {
        self.inside.last_packets(last, from)
    }

    fn what_if(&self, question: &WhatIf) -> Result<String, WhatIfRefused> {
        let directions = self.inside.trees().directions;
        let ends: Vec<&str> = directions.iter().map(|direction| &*direction.from).collect();
        let from = what_if::direction(question.from.as_deref(), &ends, &|from| self.inside.tree(from))
            .map_err(refused)?;
        let tree = self.inside.tree(&from).expect("the direction exists");
        let last = question.seconds.map(Duration::from_secs_f64);
        let packets = self.inside.last_packets(last, Some(&from));
        let packets = packets.map_err(WhatIfRefused::NoPackets)?;
        let asked = what_if::Question {
            from: &from,
            tree,
            packets,
            queues: &question.queues,
            rate: question.rate.as_deref(),
        };
        what_if::page(asked, &self.registry).map_err(refused)
    }

    fn subscribers(&self) -> Option<&dyn Subscribers> {
        self.book.is_running().then_some(self as &dyn Subscribers)
    }
}

/// Says to a client of the API why a command fails.
fn refused(failure: Failure) -> WhatIfRefused {
    let report = match failure {
        Failure::Input(report) | Failure::Environment(report) => report,
        // Only commands that print have this failure.
        Failure::ReaderGone => Report::msg("the reader has gone"),
    };
    let causes: Vec<String> = report.chain().map(ToString::to_string).collect();
    WhatIfRefused::Mistakes(vec![Mistake {
        place: None,
        message: causes.join(": "),
        help: exit::help(&report)
            .map(|help| help.to_string())
            .unwrap_or_default(),
    }])
}
