//! Trees on one line, for the command line: `tbf rate=20mbit burst=5kb / fq_codel target=5ms`.

use std::ops::Range;

use toml::Spanned;

use super::draft::{Draft, SEE_LIST};
use super::given::Given;
use crate::error::Problems;

/// As deep as the TOML parser lets files nest: whoever walks a tree may do so by recursion.
const DEEPEST: usize = 80;

/// Reads a line: a discipline and its settings; after each `/` the one that it holds.
pub(crate) fn parse(text: &str, problems: &mut Problems) -> Option<Draft> {
    let mut stages = vec![Vec::new()];
    for word in words(text) {
        if &text[word.clone()] == "/" {
            stages.push(Vec::new());
        } else {
            stages.last_mut().expect("there is always a stage").push(word);
        }
    }
    if stages.len() > DEEPEST {
        let message = format!("the tree is {} disciplines deep", stages.len());
        let help = format!("nest at most {DEEPEST} disciplines");
        problems.add(0..text.len(), message, "too deep", help);
        return None;
    }
    let mut inner = None;
    for words in stages.into_iter().rev() {
        let mut draft = stage(text, &words, problems)?;
        draft.inner = inner.map(Box::new);
        inner = Some(draft);
    }
    inner
}

fn stage(text: &str, words: &[Range<usize>], problems: &mut Problems) -> Option<Draft> {
    let Some((name, settings)) = words.split_first() else {
        let help = format!("write a discipline and its settings, like fq_codel target=5ms; {SEE_LIST}");
        problems.add(
            0..text.len(),
            "no discipline is named",
            "a discipline is missing",
            help,
        );
        return None;
    };
    let mut draft = Draft {
        header: name.clone(),
        discipline: Some(Spanned::new(name.clone(), text[name.clone()].to_owned())),
        ..Draft::default()
    };
    for word in settings {
        let Some((key, value)) = text[word.clone()].split_once('=') else {
            let message = format!("`{}` is no setting", &text[word.clone()]);
            let help = "write settings as name=value, without spaces around the sign";
            problems.add(word.clone(), message, "expected name=value", help);
            return None;
        };
        let key_end = word.start + key.len();
        draft.settings.push((
            Spanned::new(word.start..key_end, key.to_owned()),
            Spanned::new(key_end + 1..word.end, Given::Word(value.to_owned())),
        ));
    }
    Some(draft)
}

/// The places of the words in the text.
fn words(text: &str) -> impl Iterator<Item = Range<usize>> {
    text.split_whitespace().map(|word| {
        let start = word.as_ptr() as usize - text.as_ptr() as usize;
        start..start + word.len()
    })
}
