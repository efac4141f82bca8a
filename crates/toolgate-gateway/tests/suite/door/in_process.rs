//! The gate as a library of this process.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::runtime::Runtime;
use toolgate::approval::{Approval, NotDecided};
use toolgate::call::OperationId;
use toolgate::clock::{Clock, ManualClock, SystemClock};
use toolgate::json::Limits;
use toolgate::ledger::Store;
use toolgate::session::{Session, Tags};
use toolgate::wire::Dialect;
use toolgate::{Gate, Reply};
use toolgate_gateway::config::{self, Purpose};
use toolgate_gateway::identity::Identity;

use super::{Answer, Asker, Door, Exchange};
use crate::folder::Folder;
use crate::lab::{self, Lab};
use crate::scenario::{Call, GateName, Runs};

/// A gate in this process.
pub(crate) struct InProcess {
    runtime: Runtime,
    gate: Gate,
    home: Home,
    clock: Option<Arc<ManualClock>>,
}

/// What the gate was made of.
enum Home {
    Lab(Lab),
    Folder { folder: Folder, people: Identity },
}

impl InProcess {
    pub(crate) fn lab(manual: bool) -> Self {
        let (lab, clock) = (Lab::default(), manual.then(manual_clock));
        let builder = lab::builder(&lab).store(Store::memory());
        let gate = match &clock {
            Some(clock) => builder.clock(Arc::clone(clock) as Arc<dyn Clock>),
            None => builder,
        };
        Self { runtime: runtime(), gate: gate.build().unwrap(), home: Home::Lab(lab), clock }
    }

    pub(crate) fn folder(name: GateName, manual: bool) -> Self {
        Self::of(Folder::of(name), manual.then(manual_clock))
    }

    pub(crate) fn of(folder: Folder, clock: Option<Arc<ManualClock>>) -> Self {
        let (gate, people) = load(&folder, clock.as_ref());
        Self { runtime: runtime(), gate, home: Home::Folder { folder, people }, clock }
    }

    pub(crate) fn gate(&self) -> &Gate {
        &self.gate
    }

    pub(crate) fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// What the record tells of one attempt.
    pub(crate) fn records(&self, reference: &str) -> Vec<Value> {
        let history = self.runtime.block_on(self.gate.store().history(reference)).unwrap();
        history.iter().map(|record| serde_json::from_str(&record.body).unwrap()).collect()
    }

    pub(crate) fn session(&self, user: Option<&str>) -> Session {
        match &self.home {
            Home::Lab(_) => lab::session(user),
            Home::Folder { people, .. } => people.session(user).unwrap(),
        }
    }

    /// The session of whoever asks, within their tags.
    pub(super) fn within(&self, asker: Asker<'_>) -> Session {
        let tags = asker.tags.iter().map(|tag| Tags::of(tag).unwrap()).reduce(Tags::or);
        tags.into_iter().fold(self.session(asker.user), Session::only_tags)
    }

    fn opened(&self) -> &Folder {
        match &self.home {
            Home::Folder { folder, .. } => folder,
            Home::Lab(_) => panic!("the lab has no folder"),
        }
    }

    fn state(&self, decided: Result<Approval, NotDecided>) -> Result<String, String> {
        decided.map(|approval| approval.state_at(self.gate.now()).to_owned()).map_err(|not| not.to_string())
    }

    /// Every result that is shown fits the schema that its tool declares.
    fn fits_its_schema(&self, reply: &Reply, session: &Session) {
        let Some(result) = reply.result() else { return };
        let tools = self.gate.tools(session);
        // A name that was near is told as the model wrote it, and the tool's own in the trace.
        let admitted = reply.trace().stages().first().and_then(|note| note.learned.get("tool")?.as_str());
        let name = admitted.unwrap_or(reply.tool());
        let tool = tools.iter().find(|tool| tool.name() == name).expect("a tool that answers is visible");
        if let Some(output) = tool.output() {
            let result = serde_json::from_str(result).unwrap();
            assert!(output.is_valid(&result), "a result of {} that does not fit its schema: {result}", reply.tool());
        }
    }
}

impl Door for InProcess {
    fn call(&mut self, asker: Asker<'_>, call: &Call) -> Answer {
        let session = self.within(asker);
        let mut proposed = toolgate::Call::new("call_1", &call.tool, call.text());
        if let Some(operation) = &call.operation {
            proposed = proposed.operation(OperationId::parse(operation).unwrap());
        }
        if let Some(approval) = &call.approval {
            proposed = proposed.approval(approval);
        }
        let reply = self.runtime.block_on(self.gate.call(proposed, &session)).unwrap();
        self.fits_its_schema(&reply, &session);
        let text = serde_json::to_string(&reply).unwrap();
        let read = serde_json::from_str(&text).unwrap();
        Answer { text, reply: read, trace: json!(reply.trace()), exit: None }
    }

    fn message(&mut self, asker: Asker<'_>, dialect: &str, message: &Value) -> Exchange {
        let session = self.within(asker);
        let dialect = Dialect::parse(dialect).expect("a dialect");
        let turn = match dialect.decode(message.to_string().as_bytes(), &Limits::default()) {
            Ok(turn) => turn,
            Err(fault) => return Exchange::Broken(fault.to_string()),
        };
        let (calls, asked) = turn.open();
        let replies = self.runtime.block_on(self.gate.turn(calls, &session));
        let messages = asked.answer(&replies);
        let replies: Vec<Reply> = replies.into_iter().map(Result::unwrap).collect();
        let outcomes =
            replies.iter().map(|reply| json!({ "call_id": reply.call_id(), "tool": reply.tool(), "reply": reply }));
        Exchange::Answered { messages: json!(messages), outcomes: outcomes.collect() }
    }

    fn approve(&mut self, id: &str, user: Option<&str>) -> Result<String, String> {
        let by = self.session(user);
        let decided = self.runtime.block_on(self.gate.approve(id, &by));
        self.state(decided)
    }

    fn deny(&mut self, id: &str, user: Option<&str>) -> Result<String, String> {
        let by = self.session(user);
        let decided = self.runtime.block_on(self.gate.deny(id, &by));
        self.state(decided)
    }

    fn approvals(&mut self, user: &str) -> Value {
        let session = self.session(Some(user));
        let approvals = self.runtime.block_on(self.gate.approvals(&session)).unwrap();
        let now = self.gate.now();
        let shown = approvals.iter().map(|approval| {
            json!({
                "id": approval.id,
                "state": approval.state_at(now),
                "tool": approval.tool,
                "requester": approval.requester,
                "tenant": approval.tenant,
                "preview": approval.preview,
                "arguments": approval.arguments,
                "leniencies": approval.leniencies,
                "call_digest": approval.told_digest,
                "reasons": approval.reasons,
            })
        });
        shown.collect()
    }

    fn tools(&mut self, asker: Asker<'_>) -> Vec<String> {
        let session = self.within(asker);
        let mut names: Vec<String> = self.gate.tools(&session).iter().map(|tool| tool.name().to_owned()).collect();
        names.sort();
        names
    }

    fn rows(&self, sql: &str) -> Value {
        self.opened().rows(sql)
    }

    fn runs(&self, tool: &str) -> Runs {
        match &self.home {
            Home::Lab(lab) => lab.runs(tool),
            Home::Folder { .. } => panic!("only the tools of the lab are counted"),
        }
    }

    fn advance(&mut self, span: Duration) {
        self.clock.as_ref().expect("a scenario that moves the clock needs one").advance(span);
    }

    fn edit(&mut self, file: &str, from: &str, to: &str) {
        self.runtime.block_on(self.gate.finish()).unwrap();
        self.opened().edit(file, from, to);
        let (gate, found) = load(self.opened(), self.clock.as_ref());
        self.gate = gate;
        if let Home::Folder { people, .. } = &mut self.home {
            *people = found;
        }
    }

    fn verify(&mut self) -> Result<(), String> {
        self.runtime.block_on(async {
            self.gate.finish().await.unwrap();
            let head = self.gate.store().verify(None).await.unwrap().map_err(|broken| broken.to_string())?;
            if head.seq == 0 { Err("it is empty".into()) } else { Ok(()) }
        })
    }
}

fn load(folder: &Folder, clock: Option<&Arc<ManualClock>>) -> (Gate, Identity) {
    let loaded = config::load_with(folder.path(), Purpose::Run, |builder| match clock {
        Some(clock) => builder.clock(Arc::clone(clock) as Arc<dyn Clock>),
        None => builder,
    });
    let loaded = loaded.unwrap_or_else(|error| panic!("{error}: {error:?}"));
    (loaded.gate, loaded.identity)
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// A clock that shows what it is now, and then stands still.
pub(crate) fn manual_clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::at(SystemClock.now()))
}
