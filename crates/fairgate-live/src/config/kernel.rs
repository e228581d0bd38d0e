//! The settings of `[run]` that a run whose packets the kernel forwards does not have.

use fairgate_config::run::Keys;
use fairgate_config::{Document, FileError};

use super::{Attachment, End};

/// Each with the reason.
const MISSING: [(&str, &str); 11] = [
    (
        "nat",
        "addresses before translation are looked up in user space only",
    ),
    ("delay", "there is no delay line behind a qdisc"),
    ("overhead", "a qdisc counts the lengths that the kernel gives it"),
    ("spin", "no thread of the run sends packets"),
    (
        "offloads",
        "merged packets are cut where the tree shapes or counts them",
    ),
    ("isolate", "it is the kernel's own stack that forwards"),
    ("realtime", "no thread of the run sends packets"),
    ("workers", "no thread of the run sends packets"),
    ("shard_by", "no thread of the run sends packets"),
    ("packet_log", "the last packets are kept in user space only"),
    (
        "packet_log_memory",
        "the last packets are kept in user space only",
    ),
];

/// What to do instead.
fn remedy(key: &str) -> &'static str {
    match key {
        "overhead" => "remove it, and give the overhead to the shaper in the tree; or use another back end",
        _ => "remove it, or use another back end: `backend = \"packet\"`",
    }
}

/// Refuses what the section says and the kernel does not have.
///
/// # Errors
/// Lists all such keys.
pub(super) fn check(document: &Document, section: &Keys) -> Result<(), FileError> {
    let mut problems = document.problems();
    for (key, why) in MISSING {
        if let Some(span) = section.span_of(key) {
            let message = format!("the back end `kernel` does not have `{key}`: {why}");
            problems.add(span, message, "here", remedy(key));
        }
    }
    problems.unless_any(())
}

/// Reads which trees there are between two interfaces. A direction for which the file names none is not
/// touched: the kernel sends its packets as it did before.
///
/// # Errors
/// Lists the ends that are no interfaces of this machine, and says if there is no tree at all.
pub(super) fn place(document: &Document, section: &Keys, place: &mut Attachment) -> Result<(), FileError> {
    if matches!(place.ends[1], End::Host(_)) {
        return Ok(());
    }
    let mut problems = document.problems();
    let spans = ["left", "right"].map(|key| section.span_of(key).unwrap_or_default());
    for (end, span) in place.ends.iter().zip(&spans) {
        if !matches!(end, End::Interface(_)) {
            let message = "the back end `kernel` has no TAP and TUN devices: it forwards between interfaces";
            let help = "name an existing interface, or use another back end: `backend = \"packet\"`";
            problems.add(span.clone(), message, "here", help);
        }
    }
    place.taken = place.queues.each_ref().map(Option::is_some);
    if place.taken == [false; 2] {
        let help =
            "add `left_to_right` for what `right` sends, `right_to_left` for what `left` sends, or both";
        problems.add(spans[0].clone(), "the kernel gets no tree", "here", help);
    }
    problems.unless_any(())
}

#[cfg(test)]
mod tests {
    use fairgate_config::Document;
    use fairgate_config::run::BackendKind;

    use crate::config::Plan;

    const DEVICE: &str = "[run]\ndevice = \"wan\"\negress = \"up\"\n";
    const UP: &str = "[queue.up]\ndiscipline = \"fq_codel\"\n";

    #[test]
    fn all_that_the_kernel_does_not_have_is_refused_at_its_place() {
        let keys = "backend = \"kernel\"\ndelay = \"5ms\"\nworkers = 1\nspin = \"0ms\"\nrealtime = true\n\
                    nat = \"egress\"\npacket_log = \"30s\"\n";
        let document = Document::parse("run.toml", &format!("{DEVICE}{keys}{UP}")).unwrap();
        let error = Plan::read(&document).unwrap_err();
        let mut found: Vec<(usize, &str)> = error
            .problems()
            .iter()
            .filter(|problem| problem.message.starts_with("the back end `kernel`"))
            .map(|problem| (problem.position().0, problem.message.split('`').nth(3).unwrap()))
            .collect();
        found.sort_unstable();
        let expected = [
            (5, "delay"),
            (6, "workers"),
            (7, "spin"),
            (8, "realtime"),
            (9, "nat"),
            (10, "packet_log"),
        ];
        assert_eq!(found, expected);
    }

    /// `--kernel` counts as if the file said it.
    #[test]
    fn an_option_is_checked_as_the_key_is() {
        let document = |keys: &str| Document::parse("run.toml", &format!("{DEVICE}{keys}{UP}")).unwrap();
        let kernel = Some(BackendKind::Kernel);
        let plan = Plan::read_for(&document("frames = 1000\nsuper_packets = \"cut\"\n"), kernel).unwrap();
        assert_eq!((plan.backend, plan.frames), (kernel, 1000));
        let workers = document("spin = \"1us\"\n");
        assert!(Plan::read(&workers).is_ok());
        assert!(Plan::read_for(&workers, kernel).is_err());
        let back = document("backend = \"kernel\"\nspin = \"1us\"\n");
        assert!(Plan::read_for(&back, Some(BackendKind::Packet)).is_ok());
    }

    /// Between two interfaces only directions with a tree are taken.
    #[test]
    fn two_interfaces_have_the_trees_that_are_named() {
        let read = |left: &str, keys: &str| {
            let run = format!("[run]\nleft = \"{left}\"\nright = \"b\"\nbackend = \"kernel\"\n{keys}\n");
            Plan::read(&Document::parse("run.toml", &(run + UP)).unwrap())
        };
        let taken = |keys: &str| read("a", keys).unwrap().taken;
        assert_eq!(taken("left_to_right = \"up\""), [true, false]);
        assert_eq!(taken("right_to_left = \"up\""), [false, true]);
        assert_eq!(taken("left_to_right = \"up\"\nright_to_left = \"up\""), [true; 2]);
        let refused = |left: &str, keys: &str| {
            let error = read(left, keys).unwrap_err();
            let problem = &error.problems()[0];
            (problem.position().0, problem.message.clone())
        };
        assert_eq!(refused("a", ""), (2, "the kernel gets no tree".to_owned()));
        let (line, message) = refused("tap:a", "left_to_right = \"up\"");
        assert!(line == 2 && message.contains("TAP"), "{line}: {message}");
        let (line, message) = refused("a", "left_to_right = \"up\"\nisolate = true");
        assert!(line == 6 && message.contains("`isolate`"), "{line}: {message}");
    }
}
