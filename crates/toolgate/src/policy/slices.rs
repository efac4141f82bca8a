//! The policies of one action, and what can be known of them before any call.

use std::collections::HashSet;
use std::str::FromStr;
use std::sync::Arc;

use cedar_policy::{
    Effect, Entities, Entity, EntityTypeName, EntityUid, PolicySet, PrincipalConstraint, ResourceConstraint,
};

use serde_json::{Value, json};

use super::conditions::Settled;
use super::load::Rule;
use super::schema::{ACTION, ROLE, TENANT, TOOL, ToolShape, USER, entity};
use super::shape::{Field, Reads, Shape};
use crate::json::{Digest, canonical};
use crate::runs::Tracked;
use crate::session::Session;

/// The entity types of every request.
#[derive(Debug)]
pub(super) struct Kinds {
    pub(super) user: EntityTypeName,
    pub(super) role: EntityTypeName,
    pub(super) tenant: EntityTypeName,
}

/// The policies that speak of one tool, and the fixed parts of its requests.
#[derive(Debug)]
pub(super) struct Slice {
    pub(super) action: EntityUid,
    /// The action in its groups, and the tool where it is the resource; each call adds its own entities.
    pub(super) entities: Entities,
    pub(super) resource: Resource,
    /// What the policies of the slice read of the context.
    /// INVARIANT (read in full): each path that one of the rules names is in here, so leaving out the rest changes no
    /// decision.
    pub(super) context: Shape,
    pub(super) policies: PolicySet,
    pub(super) permits: PolicySet,
    /// By id.
    pub(super) rules: Vec<Arc<Rule>>,
    pub(super) may_ask: bool,
    /// What they read of the run of whoever asks.
    pub(super) tracked: Tracked,
    pub(super) digest: Digest,
    admits: Vec<Head>,
    bars: Vec<Head>,
}

/// What a call acts on.
#[derive(Debug)]
pub(super) enum Resource {
    /// The tool itself.
    Tool(EntityUid),
    /// Something of this type, in the session's tenant.
    Of(EntityTypeName),
}

/// What of a policy is known before a call.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Head {
    who: Who,
    what: What,
    when: Settled,
}

/// The principals that the head of a policy matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Who {
    Any,
    User(String),
    Role(String),
    Tenant(String),
    Nobody,
}

/// The resources that the head of a policy matches, among those of one tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum What {
    All,
    One,
    InTenant(String),
    None,
}

impl Kinds {
    /// The types, unless Cedar has come to refuse their names.
    pub(super) fn new() -> Option<Self> {
        let kind = |name: &str| EntityTypeName::from_str(name).ok();
        Some(Self { user: kind(USER)?, role: kind(ROLE)?, tenant: kind(TENANT)? })
    }
}

impl Slice {
    /// The slice of `tool` with its rules.
    pub(super) fn new(tool: &ToolShape<'_>, mut rules: Vec<Arc<Rule>>) -> Option<Self> {
        rules.sort_by(|a, b| a.id.cmp(&b.id));
        let kind = |name: &str| EntityTypeName::from_str(name).ok();
        let action_kind = kind(ACTION)?;
        let action = entity(&action_kind, tool.name);
        let groups = tool.groups.iter().map(|group| entity(&action_kind, group)).collect();
        let resource = match tool.resource {
            Some(name) => Resource::Of(kind(name)?),
            None => Resource::Tool(entity(&kind(TOOL)?, tool.name)),
        };
        let mut reads = Reads::default();
        for path in rules.iter().flat_map(|rule| &rule.paths) {
            reads.add(&path.members, path.used);
        }
        let set = |permits_only: bool| {
            let chosen = rules.iter().filter(|rule| !permits_only || rule.effect == Effect::Permit);
            PolicySet::from_policies(chosen.map(|rule| rule.policy.clone())).ok()
        };
        let heads = |wanted: &dyn Fn(&Rule) -> bool| {
            let mut heads: Vec<Head> = Vec::new();
            for rule in rules.iter().filter(|rule| wanted(rule)) {
                let head = Head {
                    who: Who::of(&rule.principal),
                    what: What::of(&rule.resource, &resource),
                    when: rule.condition.settled(tool, &resource),
                };
                if !heads.contains(&head) {
                    heads.push(head);
                }
            }
            heads
        };
        let mut fixed = vec![Entity::new_no_attrs(action.clone(), groups)];
        if let Resource::Tool(tool) = &resource {
            fixed.push(Entity::new_no_attrs(tool.clone(), HashSet::new()));
        }
        let context = tool.context.pruned(&reads);
        Some(Self {
            entities: Entities::from_entities(fixed, None).ok()?,
            action,
            tracked: tracked(&context),
            context,
            policies: set(false)?,
            permits: set(true)?,
            may_ask: rules.iter().any(|rule| rule.approvers.is_some()),
            digest: digest(&rules),
            admits: heads(&|rule| rule.effect == Effect::Permit),
            bars: heads(&|rule| rule.effect == Effect::Forbid && rule.message.is_none()),
            resource,
            rules,
        })
    }

    /// The rule with this id.
    pub(super) fn rule(&self, id: &str) -> Option<&Arc<Rule>> {
        let place = self.rules.binary_search_by(|rule| rule.id.as_str().cmp(id)).ok()?;
        self.rules.get(place)
    }

    /// Whether some call of this session could be permitted, as far as that is known before a call.
    pub(super) fn visible(&self, session: &Session) -> bool {
        self.admits.iter().any(|head| head.may_hold(session)) && !self.bars.iter().any(|head| head.must_hold(session))
    }
}

impl Head {
    fn may_hold(&self, session: &Session) -> bool {
        let (who, what) = (self.who.is(session), self.what.may_hold(session.tenant()));
        who && what && self.when.holds(session) != Some(false)
    }

    fn must_hold(&self, session: &Session) -> bool {
        let (who, what) = (self.who.is(session), self.what.must_hold(session.tenant()));
        who && what && self.when.holds(session) == Some(true)
    }
}

impl Who {
    pub(super) fn of(head: &PrincipalConstraint) -> Self {
        match head {
            PrincipalConstraint::Any => Self::Any,
            PrincipalConstraint::Is(kind) if kind.basename() == USER => Self::Any,
            PrincipalConstraint::Is(_) => Self::Nobody,
            PrincipalConstraint::Eq(entity) if entity.type_name().basename() == USER => Self::User(id(entity)),
            PrincipalConstraint::Eq(_) => Self::Nobody,
            PrincipalConstraint::IsIn(kind, _) if kind.basename() != USER => Self::Nobody,
            PrincipalConstraint::In(entity) | PrincipalConstraint::IsIn(_, entity) => {
                match entity.type_name().basename() {
                    USER => Self::User(id(entity)),
                    ROLE => Self::Role(id(entity)),
                    TENANT => Self::Tenant(id(entity)),
                    _ => Self::Nobody,
                }
            }
        }
    }

    pub(super) fn is(&self, session: &Session) -> bool {
        match self {
            Self::Any => true,
            Self::User(user) => session.principal().canonical() == *user,
            Self::Role(role) => session.roles().contains(role),
            Self::Tenant(tenant) => session.tenant() == tenant,
            Self::Nobody => false,
        }
    }
}

impl What {
    pub(super) fn of(head: &ResourceConstraint, resource: &Resource) -> Self {
        let fits = |kind: &EntityTypeName| match resource {
            Resource::Tool(tool) => tool.type_name() == kind,
            Resource::Of(own) => own == kind,
        };
        // A thing is in itself, and things of a tenant are in that tenant.
        let one = |entity: &EntityUid| match resource {
            Resource::Tool(tool) if tool == entity => Self::All,
            Resource::Of(own) if own == entity.type_name() => Self::One,
            _ => Self::None,
        };
        match head {
            ResourceConstraint::Any => Self::All,
            ResourceConstraint::Is(kind) if fits(kind) => Self::All,
            ResourceConstraint::Is(_) => Self::None,
            ResourceConstraint::Eq(entity) => one(entity),
            ResourceConstraint::IsIn(kind, _) if !fits(kind) => Self::None,
            ResourceConstraint::In(entity) | ResourceConstraint::IsIn(_, entity) => match resource {
                Resource::Of(_) if entity.type_name().basename() == TENANT => Self::InTenant(id(entity)),
                Resource::Of(_) | Resource::Tool(_) => one(entity),
            },
        }
    }

    pub(super) fn may_hold(&self, tenant: &str) -> bool {
        match self {
            Self::All | Self::One => true,
            Self::InTenant(own) => own == tenant,
            Self::None => false,
        }
    }

    pub(super) fn must_hold(&self, tenant: &str) -> bool {
        match self {
            Self::All => true,
            Self::InTenant(own) => own == tenant,
            Self::One | Self::None => false,
        }
    }
}

/// What is read of the run, in a context that is cut to what is read.
fn tracked(context: &Shape) -> Tracked {
    let members = |shape: &Shape, name: &str| match shape {
        Shape::Record(fields) => {
            fields.iter().find(|field| field.name == name).map(|Field { shape, .. }| shape.clone())
        }
        Shape::Text | Shape::Long | Shape::Bool | Shape::Decimal | Shape::Number | Shape::Set(_) | Shape::Opaque(_) => {
            None
        }
    };
    let session = members(context, "session");
    let reads = |name| session.as_ref().is_some_and(|session| members(session, name).is_some());
    Tracked { completed: reads("completed"), calls: reads("calls"), labels: reads("labels") }
}

/// The digest of what the rules say, whatever file they stand in.
fn digest(rules: &[Arc<Rule>]) -> Digest {
    let said: Vec<Value> = rules.iter().map(|rule| json!([rule.id, rule.text])).collect();
    Digest::of(canonical(&Value::Array(said)).as_bytes())
}

fn id(entity: &EntityUid) -> String {
    entity.id().unescaped().to_owned()
}
