//! Reads the action `mirred`, which sends packets to another device.

use super::Reader;
use crate::script::{Word, number};
use crate::tc::abbreviations::full;

impl<'f> Reader<'f, '_> {
    /// Reads `egress redirect dev X`, in the order of tc's `parse_direction`: the direction goes first, and
    /// the device ends it.
    pub(super) fn mirred(&mut self, mirred: &'f Word) {
        const FORM: &str = "write mirred egress redirect dev DEVICE";
        let mut direction = None;
        let mut is_redirected = false;
        while let Some(word) = self.words.next() {
            const WORDS: [&str; 5] = ["egress", "ingress", "redirect", "mirror", "index"];
            match full(word.get_ref(), &WORDS).unwrap_or(word.get_ref()) {
                "egress" if direction.is_none() => direction = Some(word),
                "ingress" => {
                    let help = "redirect the packets to the device's egress, where a tree can be";
                    self.problem(word, "packets can't arrive at a device a second time", help);
                    return;
                }
                "mirror" => {
                    let help = "leave it out, and capture at the interface instead: each packet is sent once \
                        here";
                    self.problem(word, "`mirror` sends a copy, and can't be carried over", help);
                    return;
                }
                "redirect" if direction.is_some() => is_redirected = true,
                // The number of the action, which other filters may name.
                "index" => match self.value(word) {
                    Some(index) if number(index.get_ref()).is_some() => {}
                    Some(index) => return self.problem(index, "`index` must be a number", FORM),
                    None => return,
                },
                "dev" if is_redirected => {
                    self.redirect = self.value(word);
                    return;
                }
                _ => return self.problem(word, "this word of `mirred` is not understood here", FORM),
            }
        }
        self.problem(mirred, "`mirred` names no device", FORM);
    }
}
