//! From a draft to a checked description.

use fairgate::{ConfigError, Discipline};
use toml::Spanned;

use super::draft::{Draft, SEE_LIST};
use super::given::{self, Given};
use super::{Child, INNER, Spec};
use crate::error::Problems;
use crate::registry::{Children, Entry, Parts, Setting, entry, registry};
use crate::suggest;

/// Checks a draft against the registry, and that each discipline accepts its settings by building it. Reports all
/// mistakes; `None` if there was one.
pub(crate) fn check(draft: &Draft, problems: &mut Problems) -> Option<Spec> {
    Some(node(draft, problems)?.0)
}

/// The checked description and the discipline built from it, for its parent to be built with.
fn node(draft: &Draft, problems: &mut Problems) -> Option<(Spec, Box<dyn Discipline>)> {
    let name = draft.discipline.get_ref();
    let Some(entry) = entry(name) else {
        let names = registry().iter().map(|entry| entry.about().name);
        let help = suggest::remedy(name, "disciplines", names);
        let message = format!("there is no discipline `{name}`");
        problems.add(draft.discipline.span(), message, "unknown discipline", help);
        return None;
    };
    let settings = settings(entry, draft, problems);
    let children = children(entry, draft, problems);
    let (settings, (children, built)) = (settings?, children?);
    let spec = Spec {
        entry,
        settings,
        children,
    };
    let parts = Parts {
        children: built,
        seed: 0,
    };
    match entry.build(&spec.settings, parts) {
        Ok(discipline) => Some((spec, discipline)),
        Err(error) => {
            refused(draft, &error, problems);
            None
        }
    }
}

fn settings(entry: &'static dyn Entry, draft: &Draft, problems: &mut Problems) -> Option<Vec<Setting>> {
    let parameters = entry.parameters();
    let mut settings = Vec::new();
    let mut wrong = false;
    for (key, given) in &draft.settings {
        let Some(place) = parameters.iter().position(|info| info.name == key.get_ref()) else {
            unknown_key(entry, key, problems);
            wrong = true;
            continue;
        };
        if settings.iter().any(|(other, _)| *other == place) {
            let message = format!("`{}` is given twice", key.get_ref());
            problems.add(key.span(), message, "given before", "leave one of the two out");
            wrong = true;
            continue;
        }
        match given::read(parameters[place], entry.is_optional(place), given) {
            Ok(value) => settings.push((place, value)),
            Err(mistake) => {
                mistake.report(problems);
                wrong = true;
            }
        }
    }
    for info in &parameters {
        let given = draft.settings.iter().any(|(key, _)| key.get_ref() == info.name);
        if info.required && !given {
            problems.add(
                draft.discipline.span(),
                format!("`{}` needs `{}`", entry.about().name, info.name),
                format!("`{}` is missing", info.name),
                format!("{} {}", info.doc, info.unit.example()),
            );
            wrong = true;
        }
    }
    settings.sort_by_key(|(place, _)| *place);
    (!wrong).then_some(settings)
}

fn unknown_key(entry: &'static dyn Entry, key: &Spanned<String>, problems: &mut Problems) {
    let parameters = entry.parameters();
    let mut known: Vec<&str> = parameters.iter().map(|info| info.name).collect();
    if entry.about().children == Children::Inner {
        known.push("inner");
    }
    problems.add(
        key.span(),
        format!("`{}` has no parameter `{}`", entry.about().name, key.get_ref()),
        "unknown parameter",
        suggest::remedy(key.get_ref(), "its parameters", known),
    );
}

type Checked = (Vec<Child>, Vec<(u16, Box<dyn Discipline>)>);

fn children(entry: &'static dyn Entry, draft: &Draft, problems: &mut Problems) -> Option<Checked> {
    let mut children = Vec::new();
    let mut built = Vec::new();
    let name = entry.about().name;
    match (entry.about().children, &draft.inner) {
        (Children::Inner, Some((_, inner))) => {
            let (spec, discipline) = node(inner, problems)?;
            children.push(Child { minor: INNER, spec });
            built.push((INNER, discipline));
        }
        (Children::None | Children::Classes, Some((key, _))) => {
            let message = format!("`{name}` holds no inner discipline");
            problems.add(
                key.clone(),
                message,
                "not here",
                "leave `inner` out, or put it into a shaper like `tbf`",
            );
            return None;
        }
        (_, None) => {}
    }
    Some((children, built))
}

/// A setting that is within its range, but that the discipline refuses together with the others.
fn refused(draft: &Draft, error: &ConfigError, problems: &mut Problems) {
    let at = error
        .parameter()
        .and_then(|name| draft.settings.iter().find(|(key, _)| key.get_ref() == name))
        .map_or(draft.discipline.span(), |(_, given): &(_, Spanned<Given>)| {
            given.span()
        });
    match error {
        ConfigError::OutOfRange {
            parameter,
            value,
            rule,
            remedy,
        } => {
            let message = format!("`{parameter}` is {value}, but must be {rule}");
            problems.add(at, message, format!("must be {rule}"), remedy.clone());
        }
        ConfigError::WrongDiscipline { .. } | ConfigError::NoSuchClass { .. } => {
            problems.add(at, error.to_string(), "refused", SEE_LIST);
        }
    }
}
