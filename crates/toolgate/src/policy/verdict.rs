//! One verdict on one call.
//!
//! Cedar passes over a policy that errs, so a forbid that errs would forbid nothing: any error denies. What is denied
//! without consent is asked again as if consent were given, to tell what a person may allow from what nobody may.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use cedar_policy::{
    AuthorizationError, Authorizer, Context, Decision, Entities, Entity, EntityUid, PolicySet, Request,
    RestrictedExpression,
};

use super::context::{Unfit, record};
use super::load::Rule;
use super::schema::entity;
use super::shape::{Field, Shape};
use super::slices::{Kinds, Resource, Slice};
use super::{ApprovalSugar, Ask, Judgement, NeedReason, RuleHit, Why};

/// What Cedar says once, errors aside.
enum Said {
    Allow { by: Vec<String> },
    Deny { forbids: Vec<Arc<Rule>> },
}

/// A call, ready to be evaluated.
pub(super) struct Case<'a> {
    slice: &'a Slice,
    authorizer: &'a Authorizer,
    ask: &'a Ask<'a>,
    principal: EntityUid,
    resource: EntityUid,
    entities: Entities,
}

impl<'a> Case<'a> {
    pub(super) fn new(
        slice: &'a Slice,
        authorizer: &'a Authorizer,
        kinds: &Kinds,
        ask: &'a Ask<'a>,
    ) -> Result<Self, Why> {
        let session = ask.session;
        let tenant = entity(&kinds.tenant, session.tenant());
        let principal = entity(&kinds.user, &session.principal().canonical());
        let (resource, owned) = match (&slice.resource, ask.resource) {
            (Resource::Tool(tool), _) => (tool.clone(), None),
            (Resource::Of(kind), Some(id)) => {
                let resource = entity(kind, id);
                let owned = Entity::new_no_attrs(resource.clone(), HashSet::from([tenant.clone()]));
                (resource, Some(owned))
            }
            (Resource::Of(_), None) => return Err(Unfit::at("resource").into()),
        };
        let roles = session.roles().iter().map(|role| entity(&kinds.role, role));
        let asking = Entity::new_no_attrs(principal.clone(), roles.chain([tenant]).collect());
        let own = std::iter::once(asking).chain(owned);
        let entities = slice.entities.clone().add_entities(own, None).map_err(|_| Unfit::at("entities"))?;
        Ok(Self { slice, authorizer, ask, principal, resource, entities })
    }

    /// The verdict on a call that would run.
    pub(super) fn judge(&self) -> Result<Judgement, Why> {
        let context = self.context(false)?;
        let denied = match self.evaluate(&self.slice.policies, context.clone())? {
            Said::Allow { by } => return Ok(Judgement::Permitted { by }),
            Said::Deny { forbids } => forbids,
        };
        // Where no consent is in play, the second answer would be the first.
        if !denied.iter().any(|rule| rule.approvers.is_some()) {
            return self.refuse(&denied, context);
        }
        let context = self.context(true)?;
        match self.evaluate(&self.slice.policies, context.clone())? {
            Said::Allow { by } => Ok(Judgement::NeedsApproval { reasons: self.reasons(&denied), by }),
            Said::Deny { forbids } => self.refuse(&forbids, context),
        }
    }

    /// The verdict on a call that would only be answered from the record.
    pub(super) fn judge_replay(&self) -> Result<Judgement, Why> {
        let context = self.context(true)?;
        match self.evaluate(&self.slice.policies, context.clone())? {
            Said::Allow { by } => Ok(Judgement::Permitted { by }),
            Said::Deny { forbids } => self.refuse(&forbids, context),
        }
    }

    /// Why nobody's consent helps: a missing permit or a silent forbid first, then the rules.
    fn refuse(&self, forbids: &[Arc<Rule>], context: Context) -> Result<Judgement, Why> {
        let ids = |rules: &[&Arc<Rule>]| rules.iter().map(|rule| rule.id.clone()).collect();
        let (told, silent): (Vec<_>, Vec<_>) = forbids.iter().partition(|rule| rule.message.is_some());
        if !silent.is_empty() {
            return Err(Why::Silent { policies: ids(&silent) });
        }
        let Some((rule, message)) = told.first().and_then(|rule| Some((rule, rule.message.as_ref()?))) else {
            return Err(Why::NoPermit);
        };
        // A rule explains itself only to those whom some policy permits the call.
        match self.evaluate(&self.slice.permits, context)? {
            Said::Allow { .. } => Ok(Judgement::Rule(RuleHit {
                id: rule.id.clone(),
                message: message.render(self.ask.facts),
                fix: rule.fix,
                shown: message.facts(),
                all: ids(&told),
            })),
            Said::Deny { .. } => Err(Why::NoPermit),
        }
    }

    fn reasons(&self, forbids: &[Arc<Rule>]) -> Vec<NeedReason> {
        let reason = |rule: &Arc<Rule>| {
            let approvers = rule.approvers.clone()?;
            let message = match &rule.message {
                Some(message) => message.render(self.ask.facts),
                None => ApprovalSugar::words(&approvers),
            };
            Some(NeedReason { rule: rule.id.clone(), message, approvers })
        };
        forbids.iter().filter_map(reason).collect()
    }

    fn evaluate(&self, policies: &PolicySet, context: Context) -> Result<Said, Why> {
        #[cfg(test)]
        crate::counted::count("evaluation");
        let (principal, action, resource) = (self.principal.clone(), self.slice.action.clone(), self.resource.clone());
        // Without the schema: the walk that built the context has proved what would be checked again.
        let request = Request::new(principal, action, resource, context, None).map_err(|_| Unfit::default())?;
        let response = self.authorizer.is_authorized(&request, policies, &self.entities);
        let failed = response.diagnostics().errors().map(|error| match error {
            AuthorizationError::PolicyEvaluationError(error) => error.policy_id().to_string(),
        });
        let mut failed: Vec<String> = failed.collect();
        if !failed.is_empty() {
            failed.sort();
            return Err(Why::Error { policies: failed });
        }
        let mut ids: Vec<&str> = response.diagnostics().reason().map(AsRef::as_ref).collect();
        ids.sort_unstable();
        Ok(match response.decision() {
            Decision::Allow => Said::Allow { by: ids.into_iter().map(str::to_owned).collect() },
            Decision::Deny => {
                Said::Deny { forbids: ids.into_iter().filter_map(|id| self.slice.rule(id)).cloned().collect() }
            }
        })
    }

    /// The context of the call, as far as the policies of the slice read it.
    fn context(&self, approved: bool) -> Result<Context, Unfit> {
        let Shape::Record(fields) = &self.slice.context else {
            return Err(Unfit::default());
        };
        let mut pairs = Vec::with_capacity(fields.len());
        for Field { name, shape, .. } in fields {
            let value = match (name.as_str(), shape) {
                ("input", Shape::Record(members)) => record(members, |member| self.ask.arguments.get(member)),
                ("facts", Shape::Record(members)) => record(members, |member| self.ask.facts.get(member)),
                ("session", Shape::Record(members)) => self.session(members),
                ("approved", _) => Ok(RestrictedExpression::new_bool(approved)),
                _ => Err(Unfit::default()),
            };
            pairs.push((name.clone(), value.map_err(|unfit| unfit.inside(name))?));
        }
        Context::from_pairs(pairs).map_err(|_| Unfit::default())
    }

    /// What policies may know of the session beside its principal.
    fn session(&self, members: &[Field]) -> Result<RestrictedExpression, Unfit> {
        let value = |name: &str| match name {
            "run" => Ok(RestrictedExpression::new_string(self.ask.session.run().to_owned())),
            "completed" => Ok(set(&self.ask.run.completed)),
            "labels" => Ok(set(&self.ask.run.labels)),
            "calls" => Ok(RestrictedExpression::new_long(i64::try_from(self.ask.run.calls).unwrap_or(i64::MAX))),
            _ => Err(Unfit::at(name)),
        };
        let pairs: Result<Vec<_>, Unfit> =
            members.iter().map(|member| Ok((member.name.clone(), value(&member.name)?))).collect();
        RestrictedExpression::new_record(pairs?).map_err(|_| Unfit::default())
    }
}

fn set(names: &BTreeSet<String>) -> RestrictedExpression {
    RestrictedExpression::new_set(names.iter().map(|name| RestrictedExpression::new_string(name.clone())))
}

impl From<Unfit> for Why {
    fn from(unfit: Unfit) -> Self {
        Self::Unrepresentable { at: unfit.pointer() }
    }
}
