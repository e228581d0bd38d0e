//! Time for enqueue and dequeue of a packet, by discipline and number of flows.
//!
//! `none` is what the driver itself needs (a slot, a packet, the slot back). It is in all other figures: subtract it.

mod workload;

use std::time::Duration;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use workload::{FLOWS, Pairs, SUBJECTS};

fn pairs(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("pairs");
    group.bench_function("none", |bencher| {
        let mut pairs = Pairs::new(SUBJECTS[0], 64);
        bencher.iter(|| pairs.step_without_discipline());
    });
    for subject in SUBJECTS {
        for flows in FLOWS {
            group.bench_function(BenchmarkId::new(subject.0, flows), |bencher| {
                let mut pairs = Pairs::new(subject, flows);
                bencher.iter(|| pairs.step());
            });
        }
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(100)
        .warm_up_time(Duration::from_millis(100))
        .measurement_time(Duration::from_millis(500));
    targets = pairs
}
criterion_main!(benches);
