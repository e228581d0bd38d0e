//! Measures the time to enqueue and dequeue a packet, by discipline and number of flows.
//!
//! `none` is the driver's own time (create a packet, get a slot, release the slot). It is included in all
//! other figures, so subtract it.

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
