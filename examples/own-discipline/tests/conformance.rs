//! The conformance suite, which every discipline must pass.

use fairgate_conformance::proptest::prelude::*;
use fairgate_conformance::{Recipe, conformance_suite};
use own_discipline::early_head::{Config, EarlyHead};

fn configs() -> impl Strategy<Value = Config> {
    (1u32..40).prop_flat_map(|limit| (0..limit).prop_map(move |start| Config { limit, start }))
}

conformance_suite! {
    early_head: Recipe::leaf(configs, EarlyHead::node);
}
