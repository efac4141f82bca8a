//! The lab: a gate of typed function tools that fail in every way there is, and are counted.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolgate::backend::{Context, ToolError};
use toolgate::gate::Builder;
use toolgate::session::{Principal, Session};
use toolgate::{Gate, Tool};

use crate::scenario::Runs;

/// How often each tool ran.
#[derive(Clone, Default)]
pub(crate) struct Lab {
    counters: Arc<Mutex<BTreeMap<&'static str, Arc<Counter>>>>,
    parcels: Arc<Mutex<BTreeMap<String, Parcel>>>,
}

/// What became of a parcel.
#[derive(Clone, Copy, Default)]
struct Parcel {
    asked: usize,
    delivered: bool,
}

#[derive(Default)]
struct Counter {
    begun: AtomicUsize,
    ended_early: AtomicUsize,
}

/// One run of a tool. Dropped before it is finished, it was ended early.
struct Running {
    number: usize,
    finished: bool,
    counter: Arc<Counter>,
}

/// Who may do what in the lab. Operators act; everybody looks.
const POLICIES: &str = r#"
@id("lab.look") permit (principal, action in Action::"read", resource);
@id("lab.act") permit (principal in Role::"operator", action in Action::"write", resource);
"#;

/// No arguments.
#[derive(Deserialize, JsonSchema)]
struct Nothing {}

#[derive(Serialize, JsonSchema)]
struct Done {
    done: bool,
}

/// Adds two whole numbers.
#[derive(Deserialize, JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

#[derive(Serialize, JsonSchema)]
struct Sum {
    sum: i64,
}

/// Charges a card.
#[derive(Deserialize, JsonSchema)]
struct Charge {
    #[schemars(range(min = 1, max = 100_000))]
    amount_cents: u32,
}

#[derive(Serialize, JsonSchema)]
struct Charged {
    charge_id: String,
    amount_cents: u32,
}

/// Sets a switch.
#[derive(Deserialize, JsonSchema)]
struct Switch {
    #[expect(dead_code, reason = "it matters only that two calls say different things")]
    on: bool,
}

#[derive(Serialize, JsonSchema)]
struct Rung {
    bell: String,
}

/// Delivers a parcel. The first time its carrier is lost, on the way there or on the way back.
#[derive(Deserialize, JsonSchema)]
struct Delivery {
    #[schemars(length(min = 1, max = 20))]
    parcel: String,
    lost_on_the_way_there: bool,
}

/// Looks up whether a parcel was delivered.
#[derive(Deserialize, JsonSchema)]
struct Sought {
    #[schemars(length(min = 1, max = 20))]
    parcel: String,
}

#[derive(Serialize, JsonSchema)]
struct Delivered {
    parcel: String,
}

#[derive(Serialize, JsonSchema)]
struct Found {
    parcel: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Reading {
    #[schemars(range(min = -40, max = 60))]
    celsius: i64,
}

/// Searches recipes.
#[derive(Deserialize, JsonSchema)]
struct Search {
    #[schemars(length(min = 1, max = 200))]
    query: String,
    #[schemars(range(min = 1, max = 50))]
    max_results: Option<u32>,
}

#[derive(Serialize, JsonSchema)]
struct Recipes {
    recipes: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
struct Report {
    title: String,
    total: u32,
    #[schemars(length(min = 3))]
    lines: Vec<Line>,
}

#[derive(Serialize, JsonSchema)]
struct Line {
    number: u32,
    text: String,
}

/// The gate of the lab, but for its store and its clock.
pub(crate) fn builder(lab: &Lab) -> Builder {
    [
        lab.add(),
        lab.sleeper(),
        lab.panics(),
        lab.panics_write(),
        lab.flaky(),
        lab.down(),
        lab.charge(),
        lab.switch(),
        lab.ring(),
        lab.deliver(),
        lab.find_delivery(),
        lab.sensor(),
        lab.search_recipes(),
        lab.report(),
        lab.first_fails(),
        lab.second_ok(),
    ]
    .into_iter()
    .fold(Gate::builder().policy(POLICIES), Builder::tool)
}

/// The people of the lab: `ada` and `ben` may act, `vic` may only look; without a name it is `ada` who asks.
pub(crate) fn session(user: Option<&str>) -> Session {
    let person = |name| Session::new(Principal::new("lab", name), "lab");
    match user.unwrap_or("ada@lab") {
        "ada@lab" => person("ada").role("operator"),
        "ben@lab" => person("ben").role("operator"),
        "vic@lab" => person("vic"),
        other => panic!("the lab knows no {other}"),
    }
}

impl Lab {
    pub(crate) fn runs(&self, tool: &str) -> Runs {
        let counters = self.counters.lock().unwrap();
        let counter = counters.get(tool).unwrap_or_else(|| panic!("the lab has no tool {tool}"));
        Runs {
            tool: tool.to_owned(),
            count: counter.begun.load(Ordering::SeqCst),
            ended_early: counter.ended_early.load(Ordering::SeqCst),
        }
    }

    /// Counts the runs of a tool: each run begins with a call of what this returns.
    fn counted(&self, tool: &'static str) -> impl Fn() -> Running + Send + Sync + 'static {
        let counter = Arc::clone(self.counters.lock().unwrap().entry(tool).or_default());
        move || Running {
            number: counter.begun.fetch_add(1, Ordering::SeqCst) + 1,
            finished: false,
            counter: Arc::clone(&counter),
        }
    }

    fn add(&self) -> Tool {
        let begin = self.counted("add");
        Tool::read("add", move |args: Add, _: &Context| {
            begin().finish();
            async move { Ok(Sum { sum: args.a + args.b }) }
        })
    }

    /// Takes five seconds, and has three tenths of one.
    fn sleeper(&self) -> Tool {
        let begin = self.counted("sleeper");
        Tool::read("sleeper", move |_: Nothing, _: &Context| {
            let run = begin();
            async move {
                tokio::time::sleep(Duration::from_secs(5)).await;
                run.finish();
                Ok(Done { done: true })
            }
        })
        .deadline(Duration::from_millis(300))
    }

    fn panics(&self) -> Tool {
        let begin = self.counted("panics");
        Tool::read("panics", move |_: Nothing, _: &Context| panicking(begin()))
    }

    fn panics_write(&self) -> Tool {
        let begin = self.counted("panics_write");
        Tool::write("panics_write", move |_: Nothing, _: &Context| panicking(begin()))
    }

    /// Set to what it is, nothing happens; set to something else in between, it is set again.
    fn switch(&self) -> Tool {
        let begin = self.counted("switch");
        Tool::write("switch", move |_: Switch, _: &Context| {
            begin().finish();
            async move { Ok(Done { done: true }) }
        })
        .key("once", json!({ "repeat": "after_other" }))
    }

    /// Rings once, whoever of the tenant asks.
    fn ring(&self) -> Tool {
        let begin = self.counted("ring");
        Tool::write("ring", move |_: Nothing, _: &Context| {
            let run = begin();
            let bell = format!("bell_{}", run.number);
            run.finish();
            async move { Ok(Rung { bell }) }
        })
        .key("once", json!({ "scope": "tenant" }))
    }

    fn deliver(&self) -> Tool {
        let (begin, parcels) = (self.counted("deliver"), Arc::clone(&self.parcels));
        let found = json!({
            "tool": "find_delivery", "args": { "parcel": "{parcel}" }, "done": "/parcel", "absent_after": "30s",
        });
        Tool::write("deliver", move |args: Delivery, _: &Context| {
            begin().finish();
            let mut parcels = parcels.lock().unwrap();
            let parcel = parcels.entry(args.parcel.clone()).or_default();
            parcel.asked += 1;
            let lost = parcel.asked == 1;
            parcel.delivered = !(lost && args.lost_on_the_way_there);
            async move {
                assert!(!lost, "a carrier that is lost, on purpose");
                Ok(Delivered { parcel: args.parcel })
            }
        })
        .deadline(Duration::from_secs(5))
        .key("reconcile", found)
    }

    fn find_delivery(&self) -> Tool {
        let parcels = Arc::clone(&self.parcels);
        Tool::read("find_delivery", move |args: Sought, _: &Context| {
            let delivered = parcels.lock().unwrap().get(&args.parcel).is_some_and(|parcel| parcel.delivered);
            async move { Ok(Found { parcel: delivered.then_some(args.parcel) }) }
        })
    }

    /// Cannot be reached twice, then answers.
    fn flaky(&self) -> Tool {
        let begin = self.counted("flaky");
        Tool::read("flaky", move |_: Nothing, _: &Context| {
            let run = begin();
            let number = run.number;
            run.finish();
            async move {
                if number <= 2 { Err(ToolError::unavailable("no route to 10.1.2.3")) } else { Ok(Done { done: true }) }
            }
        })
        .attempts(3)
    }

    /// Can never be reached.
    fn down(&self) -> Tool {
        let begin = self.counted("down");
        Tool::read("down", move |_: Nothing, _: &Context| {
            begin().finish();
            async move { Err::<Done, _>(ToolError::unavailable("no route to 10.1.2.3")) }
        })
        .attempts(3)
    }

    fn charge(&self) -> Tool {
        let begin = self.counted("charge");
        Tool::write("charge", move |args: Charge, _: &Context| {
            let run = begin();
            let charge_id = format!("ch_{}", run.number);
            run.finish();
            async move { Ok(Charged { charge_id, amount_cents: args.amount_cents }) }
        })
        .key("once", json!({ "caller": true }))
    }

    /// Reads more than there can be.
    fn sensor(&self) -> Tool {
        let begin = self.counted("sensor");
        Tool::read("sensor", move |_: Nothing, _: &Context| {
            begin().finish();
            async move { Ok(Reading { celsius: 999 }) }
        })
    }

    fn search_recipes(&self) -> Tool {
        let begin = self.counted("search_recipes");
        Tool::read("search_recipes", move |args: Search, _: &Context| {
            begin().finish();
            async move {
                let count = args.max_results.unwrap_or(3);
                Ok(Recipes { recipes: (1..=count).map(|n| format!("{} no. {n}", args.query)).collect() })
            }
        })
    }

    /// Tells more than two kilobytes, and may show that much.
    fn report(&self) -> Tool {
        let begin = self.counted("report");
        Tool::read("report", move |_: Nothing, _: &Context| {
            begin().finish();
            async move {
                let line = |number| Line { number, text: format!("what happened at {number} o'clock") };
                Ok(Report { title: "The day".into(), total: 400, lines: (0..400).map(line).collect() })
            }
        })
        .key("max_result", json!("2KB"))
    }

    fn first_fails(&self) -> Tool {
        let begin = self.counted("first_fails");
        Tool::read("first_fails", move |_: Nothing, _: &Context| {
            begin().finish();
            async move { Err::<Done, _>(ToolError::failed("password of db: hunter2")) }
        })
    }

    fn second_ok(&self) -> Tool {
        let begin = self.counted("second_ok");
        Tool::read("second_ok", move |_: Nothing, _: &Context| {
            begin().finish();
            async move { Ok(Done { done: true }) }
        })
    }
}

async fn panicking(run: Running) -> Result<Done, ToolError> {
    run.finish();
    panic!("a tool's function that panics, on purpose")
}

impl Running {
    fn finish(mut self) {
        self.finished = true;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.finished {
            self.counter.ended_early.fetch_add(1, Ordering::SeqCst);
        }
    }
}
