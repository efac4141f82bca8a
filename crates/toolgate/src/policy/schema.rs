//! The Cedar schema of a gate, generated from its contracts.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::str::FromStr;

use cedar_policy::{EntityId, EntityTypeName, EntityUid, Schema};

use super::fault::{PolicyCode, PolicyFault, suggest};
use super::shape::{Field, Opaque, Shape};
use super::text::quoted;
use super::{FactShape, PolicyTool};

/// The entity types that every gate has.
pub(super) const ROLE: &str = "Role";
pub(super) const TENANT: &str = "Tenant";
pub(super) const USER: &str = "User";
pub(super) const TOOL: &str = "Tool";
pub(super) const ACTION: &str = "Action";

/// Names that a resource cannot have: those above, and those of Cedar's own types.
const TAKEN: [&str; 17] = [
    ROLE,
    TENANT,
    USER,
    TOOL,
    ACTION,
    "String",
    "Long",
    "Bool",
    "Boolean",
    "Set",
    "Record",
    "Entity",
    "Extension",
    "decimal",
    "ipaddr",
    "datetime",
    "duration",
];

/// The contracts as policies see them.
#[derive(Debug)]
pub(super) struct Vocabulary<'a> {
    pub(super) tools: Vec<ToolShape<'a>>,
    places: BTreeMap<&'a str, usize>,
    /// Every group of actions, with the places of its tools in `tools`.
    pub(super) groups: BTreeMap<String, Vec<usize>>,
}

/// One tool as policies see it.
#[derive(Debug)]
pub(super) struct ToolShape<'a> {
    pub(super) name: &'a str,
    pub(super) groups: BTreeSet<String>,
    /// The entity type of what is acted on, where the contract names one.
    pub(super) resource: Option<&'a str>,
    pub(super) facts: &'a [FactShape<'a>],
    /// What its answers give to a run.
    pub(super) labels: &'a BTreeSet<String>,
    pub(super) context: Shape,
}

/// The schema in both of its forms.
#[derive(Debug)]
pub(super) struct Generated {
    pub(super) text: String,
    pub(super) schema: Schema,
}

impl<'a> Vocabulary<'a> {
    /// The vocabulary of `tools`, and what is wrong with their names.
    pub(super) fn of(tools: &'a [PolicyTool<'a>]) -> (Self, Vec<PolicyFault>) {
        let mut groups: BTreeMap<String, Vec<usize>> =
            ["read", "write"].map(|name| (name.to_owned(), Vec::new())).into();
        let mut shapes = Vec::with_capacity(tools.len());
        let places = tools.iter().enumerate().map(|(place, tool)| (tool.name, place)).collect();
        for (place, tool) in tools.iter().enumerate() {
            let shape = ToolShape::of(tool);
            for group in &shape.groups {
                groups.entry(group.clone()).or_default().push(place);
            }
            shapes.push(shape);
        }
        let vocabulary = Self { tools: shapes, places, groups };
        let faults = vocabulary.faults();
        (vocabulary, faults)
    }

    fn faults(&self) -> Vec<PolicyFault> {
        let mut faults = Vec::new();
        let mut seen = BTreeSet::new();
        for tool in &self.tools {
            if self.groups.contains_key(tool.name) {
                let hint = Some("give the tool another name".to_owned());
                faults.push(PolicyFault::in_contract(
                    tool.name,
                    PolicyCode::Contract,
                    "a group of actions has the name of this tool",
                    hint,
                ));
            }
            if !seen.insert(tool.name) {
                faults.push(PolicyFault::in_contract(
                    tool.name,
                    PolicyCode::Contract,
                    "two tools have this name",
                    None,
                ));
            }
            let Some(resource) = tool.resource else { continue };
            if TAKEN.contains(&resource) || resource.contains("::") || EntityTypeName::from_str(resource).is_err() {
                let hint =
                    Some("a name like `Order`: letters, digits and `_`, and none that policies use already".to_owned());
                faults.push(PolicyFault::in_contract(
                    tool.name,
                    PolicyCode::Contract,
                    "resource.type cannot name an entity in policies",
                    hint,
                ));
            }
        }
        faults
    }

    /// The places of the tools that are `action` or in it; `None` if there is no such action.
    pub(super) fn members(&self, action: &EntityUid) -> Option<Vec<usize>> {
        let name = action.id().unescaped();
        self.groups.get(name).cloned().or_else(|| self.place(action).map(|place| vec![place]))
    }

    /// The place of the tool that `action` is.
    pub(super) fn place(&self, action: &EntityUid) -> Option<usize> {
        self.places.get(action.id().unescaped()).copied()
    }

    /// Whether `action` is a group of tools and no tool itself.
    pub(super) fn is_group(&self, action: &EntityUid) -> bool {
        self.groups.contains_key(action.id().unescaped())
    }

    /// The hint for an unknown action.
    pub(super) fn suggest_action(&self, name: &str) -> Option<String> {
        suggest(name, self.tools.iter().map(|tool| tool.name).chain(self.groups.keys().map(String::as_str)))
    }

    /// The hint for an unknown entity type.
    pub(super) fn suggest_type(&self, name: &str) -> Option<String> {
        suggest(
            name,
            [ROLE, TENANT, USER, TOOL, ACTION].into_iter().chain(self.tools.iter().filter_map(|t| t.resource)),
        )
    }

    /// The schema as Cedar reads it.
    pub(super) fn generate(&self) -> Result<Generated, PolicyFault> {
        let text = self.text();
        match Schema::from_cedarschema_str(&text) {
            Ok((schema, _warnings)) => Ok(Generated { text, schema }),
            Err(_) => Err(PolicyFault::of_the_gate("Cedar does not accept the schema that was made of the contracts")),
        }
    }

    /// The schema in Cedar's human syntax. Writing to a string cannot fail.
    fn text(&self) -> String {
        let mut out =
            format!("entity {ROLE};\nentity {TENANT};\nentity {USER} in [{ROLE}, {TENANT}];\nentity {TOOL};\n");
        let resources: BTreeSet<&str> = self.tools.iter().filter_map(|tool| tool.resource).collect();
        for resource in resources {
            let _ = writeln!(out, "entity {resource} in [{TENANT}];");
        }
        out.push('\n');
        for group in self.groups.keys() {
            let _ = writeln!(out, "action {};", quoted(group));
        }
        for tool in &self.tools {
            let groups: Vec<String> = tool.groups.iter().map(|group| quoted(group)).collect();
            let _ = write!(
                out,
                "\naction {} in [{}] appliesTo {{\n  principal: [{USER}],\n  resource: [{}],\n  context: {},\n}};\n",
                quoted(tool.name),
                groups.join(", "),
                tool.resource.unwrap_or(TOOL),
                tool.context.cedar_type(1),
            );
        }
        out
    }
}

impl<'a> ToolShape<'a> {
    fn of(tool: &'a PolicyTool<'a>) -> Self {
        let effect = if tool.write { "write" } else { "read" };
        let groups = std::iter::once(effect.to_owned())
            .chain(tool.tags.iter().map(|tag| format!("tag:{tag}")))
            .chain(tool.groups.iter().cloned())
            .chain(tool.sink.map(|sink| format!("sink:{sink}")))
            .collect();
        Self {
            name: tool.name,
            groups,
            resource: tool.resource,
            facts: &tool.facts,
            labels: tool.labels,
            context: context_shape(tool),
        }
    }
}

/// `Type::"id"`. The name has been proved to be one.
pub(super) fn entity(kind: &EntityTypeName, id: &str) -> EntityUid {
    EntityUid::from_type_name_and_id(kind.clone(), EntityId::new(id))
}

fn context_shape(tool: &PolicyTool<'_>) -> Shape {
    let field = |name: &str, shape, required| Field { name: name.to_owned(), shape, required };
    let input = match Shape::of(tool.input).0 {
        // A tool without arguments.
        Shape::Opaque(Opaque::FreeForm | Opaque::Untyped) if has_no_members(tool.input) => Shape::Record(Vec::new()),
        shape => shape,
    };
    let facts = tool
        .facts
        .iter()
        .map(|fact| {
            let (shape, nullable) = Shape::of(fact.output);
            field(fact.name, shape, fact.required && !nullable)
        })
        .collect();
    Shape::Record(vec![
        field("approved", Shape::Bool, true),
        field("facts", Shape::Record(facts), true),
        field("input", input, true),
        field("session", session_shape(), true),
    ])
}

/// What policies may ask of the run, beside its principal.
fn session_shape() -> Shape {
    let field = |name: &str, shape| Field { name: name.to_owned(), shape, required: true };
    Shape::Record(vec![
        field("calls", Shape::Long),
        field("completed", Shape::Set(Box::new(Shape::Text))),
        field("labels", Shape::Set(Box::new(Shape::Text))),
        field("run", Shape::Text),
    ])
}

/// Whether an arguments schema declares no member; what it does not declare is refused on admission.
fn has_no_members(input: &serde_json::Value) -> bool {
    input.as_object().is_some_and(|schema| {
        let silent = |key: &str| !schema.contains_key(key);
        ["properties", "$ref", "anyOf", "oneOf", "allOf", "enum", "const"].into_iter().all(silent)
            || schema.get("properties").and_then(serde_json::Value::as_object).is_some_and(serde_json::Map::is_empty)
    })
}
