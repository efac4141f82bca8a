//! Which records: the same words for all that show some.

use clap::Args;
use clap::builder::PossibleValuesParser;
use toolgate::audit::KINDS;
use toolgate::audit::filter::Filter;
use toolgate::clock::{Millis, NotAMoment};
use toolgate::refusal::Code;

/// Which calls.
#[derive(Clone, Debug, Args)]
pub(super) struct Asked {
    /// Only of this tool
    #[arg(long, value_name = "TOOL")]
    tool: Option<String>,
    /// Only of this tenant
    #[arg(long, value_name = "TENANT")]
    tenant: Option<String>,
    /// Only of this person or program, without the tenant
    #[arg(long, value_name = "NAME")]
    principal: Option<String>,
    /// Only of the attempt with this `ref`
    #[arg(long = "ref", value_name = "REF", value_parser = reference)]
    reference: Option<String>,
    /// Only refused with this code
    #[arg(long, value_name = "CODE", value_parser = codes(), hide_possible_values = true)]
    code: Option<String>,
    /// From this day or moment on, such as 2026-01-31
    ///
    /// A moment is written as 2026-01-31T09:30:00Z.
    #[arg(long, value_name = "TIME", value_parser = moment)]
    since: Option<Millis>,
    /// Before this day or moment
    #[arg(long, value_name = "TIME", value_parser = moment)]
    until: Option<Millis>,
}

/// Which records.
#[derive(Debug, Args)]
pub(super) struct Filtered {
    #[command(flatten)]
    asked: Asked,
    /// Only of this kind
    #[arg(long, value_name = "KIND", value_parser = PossibleValuesParser::new(KINDS), hide_possible_values = true)]
    kind: Option<String>,
    /// Only with this effect: none, done or unknown
    #[arg(long, value_name = "EFFECT", value_parser = ["none", "done", "unknown"], hide_possible_values = true)]
    effect: Option<String>,
}

impl Filtered {
    pub(super) fn filter(self) -> Filter {
        let Self { asked, kind, effect } = self;
        Filter { kind, effect, ..asked.filter() }
    }
}

impl Asked {
    fn filter(self) -> Filter {
        let Self { tool, tenant, principal, reference, code, since, until } = self;
        Filter { tool, tenant, principal, reference, code, since, until, ..Filter::default() }
    }

    /// The code apart from the rest, for whoever looks for it elsewhere in a record.
    pub(super) fn filter_without_code(self) -> (Filter, Option<String>) {
        let mut filter = self.filter();
        let code = filter.code.take();
        (filter, code)
    }
}

/// A moment, or the day that begins with it.
pub(super) fn moment(text: &str) -> Result<Millis, String> {
    let day = || format!("{text}T00:00:00Z").parse();
    text.parse().or_else(|_| day()).map_err(|error: NotAMoment| error.to_string())
}

fn codes() -> PossibleValuesParser {
    PossibleValuesParser::new(Code::ALL.map(Code::as_str))
}

fn reference(text: &str) -> Result<String, &'static str> {
    let is_one = text.len() == 26 && text.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase());
    if is_one { Ok(text.to_owned()) } else { Err("a `ref` has 26 digits and capital letters") }
}
