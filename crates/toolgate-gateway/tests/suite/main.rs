//! The reference behaviours: `scenarios/*.json` through every door that there is, and the stories that data cannot tell.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::disallowed_methods,
    reason = "a test may panic, start processes, and read JSON that it wrote itself"
)]

mod codes;
mod door;
mod folder;
#[path = "../issuer/mod.rs"]
mod issuer;
mod lab;
mod pattern;
#[path = "../peers/mod.rs"]
mod peers;
mod runner;
mod scenario;
mod serve;
mod stories;

use std::path::Path;

use scenario::{GateName, Need, Scenario, Step};
use toolgate::wire::Dialect;

/// Where the scenarios are.
const SCENARIOS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios");

#[test]
fn scenarios_in_process() {
    all_hold(|scenario| Some(in_process(scenario)));
}

#[test]
fn scenarios_through_the_binary() {
    all_hold(|scenario| in_reach_of_a_process(scenario).then(|| door::Binary::new(scenario.gate)));
}

#[test]
fn scenarios_over_http() {
    all_hold(|scenario| Some(served(scenario)));
}

fn served(scenario: &Scenario) -> door::Http {
    match in_reach_of_a_process(scenario) {
        true => door::Http::processes(scenario.gate),
        false => door::Http::here(in_process(scenario)),
    }
}

fn in_process(scenario: &Scenario) -> door::InProcess {
    let clock = scenario.needs.contains(&Need::Clock);
    match scenario.gate {
        GateName::Lab => door::InProcess::lab(clock),
        GateName::Shop | GateName::RefundOrder => door::InProcess::folder(scenario.gate, clock),
    }
}

#[test]
fn scenarios_over_mcp_on_stdio_that_begins_with_a_handshake() {
    all_hold(|scenario| over_mcp(scenario, door::Era::Handshake));
}

#[test]
fn scenarios_over_mcp_on_stdio_whose_requests_stand_alone() {
    all_hold(|scenario| over_mcp(scenario, door::Era::Stateless));
}

#[test]
fn scenarios_over_mcp_on_http_that_begins_with_a_handshake() {
    all_hold(|scenario| over_mcp_on_http(scenario, door::Era::Handshake));
}

#[test]
fn scenarios_over_mcp_on_http_whose_requests_stand_alone() {
    all_hold(|scenario| over_mcp_on_http(scenario, door::Era::Stateless));
}

fn over_mcp_on_http(scenario: &Scenario, era: door::Era) -> Option<door::McpHttp> {
    door::tells(scenario).then(|| door::McpHttp::new(served(scenario), era))
}

fn over_mcp(scenario: &Scenario, era: door::Era) -> Option<door::McpStdio> {
    door::tells(scenario).then(|| match in_reach_of_a_process(scenario) {
        true => door::McpStdio::processes(scenario.gate, era),
        false => door::McpStdio::here(in_process(scenario), era),
    })
}

/// The lab is no folder, and the clock of a process is not moved.
fn in_reach_of_a_process(scenario: &Scenario) -> bool {
    scenario.gate != GateName::Lab && scenario.needs.is_empty()
}

#[test]
fn the_readme_names_every_scenario_and_no_other() {
    let readme = std::fs::read_to_string(Path::new(SCENARIOS).join("README.md")).unwrap();
    let mut named: Vec<&str> = readme.split('`').filter(|word| word.ends_with(".json")).collect();
    named.sort_unstable();
    named.dedup();
    let files: Vec<String> = scenario::all(Path::new(SCENARIOS)).into_iter().map(|(file, _)| file).collect();
    assert_eq!(named, files);
}

#[test]
fn the_scenarios_speak_every_dialect() {
    let all = scenario::all(Path::new(SCENARIOS));
    let steps = all.iter().flat_map(|(_, scenario)| &scenario.steps);
    let spoken: Vec<&str> = steps
        .filter_map(|step| match step {
            Step::Message(step) => Some(step.dialect.as_str()),
            _ => None,
        })
        .collect();
    for dialect in Dialect::ALL {
        assert!(spoken.contains(&dialect.as_str()), "no scenario has a message of {dialect}");
    }
}

/// Runs every scenario that `open` gives a door for, and tells everything that does not hold.
fn all_hold<D: door::Door>(open: impl Fn(&Scenario) -> Option<D>) {
    let mut ran = 0;
    let mut wrong = Vec::new();
    for (file, scenario) in scenario::all(Path::new(SCENARIOS)) {
        let Some(mut door) = open(&scenario) else { continue };
        ran += 1;
        if let Err(why) = runner::run(&scenario, &mut door) {
            wrong.push(format!("scenarios/{file}: {}\n  {why}", scenario.story));
        }
    }
    assert!(wrong.is_empty(), "{} of {ran} scenarios do not hold\n\n{}\n", wrong.len(), wrong.join("\n\n"));
    assert!(ran > 0, "there are no scenarios for this door");
}
