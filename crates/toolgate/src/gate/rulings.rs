//! An operator's word on an action of which nobody knows what became: it ends the doubt, and stands on the record as
//! theirs.

use serde_json::{Map, Value, json};

use super::Gate;
use super::records::Entries;
use crate::audit::{Kind, Record};
use crate::clock::Millis;
use crate::json::Digest;
use crate::ledger::{Entry, Finding, Listed, Rejected, State, StoreError};
use crate::refusal::{Code, Effect, Refusal};
use crate::reply::Answer;
use crate::result;
use crate::schema::{Hidden, Problem};
use crate::session::Session;

/// What an operator found out.
#[derive(Clone, Debug, PartialEq)]
pub enum Ruling {
    /// It happened. Equal calls are answered with the result, or are told that it is not known.
    Done {
        /// What the tool would have answered.
        result: Option<Value>,
    },
    /// It did not happen: the next equal call runs.
    NotDone,
}

/// Why an operator's word does not count.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum NotRuled {
    /// There is no such action.
    #[error("the ledger holds no such action")]
    Missing,
    /// It may be running.
    #[error("the action is running since {since}; until {until} nobody else can know how it ends")]
    Running {
        /// When it was opened.
        since: Millis,
        /// The end of its lease.
        until: Millis,
    },
    /// Its outcome is being looked for.
    #[error("what became of the action is being looked for right now, at most until {until}")]
    Sought {
        /// Until when nobody else may say.
        until: Millis,
    },
    /// Its outcome is known.
    #[error("it is known what became of the action: {}", told(*.effect))]
    Known {
        /// What became of the world.
        effect: Effect,
    },
    /// The result cannot be one of the tool.
    #[error("the result does not fit the output schema of {tool}")]
    Unfit {
        /// The name of the tool.
        tool: String,
        /// What does not fit.
        problems: Vec<Problem>,
    },
    /// The gate has no contract that a result could be held to.
    #[error("the gate has no sound contract of {tool}, so a result cannot be held to it")]
    NoContract {
        /// The name of the tool.
        tool: String,
    },
    /// The store failed.
    #[error("{0}")]
    Store(#[from] StoreError),
}

/// Characters of an operator's reason that the record holds.
const LONGEST_WHY: usize = 1_000;

fn told(effect: Effect) -> &'static str {
    match effect {
        Effect::None => "it did not happen",
        Effect::Done => "it happened",
        Effect::Unknown => "nobody knows",
    }
}

/// What whoever sends an equal call reads, where it is known that the action happened and not what came of it.
const DONE_UNSEEN: &str = "The action happened: an operator found that out after its outcome was not known. Its result is not \
                           known. Do not send it again; to see what it did, look with a tool that reads.";

impl Gate {
    /// Says what became of the unknown action with this key, and why that is known. It runs nothing. Of `why` the record
    /// holds the first 1,000 characters, without what the contract marks of the action's arguments and facts.
    pub async fn rule(&self, key: Digest, ruling: &Ruling, why: &str, by: &Session) -> Result<Listed, NotRuled> {
        let entry = self.unknown(key).await?;
        let finding = self.finding(&entry, ruling)?;
        let now = self.now();
        let why = self.shown(why, &entry);
        let entries = Entries::new(&self.line.registry, &self.line.redaction);
        let record = record(entries, by.clone(), why, finding.clone(), now);
        match self.line.store.rule(entry.key, finding, record, now).await? {
            Ok(entry) => Ok(entry.listed()),
            Err(Rejected::Running | Rejected::AlreadyDone | Rejected::InDoubt | Rejected::Stale) => {
                // It has moved since it was looked at: what it is now is the reason.
                self.unknown(key).await?;
                Err(NotRuled::Sought { until: now })
            }
        }
    }

    /// An operator's reason as it may stand on the record.
    fn shown(&self, why: &str, entry: &Entry) -> String {
        let nothing = Map::new();
        let arguments = entry.action.arguments.as_object().unwrap_or(&nothing);
        let facts = entry.action.facts.as_object().unwrap_or(&nothing);
        let hidden = match self.line.registry.get(&entry.action.tool) {
            Some(tool) => self.line.registry.hidden(&tool.contract, arguments, facts),
            // What is marked nobody knows, so anything may be.
            None => Hidden::all([&entry.action.arguments, &entry.action.facts]),
        };
        let why = self.line.redaction.text(&hidden.taken_out_of(why)).into_owned();
        why.chars().take(LONGEST_WHY).collect()
    }

    /// What an operator's word would be about. Nothing is ruled.
    pub async fn dry_rule(&self, key: Digest, ruling: &Ruling) -> Result<Listed, NotRuled> {
        let entry = self.unknown(key).await?;
        self.finding(&entry, ruling)?;
        Ok(entry.listed())
    }

    /// The action, if an operator may speak of it now.
    async fn unknown(&self, key: Digest) -> Result<Entry, NotRuled> {
        let entry = self.line.store.action_of_key(key).await?.ok_or(NotRuled::Missing)?;
        match &entry.state {
            State::Open { lease_end, .. } => {
                let since = entry.first.given_at().unwrap_or_default();
                Err(NotRuled::Running { since, until: *lease_end })
            }
            State::Done { .. } => Err(NotRuled::Known { effect: Effect::Done }),
            State::Failed { .. } => Err(NotRuled::Known { effect: Effect::None }),
            State::Unknown { claim: Some(claim), .. } if self.now() < claim.until => {
                Err(NotRuled::Sought { until: claim.until })
            }
            State::Unknown { .. } => Ok(entry),
        }
    }

    fn finding(&self, entry: &Entry, ruling: &Ruling) -> Result<Finding, NotRuled> {
        let answer = match ruling {
            Ruling::NotDone => return Ok(Finding::NotDone),
            Ruling::Done { result: None } => {
                Answer::Refused(Refusal::new(Code::AlreadyDone, Effect::Done).message(DONE_UNSEEN))
            }
            Ruling::Done { result: Some(value) } => self.fitting(&entry.action.tool, value)?,
        };
        let answer = answer.to_stored().ok_or_else(|| NotRuled::Store(unstorable()))?;
        Ok(Finding::Done { answer })
    }

    /// The answer that shows what an operator saw, held to the tool's contract like the tool's own.
    fn fitting(&self, tool: &str, value: &Value) -> Result<Answer, NotRuled> {
        let Some(registered) = self.line.registry.get(tool) else {
            return Err(NotRuled::NoContract { tool: tool.to_owned() });
        };
        match result::fit(&registered.contract, value.clone(), Effect::Done) {
            Answer::Refused(_) => {
                let problems = registered.contract.output.as_ref().map(|output| output.problems(value).list);
                Err(NotRuled::Unfit { tool: tool.to_owned(), problems: problems.unwrap_or_default() })
            }
            fits @ Answer::Result(_) => Ok(fits),
        }
    }
}

fn unstorable() -> StoreError {
    StoreError::Broken("the answer cannot be stored, so nothing was".into())
}

/// Writes the record of an operator's word, once it counts.
fn record(
    entries: Entries,
    by: Session,
    why: String,
    finding: Finding,
    now: Millis,
) -> Box<dyn FnOnce(&Entry) -> Record + Send> {
    Box::new(move |entry| {
        let mut body = Map::new();
        let mut tell = |name: &str, value: Value| body.insert(name.to_owned(), value);
        tell("tool", json!(entry.action.tool));
        tell("tenant", json!(entry.action.tenant));
        tell("principal", json!(by.principal()));
        tell("requester", json!(entry.action.principal));
        tell("attempt", json!(entry.attempt));
        tell("idempotency_key", json!(entries.key(entry)));
        tell("why", json!(why));
        let effect = match finding {
            Finding::Done { .. } => Effect::Done,
            Finding::NotDone => Effect::None,
        };
        tell("effect", json!(effect));
        Record::new(Kind::Ruling, now, entry.first.clone(), body)
    })
}
