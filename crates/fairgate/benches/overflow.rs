//! Measures the time to enqueue a packet at the limit, including the drop of another one. Searching the
//! victim is most of the cost. Every flow has two packets queued, so that dropping in batches has no
//! advantage.

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use fairgate::rounds::drr::{self, Drr};
use fairgate::rounds::fq_codel::{self, FqCodel};
use fairgate::scheduler::Flows;
use fairgate::{ConfigError, Discipline, FlowHash, Packet, Pool, Time};

type Subject = (&'static str, fn(u32) -> Result<Box<dyn Discipline>, ConfigError>);

const SUBJECTS: [Subject; 2] = [
    ("drr", |flows| {
        let config = drr::Config {
            flows,
            limit: 2 * flows,
            ..drr::Config::default()
        };
        Ok(Box::new(Flows::<Drr>::node(config, 1)?))
    }),
    ("fq_codel", |flows| {
        let config = fq_codel::Config {
            flows,
            limit: 2 * flows,
            memory_limit: u64::MAX,
            ..fq_codel::Config::default()
        };
        Ok(Box::new(FqCodel::node(config, 1)?))
    }),
];

fn overflow(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("overflow");
    for (name, make) in SUBJECTS {
        for flows in [64, 1024, 16_384] {
            group.bench_function(BenchmarkId::new(name, flows), |bencher| {
                let mut pool = Pool::with_capacity(2 * flows + 1);
                let mut root = make(flows).expect("the parameters are within their ranges");
                let mut flow = 0u64;
                let mut offer = || {
                    flow = flow.wrapping_add(0x9e37_79b9_7f4a_7c15);
                    let packet = Packet {
                        flow: FlowHash::from_raw(flow),
                        ..Packet::of_length(1000)
                    };
                    let id = pool.insert(packet).expect("there is a slot for each packet");
                    root.enqueue(id, Time::ZERO, &mut pool);
                    while let Some((dropped, _)) = pool.take_returned() {
                        pool.release(dropped);
                    }
                };
                for _ in 0..3 * flows {
                    offer();
                }
                bencher.iter(&mut offer);
            });
        }
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(100)
        .warm_up_time(std::time::Duration::from_millis(100))
        .measurement_time(std::time::Duration::from_millis(500));
    targets = overflow
}
criterion_main!(benches);
