//! What the schema of a type admits, its decoder reads; what a type prints, its schema admits.

use proptest::prelude::*;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::super::{arguments, result};
use super::types::*;
use super::values::Choice;
use crate::json::{self, Limits};
use crate::schema::Schema;

/// How many values are tried of each type.
const VALUES: u64 = 400;

/// The arguments as the gate would read them, or `None` where the strict reader refuses them.
fn read(value: &Value) -> Option<Map<String, Value>> {
    json::read_arguments(value.to_string().as_bytes(), &Limits::default()).ok()
}

/// A tool's only argument, so that types of every kind can be one.
#[derive(Debug, serde::Deserialize, Serialize, JsonSchema)]
struct Only<T> {
    argument: T,
}

/// Feeds values to the schema and to the decoder of `A`. `exact` types have no value that only the schema refuses, if it
/// is spelled as the type itself prints it.
fn hold_together<A: DeserializeOwned + Serialize + JsonSchema>(name: &str, exact: bool, seed: u64) {
    let (document, problems) = arguments::<A>();
    assert_eq!(problems, [], "{name}");
    let schema = Schema::input(&document).unwrap_or_else(|faults| panic!("{name}: {faults:?}"));
    let mut choice = Choice::of(seed);
    let mut admitted = 0;
    for round in 0..VALUES {
        let mut value = if round % 8 == 7 { choice.any(3) } else { choice.fitting(&document, &document, 6) };
        for _ in 0..round % 4 / 2 {
            choice.flawed(&mut value);
        }
        let Some(members) = read(&value) else { continue };
        let value = Value::Object(members.clone());
        let decoded = A::deserialize(&members);
        if schema.is_valid(&value) {
            admitted += 1;
            if let Err(error) = &decoded {
                panic!("{name}: the schema admits what the decoder refuses: {error}\n{value}\n{document:#}");
            }
        }
        if let (true, Ok(decoded)) = (exact, decoded) {
            let printed = serde_json::to_value(&decoded).unwrap();
            let problems = schema.problems(&printed);
            assert_eq!(problems.list, [], "{name}: the schema refuses what the type prints: {printed}\n{document:#}");
        }
    }
    assert!(admitted > VALUES / 100, "{name}: only {admitted} values fit, which shows little\n{document:#}");
}

/// Prints values of `R` and holds them to the schema of results.
fn print_what_they_declare<R: DeserializeOwned + Serialize + JsonSchema>(name: &str, seed: u64) {
    let input = arguments::<R>().0;
    let document = result::<R>();
    let schema = Schema::output(&document).unwrap_or_else(|faults| panic!("{name}: {faults:?}"));
    let mut choice = Choice::of(seed);
    let mut printed = 0;
    for _ in 0..VALUES {
        let value = choice.fitting(&input, &input, 6);
        let Some(Ok(decoded)) = read(&value).map(|members| R::deserialize(&members)) else { continue };
        let text = serde_json::to_vec(&decoded).unwrap();
        let value = json::read(&text, &Limits::default()).unwrap();
        printed += 1;
        assert_eq!(schema.problems(&value).list, [], "{name}: {value}\n{document:#}");
        if !name.contains("Loose") {
            let shown = schema.project(value.clone());
            assert_eq!(shown, value, "{name}: nothing that is printed is undeclared\n{document:#}");
        }
    }
    assert!(printed > VALUES / 100, "{name}: only {printed} values were made");
}

macro_rules! every_type {
    ($check:ident ( $seed:expr ) : $($type:ty),+ $(,)?) => {
        $($check::<Only<$type>>(stringify!($type), true, $seed);)+
    };
    ($check:ident by name ( $seed:expr ) : $($type:ty),+ $(,)?) => {
        $($check::<Only<$type>>(stringify!($type), $seed);)+
    };
}

macro_rules! symmetric_types {
    ($($how:tt)+) => {
        every_type!($($how)+:
            Integers, Scalars, NonZero, Optional, Lists, Maps, Wrapped<'static>, Nothing, Nested, Anything,
            Newtypes, Through, Addresses, Spans, Choices, External, Internal, Adjacent, Untagged, Loose, Act, Strict,
            Renamed, Defaulted, PartlyDefaulted, FlatClosed, FlatChoice, FlatExternal, FlatStrict, FlatTwice, Tree,
            Chain, Expression, Holder, Bytes, Skipping, Vec<Tree>, Option<Expression>, (u8, Point), [Act; 2],
            std::collections::BTreeMap<String, Act>,
        )
    };
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4, max_shrink_iters: 0, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_the_schema_of_arguments_admits_the_decoder_reads_and_what_the_type_prints_the_schema_admits(seed: u64) {
        symmetric_types!(hold_together (seed));
        hold_together::<Choices>("Choices", true, seed);
        hold_together::<Flat>("Flat", true, seed);
        hold_together::<FlatMaybe>("FlatMaybe", true, seed);
        hold_together::<Tree>("Tree", true, seed);
        hold_together::<Expression>("Expression", true, seed);
        hold_together::<Act>("Act", true, seed);
        hold_together::<std::collections::HashMap<String, Point>>("a map", true, seed);
    }

    #[test]
    fn what_a_schema_excludes_beyond_its_type_is_refused_and_the_rest_is_read(seed: u64) {
        hold_together::<Bounded>("Bounded", false, seed);
        hold_together::<Directions>("Directions", false, seed);
    }

    #[test]
    fn what_a_type_prints_fits_the_schema_of_its_results(seed: u64) {
        symmetric_types!(print_what_they_declare by name (seed));
        print_what_they_declare::<Flat>("Flat", seed);
        print_what_they_declare::<Directions>("Directions", seed);
    }
}

/// The problems of arguments, as `code at place`.
fn problems<A: JsonSchema>(value: Value) -> Vec<String> {
    let schema = Schema::input(&arguments::<Only<A>>().0).unwrap();
    let told = schema.problems(&json!({ "argument": value })).list;
    told.into_iter().map(|problem| format!("{} {}", problem.code, problem.at)).collect()
}

#[test]
fn an_integer_beyond_its_type_is_a_problem_of_the_arguments_and_not_of_the_tool() {
    assert_eq!(problems::<i32>(json!(1_u64 << 40)), ["maximum /argument"]);
    assert_eq!(problems::<i64>(json!(1_u64 << 63)), ["maximum /argument"]);
    assert_eq!(problems::<u32>(json!(-1)), ["minimum /argument"]);
    assert_eq!(problems::<u64>(json!(u64::MAX)), [""; 0]);
    assert_eq!(problems::<i64>(json!(i64::MIN)), [""; 0]);
    assert_eq!(problems::<f32>(json!(7)), [""; 0]);
}

#[test]
fn numbers_are_read_whatever_their_spelling() {
    for (text, a, b) in [(r#"{"a": 1e3, "b": 25.0}"#, 1000, 25.0), (r#"{"a": 25.0, "b": 7}"#, 25, 7.0)] {
        let members = json::read_arguments(text.as_bytes(), &Limits::default()).unwrap();
        let value = Value::Object(members.clone());
        assert!(Schema::input(&arguments::<(i64, f64)>().0).is_err(), "the arguments of a call are an object");
        #[derive(serde::Deserialize, JsonSchema)]
        struct Numbers {
            a: u16,
            b: f64,
        }
        assert!(Schema::input(&arguments::<Numbers>().0).unwrap().is_valid(&value));
        let read = <Numbers as serde::Deserialize>::deserialize(&members).unwrap();
        assert_eq!((read.a, read.b), (a, b));
    }
}

#[test]
fn a_member_that_serde_would_drop_is_refused_at_every_depth() {
    assert_eq!(problems::<Point>(json!({ "x": 1, "y": 2, "z": 3 })), ["additional_property /argument/z"]);
    assert_eq!(problems::<Vec<Option<Point>>>(json!([{ "x": 1, "y": 2, "z": 3 }])).len(), 1, "of an optional item too");
    let moved = json!({ "act": "Move", "x": 1, "y": 2, "z": 3 });
    assert_eq!(problems::<Act>(moved).len(), 1, "of a variant too");
    assert_eq!(problems::<Nothing>(json!({ "a": 1 })), ["additional_property /argument/a"]);
    assert_eq!(problems::<Adjacent>(json!({ "t": "Unit", "c": 5 })).len(), 1);
    assert_eq!(problems::<Flat>(json!({ "id": 1, "x": 1, "y": 2, "z": 3 })), [""; 0], "where the type takes others");
    assert_eq!(problems::<Loose>(json!({ "x": 1, "y": 2, "z": 3 })), [""; 0]);
}

#[test]
fn a_result_that_json_has_no_number_for_is_told_and_not_shown_as_null() {
    let schema = Schema::output(&result::<Measured>()).unwrap();
    let printed = serde_json::to_value(Measured { value: f64::NAN }).unwrap();
    assert_eq!(printed, json!({ "value": null }));
    assert!(!schema.is_valid(&printed));
}

#[test]
fn what_no_schema_can_say_is_a_fault_of_the_tool_at_its_place() {
    let (_, problems) = arguments::<Unsayable>();
    let told: Vec<&str> = problems.iter().map(|problem| problem.at.as_str()).collect();
    let places = ["/input/properties/by_day", "/input/properties/deeper/items", "/input/properties/wide"];
    assert_eq!(told.len(), places.len(), "{problems:?}");
    assert!(places.iter().all(|place| told.contains(place)), "{told:?}");
}
