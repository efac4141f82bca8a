//! A door for benches: what the stages ask of a store for one write, and nothing of the line around it.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::{Action, Closing, EntryKey, LaneKey, NewEntry, Opened, Opening, Stamp, Store, StoreError, Verdict};
use crate::audit::{Kind, Record};
use crate::call::Ref;
use crate::clock::{Clock, Millis, SystemClock};
use crate::json::Digest;
use crate::session::Principal;
use crate::stoppage::Spot;

/// One write, with the arguments and the answer that it has each time.
#[derive(Clone, Debug)]
pub struct Errand {
    arguments: Value,
    answer: String,
    told: Map<String, Value>,
}

impl Errand {
    /// A write with these arguments and this answer.
    pub fn new(arguments: Value, answer: String) -> Self {
        let digest = Digest::of(b"what a record tells besides");
        let stage = |name: &str| json!({ "stage": name, "micros": 12, "verdict": "passed" });
        let told = [
            ("tool", json!("create_refund")),
            ("tenant", json!("acme")),
            ("principal", json!({ "issuer": "local", "subject": "alice" })),
            ("roles", json!(["support"])),
            ("run", json!("default")),
            ("args_digest", json!(digest)),
            ("call_digest", json!(digest)),
            ("contract", json!(digest)),
            ("arguments", arguments.clone()),
            ("stages", json!(["admit", "inform", "permit"].map(stage))),
        ];
        let told = told.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Self { arguments, answer, told }
    }

    /// Opens the action of this number on a lane of its own, and closes it as done: two transactions. Returns whether
    /// it was opened.
    pub async fn run(&self, store: &Store, number: u64) -> Result<bool, StoreError> {
        let now = SystemClock.now();
        let key = EntryKey::of(&json!(["acme", "default", "create_refund", "args", number]));
        let reference = Ref::fresh();
        let Opened::Open { attempt, .. } =
            store.open(self.opening(store, key, reference.clone(), number, now), now).await?
        else {
            return Ok(false);
        };
        let closing = Closing {
            key,
            owner: store.owner().clone(),
            attempt,
            verdict: Verdict::Done { answer: self.answer.clone() },
            marking: None,
        };
        let record = |kind| Record::new(kind, now, reference.clone(), self.told.clone());
        store.close(closing, record(Kind::Outcome), record(Kind::Late), now).await
    }

    fn opening(&self, store: &Store, key: EntryKey, reference: Ref, number: u64, now: Millis) -> Opening {
        let action = Action {
            tool: "create_refund".into(),
            tenant: "acme".into(),
            principal: Principal::new("local", "alice"),
            run: "default".into(),
            args_digest: Digest::of(&number.to_be_bytes()),
            arguments: self.arguments.clone(),
            facts: Value::Object(Map::new()),
            lane: LaneKey::of(&json!(["acme", "order", number])),
            keeps_lane: true,
            retain_ms: 24 * 60 * 60 * 1000,
            grant: None,
            holds: Vec::new(),
            subject: None,
        };
        let entry = NewEntry {
            key,
            action,
            owner: store.owner().clone(),
            since: now,
            lease_end: now.after(Duration::from_secs(35)),
            reference: reference.clone(),
            anew: false,
            stamp: Stamp { revision: 0, lane_version: 0 },
        };
        let intent = Record::new(Kind::Intent, now, reference, self.told.clone());
        Opening {
            entry: Some(entry),
            grant: None,
            takings: Vec::new(),
            drawings: Vec::new(),
            intent,
            spot: Spot::default(),
        }
    }
}
