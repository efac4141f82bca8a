//! Standing grants: who may give consent beforehand, to what, and how it is taken back.

use super::Gate;
use super::records;
use crate::approval::{Approver, Approvers};
use crate::audit::Kind;
use crate::call::Ref;
use crate::contract::{Contract, Counts, unsummable};
use crate::fault::Fault;
use crate::fields::nearest;
use crate::schema::acts;
use crate::session::Session;
use crate::standing::{
    Bounds, Granting, LONGEST, Left, MOST, NotGranted, Refused, Standing, StandingGrant, StandingState, Sum,
};

impl Gate {
    /// Gives consent beforehand, in the tenant of `by`, to calls that one rule would hold up. Whoever gives it has the
    /// role that the rule names, and is another person than whoever makes the calls. Nothing runs; a call that has room
    /// is taken of the grant as it is taken of a limit.
    pub async fn grant_standing(&self, asked: &Granting, by: &Session) -> Result<Standing, NotGranted> {
        let now = self.now();
        let granted = match self.checked(asked, by) {
            Ok(grant) => {
                let record = records::standing(Kind::StandingGrant, &grant, by, now);
                self.line.store.grant(grant, record, now).await.unwrap_or_else(|_| Err(NotGranted::store()))
            }
            Err(not) => Err(not),
        };
        match granted {
            Ok(grant) => Ok(self.untouched(grant)),
            Err(not) => {
                self.recorder.put(records::not_granted(asked, by, &not, now)).await;
                Err(not)
            }
        }
    }

    /// What [`Gate::grant_standing`] would give. Nothing is given.
    pub fn dry_grant(&self, asked: &Granting, by: &Session) -> Result<Standing, NotGranted> {
        Ok(self.untouched(self.checked(asked, by)?))
    }

    /// The standing grants of the session's tenant whose time is not over, with what is left of each, in the order in
    /// which they were given.
    pub async fn standing_grants(&self, session: &Session) -> Result<Vec<Standing>, Fault> {
        let grants = self.line.store.grants(session.tenant().to_owned(), self.now()).await?;
        Ok(grants.into_iter().map(|(grant, left)| self.as_it_stands(grant, left)).collect())
    }

    /// Takes a standing grant back: no call that has not begun is covered by it any more. Whoever gave it may, and
    /// everybody else of the tenant who could have.
    pub async fn revoke_standing(&self, id: &str, by: &Session) -> Result<Standing, NotGranted> {
        let now = self.now();
        let (who, writer) = (by.clone(), by.clone());
        let may = Box::new(move |grant: &StandingGrant| match grant.tenant == who.tenant() {
            true if grant.is_revoked_by(&who) => Ok(()),
            true => {
                let message = format!("this needs whoever gave it, or another person with the role {}", grant.role);
                Err(NotGranted::new(Refused::NotYours, message))
            }
            false => Err(NotGranted::missing()),
        });
        let record =
            Box::new(move |grant: &StandingGrant| records::standing(Kind::StandingRevoked, grant, &writer, now));
        let revoked = self.line.store.revoke(id.to_owned(), may, record, now).await;
        let revoked = revoked.unwrap_or_else(|_| Err(NotGranted::store()));
        match revoked {
            Ok((grant, left)) => Ok(Standing { grant, left, state: StandingState::Revoked }),
            Err(not) => {
                self.recorder.put(records::not_revoked(id, by, &not, now)).await;
                Err(not)
            }
        }
    }

    /// The grant that is asked for, if `by` may give it.
    fn checked(&self, asked: &Granting, by: &Session) -> Result<StandingGrant, NotGranted> {
        let contract = self.tool_of(asked, by)?;
        let role = self.role_of(asked, by)?;
        if !is_name(&asked.to.issuer) || !is_name(&asked.to.subject) {
            return Err(NotGranted::new(Refused::Unfit, "nobody can have the name of whom it is given to"));
        }
        if &asked.to == by.principal() {
            let message = "nobody consents beforehand to their own calls: another person must";
            return Err(NotGranted::new(Refused::NotYours, message));
        }
        if !by.roles().contains(&role) {
            let message = format!("this needs another person with the role {role}");
            return Err(NotGranted::new(Refused::NotYours, message));
        }
        let bounds = bounds(asked, contract)?;
        if asked.lasts.is_zero() || asked.lasts > LONGEST {
            let message = "a standing grant lasts more than no time, and at most 30 days";
            return Err(NotGranted::new(Refused::Unfit, message));
        }
        let now = self.now();
        Ok(StandingGrant {
            id: format!("stg_{}", Ref::fresh()),
            tool: asked.tool.clone(),
            rule: asked.rule.clone(),
            role,
            tenant: by.tenant().to_owned(),
            to: asked.to.clone(),
            given_by: Approver { principal: by.principal().clone(), roles: by.roles().iter().cloned().collect() },
            bounds,
            slice: self.line.policies.slice_digest(&asked.tool),
            contract: contract.digest,
            created_at: now,
            expires_at: now.after(asked.lasts),
        })
    }

    /// INVARIANT (hidden is absent): a tool that the session may not see is there only for whoever answers what its rules
    /// ask.
    fn tool_of(&self, asked: &Granting, by: &Session) -> Result<&Contract, NotGranted> {
        let visible = self.tools(by);
        let answers = |contract: &&Contract| self.answered(contract.name(), by).next().is_some();
        let theirs =
            |contract: &&Contract| visible.iter().any(|seen| seen.name() == contract.name()) || answers(contract);
        let found = self.line.registry.get(&asked.tool).map(|tool| &*tool.contract).filter(theirs);
        found.ok_or_else(|| {
            let names = || self.contracts().filter(theirs).map(Contract::name);
            let hint = nearest(&asked.tool, names()).unwrap_or_else(|| known(names()));
            NotGranted::new(Refused::Unfit, "the gate has no tool of this name").hint(hint)
        })
    }

    /// The rules of a tool that ask for a role which this session has.
    fn answered<'s>(&'s self, tool: &str, by: &'s Session) -> impl Iterator<Item = &'s str> {
        let rules = self.line.policies.asking(tool);
        rules.filter_map(|(id, approvers)| match approvers {
            Approvers::Role(role) if by.roles().contains(role) => Some(id),
            Approvers::Role(_) | Approvers::Requester => None,
        })
    }

    /// The role that the rule is answered with.
    fn role_of(&self, asked: &Granting, by: &Session) -> Result<String, NotGranted> {
        let rules = || self.line.policies.asking(&asked.tool);
        match rules().find(|(id, _)| *id == asked.rule).map(|(_, approvers)| approvers) {
            Some(Approvers::Role(role)) => Ok(role.clone()),
            Some(Approvers::Requester) => {
                let message = "this rule asks for the requester's own confirmation, which nobody gives beforehand";
                Err(NotGranted::new(Refused::Unfit, message))
            }
            None => {
                let ids = || self.answered(&asked.tool, by);
                let hint = match ids().next() {
                    Some(_) => nearest(&asked.rule, ids()).unwrap_or_else(|| known(ids())),
                    None => "no rule of this tool asks you for consent: nothing is to be granted".to_owned(),
                };
                Err(NotGranted::new(Refused::Unfit, "no rule of this tool that asks for consent has this id")
                    .hint(hint))
            }
        }
    }

    /// A grant of which nothing was taken yet.
    fn untouched(&self, grant: StandingGrant) -> Standing {
        let left = Left { calls: grant.bounds.calls, sum: grant.bounds.sum.as_ref().map(|sum| sum.max) };
        self.as_it_stands(grant, left)
    }

    /// A grant of the store, with what this gate knows of it.
    fn as_it_stands(&self, grant: StandingGrant, left: Left) -> Standing {
        let state = if left.is_nothing() { StandingState::UsedUp } else { StandingState::Active };
        let voided = self.voided(&grant);
        let standing = Standing { grant, left, state };
        match voided {
            Some(state) => standing.but(state),
            None => standing,
        }
    }

    /// Why a grant covers nothing, whatever is left of it.
    fn voided(&self, grant: &StandingGrant) -> Option<StandingState> {
        let contract = self.line.registry.get(&grant.tool).map(|tool| tool.contract.digest);
        if grant.expires_at <= self.now() {
            Some(StandingState::Expired)
        } else if contract != Some(grant.contract) {
            Some(StandingState::OtherContract)
        } else if grant.slice != self.line.policies.slice_digest(&grant.tool) {
            Some(StandingState::OtherPolicies)
        } else {
            let still = self.line.permit.has_role(&grant.given_by, &grant.role, &grant.tenant);
            (!still).then_some(StandingState::GiverWithoutRole)
        }
    }
}

/// How much is asked for, with what is summed.
fn bounds(asked: &Granting, contract: &Contract) -> Result<Bounds, NotGranted> {
    let unfit = |message: &str| NotGranted::new(Refused::Unfit, message);
    if asked.calls.is_none() && asked.sum.is_none() {
        return Err(unfit("a standing grant has a bound: how many calls, or how much of an argument together"));
    }
    if asked.calls.into_iter().chain(asked.sum).any(|most| !(1..=MOST).contains(&most)) {
        return Err(unfit("expected a whole number from 1").hint(format!("at most {MOST}")));
    }
    let sum = match (asked.sum, &asked.of) {
        (None, None) => None,
        (None, Some(_)) => return Err(unfit("an argument is named, and not how much of it")),
        (Some(max), Some(of)) => Some(Sum { of: of.clone(), max }),
        (Some(max), None) => Some(Sum { of: summed(contract)?, max }),
    };
    if let Some((_, message, hint)) = sum.as_ref().and_then(|sum| unsummable(&sum.of, contract.input())) {
        return Err(unfit(message).hint(hint));
    }
    Ok(Bounds { calls: asked.calls, sum })
}

/// The argument that the limits of a tool sum, where they sum one alone.
fn summed(contract: &Contract) -> Result<String, NotGranted> {
    let mut sums: Vec<&str> = contract.limits.iter().filter_map(|limit| limit.counts.summed()).collect();
    sums.sort_unstable();
    sums.dedup();
    match sums.as_slice() {
        [one] => Ok((*one).to_owned()),
        [] => {
            let countable = |name: &String| unsummable(&format!("/{name}"), contract.input()).is_none();
            let names = contract.input().members().into_iter().filter(countable).map(|name| format!("/{name}"));
            let names: Vec<String> = names.collect();
            let hint = match names.is_empty() {
                true => "no argument of this tool can be summed: bound the number of calls".to_owned(),
                false => format!("name it: {}", names.join(", ")),
            };
            Err(NotGranted::new(Refused::Unfit, "it is not said which argument is summed").hint(hint))
        }
        several => {
            let hint = format!("name one of them: {}", several.join(", "));
            Err(NotGranted::new(Refused::Unfit, "the limits of this tool sum several arguments").hint(hint))
        }
    }
}

/// Whether a person can be named so: with something that is seen, and nothing that is not.
fn is_name(text: &str) -> bool {
    !text.trim().is_empty() && text.chars().all(|c| !c.is_control() && !acts(c))
}

fn known<'a>(names: impl Iterator<Item = &'a str>) -> String {
    format!("known: {}", names.collect::<Vec<_>>().join(", "))
}

impl Counts {
    /// The argument that is summed, as a JSON pointer.
    fn summed(&self) -> Option<&str> {
        match self {
            Self::Calls => None,
            Self::Sum(pointer) => Some(pointer),
        }
    }
}
