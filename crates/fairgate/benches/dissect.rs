//! Measures the time to read the headers of a frame, and to hash the flow.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use etherparse::PacketBuilder;
use fairgate::flow::{FlowHasher, LinkType, dissect, dissect_tunnelled};

fn frames() -> Vec<(&'static str, Vec<u8>)> {
    let ethernet = || PacketBuilder::ethernet2([1; 6], [2; 6]);
    let mut ipv4_tcp = Vec::new();
    ethernet()
        .ipv4([192, 0, 2, 1], [198, 51, 100, 7], 64)
        .tcp(443, 50_000, 1, 65_535)
        .write(&mut ipv4_tcp, &[0; 64])
        .expect("a vector takes every byte");
    let mut ipv6_udp = Vec::new();
    ethernet()
        .ipv6([1; 16], [2; 16], 64)
        .udp(443, 50_000)
        .write(&mut ipv6_udp, &[0; 64])
        .expect("a vector takes every byte");
    let mut vlan_ipv4_tcp = ipv4_tcp.clone();
    vlan_ipv4_tcp.splice(12..12, [0x81, 0, 0, 7]);
    vec![
        ("ipv4-tcp", ipv4_tcp),
        ("vlan-ipv4-tcp", vlan_ipv4_tcp),
        ("ipv6-udp", ipv6_udp),
    ]
}

fn dissecting(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("dissect");
    for (name, frame) in frames() {
        group.bench_function(name, |bencher| {
            bencher.iter(|| dissect(black_box(&frame), LinkType::Ethernet));
        });
    }
    let (_, plain) = frames().swap_remove(0);
    group.bench_function("ipv4-tcp/tunnelled", |bencher| {
        bencher.iter(|| dissect_tunnelled(black_box(&plain), LinkType::Ethernet));
    });
    let hasher = FlowHasher::new([1, 2]);
    group.bench_function("ipv4-tcp/with-hash", |bencher| {
        bencher.iter(|| dissect(black_box(&plain), LinkType::Ethernet).packet(1514, &hasher));
    });
    group.finish();
}

criterion_group!(benches, dissecting);
criterion_main!(benches);
