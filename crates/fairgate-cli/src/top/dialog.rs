//! The dialog that changes a rate: chosen and written, confirmed, answered.

use crate::top::key::Key;
use crate::top::outline::RateSetting;

/// A change that the user has confirmed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// The interface that the direction receives from.
    pub from: String,
    /// The change in words, as `fairgate class` and `fairgate queue` have it.
    pub line: String,
    /// The revision of the trees that the user has seen. If they have another one by now, nothing is changed.
    pub revision: Option<u64>,
}

/// What a run answers to an [`Order`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answered {
    /// It was made, and what that did to forwarding.
    Made(String),
    /// Nothing was changed: why, and what to do.
    Refused {
        /// Why.
        message: String,
        /// What to do.
        help: String,
    },
}

/// The longest value that can be written.
const LONGEST: usize = 60;

/// What the dialog shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Dialog {
    /// There is nothing to change, and why.
    Nothing(&'static str),
    /// A rate is chosen and a value is written.
    Edit(Edit),
    /// The change is shown, and waits for a yes.
    Confirm(Edit),
    /// The run makes it.
    Sent(Order),
    /// The run has answered.
    Answer(Order, Answered),
}

/// A change that is being written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Edit {
    /// The interface that the direction receives from.
    from: String,
    revision: Option<u64>,
    /// At least one.
    rates: Vec<RateSetting>,
    chosen: usize,
    text: String,
}

/// What a key does to a dialog.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// It goes on.
    Stay(Dialog),
    /// It ends.
    Close,
    /// The change is made.
    Send(Order),
}

impl Dialog {
    /// Opens it for a place with these rates.
    pub(crate) fn open(from: &str, revision: Option<u64>, rates: &[RateSetting]) -> Dialog {
        let Some(first) = rates.first() else {
            return Dialog::Nothing(
                "Nothing here has a rate that can be set. Choose a class of htb, hfsc or cbq, or a \
                 discipline with a rate, such as tbf or cake; or use `fairgate queue change`.",
            );
        };
        Dialog::Edit(Edit {
            from: from.to_owned(),
            revision,
            text: first.value_to_edit(),
            rates: rates.to_vec(),
            chosen: 0,
        })
    }

    pub(crate) fn press(self, key: Key) -> Step {
        match self {
            Dialog::Nothing(_) | Dialog::Answer(..) => Step::Close,
            Dialog::Edit(edit) => edit.press(key),
            Dialog::Confirm(edit) => match key {
                Key::Char('y' | 'Y') => Step::Send(edit.order()),
                Key::Char('n' | 'N') | Key::Esc | Key::Backspace | Key::Left => {
                    Step::Stay(Dialog::Edit(edit))
                }
                _ => Step::Stay(Dialog::Confirm(edit)),
            },
            // The run has it, and makes it whether somebody waits or not.
            Dialog::Sent(_) if key == Key::Esc => Step::Close,
            Dialog::Sent(order) => Step::Stay(Dialog::Sent(order)),
        }
    }
}

impl Edit {
    fn press(mut self, key: Key) -> Step {
        match key {
            Key::Esc => return Step::Close,
            Key::Enter => return Step::Stay(Dialog::Confirm(self)),
            Key::Down | Key::Tab => self.choose(self.chosen + 1),
            Key::Up => self.choose(self.chosen + self.rates.len() - 1),
            Key::Backspace => {
                self.text.pop();
            }
            // Words behind a blank would be other settings.
            Key::Char(letter)
                if !letter.is_control() && !letter.is_whitespace() && self.text.len() < LONGEST =>
            {
                self.text.push(letter);
            }
            _ => {}
        }
        Step::Stay(Dialog::Edit(self))
    }

    fn choose(&mut self, place: usize) {
        self.chosen = place % self.rates.len();
        self.text = self.rate().value_to_edit();
    }

    pub(crate) fn rates(&self) -> &[RateSetting] {
        &self.rates
    }

    pub(crate) fn chosen(&self) -> usize {
        self.chosen
    }

    pub(crate) fn rate(&self) -> &RateSetting {
        &self.rates[self.chosen]
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn order(&self) -> Order {
        Order {
            from: self.from.clone(),
            line: self.rate().line(&self.text),
            revision: self.revision,
        }
    }
}

impl RateSetting {
    /// A rate that was not set begins empty: what it has is its default, not a value to keep.
    fn value_to_edit(&self) -> String {
        match self.is_given {
            true => self.value.clone(),
            false => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(name: &'static str, value: &str) -> RateSetting {
        RateSetting {
            owner: "class 30".to_owned(),
            name,
            value: value.to_owned(),
            words: "class change 30".to_owned(),
            is_given: value != "none",
        }
    }

    fn pressed(keys: &[Key]) -> Step {
        let rates = [rate("rate", "5mbit"), rate("ceil", "none")];
        let mut dialog = Dialog::open("eth0", Some(7), &rates);
        let (last, first) = keys.split_last().unwrap();
        for key in first {
            match dialog.press(*key) {
                Step::Stay(next) => dialog = next,
                end => panic!("{key:?}: {end:?}"),
            }
        }
        dialog.press(*last)
    }

    #[test]
    fn a_change_is_sent_after_a_yes_only() {
        let typed = [Key::Backspace; 5]
            .into_iter()
            .chain("9mbit".chars().map(Key::Char));
        let typed: Vec<Key> = typed.chain([Key::Char(' '), Key::Enter]).collect();
        let order = Order {
            from: "eth0".to_owned(),
            line: "class change 30 rate=9mbit".to_owned(),
            revision: Some(7),
        };
        assert_eq!(
            pressed(&[&typed[..], &[Key::Char('y')]].concat()),
            Step::Send(order)
        );
        for not_yes in [Key::Enter, Key::Char('x'), Key::Esc, Key::Char('n')] {
            assert!(matches!(
                pressed(&[&typed[..], &[not_yes]].concat()),
                Step::Stay(_)
            ));
        }
    }

    #[test]
    fn another_rate_is_chosen() {
        let Step::Send(order) = pressed(&[Key::Down, Key::Char('8'), Key::Enter, Key::Char('y')]) else {
            panic!("it is not sent");
        };
        assert_eq!(order.line, "class change 30 ceil=8");
        let Step::Send(order) = pressed(&[Key::Up, Key::Down, Key::Enter, Key::Char('y')]) else {
            panic!("it is not sent");
        };
        assert_eq!(order.line, "class change 30 rate=5mbit");
        assert_eq!(pressed(&[Key::Esc]), Step::Close);
    }

    #[test]
    fn where_nothing_can_be_set_the_dialog_says_so() {
        let dialog = Dialog::open("eth0", None, &[]);
        assert!(matches!(dialog, Dialog::Nothing(_)));
        assert_eq!(dialog.press(Key::Enter), Step::Close);
    }
}
