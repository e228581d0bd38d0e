//! cbq's `split` and `defmap`: the classes of packets that no filter matches, by priority (`cbq_classify` and
//! `cbq_sync_defmap` in sch_cbq.c of Linux before 6.3).

use fairgate::ClassId;
use fairgate_config::language::{Draft, FilterDraft, Given};
use toml::Spanned;

use super::Translation;
use crate::script::setting;
use crate::tc::command::read_class_id;
use crate::tc::kinds::cbq::default_map;
use crate::tc::objects::{Class, Qdisc};

/// The number of priorities (TC_PRIO_MAX).
const PRIORITIES: u8 = 16;

impl Translation<'_> {
    /// Adds the classes of packets that no filter matches. What has priority 0 is also the default of all
    /// priorities without a class.
    pub(super) fn add_default_maps(&mut self, qdisc: &Qdisc, draft: &mut Draft) {
        let handle = ClassId::new(qdisc.handle.unwrap_or(0), 0);
        let mut of_priority: [Option<(Spanned<u16>, bool)>; PRIORITIES as usize] = Default::default();
        for class in self.script.classes_of(qdisc) {
            let Some((split, map)) = self.split_of(class, handle) else {
                continue;
            };
            if split != handle {
                let message = format!("`split` of class {} is not at {handle}", class.id.get_ref());
                let help = "only packets that no filter of the qdisc matches have a default by priority; \
                    write a filter";
                self.problems
                    .add(class.id.span(), message, "can't be carried over", help);
                continue;
            }
            let is_inner = self
                .script
                .classes_of(qdisc)
                .any(|other| other.parent == *class.id.get_ref());
            for (priority, known) in of_priority.iter_mut().enumerate() {
                // Of several classes the kernel takes the one on the lowest level.
                let is_taken = known.as_ref().is_some_and(|(_, inner)| !*inner || is_inner);
                if map & 1 << priority != 0 && !is_taken {
                    let minor = Spanned::new(class.id.span(), class.id.get_ref().minor());
                    *known = Some((minor, is_inner));
                }
            }
        }
        let has_default = draft.settings.iter().any(|(key, _)| key.get_ref() == "default");
        let leaves = of_priority.iter().zip(0u8..);
        let leaves = leaves.filter_map(|(known, priority)| match known {
            Some((minor, false)) => Some((minor, priority)),
            // An inner class holds nothing: the kernel goes on to its own defaults, which are none.
            _ => None,
        });
        for (minor, priority) in leaves {
            if has_default {
                let text = "`defmap` has no effect: a filter matches every packet";
                self.notes.add(minor.span(), text.to_owned());
                continue;
            }
            let value = |key: &str, number: i128| setting(&minor.span(), key, Given::Integer(number));
            if priority == 0 {
                draft.settings.push(value("default", (*minor.get_ref()).into()));
            } else {
                draft.filters.push(FilterDraft {
                    header: minor.span(),
                    entries: vec![
                        value("class", (*minor.get_ref()).into()),
                        value("priority", priority.into()),
                    ],
                });
            }
        }
    }

    /// Returns what a class says: where, and the bits of the priorities. Later lines change the bits of their
    /// mask.
    fn split_of(&self, class: &Class, handle: ClassId) -> Option<(ClassId, u32)> {
        let mut split = None;
        let mut map = 0;
        for line in &class.options {
            for pair in line.windows(2) {
                let [option, value] = pair else { continue };
                match option.get_ref().as_str() {
                    "split" => split = read_class_id(value),
                    "defmap" => {
                        if let Some((bits, mask)) = default_map(value.get_ref()) {
                            map = map & !mask | bits & mask;
                        }
                    }
                    _ => {}
                }
            }
        }
        // As in the kernel the split is the qdisc if the class names none.
        (map != 0).then(|| (split.unwrap_or(handle), map))
    }
}
