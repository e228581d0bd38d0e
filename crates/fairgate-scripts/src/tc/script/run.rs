//! The effect of each line on the qdiscs, classes and filters of a device.

use fairgate::ClassId;
use fairgate_config::language::Problems;
use toml::Spanned;

use super::Script;
use crate::script::{Word, number};
use crate::tc::command::{Command, FilterHead, Known, Object, Verb};
use crate::tc::estimator::Estimated;
use crate::tc::hook;
use crate::tc::kinds::{self, Children, Kind};
use crate::tc::objects::{Class, Filter, Qdisc};

impl Script {
    /// Runs a line, or reports why it is not possible.
    pub(super) fn run(&mut self, command: Command, problems: &mut Problems) {
        let Command {
            verb,
            object,
            kind,
            options,
            estimator,
            ..
        } = command;
        if let Some(estimator) = &estimator
            && let Some(note) = estimator.note()
        {
            self.notes.add(estimator.word.span(), note);
        }
        let done = match object {
            Object::Qdisc { parent, handle, stab } => {
                self.run_qdisc(&verb, parent, handle, kind, (options, stab, estimator))
            }
            Object::Class { parent, class } => {
                self.run_class(&verb, parent, class, kind, (options, estimator))
            }
            Object::Filter(head) => self.run_filter(&verb, head, kind, options),
            // Filters make their chain.
            Object::Chain(head) if *verb.get_ref() == Verb::Delete => {
                self.run_filter(&verb, head, None, Vec::new())
            }
            Object::Chain(_) => Ok(()),
        };
        match done {
            Ok(()) | Err(Obstacle::Reported) => {}
            Err(Obstacle::Conflict { at, message }) => problems.add(at, message, "conflict", ORDER),
        }
    }

    /// Notes what a line with a mistake would have added. Lines that need it are not reported.
    pub(super) fn lose(&mut self, known: Known) {
        self.lost.extend(known.handle);
        let Some((class, parent)) = known.class else {
            return;
        };
        let (_, class) = self.of_one_qdisc(None, class);
        let id = *class.get_ref();
        let Some(holder) = self.with_handle(id.major()) else {
            self.lost.insert(id.major());
            return;
        };
        if self.classes.iter().all(|class| *class.id.get_ref() != id) {
            let kind = holder.kind.clone();
            self.classes.push(Class {
                parent: parent.unwrap_or(ClassId::new(id.major(), 0)),
                id: class,
                kind,
                options: Vec::new(),
                estimator: None,
                is_broken: true,
            });
        }
    }

    /// Whether an earlier line was refused, so that something may be missing that the script adds.
    fn has_gaps(&self) -> bool {
        !self.lost.is_empty() || self.classes.iter().any(|class| class.is_broken)
    }

    /// Returns the obstacle that no qdisc has this handle. It is reported once.
    fn no_handle<W>(&mut self, word: &Spanned<W>, handle: u16) -> Obstacle {
        match self.lost.insert(handle) {
            true => Obstacle::Conflict {
                at: word.span(),
                message: format!("no qdisc has the handle {handle:x}:"),
            },
            false => Obstacle::Reported,
        }
    }

    fn run_qdisc(
        &mut self,
        verb: &Spanned<Verb>,
        parent: Option<Spanned<ClassId>>,
        handle: Option<u16>,
        kind: Option<Word>,
        (options, stab, estimator): (Vec<Word>, Vec<Word>, Option<Estimated>),
    ) -> Result<(), Obstacle> {
        // As in the kernel (`tc_get_qdisc`), the hook is deleted by any class that has its major number.
        let of_hook = |id: ClassId| match (verb.get_ref(), id.major()) {
            (Verb::Delete, hook::HANDLE) => hook::PLACE,
            _ => id,
        };
        let class = parent.as_ref().map(|parent| of_hook(*parent.get_ref()));
        let present = self.qdiscs.iter().position(|qdisc| qdisc.parent == class);
        let Some(kind) = kind.filter(|_| *verb.get_ref() != Verb::Delete) else {
            return match (present, &parent) {
                (Some(present), _) => {
                    let own = self.qdiscs[present].handle;
                    if let (Some(handle), Some(own)) = (handle, own)
                        && handle != own
                    {
                        let message = format!("the qdisc here is {own:x}:, and not {handle:x}:");
                        return conflict(verb, message);
                    }
                    self.remove(present);
                    Ok(())
                }
                // Scripts delete the root and the hook first, in case they exist from an earlier run.
                (None, None) => Ok(()),
                (None, Some(_)) if class == Some(hook::PLACE) => Ok(()),
                (None, Some(_)) if self.has_gaps() => Err(Obstacle::Reported),
                (None, Some(parent)) => {
                    conflict(parent, format!("class {} holds no qdisc", parent.get_ref()))
                }
            };
        };
        let is_same = |qdisc: &Qdisc| {
            qdisc.kind.get_ref() == kind.get_ref() && (handle.is_none() || handle == qdisc.handle)
        };
        match (verb.get_ref(), present) {
            (Verb::Change | Verb::Replace, Some(present)) if is_same(&self.qdiscs[present]) => {
                self.qdiscs[present].options.push(options);
                // A line without a table leaves the table that is there (`qdisc_change`).
                if !stab.is_empty() {
                    self.qdiscs[present].stab = stab;
                }
                if estimator.is_some() {
                    self.qdiscs[present].estimator = estimator;
                }
                return Ok(());
            }
            (Verb::Change, _) if self.has_gaps() => return Err(Obstacle::Reported),
            (Verb::Change, _) => {
                return conflict(&kind, format!("there is no `{}` to change", kind.get_ref()));
            }
            // The kernel replaces neither hook by the other.
            (Verb::Replace, Some(present)) if !self.qdiscs[present].is_hook() => self.remove(present),
            _ => {}
        }
        let misplaced = self.misplaced(parent.as_ref(), &kind, handle);
        let qdisc = Qdisc {
            parent: class,
            handle: self.handle_of(handle, class, &kind),
            kind,
            options: vec![options],
            stab,
            estimator,
        };
        if qdisc.is_hook()
            && let Some(Estimated { word, .. }) = &qdisc.estimator
        {
            let text = format!(
                "`estimator` has no effect: `{}` holds no packets here",
                qdisc.kind.get_ref()
            );
            self.notes.add(word.span(), text);
        }
        if let Some(obstacle) = misplaced {
            self.lost
                .extend(handle.filter(|&handle| self.with_handle(handle).is_none()));
            // A hook has no options of which something could be wrong.
            if !qdisc.is_hook() {
                self.orphans.qdiscs.push(qdisc);
            }
            return Err(obstacle);
        }
        self.lost.retain(|lost| Some(*lost) != handle);
        self.qdiscs.push(qdisc);
        Ok(())
    }

    fn run_class(
        &mut self,
        verb: &Spanned<Verb>,
        parent: Option<Spanned<ClassId>>,
        class: Spanned<ClassId>,
        kind: Option<Word>,
        (options, estimator): (Vec<Word>, Option<Estimated>),
    ) -> Result<(), Obstacle> {
        let (parent, class) = self.of_one_qdisc(parent, class);
        let id = *class.get_ref();
        let present = self.classes.iter().position(|class| *class.id.get_ref() == id);
        if *verb.get_ref() == Verb::Delete {
            let Some(present) = present else {
                return self.no_class(&class);
            };
            if self.classes.iter().any(|other| other.parent == id) {
                return conflict(&class, format!("class {id} has classes"));
            }
            // `filter_cnt` of the kernel's classes.
            if self.filters.iter().any(|filter| filter.leads_to(id)) {
                return conflict(&class, format!("a filter leads to class {id}"));
            }
            self.classes.remove(present);
            if let Some(held) = self.qdiscs.iter().position(|qdisc| qdisc.parent == Some(id)) {
                self.remove(held);
            }
            return Ok(());
        }
        match (verb.get_ref(), present) {
            (Verb::Change | Verb::Replace, Some(present)) => {
                self.classes[present].options.push(options);
                if estimator.is_some() {
                    self.classes[present].estimator = estimator;
                }
                return Ok(());
            }
            (Verb::Change | Verb::Replace, None) if self.has_bands(id.major()) => {
                if let Some(Estimated { word, .. }) = &estimator {
                    let text = "`estimator` has no effect: as in Linux, a band of `ets` has none";
                    self.notes.add(word.span(), text.to_owned());
                }
                self.bands.push(Class {
                    parent: ClassId::new(id.major(), 0),
                    kind: kind.unwrap_or_else(|| Spanned::new(class.span(), String::new())),
                    id: class,
                    options: vec![options],
                    estimator: None,
                    is_broken: false,
                });
                return Ok(());
            }
            (Verb::Change, None) => return self.no_class(&class),
            _ => {}
        }
        let Some(kind) = kind else {
            return conflict(&class, "a kind is missing".to_owned());
        };
        let parent = self.parent_of_class(parent, &class, &kind);
        if self.with_handle(id.major()).is_none() {
            let obstacle = self.no_handle(&class, id.major());
            self.orphans.classes.push(Class {
                parent,
                id: class,
                kind,
                options: vec![options],
                estimator,
                is_broken: false,
            });
            return Err(obstacle);
        }
        if self.with_handle(id.major()).is_some_and(Qdisc::is_hook) {
            return conflict(&class, "`ingress` and `clsact` have no classes".to_owned());
        }
        if parent.major() != id.major() {
            return conflict(
                &class,
                format!("class {id} can't be below {parent}, a class of another qdisc"),
            );
        }
        match present {
            Some(present) if self.classes[present].is_broken => {
                self.classes.remove(present);
            }
            None if id.minor() != 0 => {}
            _ => return conflict(&class, format!("class {id} exists already")),
        }
        self.becomes_inner(parent, &class);
        self.classes.push(Class {
            parent,
            id: class,
            kind,
            options: vec![options],
            estimator,
            is_broken: false,
        });
        Ok(())
    }

    /// Returns the parent of a class. A class of htb whose parent does not exist is at the top
    /// (`htb_change_class`).
    fn parent_of_class(
        &mut self,
        parent: Option<Spanned<ClassId>>,
        class: &Spanned<ClassId>,
        kind: &Word,
    ) -> ClassId {
        let top = ClassId::new(class.get_ref().major(), 0);
        let Some(parent) = parent else { return top };
        let id = *parent.get_ref();
        let exists = id.minor() == 0 || self.classes.iter().any(|other| *other.id.get_ref() == id);
        if exists || kind.get_ref() != "htb" || id.major() != top.major() || self.has_gaps() {
            return id;
        }
        let text = format!(
            "there is no class {id} when class {} is added: as in Linux, it is at the top",
            class.get_ref()
        );
        self.notes.add(parent.span(), text);
        top
    }

    /// Removes the qdisc of a class that gets its first class, as htb does in the kernel. (hfsc keeps it, but
    /// empty and unused.)
    fn becomes_inner(&mut self, parent: ClassId, class: &Spanned<ClassId>) {
        if parent.minor() == 0 || self.classes.iter().any(|other| other.parent == parent) {
            return;
        }
        if let Some(at) = self.qdiscs.iter().position(|qdisc| qdisc.parent == Some(parent)) {
            let text = format!(
                "class {parent} gets class {} below it: as in Linux, its `{}` is removed",
                class.get_ref(),
                self.qdiscs[at].kind.get_ref()
            );
            self.notes.add(class.span(), text);
            self.remove(at);
        }
    }

    /// Whether a qdisc has classes of its own that a script can change.
    fn has_bands(&self, handle: u16) -> bool {
        let kind = self
            .with_handle(handle)
            .and_then(|qdisc| kinds::find(qdisc.kind.get_ref()));
        kind.is_some_and(|kind| matches!(kind.children, Children::SharingBands))
    }

    fn no_class(&self, class: &Spanned<ClassId>) -> Result<(), Obstacle> {
        let id = *class.get_ref();
        if self.lost.contains(&id.major()) {
            return Err(Obstacle::Reported);
        }
        conflict(class, format!("there is no class {id}"))
    }

    /// Completes a class or a parent whose major number is missing: it is that of the other, or of the root
    /// (`tc_ctl_tclass` in sch_api.c).
    fn of_one_qdisc(
        &self,
        parent: Option<Spanned<ClassId>>,
        class: Spanned<ClassId>,
    ) -> (Option<Spanned<ClassId>>, Spanned<ClassId>) {
        let with_major = |id: Spanned<ClassId>, major: u16| match id.get_ref().major() {
            0 => Spanned::new(id.span(), ClassId::new(major, id.get_ref().minor())),
            _ => id,
        };
        let of_parent = parent.as_ref().map(|parent| parent.get_ref().major());
        let of_root = || self.root().and_then(|root| root.handle);
        let major = of_parent.filter(|major| *major != 0).or_else(of_root);
        let class = with_major(class, major.unwrap_or(0));
        let major = class.get_ref().major();
        (parent.map(|parent| with_major(parent, major)), class)
    }

    fn run_filter(
        &mut self,
        verb: &Spanned<Verb>,
        mut head: FilterHead,
        kind: Option<Word>,
        options: Vec<Word>,
    ) -> Result<(), Obstacle> {
        let parent = head.parent.as_ref().map(|parent| *parent.get_ref());
        let holder = match &head.parent {
            Some(parent) => self.with_handle(parent.get_ref().major()),
            None => self.root(),
        };
        let Some(holder) = holder else {
            let obstacle = match &head.parent {
                Some(parent) => self.no_handle(parent, parent.get_ref().major()),
                None if self.has_gaps() => Obstacle::Reported,
                None => Obstacle::Conflict {
                    at: verb.span(),
                    message: "there is no root to attach a filter to".to_owned(),
                },
            };
            if let (Some(kind), true) = (kind, *verb.get_ref() != Verb::Delete) {
                self.orphans.filters.push(Filter {
                    parent,
                    preference: 0,
                    head,
                    kind,
                    options,
                });
            }
            return Err(obstacle);
        };
        let parent = match parent {
            Some(id) if holder.is_hook() => match holder.filters_at(id) {
                Ok(place) => {
                    head.parent = head.parent.map(|word| Spanned::new(word.span(), place));
                    Some(place)
                }
                Err(message) => {
                    let place = head.parent.as_ref().map_or(verb.span(), Spanned::span);
                    let message = message.to_owned();
                    return Err(Obstacle::Conflict { at: place, message });
                }
            },
            _ => parent,
        };
        // The root has two names.
        let parent = parent.filter(|parent| holder.parent.is_some() || parent.minor() != 0);
        if *verb.get_ref() == Verb::Delete {
            return self.delete_filters(verb, parent, &head, kind.as_ref());
        }
        let Some(kind) = kind else {
            return conflict(verb, "a kind is missing".to_owned());
        };
        let chain = head.chain.as_ref().map_or(0, |chain| *chain.get_ref());
        let mut others = self.filters.iter().filter(|filter| filter.is_of(parent, chain));
        let preference = match &head.preference {
            Some(preference) => {
                let same = others.find(|filter| filter.preference == *preference.get_ref());
                let protocol = |head: &FilterHead| head.protocol.as_ref().map(|word| word.get_ref().clone());
                if same.is_some_and(|same| protocol(&same.head) != protocol(&head)) {
                    let message = format!("priority {} is used by another protocol", preference.get_ref());
                    return conflict(preference, message);
                }
                *preference.get_ref()
            }
            // As in the kernel: a filter without a priority is tried before the earlier ones without a
            // priority, and after those with a priority below 0x8000.
            None => others
                .map(|filter| filter.preference)
                .filter(|preference| *preference >= 0x8000)
                .min()
                .map_or(0xc000, |lowest| lowest - 1),
        };
        let present = head.handle.as_ref().and_then(|handle| {
            let of_handle = handle_number(handle);
            self.filters.iter().position(|filter| {
                filter.is_of(parent, chain)
                    && filter.preference == preference
                    && filter.kind.get_ref() == kind.get_ref()
                    && filter.head.handle.as_ref().map(handle_number) == Some(of_handle)
            })
        });
        if *verb.get_ref() == Verb::Change && present.is_none() {
            return conflict(
                verb,
                "there is no filter with this priority and handle to change".to_owned(),
            );
        }
        if let (Verb::Add, Some(_), Some(handle)) = (verb.get_ref(), present, &head.handle) {
            let message = format!(
                "priority {preference} has a filter with the handle {} already",
                handle.get_ref()
            );
            return conflict(handle, message);
        }
        let filter = Filter {
            parent,
            preference,
            head,
            kind,
            options,
        };
        match present {
            Some(present) => self.filters[present] = filter,
            None => self.filters.push(filter),
        }
        Ok(())
    }

    /// Deletes the filters of a priority, or the one with a handle. Without a priority the kernel deletes all
    /// filters, and rejects a line that says which (`tc_del_tfilter` in cls_api.c).
    fn delete_filters(
        &mut self,
        verb: &Spanned<Verb>,
        parent: Option<ClassId>,
        head: &FilterHead,
        kind: Option<&Word>,
    ) -> Result<(), Obstacle> {
        let preference = head.preference.as_ref().map(|preference| *preference.get_ref());
        let choice = [head.protocol.as_ref(), head.handle.as_ref(), kind];
        if let (None, Some(word)) = (preference, choice.into_iter().flatten().next()) {
            let message = format!(
                "a filter is deleted by its priority, and not by `{}`",
                word.get_ref()
            );
            return conflict(word, message);
        }
        let text = |word: Option<&Word>| word.map(|word| word.get_ref().clone());
        let chain = head.chain.as_ref().map_or(0, |chain| *chain.get_ref());
        let of_priority =
            |filter: &&Filter| filter.is_of(parent, chain) && preference == Some(filter.preference);
        if let Some(first) = self.filters.iter().find(of_priority) {
            let kinds = (kind, Some(&first.kind), "kind");
            let protocols = (head.protocol.as_ref(), first.head.protocol.as_ref(), "protocol");
            for (named, present, what) in [kinds, protocols] {
                if let Some(word) = named
                    && text(named) != text(present)
                {
                    let message = format!("the filters of this priority are of another {what}");
                    return conflict(word, message);
                }
            }
        }
        let handle = head.handle.as_ref().map(handle_number);
        let is_meant = |filter: &Filter| {
            filter.is_of(parent, chain)
                && preference.is_none_or(|preference| preference == filter.preference)
                && handle.is_none_or(|handle| filter.head.handle.as_ref().map(handle_number) == Some(handle))
        };
        let before = self.filters.len();
        self.filters.retain(|filter| !is_meant(filter));
        match before == self.filters.len() && preference.is_some() {
            true if self.has_gaps() => Err(Obstacle::Reported),
            true => conflict(verb, "there is no such filter".to_owned()),
            _ => Ok(()),
        }
    }

    /// Removes a qdisc with its classes and filters and all qdiscs in it.
    fn remove(&mut self, at: usize) {
        let mut gone = vec![self.qdiscs.remove(at)];
        while let Some(qdisc) = gone.pop() {
            if qdisc.parent.is_none() {
                self.filters.retain(|filter| filter.parent.is_some());
            }
            let Some(handle) = qdisc.handle else { continue };
            self.classes.retain(|class| class.id.get_ref().major() != handle);
            self.bands.retain(|band| band.id.get_ref().major() != handle);
            self.filters
                .retain(|filter| filter.parent.map(ClassId::major) != Some(handle));
            let is_below = |other: &mut Qdisc| other.parent.map(ClassId::major) == Some(handle);
            gone.extend(self.qdiscs.extract_if(.., is_below));
        }
    }

    /// Returns the reason why a qdisc can't be attached to `parent`, or to the root, with this handle.
    fn misplaced(
        &mut self,
        parent: Option<&Spanned<ClassId>>,
        kind: &Word,
        handle: Option<u16>,
    ) -> Option<Obstacle> {
        let at = parent.map_or(kind.span(), Spanned::span);
        let conflict = |message: String| {
            Some(Obstacle::Conflict {
                at: at.clone(),
                message,
            })
        };
        if let Some(hook) = self
            .hook()
            .filter(|_| parent.is_some_and(|parent| *parent.get_ref() == hook::PLACE))
        {
            return conflict(format!("there is `{}` already", hook.kind.get_ref()));
        }
        if let Some(handle) = handle.filter(|&handle| self.with_handle(handle).is_some()) {
            return conflict(format!("the handle {handle:x}: is used already"));
        }
        if parent.is_some_and(|parent| *parent.get_ref() == hook::PLACE) {
            return None;
        }
        let Some(id) = parent.map(Spanned::get_ref) else {
            let has_root = self.root().is_some();
            return has_root
                .then(|| conflict("there is a root already".to_owned()))
                .flatten();
        };
        if self.attached_to(*id).is_some() {
            return conflict(format!("class {id} has a qdisc already"));
        }
        let Some(holder) = self.with_handle(id.major()) else {
            return parent.map(|parent| self.no_handle(parent, id.major()));
        };
        if holder.is_hook() {
            return conflict(format!("`{}` holds no qdiscs", holder.kind.get_ref()));
        }
        if kinds::find(kind.get_ref()).is_some_and(Kind::is_only_root) {
            return conflict(format!("`{}` is attached to the root only", kind.get_ref()));
        }
        let declared = self.classes.iter().any(|class| class.id.get_ref() == id);
        let wants_declaration =
            kinds::find(holder.kind.get_ref()).is_some_and(|kind| kind.declares_classes());
        (wants_declaration && !declared)
            .then(|| conflict(format!("there is no class {id}")))
            .flatten()
    }
}

/// Returns the number of a filter's handle. The mask of a mark does not belong to it. A handle of `u32` is a
/// table, a bucket and a number, hexadecimal.
fn handle_number(handle: &Word) -> Option<u32> {
    let text = handle.get_ref();
    if text.contains(':') {
        let mut parts = text.splitn(3, ':').map(|digits| match digits {
            "" => Some(0),
            digits => u32::from_str_radix(digits.trim_start_matches("0x"), 16).ok(),
        });
        let mut next = |most: u32| parts.next().unwrap_or(Some(0)).filter(|number| *number <= most);
        return Some(next(0xfff)? << 20 | next(0xff)? << 12 | next(0xfff)?);
    }
    number(text.split_once('/').map_or(text, |(number, _)| number))
}

/// Why a line can't be run.
enum Obstacle {
    /// It conflicts with earlier lines.
    Conflict {
        at: std::ops::Range<usize>,
        message: String,
    },
    /// It needs something that is missing because of a mistake that is reported already.
    Reported,
}

fn conflict<T, W>(word: &Spanned<W>, message: String) -> Result<T, Obstacle> {
    let at = word.span();
    Err(Obstacle::Conflict { at, message })
}

const ORDER: &str = "a script first attaches one root, then adds classes, then qdiscs in them and filters, \
    each once; existing objects can be changed, replaced or deleted (filters by their priority)";
