//! What a check can cost at most, from the structure of the schema alone.
//!
//! A schema costs one step at every place of a value where it applies. References and branches make one place carry
//! many schemas, and a few hundred bytes can double that number with each line. So the steps at one place are summed
//! through all references before the schema is ever used, level by level of the value, and bounded.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::SchemaFault;
use super::graph::{Graph, NodeId};
use super::keywords::Applies;

/// Schemas that apply at one place of a value, counted as often as they apply.
const MAX_STEPS: u64 = 10_000;
/// The patterns, formats and comparisons at one place, each counted as often as it applies. A text of 10 kB is held to
/// them in well under a second.
const MAX_BULK: u64 = 20_000;
/// Steps of this analysis itself.
const MAX_WORK: usize = 400_000;
/// As deep as an admitted value can be.
const LEVELS: usize = 64;
/// Schemas inside one another, references followed: the engine's stack grows with this when it compiles.
const MAX_DEPTH: usize = 128;
/// Schemas in a row that apply to one value, a branch counted twice: the engine's stack grows with this and with the
/// depth of the value.
const MAX_CHAIN: usize = 24;

/// The most that one place of a value can cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cost {
    /// Steps, whatever stands there.
    pub(super) steps: u64,
    /// Steps for each byte of what stands there.
    pub(super) bulk: u64,
}

/// How often each schema applies at one place.
type Times = BTreeMap<NodeId, u64>;

struct Budget<'a> {
    graph: &'a Graph,
    order: Vec<NodeId>,
    /// The position of each schema in `order`.
    ranks: Vec<usize>,
    work: usize,
    most: Cost,
}

/// What applies to the members (or the items) of a value.
#[derive(Default)]
struct Reach<'a> {
    /// To a member by its name; and how often the schemas of other members spare this name.
    named: HashMap<Part<'a>, (Times, Times)>,
    /// To each member, and to each that its parent doesn't name.
    every: Times,
    other: Times,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Part<'a> {
    Member(&'a str),
    Item(usize),
}

/// The cost of a check under this schema, if that is bounded well.
pub(super) fn check(graph: &Graph) -> Result<Cost, SchemaFault> {
    let order = in_place_order(graph)?;
    depth(graph)?;
    let mut ranks = vec![0; graph.nodes.len()];
    for (rank, id) in order.iter().enumerate() {
        if let Some(slot) = ranks.get_mut(id.0) {
            *slot = rank;
        }
    }
    Budget { graph, order, ranks, work: 0, most: Cost::default() }.check()
}

/// The schemas in an order in which each stands before those that it applies in place.
fn in_place_order(graph: &Graph) -> Result<Vec<NodeId>, SchemaFault> {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        New,
        Open,
        Done,
    }
    let mut marks = vec![Mark::New; graph.nodes.len()];
    let mut heights = vec![0_usize; graph.nodes.len()];
    let mut order = Vec::with_capacity(graph.nodes.len());
    for start in (0..graph.nodes.len()).map(NodeId) {
        let mut stack = vec![(start, false)];
        while let Some((id, left)) = stack.pop() {
            let (Some(mark), Some(node)) = (marks.get_mut(id.0), graph.node(id)) else { continue };
            let inner = node.edges.iter().filter(|(applies, _)| applies.in_place());
            if left {
                *mark = Mark::Done;
                let weight = |applies| if applies == Applies::All { 1 } else { 2 };
                let height =
                    inner.filter_map(|(applies, to)| Some(heights.get(to.0)? + weight(*applies))).max().unwrap_or(0);
                if height > MAX_CHAIN {
                    return Err(fault(
                        &node.at,
                        "more than 24 schemas in a row apply to one value",
                        "merge some of them",
                    ));
                }
                if let Some(slot) = heights.get_mut(id.0) {
                    *slot = height;
                }
                order.push(id);
                continue;
            }
            if *mark != Mark::New {
                continue;
            }
            *mark = Mark::Open;
            stack.push((id, true));
            for (_, to) in inner {
                match marks.get(to.0) {
                    Some(Mark::New) => stack.push((*to, false)),
                    Some(Mark::Open) => {
                        return Err(fault(
                            &node.at,
                            "refers to itself without going deeper into the value",
                            "recurse through properties or items",
                        ));
                    }
                    _ => {}
                }
            }
        }
    }
    order.reverse();
    Ok(order)
}

/// Walks as the engine's compiler does: depth first, each schema once.
fn depth(graph: &Graph) -> Result<(), SchemaFault> {
    let mut seen = vec![false; graph.nodes.len()];
    let mut stack = vec![(Graph::ROOT, 0)];
    while let Some((id, depth)) = stack.pop() {
        let (Some(seen), Some(node)) = (seen.get_mut(id.0), graph.node(id)) else { continue };
        if std::mem::replace(seen, true) {
            continue;
        }
        if depth > MAX_DEPTH {
            return Err(fault(&node.at, "nested more than 128 schemas deep, references followed", "flatten it"));
        }
        stack.extend(node.edges.iter().rev().map(|(_, to)| (*to, depth + 1)));
    }
    Ok(())
}

impl Budget<'_> {
    /// Level by level of the value: each kind of place that can be there, once.
    fn check(mut self) -> Result<Cost, SchemaFault> {
        let mut seen: HashSet<Times> = HashSet::new();
        let mut level = vec![Times::from([(Graph::ROOT, 1)])];
        for _ in 0..LEVELS {
            let mut below = Vec::new();
            for direct in level {
                if seen.contains(&direct) {
                    continue;
                }
                let here = self.settle(&direct)?;
                seen.insert(direct);
                below.extend(self.descend(&here)?);
            }
            level = below;
        }
        Ok(self.most)
    }

    /// All that applies at one place, given what applies there directly.
    fn settle(&mut self, direct: &Times) -> Result<Times, SchemaFault> {
        let rank = |id: &NodeId| self.ranks.get(id.0).copied().unwrap_or(0);
        let mut open: BTreeMap<usize, u64> = direct.iter().map(|(id, times)| (rank(id), *times)).collect();
        let mut settled = Times::new();
        let mut total = Cost::default();
        while let Some((next, times)) = open.pop_first() {
            let Some((id, node)) = self.order.get(next).and_then(|id| Some((*id, self.graph.node(*id)?))) else {
                continue;
            };
            total.steps = total.steps.saturating_add(times.saturating_mul(node.weight.steps.max(1)));
            total.bulk = total.bulk.saturating_add(times.saturating_mul(node.weight.bulk));
            self.work += 1 + node.edges.len();
            if total.steps > MAX_STEPS || self.work > MAX_WORK {
                return Err(multiplied(&node.at));
            }
            if total.bulk > MAX_BULK {
                return Err(heavy(&node.at));
            }
            settled.insert(id, times);
            // Where members count as evaluated only if a branch holds, the engine checks the branches a second time.
            let again = if node.unevaluated && self.branches_below(id) { 2 } else { 1 };
            for (_, to) in node.edges.iter().filter(|(applies, _)| applies.in_place()) {
                let sum = open.entry(self.ranks.get(to.0).copied().unwrap_or(0)).or_default();
                *sum = sum.saturating_add(times.saturating_mul(again));
            }
        }
        self.most.steps = self.most.steps.max(total.steps);
        self.most.bulk = self.most.bulk.max(total.bulk);
        Ok(settled)
    }

    fn branches_below(&mut self, id: NodeId) -> bool {
        let spread = self.graph.spread(&[id]);
        self.work += spread.len();
        self.graph.each(&spread).any(|node| {
            node.edges.iter().any(|(applies, _)| matches!(applies, Applies::Any | Applies::One | Applies::Sometimes))
        })
    }

    /// What applies directly one level deeper: to each member that is named, to any other one, and so for items.
    fn descend(&mut self, here: &Times) -> Result<Vec<Times>, SchemaFault> {
        let graph = self.graph;
        let (mut members, mut items) = (Reach::default(), Reach::default());
        let mut names = Times::new();
        for (node, times) in here.iter().filter_map(|(id, times)| Some((graph.node(*id)?, *times))) {
            let others = |kind| node.edges.iter().filter(move |(applies, _)| *applies == kind).map(|(_, to)| *to);
            for (name, to) in &node.members {
                members.name(Part::Member(name), *to, times, others(Applies::OtherMembers));
            }
            for (index, to) in node.positions.iter().enumerate() {
                items.name(Part::Item(index), *to, times, others(Applies::OtherItems));
            }
            for (applies, to) in &node.edges {
                let sums = match applies {
                    Applies::Pattern => &mut members.every,
                    Applies::OtherMembers => &mut members.other,
                    Applies::EveryItem => &mut items.every,
                    Applies::OtherItems => &mut items.other,
                    Applies::MemberNames => &mut names,
                    _ => continue,
                };
                add(sums, *to, times);
            }
        }
        self.work += members.cost() + items.cost();
        if self.work > MAX_WORK {
            return Err(multiplied(""));
        }
        let mut places = vec![names];
        members.places(&mut places);
        items.places(&mut places);
        places.retain(|place| !place.is_empty());
        Ok(places)
    }
}

impl<'a> Reach<'a> {
    fn name(&mut self, part: Part<'a>, to: NodeId, times: u64, spared: impl Iterator<Item = NodeId>) {
        let (own, less) = self.named.entry(part).or_default();
        add(own, to, times);
        spared.for_each(|other| add(less, other, times));
    }

    /// The entries of all places together.
    fn cost(&self) -> usize {
        (self.named.len() + 1).saturating_mul(self.every.len() + self.other.len() + 1)
    }

    fn places(self, places: &mut Vec<Times>) {
        let Self { named, every, other } = self;
        for (mut place, less) in named.into_values() {
            every.iter().for_each(|(id, times)| add(&mut place, *id, *times));
            for (id, times) in &other {
                add(&mut place, *id, times.saturating_sub(less.get(id).copied().unwrap_or(0)));
            }
            place.retain(|_, times| *times > 0);
            places.push(place);
        }
        let mut unnamed = every;
        other.iter().for_each(|(id, times)| add(&mut unnamed, *id, *times));
        places.push(unnamed);
    }
}

fn add(sums: &mut Times, id: NodeId, times: u64) {
    let sum = sums.entry(id).or_default();
    *sum = sum.saturating_add(times);
}

fn multiplied(at: &str) -> SchemaFault {
    fault(
        at,
        "the cost of a check is not bounded well: references and branches multiply to more than 10,000 schemas at one place of a value",
        "reach each shared schema, and each recursion, by one way only",
    )
}

fn heavy(at: &str) -> SchemaFault {
    fault(
        at,
        "the cost of a check is not bounded well: the patterns, formats and enums at one place of a value are too many or too large",
        "use fewer of them, with smaller counts, or list the values in one enum",
    )
}

fn fault(at: &str, message: &str, hint: &str) -> SchemaFault {
    SchemaFault { at: at.to_owned(), message: message.to_owned(), hint: Some(hint.to_owned()) }
}
