//! What every entry must keep.

use super::*;
use crate::spec::RESERVED_KEYS;

#[test]
fn an_entry_is_named_like_its_discipline() {
    for entry in REGISTRY {
        let about = entry.about();
        let spec = crate::testing::smallest(*entry);
        let built = spec.build(1).expect("the smallest description is right");
        assert_eq!(built.name(), about.name);
        assert!(
            !about.summary.ends_with('.') && about.when.ends_with('.'),
            "style of `{}`",
            about.name
        );
    }
}

/// So that `entries` finds the classless one first, and `names` shows each once.
#[test]
fn entries_of_one_name_stand_together_the_classless_first() {
    let all: Vec<&str> = names().collect();
    let mut once = all.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(all.len(), once.len(), "{all:?}");
    for name in all {
        let kinds: Vec<bool> = entries(name)
            .map(|entry| entry.about().children.are_classes())
            .collect();
        assert!(kinds.is_sorted() && kinds.len() <= 2, "`{name}`: {kinds:?}");
    }
}

#[test]
fn parameters_have_names_of_their_own_and_a_sentence() {
    for entry in REGISTRY {
        let about = entry.about();
        let mut names = Vec::new();
        for info in entry.parameters() {
            assert!(
                !RESERVED_KEYS.contains(&info.name),
                "`{}` of `{}`",
                info.name,
                about.name
            );
            assert!(
                !names.contains(&info.name),
                "`{}` of `{}` twice",
                info.name,
                about.name
            );
            assert!(
                info.doc.ends_with('.'),
                "`{}` of `{}`: {}",
                info.name,
                about.name,
                info.doc
            );
            names.push(info.name);
        }
    }
}

/// The printed default is the real one: reading it back and setting it changes nothing of the discipline's parameters.
/// And the ends of each range fit their field, which `Field::write` panics about if they don't.
#[test]
fn defaults_and_ranges_fit_their_fields() {
    for entry in REGISTRY {
        let spec = crate::testing::smallest(*entry);
        for (place, info) in entry.parameters().into_iter().enumerate() {
            if let Some(default) = &info.default {
                let text = info.unit.show(default);
                let read = crate::testing::read(&info, &text);
                assert_eq!(
                    read.as_ref(),
                    Ok(default),
                    "`{}` of `{}`",
                    info.name,
                    entry.about().name
                );
            }
            for end in [*info.range.start(), *info.range.end()] {
                let value = match info.unit {
                    Unit::Flag => Value::Flag(true),
                    Unit::Choice(words) => Value::Word(words[words.len() - 1]),
                    Unit::List(length) => Value::List(vec![end; length]),
                    Unit::Numbers(_) => Value::List(vec![end; 2]),
                    Unit::Curve => Value::List(vec![end; 3]),
                    _ => Value::Number(end),
                };
                let mut settings = spec.settings.clone();
                settings.own.retain(|(other, _)| *other != place);
                settings.own.push((place, value));
                let children = spec.children.iter().map(|child| child.build(1).expect("a fifo"));
                // An error is fine, for the end of a range may contradict other defaults; a panic is not.
                let _ = entry.build(
                    &settings,
                    Parts {
                        children: children.collect(),
                        seed: 1,
                    },
                );
            }
        }
    }
}
