//! From the keys of a contract to a [`Contract`], or to everything that is wrong with it.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::{
    Access, ApprovalRule, Contract, Fact, Lane, Limit, MappedError, Mode, Once, OnceScope, Reconcile, Repeat, Resource,
    Retry, allowances, content, flow, is_tag, lint,
};
use crate::approval::Approvers;
use crate::fields::{Fields, Problems};
use crate::json::{Digest, canonical};
use crate::refusal::Effect;
use crate::schema::{Author, Problem, Schema, SchemaFault, Undeclared};
use crate::template::{Hole, Template};

const DEADLINE: Duration = Duration::from_secs(10);
const LONGEST_DEADLINE: Duration = Duration::from_secs(600);
/// Shorter than the day for which the version of a lane is kept after its last action.
const LONGEST_AGE: Duration = Duration::from_secs(3600);
const MAX_RESULT: usize = 64 * 1024;
const RETAIN: Duration = Duration::from_secs(7 * 86_400);
const ABSENT_AFTER: Duration = Duration::from_secs(30);

/// Names that say who is asking: they come from the session, so an argument of this name is a way to lie about it.
/// Compared without case, `_` and `-`.
const IDENTITY_MEMBERS: &[&str] = &[
    "tenant",
    "tenantid",
    "userid",
    "principal",
    "principalid",
    "actor",
    "actorid",
    "onbehalfof",
    "impersonate",
    "role",
    "roles",
    "isadmin",
    "callerid",
    "sessionid",
];

impl Contract {
    /// Reads the keys of a contract. Every problem is told at once, with its JSON pointer.
    pub fn parse(name: &str, keys: &Value) -> Result<Self, Vec<Problem>> {
        match Self::read(name, keys) {
            (Some(contract), problems) if problems.is_empty() => Ok(contract),
            (_, problems) => Err(problems),
        }
    }

    /// The problems, and as much of the contract as can be held against others even so.
    pub(super) fn read(name: &str, keys: &Value) -> (Option<Self>, Vec<Problem>) {
        let mut problems = Problems::default();
        let Value::Object(table) = keys else {
            problems.note("", "type", "a contract is a table");
            return (None, problems.0);
        };
        let mut top = Fields::of(table, "");
        check_name(name, &mut top, &mut problems);
        let description = top.needed("description", &mut problems).unwrap_or_default().to_owned();
        if description.trim().is_empty() && table.contains_key("description") {
            problems.note("/description", "min_length", "say what the tool does and when to use it");
        }
        let access = read_access(&mut top, table.contains_key("effect"), &mut problems);
        let tags = top.texts("tags", &mut problems);
        check_tags(&tags, &mut problems);
        let deadline = top.span("deadline", DEADLINE, &mut problems);
        if deadline.is_zero() || deadline > LONGEST_DEADLINE {
            problems.note("/deadline", "maximum", "a deadline is more than 0 and at most 10m");
        }
        let max_result = top.bytes("max_result", MAX_RESULT, &mut problems);
        let allowed = top.texts("allow_identity_members", &mut problems);
        let imported = top.flag("imported", &mut problems);
        let undeclared = if top.flag("open", &mut problems) { Undeclared::Allowed } else { Undeclared::Refused };
        let author = if imported { Author::SomebodyElse } else { Author::Operator };
        let take_input = |document: &Value| Schema::of_arguments(document, author, undeclared);
        let input = read_input(&mut top, take_input, &allowed, &mut problems);
        let output = read_schema(&mut top, "output", |document| Schema::of_results(document, author), &mut problems);
        let named = allowances::Named::read(&mut top, &mut problems);
        let fill_defaults = top.flag("fill_defaults", &mut problems);
        let arguments = top.bounds("arguments", &mut problems);
        let mode = read_mode(&mut top, &mut problems);
        let preview = top.template("preview", &mut problems);
        let subject = top.template("subject", &mut problems);
        let approval = read_approval(&mut top, &mut problems);
        let facts = read_facts(&mut top, &mut problems);
        let resource = read_resource(&mut top, &facts, &mut problems);
        let once = read_once(&mut top, &mut problems);
        let lane = read_lane(&mut top, &mut problems);
        let reconcile = read_reconcile(&mut top, &mut problems);
        let retry = read_retry(&mut top, &mut problems);
        let limits = Limit::read_all(&mut top, input.as_ref(), &mut problems);
        let errors = read_errors(&mut top, &mut problems);
        let backend = top.raw("backend").cloned().unwrap_or(Value::Null);
        let content =
            output.is_none() && !table.contains_key("output") && backend.get("kind").is_some_and(|kind| kind == "mcp");
        let output = if content { content::schema().ok() } else { output };
        let requires = flow::read_requires(name, &mut top, &mut problems);
        let labels = flow::Labels::read(&mut top, content, &mut problems);
        top.end(&mut problems);
        if access == Access::Read {
            for (key, given) in
                [("once", table.contains_key("once")), ("lane", lane.is_some()), ("reconcile", reconcile.is_some())]
            {
                if given {
                    problems.note(format!("/{key}"), "read", format!("`{key}` is for a write; a read runs each time"));
                }
            }
        }
        let Some(input) = input else { return (None, problems.0) };
        let (lenient, idle) = named.grant(access, &input, output.as_ref(), &mut problems);
        if fill_defaults {
            allowances::check_defaults(&input, &mut problems);
        }
        let contract = Self {
            name: name.to_owned(),
            description,
            access,
            tags,
            deadline,
            preview,
            subject,
            max_result,
            input,
            output,
            lenient,
            fill_defaults,
            arguments,
            idle,
            approval,
            resource,
            facts,
            once,
            lane,
            reconcile,
            retry,
            limits,
            requires,
            labels,
            errors,
            backend,
            content,
            imported,
            mode,
            digest: Digest::of(canonical(keys).as_bytes()),
            warnings: Vec::new(),
            meant_otherwise: allowed,
        };
        contract.check_templates(&mut problems);
        let contract = Self { warnings: lint::of(&contract), ..contract };
        (Some(contract), problems.0)
    }

    /// Every placeholder names something, and what may not be absent is required.
    fn check_templates(&self, problems: &mut Problems) {
        if let Some(preview) = &self.preview {
            self.check_template(preview, "/preview", Absence::Fine, problems);
        }
        if let Some(subject) = &self.subject {
            self.check_template(subject, "/subject", Absence::Never, problems);
        }
        if let Some(resource) = &self.resource {
            self.check_template(&resource.id, "/resource/id", Absence::Never, problems);
        }
        for (name, fact) in &self.facts {
            for (arg, template) in &fact.args {
                self.check_template(template, &format!("/facts/{name}/args/{arg}"), Absence::Fine, problems);
            }
        }
        let lane = match &self.lane {
            Some(Lane::Key(key)) => Some(key),
            Some(Lane::Run) | None => None,
        };
        let keys = [("/once/key", self.once.key.as_ref()), ("/lane/key", lane)];
        for (at, key) in keys {
            for (index, template) in key.into_iter().flatten().enumerate() {
                self.check_template(template, &format!("{at}/{index}"), Absence::Fine, problems);
            }
        }
        for (arg, template) in self.reconcile.iter().flat_map(|reconcile| &reconcile.args) {
            self.check_template(template, &format!("/reconcile/args/{arg}"), Absence::Fine, problems);
        }
    }

    fn check_template(&self, template: &Template, at: &str, absence: Absence, problems: &mut Problems) {
        for hole in template.holes() {
            match hole {
                Hole::Argument(pointer) => {
                    if self.input.locate(pointer).is_empty() {
                        let known = self.input.members().join(", ");
                        let message = format!("`{}` names no argument", template.source());
                        problems.hinted(at, "template", message, Some(format!("known: {known}")));
                    } else if at == "/preview" && self.input.hides(pointer) {
                        problems.note(at, "template", SHOWN_AND_KEPT);
                    } else if absence == Absence::Never && !self.input.required(pointer) {
                        let message = format!("`{}` names an argument that may be absent", template.source());
                        problems.hinted(at, "template", message, Some("list it under `required`".into()));
                    }
                }
                Hole::Fact { name, .. } => {
                    if !at.starts_with("/reconcile") && !at.starts_with("/preview") {
                        problems.note(at, "template", "facts are not known here: they are looked up later");
                    } else if !self.facts.contains_key(name) {
                        problems.note(at, "template", format!("there is no fact `{name}`"));
                    }
                }
                Hole::IdempotencyKey if !at.starts_with("/reconcile") => {
                    problems.note(
                        at,
                        "template",
                        "{idempotency_key} is not known here: it exists once the action is opened",
                    );
                }
                Hole::Ref if !at.starts_with("/preview") => {
                    problems.note(at, "template", "{ref} is another one at each attempt, so it cannot be used here");
                }
                Hole::TraceParent | Hole::TraceState => {
                    let message =
                        "the trace context decides nothing and is shown to nobody; only what is sent can hold it";
                    problems.note(at, "template", message);
                }
                Hole::Tenant | Hole::User | Hole::IdempotencyKey | Hole::Ref => {}
            }
        }
    }
}

/// Why a preview may not name everything.
pub(super) const SHOWN_AND_KEPT: &str = "a preview is shown and kept, so it cannot name a secret or personal value";

/// Whether a placeholder may stand for nothing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Absence {
    Fine,
    Never,
}

fn check_name(name: &str, top: &mut Fields<'_>, problems: &mut Problems) {
    let fits = (1..=128).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-'));
    if !fits {
        problems.note("/name", "pattern", "a tool's name is 1 to 128 of the characters A-Z a-z 0-9 _ . -");
    }
    if let Some(said) = top.text("name", problems)
        && said != name
    {
        problems.note("/name", "const", "the name of a tool is the name of its file");
    }
}

fn read_access(top: &mut Fields<'_>, given: bool, problems: &mut Problems) -> Access {
    if !given {
        problems.note("/effect", "required", "`effect` is missing: say \"read\" or \"write\"");
    }
    top.word("effect", &[("read", Access::Read), ("write", Access::Write)], Access::Write, problems)
}

fn read_mode(top: &mut Fields<'_>, problems: &mut Problems) -> Option<Mode> {
    let given = top.raw("mode").is_some();
    let mode = top.word("mode", &Mode::WORDS, Mode::Enforce, problems);
    given.then_some(mode)
}

fn check_tags(tags: &[String], problems: &mut Problems) {
    for (index, tag) in tags.iter().enumerate() {
        if !is_tag(tag) {
            problems.note(format!("/tags/{index}"), "pattern", "a tag is made of A-Z a-z 0-9 _ -");
        }
    }
}

fn read_input(
    top: &mut Fields<'_>,
    compile: impl Fn(&Value) -> Result<Schema, Vec<SchemaFault>>,
    allowed: &[String],
    problems: &mut Problems,
) -> Option<Schema> {
    if top.raw("input").is_none() {
        problems.hinted("/input", "required", "`input` is missing", Some("input = { properties = {} }".into()));
        return None;
    }
    let input = read_schema(top, "input", compile, problems)?;
    let mut named = Vec::new();
    identity_members(input.document(), "/input", &mut named);
    for (at, member) in named {
        if !allowed.contains(&member) {
            problems.hinted(
                at,
                "identity_member",
                "an argument of this name says who is asking, and that comes from the session alone",
                Some("remove it, or list it in allow_identity_members if it means something else".into()),
            );
        }
    }
    Some(input)
}

/// Declared members, at any depth, whose name says who is asking.
fn identity_members(schema: &Value, at: &str, named: &mut Vec<(String, String)>) {
    match schema {
        Value::Object(node) => {
            for (key, value) in node {
                let place = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
                if let ("properties", Value::Object(members)) = (key.as_str(), value) {
                    for member in members.keys() {
                        let plain: String = member.chars().filter(|c| !matches!(c, '_' | '-')).collect();
                        if IDENTITY_MEMBERS.contains(&plain.to_lowercase().as_str()) {
                            named.push((format!("{place}/{member}"), member.clone()));
                        }
                    }
                }
                identity_members(value, &place, named);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| identity_members(item, at, named)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn read_schema(
    top: &mut Fields<'_>,
    key: &'static str,
    compile: impl Fn(&Value) -> Result<Schema, Vec<SchemaFault>>,
    problems: &mut Problems,
) -> Option<Schema> {
    match compile(top.raw(key)?) {
        Ok(schema) => Some(schema),
        Err(faults) => {
            for fault in faults {
                problems.hinted(format!("/{key}{}", fault.at), "schema", fault.message, fault.hint);
            }
            None
        }
    }
}

fn read_approval(top: &mut Fields<'_>, problems: &mut Problems) -> Option<ApprovalRule> {
    let mut table = top.table("approval", problems)?;
    let when = table.needed("when", problems).map(str::to_owned);
    let role = table.needed("role", problems).map(str::to_owned);
    let message = table.text("message", problems).map(str::to_owned);
    table.end(problems);
    Some(ApprovalRule { when: when?, approvers: Approvers::from(role?), message })
}

fn read_facts(top: &mut Fields<'_>, problems: &mut Problems) -> BTreeMap<String, Fact> {
    let mut facts = BTreeMap::new();
    for (name, mut fields) in top.tables("facts", problems) {
        let tool = fields.needed("tool", problems).map(str::to_owned);
        let args = fields.templates("args", problems);
        let max_age = fields.span("max_age", Duration::ZERO, problems);
        if max_age > LONGEST_AGE {
            problems.note(fields.place("max_age"), "maximum", "a fact is at most 1h old");
        }
        fields.end(problems);
        if let Some(tool) = tool {
            facts.insert(name.clone(), Fact { tool, args, max_age });
        }
    }
    facts
}

fn read_resource(top: &mut Fields<'_>, facts: &BTreeMap<String, Fact>, problems: &mut Problems) -> Option<Resource> {
    let mut table = top.table("resource", problems)?;
    let kind = table.needed("type", problems).map(str::to_owned);
    let id = table.needed("id", problems).is_some().then(|| table.template("id", problems)).flatten();
    let fact = table.needed("fact", problems).map(str::to_owned);
    let tenant = table.needed("tenant", problems).map(str::to_owned);
    if let Some(fact) = &fact
        && !facts.contains_key(fact)
    {
        problems.note(table.place("fact"), "template", format!("there is no [facts.{fact}]"));
    }
    if let Some(tenant) = &tenant {
        check_pointer(tenant, &table.place("tenant"), problems);
    }
    table.end(problems);
    Some(Resource { kind: kind?, id: id?, fact: fact?, tenant: tenant? })
}

fn read_once(top: &mut Fields<'_>, problems: &mut Problems) -> Once {
    let scopes = [("run", OnceScope::Run), ("user", OnceScope::User), ("tenant", OnceScope::Tenant)];
    let repeats = [("never", Repeat::Never), ("after_other", Repeat::AfterOther), ("free", Repeat::Free)];
    let Some(mut table) = top.table("once", problems) else {
        return Once { key: None, scope: OnceScope::User, repeat: Repeat::Never, retain: RETAIN, caller: false };
    };
    let once = Once {
        key: table.key("key", problems),
        scope: table.word("scope", &scopes, OnceScope::User, problems),
        repeat: table.word("repeat", &repeats, Repeat::Never, problems),
        retain: table.span("retain", RETAIN, problems),
        caller: table.flag("caller", problems),
    };
    table.end(problems);
    once
}

fn read_lane(top: &mut Fields<'_>, problems: &mut Problems) -> Option<Lane> {
    let mut table = top.table("lane", problems)?;
    let run = table.raw("scope").is_some();
    let whole_run = table.word("scope", &[("run", true)], false, problems);
    let key = table.key("key", problems);
    match (&key, run) {
        (None, false) => problems.note(table.place("key"), "required", "`key` is missing"),
        (Some(_), true) => {
            problems.note(table.place("scope"), "lane", "a lane has a `key`, or is that of the run: one of the two");
        }
        (Some(_), false) | (None, true) => {}
    }
    table.end(problems);
    if whole_run { Some(Lane::Run) } else { key.map(Lane::Key) }
}

fn read_reconcile(top: &mut Fields<'_>, problems: &mut Problems) -> Option<Reconcile> {
    let mut table = top.table("reconcile", problems)?;
    let tool = table.needed("tool", problems).map(str::to_owned);
    let args = table.templates("args", problems);
    let done = table.needed("done", problems).map(str::to_owned);
    let result = table.text("result", problems).unwrap_or_default().to_owned();
    let absent_after = table.span("absent_after", ABSENT_AFTER, problems);
    if let Some(done) = &done {
        check_pointer(done, &table.place("done"), problems);
    }
    if !result.is_empty() {
        check_pointer(&result, &table.place("result"), problems);
    }
    table.end(problems);
    Some(Reconcile { tool: tool?, args, done: done?, result, absent_after })
}

fn read_retry(top: &mut Fields<'_>, problems: &mut Problems) -> Retry {
    let Some(mut table) = top.table("retry", problems) else {
        return Retry { attempts: 1, on: Vec::new() };
    };
    let attempts = table.count("attempts", 3, problems);
    if attempts > 10 {
        problems.note(table.place("attempts"), "maximum", "at most 10 attempts");
    }
    let mut on = table.texts("on", problems);
    for (index, signal) in on.iter().enumerate().filter(|(_, signal)| is_a_no(signal)) {
        let message = format!("`{signal}` is an answer, and the same call gets the same one");
        problems.note(format!("{}/{index}", table.place("on")), "signal", message);
    }
    if on.is_empty() {
        on = ["connect", "429", "503"].map(str::to_owned).to_vec();
    }
    table.end(problems);
    Retry { attempts, on }
}

/// Whether a failure is a no that no repeat changes: of a permission, of a rule, of what was asked. Of the statuses of HTTP
/// that blame the caller three mean that it came at the wrong time.
fn is_a_no(signal: &str) -> bool {
    const NOES: [&str; 11] = [
        "cancelled",
        "constraint",
        "decode",
        "encode",
        "input_required",
        "many_rows",
        "no_row",
        "pin",
        "statement",
        "too_large",
        "value",
    ];
    const PASSING: [&str; 3] = ["408", "425", "429"];
    let blames = signal.len() == 3 && signal.starts_with('4') && signal.bytes().all(|byte| byte.is_ascii_digit());
    NOES.contains(&signal) || (blames && !PASSING.contains(&signal))
}

fn read_errors(top: &mut Fields<'_>, problems: &mut Problems) -> BTreeMap<String, MappedError> {
    let mut errors = BTreeMap::new();
    for (signal, mut fields) in top.tables("errors", problems) {
        let code = fields.needed("code", problems).map(str::to_owned);
        let message = fields.needed("message", problems).map(str::to_owned);
        let effects = [("none", Some(Effect::None)), ("done", Some(Effect::Done)), ("unknown", Some(Effect::Unknown))];
        let effect = fields.word("effect", &effects, None, problems);
        let instead = fields.text("instead", problems).map(str::to_owned);
        fields.end(problems);
        let plain = |code: &String| {
            !code.is_empty() && code.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
        };
        if code.as_ref().is_some_and(|code| !plain(code)) {
            problems.note(format!("/errors/{signal}/code"), "pattern", "a code is made of a-z 0-9 _");
        }
        if let (Some(code), Some(message)) = (code, message) {
            errors.insert(signal.clone(), MappedError { code, message, effect, instead });
        }
    }
    errors
}

fn check_pointer(pointer: &str, at: &str, problems: &mut Problems) {
    if !pointer.starts_with('/') {
        problems.note(at, "format", "expected a JSON pointer such as /refund_id");
    }
}
