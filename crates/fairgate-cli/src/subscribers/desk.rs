//! What clients of the API read and change of the subscribers.

use std::sync::Arc;

use fairgate_config::FileError;
use fairgate_control::{SubscriberChange, SubscriberChanged, SubscriberList, Subscribers};
use fairgate_live::status::protocol::Answer;
use fairgate_subscribers::{Difference, Entry, Subscribers as List};

use super::book::Page;
use crate::desk::Desk;

impl Desk {
    /// Changes the trees to those of another list.
    fn take_over(
        &self,
        who: &str,
        what: &str,
        page: &Page,
        if_revision: Option<u64>,
        list: impl FnOnce() -> Result<Option<List>, FileError>,
    ) -> Answer {
        let mut made = None;
        let answer = self.inside.replace(who, what, if_revision, |plan| {
            let mut plan = plan.clone();
            if let Some(list) = list()? {
                for (side, tree) in page.sides.into_iter().zip(list.trees()) {
                    plan.queues[side] = tree.clone();
                }
                made = Some(list);
            }
            Ok(plan)
        });
        if let (Answer::Changed { .. }, Some(list)) = (&answer, made) {
            self.book.replace(Page {
                subscribers: Arc::new(list),
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
        }
    }

    fn one(&self, id: &str) -> Option<(Entry, u16)> {
        let page = self.book.running()?;
        let subscriber = page.subscribers.list().find(id)?;
        let class = page.subscribers.numbers().of_subscriber(id)?;
        Some((Entry::of(subscriber), class))
    }

    fn change(&self, who: &str, id: &str, change: &mut SubscriberChange<'_>) -> SubscriberChanged {
        let _turn = self.book.turn();
        let Some(page) = self.book.running() else {
            return SubscriberChanged::Stopped;
        };
        let list = Arc::clone(&page.subscribers);
        let known = list.list().find(id).map(Entry::of);
        let Some(made) = change(known.as_ref()) else {
            return SubscriberChanged::Stopped;
        };
        let what = match &made {
            Some(_) => format!("subscriber {id}: put"),
            None => format!("subscriber {id}: remove"),
        };
        SubscriberChanged::Asked(self.take_over(who, &what, &page, None, || match made {
            Some(entry) => list.with(entry, &self.registry).map(Some),
            None => list.without(id, &self.registry),
        }))
    }

    fn replace(&self, who: &str, entries: Vec<Entry>, if_revision: Option<u64>) -> SubscriberChanged {
        let _turn = self.book.turn();
        let Some(page) = self.book.running() else {
            return SubscriberChanged::Stopped;
        };
        let list = Arc::clone(&page.subscribers);
        let known = list.entries();
        let difference = Difference::of(
            known.iter().map(|entry| (entry.id.as_str(), entry)),
            entries.iter().map(|entry| (entry.id.as_str(), entry)),
        );
        let what = format!("subscribers: replace: {difference}");
        SubscriberChanged::Asked(self.take_over(who, &what, &page, if_revision, || {
            list.with_all(entries, &self.registry).map(Some)
        }))
    }

    fn revision(&self) -> u64 {
        self.inside.revision()
    }
}
