//! The queues of pf.conf: ALTQ's, as FreeBSD and pfSense have them, and those of OpenBSD since 5.5.
//!
//! ```text
//!   statements  the text as statements of words, with macros replaced
//!   amount      bandwidths: 2Mb, 600Kb, 18%
//!   queue       an interface with its queues, as both languages describe them
//!   altq        `altq on em0 cbq bandwidth 2Mb queue { a, b }`, `queue a bandwidth 20% cbq(borrow red)`
//!   openbsd     `queue a parent b bandwidth 3M, min 1M, max 5M burst 9M for 2000ms`
//!   defined     the queues that the lines define, of either language
//!   draft       the tree of an interface
//! ```
//!
//! What becomes of it:
//!
//! * The bandwidth of an interface is a `tbf` with the bucket that pfctl computes (`tbrsize`).
//! * `cbq` becomes our `cbq` with `link_sharing = "top-level"`, ALTQ's rule, under a class for the whole
//!   link. `priq` becomes `prio`, `hfsc` becomes `hfsc`, `codel` becomes `codel`. `fairq` becomes `drr` over
//!   hashed flows: the shares are those of the bandwidths.
//! * OpenBSD's queues become `hfsc`: the bandwidth is the link-sharing curve, `min` the real-time curve,
//!   `max` the upper limit. `burst X for T` is the first piece of a curve. `flows` makes a queue an
//!   `fq_codel`.
//! * A leaf is a `fifo` of `qlimit` packets, or with `red`, `rio` or `codel` that discipline with ALTQ's
//!   constants.
//! * Rules with `queue` are filters for packets that leave by the interface. pf assigns a whole connection by
//!   its first packet. Here each packet is matched: those of replies by exchanged addresses and ports.
//! * The second queue of a rule is for packets with low delay and for TCP's acknowledgements without data.
//!
//! `dnpipe` and `dnqueue`, and macOS' `dummynet ... pipe N`, lead to dummynet: [`dummynet`](crate::dummynet)
//! reads them.

mod altq;
mod amount;
mod defined;
mod draft;
mod openbsd;
mod queue;
mod statements;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use fairgate_config::FileError;
use fairgate_config::language::{Problems, check};
use miette::NamedSource;

use crate::dummynet::pf::{Rules, is_of_altq, table};
use crate::dummynet::tables::Tables;
use crate::dummynet::{Direction, Script, Tree};
use crate::script::notes::Notes;
use crate::tc::Device;
use defined::Defined;
use queue::Interface;

/// Whether a text has lines of ALTQ or of OpenBSD's queues.
pub fn has_queues(text: &str) -> bool {
    crate::script::lines(text, &[])
        .iter()
        .any(|(words, _)| is_of_altq(words))
}

/// Whether a text has rules that lead to dummynet's pipes or queues.
pub fn has_pipes(text: &str) -> bool {
    crate::script::lines(text, &["ipfw", "dnctl"])
        .iter()
        .any(|(words, _)| {
            let mut texts = words.iter().map(|word| word.get_ref().as_str());
            let is_object = |word: &str| matches!(word, "pipe" | "sched" | "dummynet");
            texts.next().is_some_and(is_object)
                || texts.any(|word| word.starts_with("dnpipe") || word.starts_with("dnqueue"))
        })
}

/// Returns the trees of a pf.conf: one for each interface with queues, for the packets that leave by it. If
/// no line is about queues, the trees are those of dummynet's pipes.
///
/// ```
/// use fairgate_scripts::{pf, tc::Device};
///
/// let text = "altq on em0 priq bandwidth 10Mb queue { fast, slow }
///     queue fast priority 7
///     queue slow priq(default)
///     pass out on em0 proto udp from any to any port 53 queue fast";
/// let trees = pf::trees("pf.conf", text, Device::default())?;
/// assert_eq!((trees[0].name().as_str(), trees[0].spec.discipline()), ("em0", "tbf"));
/// # Ok::<(), fairgate_config::FileError>(())
/// ```
///
/// # Errors
/// If a line can't be understood, or something in it can't be carried over.
pub fn trees(name: &str, text: &str, device: Device) -> Result<Vec<Tree>, FileError> {
    if !has_queues(text) && has_pipes(text) {
        return Script::parse(name, text, device)?.trees();
    }
    let source = Arc::new(NamedSource::new(name, text.to_owned()));
    let mut problems = Problems::new(Arc::clone(&source));
    let mut notes = Notes::default();
    let statements = statements::read(text, &mut problems);
    let mut tables = Tables::default();
    for (words, _) in &statements {
        if let Some((name, addresses)) = table(words) {
            tables.fill(name, addresses);
        }
    }
    let mut queues = Defined::default();
    let mut rules = Rules::default();
    for (words, end) in statements {
        if is_of_altq(&words) {
            queues.read(words, end, &mut problems, &mut notes);
        } else if !rules.read(&words, end, &tables, &mut problems, &mut notes) {
            let message = format!(
                "`{}` begins no line of pf.conf that is known here",
                words[0].get_ref()
            );
            let help = "understood are macros, tables, altq, queue, and rules: pass, match, block ...";
            problems.add(words[0].span(), message, "unknown", help);
        }
    }
    let rules = rules.in_order(&mut problems, &mut notes);
    let interfaces = queues.interfaces(device, &mut problems);
    if interfaces.is_empty() && problems.count() == 0 {
        let help = "begin with a line like altq on em0 cbq bandwidth 10Mb queue { a, b }, or queue main \
            on em0 \
            bandwidth 10M; for pipes, add lines like pipe 1 config bw 10Mbit/s";
        problems.add(0..text.len(), "no line describes a queue", "nothing here", help);
    }
    let mut drafts = Vec::new();
    for interface in &interfaces {
        let draft = draft::tree(interface, &interfaces, &rules, device, &mut problems, &mut notes);
        drafts.push((interface, draft));
    }
    draft::check_targets(&interfaces, &rules, &mut problems);
    let mut trees = Vec::new();
    let is_right = problems.count() == 0;
    for (interface, draft) in drafts.into_iter().filter(|_| is_right) {
        if let Some(spec) = draft.and_then(|draft| check(&draft, &mut problems)) {
            trees.push(Tree {
                interface: Some(interface.name.get_ref().clone()),
                direction: Direction::Out,
                spec,
                warnings: std::mem::take(&mut notes).in_order(text),
                files: Vec::new(),
            });
        }
    }
    problems.unless_any(trees)
}

/// Whether rules lead to queues of this interface.
fn names(interface: &Interface, name: &str) -> bool {
    interface.queues.iter().any(|queue| queue.name.get_ref() == name)
}
