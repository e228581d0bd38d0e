//! Rules that the description of every discipline keeps.

use toml::Spanned;

use super::{Given, RESERVED_KEYS, read_value};
use crate::registry::{Parts, Registry, Unit, Value};

#[test]
fn an_entry_is_named_like_its_discipline() {
    for entry in Registry::builtin().iter() {
        let about = entry.about();
        let spec = crate::testing::smallest(entry);
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
    let registry = Registry::builtin();
    let all: Vec<&str> = registry.names().collect();
    let mut once = all.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(all.len(), once.len(), "{all:?}");
    for name in all {
        let kinds: Vec<bool> = registry
            .entries(name)
            .map(|entry| entry.about().children.are_classes())
            .collect();
        assert!(kinds.is_sorted() && kinds.len() <= 2, "`{name}`: {kinds:?}");
    }
}

#[test]
fn parameters_have_names_of_their_own_and_a_sentence() {
    for entry in Registry::builtin().iter() {
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
    for entry in Registry::builtin().iter() {
        let spec = crate::testing::smallest(entry);
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
                let _ = entry.build(&settings, Parts::new(children.collect(), 1));
            }
        }
    }
}

/// Of every number that a parameter may be: what is too large is refused with the most that it may be, what is too small with
/// the least.
#[test]
fn a_number_out_of_range_is_refused_with_the_end_that_it_is_beyond() {
    let parameters = Registry::builtin();
    let parameters = parameters
        .iter()
        .flat_map(|entry| entry.parameters().into_iter().chain(entry.class_parameters()));
    let mut checked = 0;
    for info in parameters {
        if !matches!(info.unit, Unit::Count(_) | Unit::Bytes | Unit::Rate) {
            continue;
        }
        let (least, most) = (*info.range.start(), *info.range.end());
        let message = |number: i128| {
            let given = Spanned::new(0..1, Given::Integer(number));
            read_value(&info, &given).expect_err("it is out of range").message
        };
        for too_many in [i128::from(most) + 1, i128::MAX] {
            let most = info.unit.show(&Value::Number(most));
            assert!(
                message(too_many).contains(&most),
                "{}: {}",
                info.name,
                message(too_many)
            );
        }
        if least > 0 && matches!(info.unit, Unit::Count(_)) {
            let least = info.unit.show(&Value::Number(least));
            assert!(message(0).contains(&least), "{}: {}", info.name, message(0));
        }
        assert!(
            message(-1).contains("must be") || message(-1).contains("negative"),
            "{}",
            message(-1)
        );
        checked += 1;
    }
    assert!(checked > 100, "{checked}");
}
