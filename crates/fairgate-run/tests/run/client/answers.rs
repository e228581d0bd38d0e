//! The answers are the same at the status socket and at the API, wherever that is.

use std::thread;
use std::time::Duration;

use fairgate_run::client::{ClientError, Remote};
use fairgate_run_api::{
    Ask, Change, ChangeMade, ExcessStatus, FlowOrder, Question, ReserveOrder, TermsStatus, ask,
};

use super::stage::Stage;

const TREE: &str = "htb default=20 { 1 rate=20mbit { 10 rate=5mbit / fifo; 20 rate=15mbit / fq_codel } }";

/// Does the same at each kind of address.
fn at_each(of_stage: impl Fn(&Stage, &Remote)) {
    at_each_of(TREE, of_stage);
}

/// Does the same with this tree in both directions.
fn at_each_of(tree: &str, of_stage: impl Fn(&Stage, &Remote)) {
    for stage in [Stage::status_socket(tree), Stage::unix(tree), Stage::tls(tree)] {
        let remote = stage.remote();
        assert_eq!(remote.to_string(), stage.address);
        of_stage(&stage, &remote);
    }
}

fn change(from: Option<&str>, line: &str) -> Change {
    Change {
        from: from.map(str::to_owned),
        lines: vec![line.to_owned()],
        ..Change::default()
    }
}

fn of_revision(revision: u64, change: Change) -> Change {
    Change {
        if_revision: Some(revision),
        ..change
    }
}

#[test]
fn status_trees_and_flows_are_read() {
    at_each(|_, remote| {
        let whole = remote.status(false).unwrap();
        assert_eq!(whole.name, "rehearsal");
        assert!(whole.directions[0].queue.contains("htb"));
        assert!(remote.status(true).unwrap().directions[0].queue.is_empty());
        let trees = remote.trees().unwrap();
        assert_eq!(trees.revision, 0);
        assert_eq!(trees.directions[1].from, "right");
        let flows = remote.flows(FlowOrder::RoundTrip, 7).unwrap();
        assert_eq!(flows.flows.len(), 0);
    });
}

#[test]
fn changes_are_made_refused_or_late() {
    at_each(|stage, remote| {
        let made = remote.change(of_revision(0, change(Some("left"), "class change 10 rate=4mbit")));
        assert_eq!(made.unwrap().revision, 1);
        let late = remote.change(of_revision(0, change(None, "class change 10 rate=3mbit")));
        assert!(
            matches!(late, Err(ClientError::Stale { revision: 1 })),
            "{late:?}"
        );
        match remote.change(change(Some("left"), "class delete 99")) {
            Err(ClientError::Refused(mistakes)) => assert!(mistakes[0].message.contains("99")),
            other => panic!("{other:?}"),
        }
        assert_eq!(stage.run.revision(), 1);
        assert!(remote.trees().unwrap().directions[0].queue.contains("4mbit"));
    });
}

#[test]
fn a_change_is_undone_unless_it_is_confirmed() {
    at_each(|stage, remote| {
        let within = |seconds, line: &str| Change {
            confirm_within_s: Some(seconds),
            ..change(Some("left"), line)
        };
        let tree = || remote.trees().unwrap().directions[0].queue.clone();
        let refused = |answer: Result<ChangeMade, ClientError>, why: &str| match answer {
            Err(ClientError::Refused(mistakes)) => assert!(mistakes[0].message.contains(why), "{mistakes:?}"),
            other => panic!("{other:?}"),
        };
        let before = tree();
        assert!(matches!(remote.confirm(), Err(ClientError::Refused(_))));
        for seconds in [0, 3601, u64::MAX] {
            refused(
                remote.change(within(seconds, "class change 10 rate=4mbit")),
                "can't wait",
            );
        }
        // While one waits, nobody else changes anything.
        remote.change(within(3600, "class change 10 rate=4mbit")).unwrap();
        let left = remote.status(true).unwrap().changes.unconfirmed_s.unwrap();
        assert!(left > 3000.0 && left <= 3600.0, "{left}");
        refused(
            remote.change(change(None, "class change 20 rate=1mbit")),
            "waits for its confirmation",
        );
        let terms = ReserveOrder::Withdraw {
            name: "call".to_owned(),
        };
        match remote.reserve(Some("left"), terms) {
            Err(ClientError::Refused(mistakes)) => assert!(mistakes[0].message.contains("waits")),
            other => panic!("{other:?}"),
        }
        assert_eq!(remote.confirm().unwrap(), 1);
        assert_eq!(remote.status(true).unwrap().changes.unconfirmed_s, None);
        let kept = tree();
        assert!(kept.contains("4mbit"));
        let reserver = stage.run.reserver();
        thread::scope(|scope| {
            scope.spawn(|| reserver.watch());
            remote.change(within(1, "class change 10 rate=5mbit")).unwrap();
            assert!(tree().contains("5mbit"));
            while tree() != kept {
                thread::sleep(Duration::from_millis(10));
            }
            reserver.end();
        });
        assert_ne!(before, kept);
        assert_eq!(stage.run.revision(), 3);
        let log = stage.run.log();
        assert!(log.iter().any(|line| line.contains("confirm: kept")), "{log:?}");
        let undone = log.last().unwrap();
        assert!(
            undone.starts_with("the run: undo what nobody has confirmed: "),
            "{undone}"
        );
        assert!(
            undone.contains("rate=5mbit") && undone.contains("made, revision 3"),
            "{undone}"
        );
        remote
            .change(change(Some("left"), "class change 10 rate=6mbit"))
            .unwrap();
    });
}

/// A name with every character that is special in an address.
#[test]
fn reservations_live_and_end() {
    let tree = "tbf rate=10mbit burst=5kb / hfsc default=1 { 1 ls=10mbit / fq_codel }";
    at_each_of(tree, |_, remote| {
        let name = "a/b?c=%20 ä&#".to_owned();
        let terms = |rate_bps| TermsStatus {
            name: name.clone(),
            rate_bps,
            burst_bytes: 1000,
            peak_bps: Some(500_000),
            min_packet_bytes: Some(100),
            max_packet_bytes: Some(1_000),
            delay_us: None,
            filter: "protocol=udp".to_owned(),
            excess: Some(ExcessStatus::Drop),
            lifetime_ms: 9_000,
        };
        let order = |order| remote.reserve(Some("left"), order).unwrap();
        assert_eq!(order(ReserveOrder::Add(terms(100_000)))[0].terms, terms(100_000));
        assert_eq!(
            order(ReserveOrder::Change(terms(200_000)))[0].terms,
            terms(200_000)
        );
        assert_eq!(order(ReserveOrder::Refresh { name: name.clone() }).len(), 1);
        assert_eq!(order(ReserveOrder::List)[0].terms, terms(200_000));
        order(ReserveOrder::Withdraw { name: name.clone() });
        assert_eq!(order(ReserveOrder::List), []);
        let gone = remote.reserve(None, ReserveOrder::Refresh { name: name.clone() });
        assert!(matches!(gone, Err(ClientError::Refused(_))), "{gone:?}");
    });
}

#[test]
fn a_run_without_packets_says_so() {
    at_each(|_, remote| {
        let error = remote
            .packets(Some(Duration::from_secs(3)), Some("left"))
            .unwrap_err();
        assert!(error.is_bad_input());
        match error {
            ClientError::Refused(mistakes) => assert!(mistakes[0].help.contains("packet_log")),
            other => panic!("{other}"),
        }
    });
}

/// A rehearsal has no file that it could read again.
#[test]
fn a_run_without_a_file_refuses_to_read_it_again() {
    at_each(
        |_, remote| match ask::<ChangeMade, _>(remote, "", Question::Reload { because: None }) {
            Err(ClientError::Refused(mistakes)) => assert!(mistakes[0].message.contains("no configuration")),
            other => panic!("{other:?}"),
        },
    );
}

/// The first interval says only that the run records. It is not among those that are returned.
#[test]
fn intervals_end_with_the_run_or_when_they_are_stopped() {
    at_each(|stage, remote| {
        let mut intervals = remote.record(Duration::from_millis(1)).unwrap();
        for number in 2..5 {
            let interval = intervals.next().unwrap().unwrap();
            assert_eq!(interval.at_s, f64::from(number));
            let classes: Vec<&str> = interval.rows.iter().map(|row| row.class.as_str()).collect();
            assert_eq!(classes, ["10", "20", "", "10", "20", ""]);
        }
        let waiting = remote.record(Duration::from_secs(3600)).unwrap();
        let stop = waiting.stopper();
        let stopped = std::thread::spawn(move || waiting.count());
        stop();
        assert_eq!(stopped.join().unwrap(), 0);
        stage.run.end();
        assert!(intervals.all(|interval| interval.is_ok()));
        assert!(matches!(remote.status(false), Err(ClientError::Problem { .. })));
        assert!(remote.record(Duration::from_secs(1)).is_err());
    });
}

#[test]
fn an_interval_that_is_too_short_is_refused() {
    at_each(|_, remote| {
        let error = remote.record(Duration::from_micros(1)).unwrap_err();
        assert!(error.is_bad_input());
        match error {
            ClientError::Refused(mistakes) => assert!(mistakes[0].help.contains("at least 1000 us")),
            other => panic!("{other}"),
        }
    });
}

#[test]
fn subscribers_are_listed() {
    at_each(|_, remote| {
        let list = remote.subscribers().unwrap();
        assert_eq!((list.subscribers.len(), list.nodes.len()), (0, 0));
        assert!(list.is_changeable);
    });
}
