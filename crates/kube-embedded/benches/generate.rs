//! Cost of generating an object.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use kube_embedded::generate::Generator;

fn generate(c: &mut Criterion) {
    let cluster = Generator::new(1);
    let mut group = c.benchmark_group("generate");
    group.throughput(Throughput::Elements(1_024));
    group.bench_function("1,024 pods in order", |b| {
        b.iter(|| cluster.pods(1_024).map(|pod| pod.into_bytes().len()).sum::<usize>());
    });
    group.bench_function("1,024 pods one by one", |b| {
        b.iter(|| (0..1_024).map(|index| cluster.pod(index * 7).into_bytes().len()).sum::<usize>());
    });
    group.finish();
}

criterion_group!(benches, generate);
criterion_main!(benches);
