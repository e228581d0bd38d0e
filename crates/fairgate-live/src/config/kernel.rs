//! The settings of `[run]` that a run whose packets the kernel forwards does not have.

use fairgate_config::run::Keys;
use fairgate_config::{Document, FileError};

/// Each with the reason.
const MISSING: [(&str, &str); 12] = [
    (
        "left",
        "the kernel forwards what one interface sends and receives",
    ),
    (
        "right",
        "the kernel forwards what one interface sends and receives",
    ),
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
        "left" | "right" => "name the interface with `device`, and its trees with `ingress` and `egress`",
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
        let between = "[run]\nleft = \"a\"\nright = \"b\"\nbackend = \"kernel\"\n";
        let error = Plan::read(&Document::parse("run.toml", between).unwrap()).unwrap_err();
        assert!(error.problems()[0].help.contains("`device`"), "{error:?}");
    }
}
