//! What clients of the API read and change of the subscribers.

use std::collections::BTreeSet;
use std::sync::Arc;

use fairgate_config::FileError;
use fairgate_control::{SubscriberChange, SubscriberChanged, SubscriberList, Subscribers};
use fairgate_live::status::protocol::Answer;
use fairgate_subscribers::{Difference, Entry, Subscribers as List};
use serde_json::{Map, Value};

use super::book::Page;
use crate::desk::Desk;

impl Desk {
    /// Changes the trees to those of another list. `difference` is that of a list that was replaced as a
    /// whole.
    fn take_over(
        &self,
        who: &str,
        what: &str,
        page: &Page,
        if_revision: Option<u64>,
        difference: Option<Difference>,
        list: impl FnOnce() -> Result<Option<List>, FileError>,
    ) -> Answer {
        let mut made = None;
        let answer = self.inside.replace(who, what, if_revision, |plan| {
            let mut plan = plan.clone();
            if let Some(list) = list()? {
                for (side, tree) in page.sides.into_iter().zip(list.trees()) {
                    plan.queues[side] = tree.clone();
                }
                page.name_classes(&list, &mut plan);
                made = Some(list);
            }
            Ok(plan)
        });
        if let (Answer::Changed { .. }, Some(list)) = (&answer, made) {
            self.book.replace(Page {
                subscribers: Arc::new(list),
                difference: difference.or(page.difference),
                ..page.clone()
            });
        }
        answer
    }
}

impl Subscribers for Desk {
    fn all(&self) -> SubscriberList {
        let _turn = self.book.turn();
        let Some(page) = self.book.running() else {
            return SubscriberList::default();
        };
        let (list, numbers) = (&page.subscribers.list().subscribers, page.subscribers.numbers());
        let class = |id: &str| numbers.of_subscriber(id).unwrap_or(0);
        SubscriberList {
            revision: self.inside.revision(),
            entries: page.subscribers.entries(),
            classes: list.iter().map(|subscriber| class(&subscriber.id)).collect(),
            difference: page.difference,
            is_changeable: page.subscribers.is_changeable(),
        }
    }

    fn one(&self, id: &str) -> Option<(Entry, u16)> {
        let page = self.book.running()?;
        let subscriber = page.subscribers.list().find(id)?;
        let class = page.subscribers.numbers().of_subscriber(id)?;
        Some((Entry::of(subscriber), class))
    }

    fn change(
        &self,
        who: &str,
        method: &str,
        id: &str,
        change: &mut SubscriberChange<'_>,
    ) -> SubscriberChanged {
        let _turn = self.book.turn();
        let Some(page) = self.book.running() else {
            return SubscriberChanged::Stopped;
        };
        let list = Arc::clone(&page.subscribers);
        let known = list.list().find(id).map(Entry::of);
        let Some(made) = change(known.as_ref()) else {
            return SubscriberChanged::Stopped;
        };
        let what = described(method, id, known.as_ref(), made.as_ref());
        SubscriberChanged::Asked(self.take_over(who, &what, &page, None, None, || match made {
            Some(entry) => list.with(entry, &self.registry).map(Some),
            None => list.without(id, &self.registry),
        }))
    }

    fn replace(
        &self,
        who: &str,
        entries: Vec<Entry>,
        if_revision: Option<u64>,
    ) -> Option<(Answer, Difference)> {
        let _turn = self.book.turn();
        let page = self.book.running()?;
        let list = Arc::clone(&page.subscribers);
        let known = list.entries();
        let difference = Difference::of(
            known.iter().map(|entry| (entry.id.as_str(), entry)),
            entries.iter().map(|entry| (entry.id.as_str(), entry)),
        );
        let what = format!("PUT subscribers: {difference}");
        let answer = self.take_over(who, &what, &page, if_revision, Some(difference), || {
            list.with_all(entries, &self.registry).map(Some)
        });
        Some((answer, difference))
    }

    fn revision(&self) -> u64 {
        self.inside.revision()
    }
}

/// Describes a change of a subscriber for the audit: each member as it was and as it is to be.
fn described(method: &str, id: &str, known: Option<&Entry>, made: Option<&Entry>) -> String {
    let members = |entry: Option<&Entry>| match entry.map(serde_json::to_value) {
        Some(Ok(Value::Object(members))) => members,
        _ => Map::new(),
    };
    let (old, new) = (members(known), members(made));
    let names: BTreeSet<&String> = old
        .keys()
        .chain(new.keys())
        .filter(|name| *name != "id")
        .collect();
    let shown = |value: Option<&Value>| value.map_or("none".to_owned(), Value::to_string);
    let changed = names.into_iter().filter(|name| old.get(*name) != new.get(*name));
    let changed: Vec<String> = changed
        .map(|name| format!("{name} {} -> {}", shown(old.get(name)), shown(new.get(name))))
        .collect();
    let changed = match changed.is_empty() {
        true => "no change".to_owned(),
        false => changed.join(", "),
    };
    format!("{method} subscriber {id}: {changed}")
}
