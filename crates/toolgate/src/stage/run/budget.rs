//! How many repeats what calls go to can take. An outage makes every call fail at once; without a bound each would come
//! back, and what is down would have to serve many times its load to get up again.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::contract::Registry;

/// The budgets of all tools, by name.
pub(super) struct Budgets(BTreeMap<String, Arc<Bucket>>);

/// Tenths of a repeat that are left.
struct Bucket(AtomicU32);

/// What a first attempt adds: in the long run one repeat in ten calls.
const DEPOSIT: u32 = 1;
/// What a repeat costs.
const COST: u32 = 10;
/// A bucket holds ten repeats.
const FULL: u32 = 100;

impl Budgets {
    pub(super) fn of(registry: &Registry) -> Self {
        let mut shared: HashMap<&str, Arc<Bucket>> = HashMap::new();
        let bucket = || Arc::new(Bucket(AtomicU32::new(FULL)));
        let tools = registry.iter().map(|tool| {
            let bucket = match tool.backend.upstream() {
                Some(upstream) => Arc::clone(shared.entry(upstream).or_insert_with(bucket)),
                None => bucket(),
            };
            (tool.contract.name.clone(), bucket)
        });
        Self(tools.collect())
    }

    /// A first attempt of this tool.
    pub(super) fn earn(&self, tool: &str) {
        let add = |left: u32| (left < FULL).then_some((left + DEPOSIT).min(FULL));
        if let Some(bucket) = self.0.get(tool) {
            // One that is full stays so.
            let _ = bucket.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
        }
    }

    /// Takes a repeat of this tool, if one is left.
    pub(super) fn spend(&self, tool: &str) -> bool {
        let take = |left: u32| left.checked_sub(COST);
        let bucket = self.0.get(tool);
        bucket.is_some_and(|bucket| bucket.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok())
    }
}
