//! Kinds of qdisc that Fairgate has no discipline for: why, and what to use instead.

/// Returns the reason and the remedy for a kind of tc, if there is no discipline for it.
pub(in crate::tc) fn reason(kind: &str) -> Option<(&'static str, &'static str)> {
    // A teql is a module with devices teql0, teql1, ..., and each is a kind of its own.
    let is_teql = |number: &str| number.bytes().all(|digit| digit.is_ascii_digit());
    let kind = match kind.strip_prefix("teql") {
        Some(number) if is_teql(number) => "teql",
        _ => kind,
    };
    ABSENT
        .iter()
        .find(|(name, ..)| *name == kind)
        .map(|(_, reason, remedy)| (*reason, *remedy))
}

const ABSENT: &[(&str, &str, &str)] = &[
    (
        "teql",
        "it sends one flow of packets over several devices, and a run joins two interfaces",
        "bond the devices (ip link add bond0 type bond mode balance-rr), and shape the bond",
    ),
    (
        "noop",
        "it drops every packet",
        "use a policer, or a filter that drops, for what must not pass",
    ),
    (
        "plug",
        "it holds packets until a command comes, and a discipline here says when to ask it again",
        "use netem with a delay or with slots, which hold packets for a time",
    ),
    (
        "dsmark",
        "Linux removed it in 6.3, and a tree here does not rewrite the DSCP of what it sends",
        "use prio or htb with filters on the DSCP; a policer with remark sets one above a rate",
    ),
    (
        "atm",
        "Linux removed it in 6.3: it sent to ATM circuits",
        "use a shaper that counts cells: htb or tbf with linklayer atm, or cake atm",
    ),
    (
        "taprio",
        "it opens gates by the clock of the network card, which a process can't keep",
        "use ets or prio with shapers in the classes, which give shares and bounds without a schedule",
    ),
    (
        "skbprio",
        "it drops packets of a lower priority to make room for higher ones",
        "use prio with a limit in each class: pfifo limit N",
    ),
    (
        "bpf",
        "its discipline is a program that only the kernel can run",
        "write the discipline for the library: examples/own-discipline",
    ),
    (
        "rr",
        "Linux removed it in 2.6.27",
        "use multiq for turns between queues, or drr for shares",
    ),
    (
        "wrr",
        "it was never part of Linux",
        "use drr, with the weight times a frame as the quantum, or a template with each for hosts",
    ),
    (
        "esfq",
        "it was never part of Linux",
        "use sfq, or htb with a template (each) for fairness between hosts, or cake",
    ),
    ("sch_cake", "this is the name of the module", "write cake"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tc::kinds;

    #[test]
    fn a_kind_that_there_is_has_no_reason() {
        for name in kinds::names() {
            assert!(
                reason(name).is_none(),
                "`{name}` is a kind: remove it from the list"
            );
        }
        assert!(reason("teql0").is_some() && reason("teql12").is_some());
        assert!(reason("teqlx").is_none());
    }
}
