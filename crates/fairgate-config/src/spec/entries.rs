//! Checks the registry entries of all disciplines.

use toml::Spanned;

use super::{Given, RESERVED_KEYS, read_value};
use crate::registry::{Parts, Registry, Settings, Unit, Value};

#[test]
fn an_entry_has_the_name_of_its_discipline() {
    for entry in Registry::builtin().iter() {
        let about = entry.about();
        let spec = crate::testing::smallest(entry);
        let built = spec.build(1).expect("the smallest description is valid");
        assert_eq!(built.name(), about.name);
        assert!(
            !about.summary.ends_with('.') && about.when.ends_with('.'),
            "style of `{}`",
            about.name
        );
    }
}

/// `Registry::entries` returns the classless entry first, and `names` returns each name once.
#[test]
fn entries_of_one_name_are_adjacent_with_the_classless_first() {
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
fn parameters_have_unique_names_and_a_description() {
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

/// Each default is printed such that it is read back as the same value. The ends of each range fit the field:
/// `Field::write` panics if they don't.
#[test]
fn defaults_and_ranges_fit_their_fields() {
    for entry in Registry::builtin().iter() {
        let spec = crate::testing::smallest(entry);
        for (index, info) in entry.parameters().into_iter().enumerate() {
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
                    Unit::Text(_) => Value::Text("text".to_owned()),
                    Unit::List(length) => Value::List(vec![end; length]),
                    Unit::Numbers(_) | Unit::SignedNumbers(_) => Value::List(vec![end; 2]),
                    Unit::Curve => Value::List(vec![end; 3]),
                    _ => Value::Number(end),
                };
                let mut settings = Settings::clone(&spec.settings);
                settings.own.retain(|(other, _)| *other != index);
                settings.own.push((index, value));
                let parts = || {
                    let children = spec.children.iter().map(|child| child.build(1).expect("a fifo"));
                    Parts::new(children.collect(), 1)
                };
                // An error is allowed: the end of a range may contradict other defaults. A panic is not.
                let built = entry.build(&settings, parts()).map(drop);
                let checked = entry.check(&settings, parts());
                assert_eq!(checked, built, "`{}` of `{}`", info.name, entry.about().name);
            }
        }
    }
}

/// A number that is too large is rejected with the upper end of the range in the message, one that is too
/// small with the lower end.
#[test]
fn the_message_for_a_number_out_of_range_names_the_end_of_the_range() {
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
        for too_large in [i128::from(most) + 1, i128::MAX] {
            let most = info.unit.show(&Value::Number(most));
            assert!(
                message(too_large).contains(&most),
                "{}: {}",
                info.name,
                message(too_large)
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
