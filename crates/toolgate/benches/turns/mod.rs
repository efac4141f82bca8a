//! Measuring that takes turns: what is compared runs in small batches, one after the other, over and over, so that what
//! disturbs the machine disturbs all of it alike.

use std::hint::black_box;
use std::time::{Duration, Instant};

const BATCHES: usize = 41;
const BATCH: Duration = Duration::from_millis(8);

/// Does a piece of work so many times, and tells how long that took.
pub(crate) type Work = Box<dyn FnMut(u64) -> Duration>;

/// The work of one call of `work`.
pub(crate) fn each<T>(work: impl Fn() -> T + 'static) -> Work {
    Box::new(move |times| {
        let started = Instant::now();
        for _ in 0..times {
            black_box(work());
        }
        started.elapsed()
    })
}

/// How many nanoseconds each takes once: the median of its batches, in the order given.
pub(crate) fn medians<'w>(works: impl IntoIterator<Item = &'w mut Work>) -> Vec<f64> {
    let mut works: Vec<(&mut Work, u64, Vec<f64>)> = works
        .into_iter()
        .map(|work| {
            let times = times_to_fill(BATCH, work);
            (work, times, Vec::with_capacity(BATCHES))
        })
        .collect();
    for _ in 0..BATCHES {
        for (work, times, samples) in &mut works {
            samples.push(work(*times).as_secs_f64() * 1e9 / *times as f64);
        }
    }
    works.into_iter().map(|(_, _, samples)| median(samples)).collect()
}

fn times_to_fill(span: Duration, work: &mut Work) -> u64 {
    let mut times = 1;
    // One slow batch may be a neighbour's doing; three are not.
    while (0..3).any(|_| work(times) < span) {
        times *= 2;
    }
    times
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples.get(samples.len() / 2).copied().unwrap()
}
