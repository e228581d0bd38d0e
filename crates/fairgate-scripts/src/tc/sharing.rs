//! Determines the bands of an `ets`. tc allows to leave out some of the strict bands, quanta and priomap
//! entries.

use std::ops::Range;

use fairgate_config::language::{Given, Written};

use toml::Spanned;

use super::Device;
use super::kinds::frame;
use crate::script::setting;

/// The most bands of the kernel's `ets`: TCQ_ETS_MAX_BANDS.
const MAX_BANDS: usize = 16;

/// The bands of an `ets`.
pub(super) struct Sharing {
    pub(super) bands: u16,
    /// The number of strict bands.
    pub(super) strict: usize,
    /// The quantum of each further band, as a setting of its class.
    pub(super) quanta: Vec<Written>,
}

/// A mistake in the options, and its location.
pub(super) struct Mismatch {
    pub(super) location: Range<usize>,
    pub(super) message: String,
}

impl Sharing {
    /// Takes the number of bands and the quanta out of an ets's settings, and completes its priomap. A
    /// missing quantum is one frame. A priority that is missing in the priomap goes to the last band.
    pub(super) fn of(
        settings: &mut Vec<Written>,
        device: &Device,
        location: &Range<usize>,
    ) -> Result<Sharing, Mismatch> {
        let strict = number(settings.iter().find(|(key, _)| key.get_ref() == "strict"))?.unwrap_or(0);
        let given = match take(settings, "quanta").map(|(_, quanta)| quanta.into_inner()) {
            Some(Given::List(quanta)) => quanta,
            _ => Vec::new(),
        };
        let named = strict + given.len();
        let bands = number(take(settings, "bands").as_ref())?.unwrap_or(named);
        let wrong = |message: String| Mismatch {
            location: location.clone(),
            message,
        };
        if !(1..=MAX_BANDS).contains(&bands) {
            return Err(wrong(format!(
                "`bands`, or `strict` and `quanta` together, are {bands}, and not 1 to {MAX_BANDS}"
            )));
        }
        if named > bands {
            return Err(wrong(format!(
                "{named} strict bands and quanta are more than {bands} bands"
            )));
        }
        let frame = Given::Integer(frame(device).into());
        let missing = (named..bands).map(|_| setting(location, "quantum", frame.clone()));
        let given = given
            .into_iter()
            .map(|quantum| (Spanned::new(quantum.span(), "quantum".to_owned()), quantum));
        complete_priomap(settings, bands - 1);
        Ok(Sharing {
            bands: bands as u16,
            strict,
            quanta: given.chain(missing).collect(),
        })
    }
}

fn complete_priomap(settings: &mut [Written], last: usize) {
    let Some((_, given)) = settings.iter_mut().find(|(key, _)| key.get_ref() == "priomap") else {
        return;
    };
    let whole = given.span();
    if let Given::List(bands) = given.get_mut() {
        while bands.len() < 16 {
            bands.push(Spanned::new(whole.clone(), Given::Integer(last as i128)));
        }
    }
}

pub(super) fn take(settings: &mut Vec<Written>, name: &str) -> Option<Written> {
    let at = settings.iter().position(|(key, _)| key.get_ref() == name)?;
    Some(settings.remove(at))
}

fn number(written: Option<&Written>) -> Result<Option<usize>, Mismatch> {
    let Some((key, given)) = written else {
        return Ok(None);
    };
    let number = match given.get_ref() {
        Given::Word(word) => word.parse().ok().filter(|number| *number <= MAX_BANDS),
        _ => None,
    };
    match number {
        Some(number) => Ok(Some(number)),
        None => Err(Mismatch {
            location: given.span(),
            message: format!("`{}` must be at most {MAX_BANDS}", key.get_ref()),
        }),
    }
}
