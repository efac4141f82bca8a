//! What the conditions of a policy say of a session, before there is any call.
//!
//! A condition that speaks of the principal, the action, or what is acted on by its tenant and type is known for a session
//! as soon as there is one. One that speaks of anything else may turn out either way. So a permit may be known to hold for
//! no call of a session, and a forbid for all of them, and the tool is not there for that session.
//!
//! An evaluation that errs counts as the answer that denies: Cedar passes over a permit that errs, and the gate denies
//! whatever any policy erred on. So `unknown && false` is false and `unknown || true` is true.
//!
//! Cedar's own partial evaluation (`tpe`) is not used: it is experimental, with no promise of stability, and it checks the
//! types of every policy anew at each question, where this one is asked for every tool of every list.

use std::str::FromStr;

use cedar_policy::pst::{self, BinaryOp, Clause, Expr, Literal, UnaryOp, Var};
use cedar_policy::{EntityId, EntityTypeName, EntityUid, PrincipalConstraint, ResourceConstraint};

use super::schema::{ACTION, ToolShape};
use super::slices::{Resource, What, Who};
use crate::session::Session;

/// A condition as far as it can be known before a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Condition {
    Always,
    Never,
    /// It depends on the call.
    Open,
    Principal(PrincipalConstraint),
    Resource(ResourceConstraint),
    /// The action is one of these or, with `groups`, in one of them.
    Action {
        among: Vec<EntityUid>,
        groups: bool,
    },
    Not(Box<Condition>),
    All(Vec<Condition>),
    Any(Vec<Condition>),
}

/// A condition for the calls of one tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Settled {
    Always,
    Never,
    Open,
    Who(Who),
    What(What),
    Not(Box<Settled>),
    All(Vec<Settled>),
    Any(Vec<Settled>),
}

/// How deep an `if` may stand in what another one asks. Deeper ones may turn out either way.
const MOST_IFS: usize = 4;

impl Condition {
    /// What must hold for the policy to apply, its head aside.
    pub(super) fn of(clauses: &[Clause]) -> Self {
        let all = clauses.iter().map(|clause| match clause {
            Clause::When(expression) => Self::read(expression, 0),
            Clause::Unless(expression) => Self::Not(Box::new(Self::read(expression, 0))),
        });
        Self::All(all.collect())
    }

    fn read(expression: &Expr, ifs: usize) -> Self {
        let read = |expression: &Expr| Self::read(expression, ifs);
        match expression {
            Expr::Literal(Literal::Bool(true)) => Self::Always,
            Expr::Literal(Literal::Bool(false)) => Self::Never,
            Expr::UnaryOp { op: UnaryOp::Not, expr } => Self::Not(Box::new(read(expr))),
            Expr::BinaryOp { op: BinaryOp::And, left, right } => Self::All(vec![read(left), read(right)]),
            Expr::BinaryOp { op: BinaryOp::Or, left, right } => Self::Any(vec![read(left), read(right)]),
            Expr::BinaryOp { op: BinaryOp::Eq, left, right } => Self::equal(left, right),
            Expr::BinaryOp { op: BinaryOp::NotEq, left, right } => Self::Not(Box::new(Self::equal(left, right))),
            Expr::BinaryOp { op: BinaryOp::In, left, right } => Self::inside(left, right),
            Expr::Is { expr, entity_type, in_expr } => {
                let is = Self::is(expr, entity_type);
                match in_expr {
                    Some(within) => Self::All(vec![is, Self::inside(expr, within)]),
                    None => is,
                }
            }
            // What it asks stands in both of its branches: asked within one another they double with each.
            Expr::IfThenElse { .. } if ifs >= MOST_IFS => Self::Open,
            Expr::IfThenElse { cond, then_expr, else_expr } => {
                let asked = Self::read(cond, ifs + 1);
                let not = Self::Not(Box::new(asked.clone()));
                let (then, other) = (read(then_expr), read(else_expr));
                Self::Any(vec![Self::All(vec![asked, then]), Self::All(vec![not, other])])
            }
            // It depends on values of the call, or is an expression of a later Cedar.
            _ => Self::Open,
        }
    }

    fn equal(left: &Expr, right: &Expr) -> Self {
        match (left, right) {
            (Expr::Var(var), other) | (other, Expr::Var(var)) => match (var, entity(other)) {
                (Var::Principal, Some(entity)) => Self::Principal(PrincipalConstraint::Eq(entity)),
                (Var::Resource, Some(entity)) => Self::Resource(ResourceConstraint::Eq(entity)),
                (Var::Action, Some(entity)) => Self::Action { among: vec![entity], groups: false },
                (Var::Principal | Var::Resource | Var::Action | Var::Context, _) => Self::Open,
            },
            _ => Self::Open,
        }
    }

    fn inside(of: &Expr, within: &Expr) -> Self {
        let (Expr::Var(var), Some(within)) = (of, entities(within)) else { return Self::Open };
        match var {
            Var::Principal => {
                Self::Any(within.into_iter().map(|one| Self::Principal(PrincipalConstraint::In(one))).collect())
            }
            Var::Resource => {
                Self::Any(within.into_iter().map(|one| Self::Resource(ResourceConstraint::In(one))).collect())
            }
            Var::Action => Self::Action { among: within, groups: true },
            Var::Context => Self::Open,
        }
    }

    fn is(of: &Expr, kind: &pst::EntityType) -> Self {
        let (Expr::Var(var), Ok(kind)) = (of, EntityTypeName::from_str(&kind.to_string())) else { return Self::Open };
        match var {
            Var::Principal => Self::Principal(PrincipalConstraint::Is(kind)),
            Var::Resource => Self::Resource(ResourceConstraint::Is(kind)),
            Var::Action if kind.basename() == ACTION => Self::Always,
            Var::Action => Self::Never,
            Var::Context => Self::Open,
        }
    }

    /// The condition for calls of `tool`.
    pub(super) fn settled(&self, tool: &ToolShape<'_>, resource: &Resource) -> Settled {
        match self {
            Self::Always => Settled::Always,
            Self::Never => Settled::Never,
            Self::Open => Settled::Open,
            Self::Principal(head) => Settled::who(Who::of(head)),
            Self::Resource(head) => Settled::what(What::of(head, resource)),
            Self::Action { among, groups } => {
                let is = |action: &EntityUid| {
                    let name = action.id().unescaped();
                    let of_actions = action.type_name().basename() == ACTION;
                    of_actions && (name == tool.name || *groups && tool.groups.contains(name))
                };
                if among.iter().any(is) { Settled::Always } else { Settled::Never }
            }
            Self::Not(one) => one.settled(tool, resource).not(),
            Self::All(all) => Settled::all(all.iter().map(|one| one.settled(tool, resource))),
            Self::Any(any) => Settled::any(any.iter().map(|one| one.settled(tool, resource))),
        }
    }
}

impl Settled {
    fn who(who: Who) -> Self {
        match who {
            Who::Any => Self::Always,
            Who::Nobody => Self::Never,
            Who::User(_) | Who::Role(_) | Who::Tenant(_) => Self::Who(who),
        }
    }

    fn what(what: What) -> Self {
        match what {
            What::All => Self::Always,
            What::None => Self::Never,
            What::One => Self::Open,
            What::InTenant(_) => Self::What(what),
        }
    }

    fn not(self) -> Self {
        match self {
            Self::Always => Self::Never,
            Self::Never => Self::Always,
            Self::Open => Self::Open,
            Self::Not(one) => *one,
            Self::Who(_) | Self::What(_) | Self::All(_) | Self::Any(_) => Self::Not(Box::new(self)),
        }
    }

    fn all(all: impl Iterator<Item = Self>) -> Self {
        let mut left: Vec<Self> = Vec::new();
        for one in all {
            match one {
                Self::Always => {}
                Self::Never => return Self::Never,
                Self::All(more) => left.extend(more),
                Self::Open | Self::Who(_) | Self::What(_) | Self::Not(_) | Self::Any(_) => left.push(one),
            }
        }
        Self::alone(left, Self::Always, Self::All)
    }

    fn any(any: impl Iterator<Item = Self>) -> Self {
        let mut left: Vec<Self> = Vec::new();
        for one in any {
            match one {
                Self::Never => {}
                Self::Always => return Self::Always,
                Self::Any(more) => left.extend(more),
                Self::Open | Self::Who(_) | Self::What(_) | Self::Not(_) | Self::All(_) => left.push(one),
            }
        }
        Self::alone(left, Self::Never, Self::Any)
    }

    /// One for `several`, or `none` of them.
    fn alone(several: Vec<Self>, none: Self, together: fn(Vec<Self>) -> Self) -> Self {
        let mut distinct: Vec<Self> = Vec::with_capacity(several.len());
        for one in several {
            if !distinct.contains(&one) {
                distinct.push(one);
            }
        }
        if distinct.len() > 1 {
            return together(distinct);
        }
        distinct.pop().unwrap_or(none)
    }

    /// Whether it holds for the calls of this session; `None` where that depends on the call.
    pub(super) fn holds(&self, session: &Session) -> Option<bool> {
        match self {
            Self::Always => Some(true),
            Self::Never => Some(false),
            Self::Open => None,
            Self::Who(who) => Some(who.is(session)),
            Self::What(what) => match (what.may_hold(session.tenant()), what.must_hold(session.tenant())) {
                (false, _) => Some(false),
                (true, true) => Some(true),
                (true, false) => None,
            },
            Self::Not(one) => one.holds(session).map(|holds| !holds),
            Self::All(all) => several(all, session, false),
            Self::Any(any) => several(any, session, true),
        }
    }
}

/// Whether one of `several` decides by being `decisive`, or none can.
fn several(several: &[Settled], session: &Session, decisive: bool) -> Option<bool> {
    let mut known = Some(!decisive);
    for one in several {
        match one.holds(session) {
            Some(holds) if holds == decisive => return Some(decisive),
            Some(_) => {}
            None => known = None,
        }
    }
    known
}

/// The entity that an expression names.
fn entity(expression: &Expr) -> Option<EntityUid> {
    match expression {
        Expr::Literal(Literal::EntityUID(uid)) => {
            let kind = EntityTypeName::from_str(&uid.ty.to_string()).ok()?;
            Some(EntityUid::from_type_name_and_id(kind, EntityId::new(uid.eid.as_str())))
        }
        _ => None,
    }
}

/// The entities that an expression names, one or a set.
fn entities(expression: &Expr) -> Option<Vec<EntityUid>> {
    match expression {
        Expr::Set(items) => items.iter().map(|item| entity(item)).collect(),
        one => entity(one).map(|entity| vec![entity]),
    }
}
