//! From texts to rules, or to every fault that the texts have.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use cedar_policy::{
    ActionConstraint, Effect, EntityUid, Policy, PolicyId, PolicySet, PrincipalConstraint, ResourceConstraint,
    ValidationMode, Validator,
};

use super::Absent;
use super::conditions::Condition;
use super::doubts::{self, Doubt, NamedRole};
use super::explain::{self, Finding};
use super::fault::{PolicyCode, PolicyFault, suggest};
use super::mentions::{Asked, Mentions, Path};
use super::message::Message;
use super::schema::{Generated, Vocabulary};
use super::shape::Found;
use super::source::Source;
use super::text::{Statement, statements};
use crate::approval::Approvers;
use crate::json::{self, Limits};
use crate::refusal::Fix;

const ANNOTATIONS: [&str; 4] = ["id", "message", "fix", "approvers"];

/// One policy, ready to be sliced.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) id: String,
    /// The policy, under the id of the rule.
    pub(super) policy: Policy,
    /// The policy as it was written, annotations and all.
    pub(super) text: String,
    pub(super) effect: Effect,
    /// Its `when` and `unless`, as far as they are known before a call.
    pub(super) condition: Condition,
    pub(super) principal: PrincipalConstraint,
    pub(super) resource: ResourceConstraint,
    /// What it tells the caller. A forbid without a message is silent.
    pub(super) message: Option<Message>,
    pub(super) fix: Fix,
    /// INVARIANT (consent has a giver): a policy names `context.approved` if and only if it is a forbid with approvers,
    /// so what `approved` changes between two evaluations has somebody to ask.
    pub(super) approvers: Option<Approvers>,
    pub(super) paths: Vec<Path>,
    /// What it asks the run for.
    pub(super) asked: Vec<Asked>,
    /// The places of the tools that it speaks of.
    pub(super) tools: Vec<usize>,
    /// What of it holds and is probably not meant.
    pub(super) doubts: Vec<Doubt>,
    /// The roles that it names.
    pub(super) roles: Vec<NamedRole>,
}

impl Rule {
    /// Whether it may tell one thing that is acted on from another: by its head, or by a word behind it.
    pub(super) fn tells_resources_apart(&self) -> bool {
        let by_head = match self.resource {
            ResourceConstraint::Any | ResourceConstraint::Is(_) => false,
            ResourceConstraint::Eq(_) | ResourceConstraint::In(_) | ResourceConstraint::IsIn(..) => true,
        };
        by_head || self.text.matches("resource").count() > 1
    }
}

/// The rules of `sources` over `vocabulary`, each valid under the schema.
pub(super) fn load(
    sources: &[Source<'_>],
    vocabulary: &Vocabulary<'_>,
    generated: Option<&Generated>,
    absent: Absent<'_>,
) -> Result<Vec<Rule>, Vec<PolicyFault>> {
    let mut loader = Loader { vocabulary, absent: absent.tools(), faults: Vec::new() };
    let mut drafts = Vec::new();
    for source in sources {
        for (n, statement) in statements(&source.text).into_iter().enumerate() {
            drafts.extend(loader.draft(source, statement, n + 1));
        }
    }
    loader.check_ids(&drafts);
    match absent {
        Absent::Faulty(tools) if tools.is_empty() => {}
        // What a policy says of a tool whose contract does not hold cannot be judged.
        Absent::Faulty(_) => drafts.retain(|draft| loader.can_be_judged(draft)),
        Absent::SetAside(_) => drafts = drafts.into_iter().filter_map(|draft| loader.of_the_rest(draft)).collect(),
    }
    for draft in &mut drafts {
        loader.check_members(draft);
        loader.check_message(draft);
        draft.rule.doubts = doubts::of(draft.source, &draft.statement, &draft.rule, vocabulary, loader.absent);
        draft.rule.roles = doubts::roles(draft.source, &draft.statement, &draft.rule);
    }
    if let Some(generated) = generated {
        loader.validate(generated, &drafts);
    }
    if loader.faults.is_empty() { Ok(drafts.into_iter().map(|draft| draft.rule).collect()) } else { Err(loader.faults) }
}

/// A policy that is being checked.
struct Draft<'s> {
    source: &'s Source<'s>,
    statement: Statement<'s>,
    rule: Rule,
    /// Where members that no tool has are named; the validator would name them again.
    unknown_members: HashSet<usize>,
}

struct Loader<'a> {
    vocabulary: &'a Vocabulary<'a>,
    /// Tools that policies may name though they are not in the vocabulary.
    absent: &'a BTreeSet<String>,
    faults: Vec<PolicyFault>,
}

impl Loader<'_> {
    fn draft<'s>(&mut self, source: &'s Source<'s>, statement: Statement<'s>, n: usize) -> Option<Draft<'s>> {
        let policy = match parse(&statement) {
            Ok(policy) => policy,
            Err(findings) => {
                for Finding { at, message, hint, code } in findings {
                    self.faults.push(source.fault(statement.start + at.start, code, &message, hint));
                }
                return None;
            }
        };
        let Ok(tree) = policy.to_pst() else {
            self.faults.push(source.fault(
                statement.start,
                PolicyCode::Syntax,
                "the policy cannot be understood",
                None,
            ));
            return None;
        };
        let mentions = Mentions::of(tree.body().clauses());
        let notes = self.annotations(source, &statement, &policy, &mentions);
        let id = notes.id.unwrap_or_else(|| format!("{}.{n}", source.stem()));
        let tools = self.scope(source, &statement, &policy);
        self.check_named(source, &statement, &policy);
        let rule = Rule {
            policy: policy.new_id(PolicyId::new(&id)),
            id,
            text: statement.text.to_owned(),
            effect: policy.effect(),
            condition: Condition::of(tree.body().clauses()),
            principal: policy.principal_constraint(),
            resource: policy.resource_constraint(),
            message: notes.message,
            fix: notes.fix.unwrap_or(Fix::User),
            approvers: notes.approvers,
            paths: mentions.paths,
            asked: mentions.asked,
            tools,
            doubts: Vec::new(),
            roles: Vec::new(),
        };
        Some(Draft { source, statement, rule, unknown_members: HashSet::new() })
    }

    /// The places of the tools that the policy speaks of. Unknown actions are left to the validator.
    fn scope(&mut self, source: &Source<'_>, statement: &Statement<'_>, policy: &Policy) -> Vec<usize> {
        let mut places = match policy.action_constraint() {
            ActionConstraint::Any => (0..self.vocabulary.tools.len()).collect(),
            ActionConstraint::Eq(action) => {
                if self.vocabulary.is_group(&action) {
                    let name = action.id().unescaped();
                    let hint = Some(format!("write `action in Action::\"{name}\"`"));
                    let message = format!("`{name}` is a group of actions, and no call is equal to it");
                    self.faults.push(source.fault(statement.literal(name), PolicyCode::Name, &message, hint));
                }
                self.vocabulary.place(&action).into_iter().collect()
            }
            ActionConstraint::In(actions) => {
                actions.iter().filter_map(|action| self.vocabulary.members(action)).flatten().collect::<Vec<_>>()
            }
        };
        places.sort_unstable();
        places.dedup();
        places
    }

    /// Names in the head of a policy that can stand for nobody and nothing: a forbid of them would never apply.
    fn check_named(&mut self, source: &Source<'_>, statement: &Statement<'_>, policy: &Policy) {
        let principal = match policy.principal_constraint() {
            PrincipalConstraint::Eq(uid) | PrincipalConstraint::In(uid) | PrincipalConstraint::IsIn(_, uid) => {
                Some(uid)
            }
            PrincipalConstraint::Any | PrincipalConstraint::Is(_) => None,
        };
        let resource = match policy.resource_constraint() {
            ResourceConstraint::Eq(uid) | ResourceConstraint::In(uid) | ResourceConstraint::IsIn(_, uid) => Some(uid),
            ResourceConstraint::Any | ResourceConstraint::Is(_) => None,
        };
        for uid in [principal, resource].into_iter().flatten() {
            let name = uid.id().unescaped();
            let fault = match uid.type_name().basename() {
                "User" if !is_principal(name) => Some((
                    "a user is named by the canonical text of [issuer, subject]",
                    Some("write User::\"[\\\"local\\\",\\\"alice\\\"]\"".to_owned()),
                )),
                "Tool"
                    if !self.vocabulary.tools.iter().any(|tool| tool.name == name) && !self.absent.contains(name) =>
                {
                    let known = self.vocabulary.tools.iter().map(|tool| tool.name);
                    Some(("there is no such tool", suggest(name, known)))
                }
                _ => None,
            };
            if let Some((message, hint)) = fault {
                self.faults.push(source.fault(statement.literal(name), PolicyCode::Name, message, hint));
            }
        }
    }

    fn check_ids(&mut self, drafts: &[Draft<'_>]) {
        let mut seen: BTreeMap<&str, &Draft<'_>> = BTreeMap::new();
        for draft in drafts {
            let Some(first) = seen.insert(&draft.rule.id, draft) else { continue };
            let at = draft.statement.annotation("id");
            let message = format!("another policy has the id `{}`", draft.rule.id);
            let hint = Some(format!("the other one stands in {}", first.source.place_in_words(first.statement.start)));
            self.faults.push(draft.source.fault(at, PolicyCode::Annotation, &message, hint));
        }
    }

    /// A policy of one tool whose contract holds; one of many tools may speak of what is missing.
    fn can_be_judged(&self, draft: &Draft<'_>) -> bool {
        match draft.rule.policy.action_constraint() {
            ActionConstraint::Eq(action) => !self.is_absent(&action),
            ActionConstraint::Any | ActionConstraint::In(_) => false,
        }
    }

    /// The policy as it stands for the tools that are there; nothing where it speaks of absent ones alone.
    ///
    /// INVARIANT (no forbid is lost): what could speak of a tool that is there is kept, or is a fault.
    fn of_the_rest<'s>(&mut self, mut draft: Draft<'s>) -> Option<Draft<'s>> {
        match draft.rule.policy.action_constraint() {
            ActionConstraint::Eq(action) => (!self.is_absent(&action)).then_some(draft),
            ActionConstraint::In(actions) if actions.iter().any(|action| self.is_absent(action)) => {
                if actions.iter().all(|action| self.is_absent(action)) {
                    return None;
                }
                match narrowed(&draft.rule.policy, &|action| !self.is_absent(action)) {
                    Some(policy) => draft.rule.policy = policy,
                    None => {
                        let message = "the policy cannot be read without the tool that is set aside";
                        self.faults.push(draft.source.fault(draft.statement.start, PolicyCode::Name, message, None));
                    }
                }
                Some(draft)
            }
            ActionConstraint::Any | ActionConstraint::In(_) => Some(draft),
        }
    }

    fn is_absent(&self, action: &EntityUid) -> bool {
        self.absent.contains(action.id().unescaped()) && !self.vocabulary.is_group(action)
    }

    /// Names of members that no tool in scope has. The validator would pass over them behind a `has`, and the policy
    /// would never apply.
    fn check_members(&mut self, draft: &mut Draft<'_>) {
        for path in &draft.rule.paths {
            let mut missing: Option<(usize, Vec<&str>)> = None;
            let mut found = false;
            let mut hidden = None;
            for tool in draft.rule.tools.iter().filter_map(|place| self.vocabulary.tools.get(*place)) {
                match tool.context.find(&path.members) {
                    Found::Here | Found::Beside => found = true,
                    Found::Hidden(depth, why) => hidden = hidden.or(Some((depth, why, tool.name))),
                    Found::Missing(depth, known) => match &mut missing {
                        Some((deepest, names)) if *deepest == depth => names.extend(known),
                        Some((deepest, _)) if *deepest > depth => {}
                        _ => missing = Some((depth, known)),
                    },
                }
            }
            let (depth, message, hint) = match (hidden, missing) {
                // One tool of the scope is enough: there, the policy would never apply whatever is sent.
                (Some((depth, why, tool)), _) => (
                    depth,
                    format!(
                        "{} of {tool} cannot be used in policies, because {}",
                        spelled(&path.members, depth),
                        why.why()
                    ),
                    Some("give it one type in the contract, or narrow the action".to_owned()),
                ),
                (None, Some((depth, known))) if !found => {
                    let name = path.members.get(depth).map_or("", String::as_str);
                    (depth, format!("{} does not exist", spelled(&path.members, depth)), suggest(name, known))
                }
                _ => continue,
            };
            let parent =
                depth.checked_sub(1).and_then(|depth| path.members.get(depth)).map_or("context", String::as_str);
            let at = path.members.get(depth).map_or(draft.statement.start, |name| draft.statement.member(parent, name));
            draft.unknown_members.insert(at);
            self.faults.push(draft.source.fault(at, PolicyCode::Member, &message, hint));
        }
    }

    fn check_message(&mut self, draft: &Draft<'_>) {
        let Some(message) = &draft.rule.message else { return };
        let tools = draft.rule.tools.iter().filter_map(|place| self.vocabulary.tools.get(*place));
        // A policy for many tools has one fault and not many.
        if let Some(wrong) = tools.into_iter().find_map(|tool| message.check(tool).err()) {
            let at = draft.statement.annotation("message");
            self.faults.push(draft.source.fault(at, PolicyCode::Annotation, &format!("@message: {wrong}"), None));
        }
    }

    fn validate(&mut self, generated: &Generated, drafts: &[Draft<'_>]) {
        // The rules' own ids may not be unique yet.
        let numbered = drafts.iter().enumerate().map(|(n, draft)| (n.to_string(), draft));
        let by_number: HashMap<String, &Draft<'_>> = numbered.collect();
        let policies = by_number.iter().map(|(number, draft)| draft.rule.policy.new_id(PolicyId::new(number)));
        let Ok(set) = PolicySet::from_policies(policies) else {
            self.faults.push(PolicyFault::of_the_gate("the policies cannot be put together for validation"));
            return;
        };
        let result = Validator::new(generated.schema.clone()).validate(&set, ValidationMode::Strict);
        let text_of = |number: &str| by_number.get(number).map_or("", |draft| draft.statement.text);
        let findings = explain::validation(&result, self.vocabulary, text_of);
        let broken: HashSet<&str> =
            findings.iter().filter(|(_, f)| f.code != PolicyCode::Idle).map(|(number, _)| number.as_str()).collect();
        let mut idle: HashSet<&str> = HashSet::new();
        for (number, finding) in &findings {
            let Some(draft) = by_number.get(number) else { continue };
            let start = draft.statement.start;
            let within = start + finding.at.start..start + finding.at.end;
            let told = match finding.code {
                PolicyCode::Member => draft.unknown_members.iter().any(|at| within.contains(at)),
                // What never applies because something in it is wrong, or because its group is empty today.
                PolicyCode::Idle => {
                    broken.contains(number.as_str())
                        || !draft.unknown_members.is_empty()
                        || draft.rule.tools.is_empty()
                        || !idle.insert(number)
                }
                PolicyCode::Syntax
                | PolicyCode::Type
                | PolicyCode::Annotation
                | PolicyCode::Name
                | PolicyCode::Contract
                | PolicyCode::Internal
                | PolicyCode::Claim
                | PolicyCode::Inexact
                | PolicyCode::Label
                | PolicyCode::Tool
                | PolicyCode::Role => false,
            };
            if !told {
                self.faults.push(draft.source.fault(
                    within.start,
                    finding.code,
                    &finding.message,
                    finding.hint.clone(),
                ));
            }
        }
    }
}

/// The policy with those actions of its list that are to stay.
fn narrowed(policy: &Policy, stays: &dyn Fn(&EntityUid) -> bool) -> Option<Policy> {
    let mut tree = policy.to_json().ok()?;
    let actions = tree.pointer_mut("/action/entities")?.as_array_mut()?;
    actions.retain(|action| EntityUid::from_json(action.clone()).is_ok_and(|action| stays(&action)));
    Policy::from_json(Some(policy.id().clone()), tree).ok()
}

/// What the annotations of a policy say.
#[derive(Default)]
struct Notes {
    id: Option<String>,
    message: Option<Message>,
    fix: Option<Fix>,
    approvers: Option<Approvers>,
}

impl Loader<'_> {
    fn annotations(
        &mut self,
        source: &Source<'_>,
        statement: &Statement<'_>,
        policy: &Policy,
        mentions: &Mentions,
    ) -> Notes {
        let mut notes = Notes::default();
        let faults = &mut self.faults;
        let mut wrong = |name: &str, message: &str, hint: Option<String>| {
            faults.push(source.fault(statement.annotation(name), PolicyCode::Annotation, message, hint));
        };
        for (name, value) in policy.annotations() {
            match name {
                "id" if is_id(value) => notes.id = Some(value.to_owned()),
                "id" => wrong(name, "@id is 1 to 128 letters, digits and `_ . : / -`", None),
                "message" => match Message::parse(value) {
                    Ok(message) => notes.message = Some(message),
                    Err(flaw) => wrong(name, &format!("@message: {flaw}"), None),
                },
                "fix" => match value {
                    "model" => notes.fix = Some(Fix::Model),
                    "user" => notes.fix = Some(Fix::User),
                    _ => wrong(name, "@fix is \"model\" or \"user\"", None),
                },
                "approvers" if value.trim().is_empty() => {
                    wrong(name, "@approvers names nobody", Some("name a role, or \"self\"".to_owned()));
                }
                "approvers" => notes.approvers = Some(Approvers::from(value.to_owned())),
                _ => wrong(name, &format!("there is no annotation @{name}"), suggest(name, ANNOTATIONS)),
            }
        }
        let has = |name: &str| policy.annotation(name).is_some();
        if policy.effect() == Effect::Permit {
            for name in ["message", "fix", "approvers"] {
                if has(name) {
                    wrong(name, &format!("a permit has no @{name}; it belongs to a forbid"), None);
                }
            }
        }
        for name in ["message", "approvers"] {
            if has(name) && !has("id") {
                wrong(
                    name,
                    &format!("a policy with @{name} needs an @id"),
                    Some("records and people name it by that".into()),
                );
            }
        }
        if has("fix") && !has("message") {
            wrong("fix", "@fix says who can mend what @message tells, and there is no @message", None);
        }
        if has("approvers") && !mentions.approved() {
            let hint = Some("end it with `unless { context.approved }`".to_owned());
            wrong("approvers", "a policy with @approvers must yield to their consent", hint);
        }
        if mentions.approved() && !has("approvers") {
            let at = statement.member("context", "approved");
            let hint = Some("add @approvers(\"a role\") or @approvers(\"self\")".to_owned());
            let message = "`context.approved` needs @approvers, which say whose consent it is";
            self.faults.push(source.fault(at, PolicyCode::Annotation, message, hint));
        }
        if mentions.whole_context {
            let hint = Some("write `context.input`, `context.facts`, ...".to_owned());
            self.faults.push(source.fault(
                statement.start,
                PolicyCode::Type,
                "`context` can only be used by its members",
                hint,
            ));
        }
        notes
    }
}

/// The one policy of a statement.
fn parse(statement: &Statement<'_>) -> Result<Policy, Vec<Finding>> {
    let one = |at: usize, message: &str, hint: Option<&str>| {
        let at = at.saturating_sub(statement.start);
        let (message, hint) = (message.to_owned(), hint.map(str::to_owned));
        Err(vec![Finding { at: at..at, message, hint, code: PolicyCode::Syntax }])
    };
    if let Some(at) = statement.endless_string() {
        return one(at, "this text has no end", Some("close it with `\"`"));
    }
    if let Some(at) = statement.second_policy() {
        return one(at, "the policy before this one does not end", Some("end it with `;`"));
    }
    if !statement.closed {
        return one(statement.end(), "the policy does not end", Some("end it with `;`"));
    }
    Policy::parse(None, statement.text).map_err(|errors| explain::syntax(statement.text, &errors))
}

fn is_principal(text: &str) -> bool {
    let Ok(value) = json::read(text.as_bytes(), &Limits::default()) else { return false };
    let pair = value.as_array().is_some_and(|pair| pair.len() == 2 && pair.iter().all(|part| part.is_string()));
    pair && json::canonical(&value) == text
}

fn is_id(text: &str) -> bool {
    const LONGEST: usize = 128;
    let fine = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b':' | b'/' | b'-');
    (1..=LONGEST).contains(&text.len()) && text.bytes().all(fine)
}

/// `context.a.b`, up to the member at `depth`.
pub(super) fn spelled(members: &[String], depth: usize) -> String {
    let shown = members.iter().take(depth + 1);
    format!("`{}`", shown.fold("context".to_owned(), |path, name| path + "." + name))
}
