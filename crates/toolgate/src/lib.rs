//! Toolgate is the trust boundary for LLM tool calls. A model *proposes* a call; the gate decides whether it may happen,
//! makes it happen under limits and at most once, and answers with a result that is fit for a model to read, or with a
//! refusal that somebody can act on.
//!
//! ```text
//! bytes -> decode -> admit -> inform -> permit -> reserve | run -> settle -> encode -> bytes
//!           Call    Admitted Informed  Permitted Reserved | Ran     Reply
//!           refused, pending, replayed: leave here -------|  no way out here: settle always happens
//! ```
//!
//! | stage | what it does |
//! |---|---|
//! | admit | looks the tool up among what this session may see, reads the arguments strictly, holds them to the schema |
//! | inform | recalls the action from the ledger, waits for its lane, looks up the resource and the facts |
//! | permit | one verdict over permissions, business rules and approvals |
//! | reserve | identity, lane, approval and the intent of the record become durable, or nothing runs |
//! | run | the backend, under its deadline |
//! | settle | checks, cuts and bounds the result, closes the entry |
//!
//! # A gate in Rust
//!
//! ```
//! use schemars::JsonSchema;
//! use serde::{Deserialize, Serialize};
//! use toolgate::backend::Context;
//! use toolgate::ledger::Store;
//! use toolgate::session::{Principal, Session};
//! use toolgate::{Call, Gate, Tool};
//!
//! /// Adds two whole numbers.
//! #[derive(Deserialize, JsonSchema)]
//! struct Add {
//!     a: i64,
//!     b: i64,
//! }
//!
//! #[derive(Serialize, JsonSchema)]
//! struct Sum {
//!     sum: i64,
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let gate = Gate::builder()
//!     .tool(Tool::read("add", |args: Add, _: &Context| async move { Ok(Sum { sum: args.a + args.b }) }))
//!     .policy("permit (principal, action == Action::\"add\", resource);")
//!     .store(Store::memory())
//!     .build()?;
//! let session = Session::new(Principal::new("local", "alice"), "acme");
//! let reply = gate.call(Call::new("call_1", "add", r#"{"a": 2, "b": 3}"#), &session).await?;
//! assert_eq!(reply.result(), Some(r#"{"sum":5}"#));
//! # Ok(())
//! # }
//! ```
//!
//! # Where to read on
//!
//! [`gate`] is the line itself; [`contract`] what a tool declares; [`admission`] its first questions alone;
//! [`leniency`] what a contract lets be written otherwise; [`refusal`] the table of codes; [`ledger`] the state machine that makes writes happen at most once; [`backend`] how a tool is run;
//! [`template`] what a backend learns of the session; [`audit`] the record; [`stoppage`] what an operator stops for a while.

pub mod call;
pub mod contract;
pub mod session;

pub mod gate;
pub mod guards;
mod stage;

pub mod admission;
pub mod fields;
pub mod json;
pub mod leniency;
pub mod schema;
pub mod template;

mod catalogue;
mod caught;
#[cfg(test)]
mod counted;
mod crash;
mod facts;
mod lanes;
mod modes;
mod nearness;
mod policy;
mod recovery;
mod redaction;
mod runs;
mod turn;
pub mod vault;

pub mod approval;
pub mod audit;
pub mod ledger;
pub mod standing;
pub mod stoppage;

pub mod backend;
mod result;

pub mod fault;
pub mod refusal;
pub mod reply;
pub mod wire;

pub mod clock;
pub mod trace;

pub use call::Call;
pub use contract::Tool;
pub use gate::Gate;
pub use refusal::Refusal;
pub use reply::Reply;

#[cfg(feature = "bench")]
#[doc(hidden)]
pub use policy::door as policy_door;

/// The code of the README compiles and does what it says.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
