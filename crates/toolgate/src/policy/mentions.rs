//! What a policy says about the context.

use cedar_policy::pst::{BinaryOp, Clause, Expr, Literal, Var};

/// The members of the context that a policy names.
#[derive(Debug, Default)]
pub(super) struct Mentions {
    pub(super) paths: Vec<Path>,
    /// Whether the context is used other than by naming a member of it. Then nobody can tell what the policy reads.
    pub(super) whole_context: bool,
    /// What the policy asks the run for.
    pub(super) asked: Vec<Asked>,
}

/// A text that a policy looks for among those of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// Among its labels.
    Label(String),
    /// Among the tools of which a call ended well.
    Completed(String),
}

/// A path into the context.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Path {
    pub(super) members: Vec<String>,
    /// Whether the value is used; otherwise the policy only asks whether it is there.
    pub(super) used: bool,
}

impl Mentions {
    /// What the conditions of a policy say.
    pub(super) fn of(clauses: &[Clause]) -> Self {
        let mut mentions = Self::default();
        for clause in clauses {
            match clause {
                Clause::When(expression) | Clause::Unless(expression) => mentions.read(expression),
            }
        }
        mentions
    }

    /// Whether `context.approved` is among them.
    pub(super) fn approved(&self) -> bool {
        self.paths.iter().any(|path| path.members.first().is_some_and(|first| first == "approved"))
    }

    fn read(&mut self, expression: &Expr) {
        match expression {
            Expr::Literal(_) | Expr::Slot(_) | Expr::Unknown { .. } => {}
            Expr::Var(Var::Context) => self.whole_context = true,
            Expr::Var(Var::Principal | Var::Action | Var::Resource) => {}
            Expr::GetAttr { expr, attr } => match path_of(expr) {
                Some(mut members) => {
                    members.push(attr.to_string());
                    self.paths.push(Path { members, used: true });
                }
                None => self.read(expr),
            },
            Expr::HasAttr { expr, attrs } => match path_of(expr) {
                Some(mut members) => {
                    members.extend(attrs.iter().map(ToString::to_string));
                    self.paths.push(Path { members, used: false });
                }
                None => self.read(expr),
            },
            Expr::UnaryOp { expr, .. } | Expr::Like { expr, .. } => self.read(expr),
            Expr::BinaryOp { op, left, right } => {
                if let BinaryOp::Contains | BinaryOp::ContainsAll | BinaryOp::ContainsAny = op {
                    self.ask(left, right);
                    self.ask(right, left);
                }
                self.read(left);
                self.read(right);
            }
            Expr::Is { expr, in_expr, .. } => {
                self.read(expr);
                in_expr.iter().for_each(|expression| self.read(expression));
            }
            Expr::IfThenElse { cond, then_expr, else_expr } => {
                self.read(cond);
                self.read(then_expr);
                self.read(else_expr);
            }
            Expr::Set(items) => items.iter().for_each(|item| self.read(item)),
            Expr::Record(members) => members.values().for_each(|member| self.read(member)),
            // An expression of a later Cedar: what it reads is not known.
            _ => self.whole_context = true,
        }
    }

    /// Notes the texts of `texts`, where `set` is one that a run has.
    fn ask(&mut self, set: &Expr, texts: &Expr) {
        let Some(members) = path_of(set) else { return };
        let asked = match members.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
            ["session", "labels"] => Asked::Label,
            ["session", "completed"] => Asked::Completed,
            _ => return,
        };
        self.asked.extend(texts_of(texts).into_iter().map(asked));
    }
}

/// The texts that stand in an expression as they are, one or a set.
fn texts_of(expression: &Expr) -> Vec<String> {
    match expression {
        Expr::Literal(Literal::String(text)) => vec![text.to_string()],
        Expr::Set(items) => items.iter().flat_map(|item| texts_of(item)).collect(),
        _ => Vec::new(),
    }
}

/// The members that lead from the context to `expression`, if it is such a chain.
fn path_of(expression: &Expr) -> Option<Vec<String>> {
    match expression {
        Expr::Var(Var::Context) => Some(Vec::new()),
        Expr::GetAttr { expr, attr } => {
            let mut members = path_of(expr)?;
            members.push(attr.to_string());
            Some(members)
        }
        _ => None,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    fn mentions(condition: &str) -> Mentions {
        let text = format!("permit (principal, action, resource) when {{ {condition} }};");
        let policy = cedar_policy::Policy::parse(None, text).unwrap();
        Mentions::of(policy.to_pst().unwrap().body().clauses())
    }

    fn paths(condition: &str) -> Vec<String> {
        let mark = |path: &Path| format!("{}{}", path.members.join("."), if path.used { "" } else { "?" });
        mentions(condition).paths.iter().map(mark).collect()
    }

    #[test]
    fn every_way_to_name_a_member_is_seen() {
        assert_eq!(
            paths("context.input has to.city && context[\"input\"].to.city == \"x\" && context has approved"),
            ["input.to.city?", "input.to.city", "approved?"]
        );
        assert_eq!(
            paths("if principal is User in Role::\"r\" then [context.input.a].contains(1) else {x: context.facts}.x.b"),
            ["input.a", "facts"]
        );
        assert!(mentions("!context[\"approved\"]").approved());
    }

    #[test]
    fn what_a_run_is_asked_for_is_seen_on_either_side() {
        let asked = |condition: &str| mentions(condition).asked;
        let label = |text: &str| Asked::Label(text.to_owned());
        assert_eq!(asked("context.session.labels.contains(\"a\")"), [label("a")]);
        assert_eq!(asked("[\"a\", \"b\"].containsAny(context[\"session\"].labels)"), [label("a"), label("b")]);
        let completed = Asked::Completed("get_order".to_owned());
        assert_eq!(asked("!context.session.completed.containsAll([\"get_order\"])"), [completed]);
        assert_eq!(asked("context.input.labels.contains(\"a\")"), []);
    }

    #[test]
    fn a_context_that_hides_in_a_record_is_noticed() {
        assert!(mentions("{a: context}.a.approved").whole_context);
        assert!(!mentions("context.input.a == 1").whole_context);
    }
}
