//! What a scenario's file has besides its trees.

use fairgate_config::Section;

use crate::scenario::SIMULATE;
use crate::sweep::SWEEP;

/// The sections of a scenario's file. That of an experiment can be simulated, too.
pub static SECTIONS: [&Section; 3] = [&SIMULATE, &SWEEP, &EXPERIMENT];

static EXPERIMENT: Section = Section::open("experiment", "an experiment of fairgate-lab");
