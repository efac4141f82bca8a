//! The Rust types that arguments and results are made of, of every kind that serde and schemars both know.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::num::{NonZeroI32, NonZeroU8, NonZeroU64};
use std::ops::Range;
use std::rc::Rc;
use std::time::{Duration, SystemTime};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Declares types for both directions.
macro_rules! types {
    ($($item:item)+) => { $(#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)] $item)+ };
}

types! {
    pub(super) struct Integers { a: i8, b: i16, c: i32, d: i64, e: isize, f: u8, g: u16, h: u32, i: u64, j: usize }
    pub(super) struct Scalars { a: f32, b: f64, c: bool, d: char, e: String, f: () }
    pub(super) struct NonZero { a: NonZeroU8, b: NonZeroU64, c: Option<NonZeroI32> }
    pub(super) struct Optional { a: Option<i8>, b: Option<Option<String>>, c: Option<Vec<Option<u16>>>, d: Option<Point> }
    pub(super) struct Lists { a: Vec<u8>, b: [i32; 3], c: (i8, String), d: (u8,), e: HashSet<u8>, f: BTreeSet<String> }
    pub(super) struct Maps { a: HashMap<String, u8>, b: BTreeMap<String, Vec<Point>>, c: HashMap<Colour, u8>, d: Map<String, Value> }
    pub(super) struct Wrapped<'a> { a: Box<i16>, b: Cow<'a, str>, c: Box<Point>, d: Rc<u32> }
    pub(super) struct Point { x: i32, y: i32 }
    pub(super) struct Nothing {}
    pub(super) struct Nested { at: Point, around: Vec<Point>, nothing: Nothing, maybe: Option<Nothing>, named: HashMap<String, Point> }
    pub(super) struct Anything { value: Value, number: serde_json::Number }
    pub(super) struct Metres(u32);
    pub(super) struct Pair(u8, Metres);
    pub(super) struct Unit;
    pub(super) struct Newtypes { a: Metres, b: Pair, c: Unit, d: Option<Metres> }
    #[serde(transparent)]
    pub(super) struct Through { inner: Point }
    pub(super) struct Addresses { a: Ipv4Addr, b: Ipv6Addr, c: IpAddr }
    pub(super) struct Spans { a: Duration, b: SystemTime, c: Range<u8>, d: Result<u8, String> }

    #[derive(PartialEq, Eq, Hash)]
    #[serde(rename_all = "kebab-case")]
    pub(super) enum Colour { DarkRed, DeepBlue }
    pub(super) enum External { Unit, New(u8), Tuple(u8, String), Struct { a: i8, b: Option<u8> }, Inner(Point) }
    #[serde(tag = "kind", rename_all = "snake_case")]
    pub(super) enum Internal { UnitOne, Struct { a: i8 }, Inner(Point), Empty(Nothing), Deeper(Box<Adjacent>) }
    #[serde(tag = "t", content = "c")]
    pub(super) enum Adjacent { Unit, New(u8), Tuple(i8, i8), Struct { a: i8 }, Inner(Point) }
    #[serde(untagged)]
    pub(super) enum Untagged { Number(i32), Text(String), Point(Point), Other { a: u8, b: Option<u8> }, List(Vec<u8>) }
    #[serde(untagged)]
    pub(super) enum Loose { Point(Point), Any(Value) }
    pub(super) struct Choices { a: Colour, b: External, c: Internal, d: Adjacent, e: Untagged, f: Option<Internal> }
    #[serde(tag = "act")]
    pub(super) enum Act { Move(Point), Stay { seconds: u16 }, Wait }
    #[serde(tag = "kind", deny_unknown_fields)]
    pub(super) enum Strict { One { a: u8 }, Two { b: String } }

    #[serde(rename_all = "camelCase", deny_unknown_fields)]
    pub(super) struct Renamed { long_name: u8, #[serde(rename = "other")] second_name: Option<String> }
    #[serde(default)]
    pub(super) struct Defaulted { a: u8, b: Vec<String>, c: Option<Point> }
    pub(super) struct PartlyDefaulted { #[serde(default)] a: u8, #[serde(default = "seven")] b: u8, c: u8 }
    pub(super) struct Flat { id: u8, #[serde(flatten)] at: Point, #[serde(flatten)] rest: HashMap<String, i16> }
    pub(super) struct FlatClosed { id: u8, #[serde(flatten)] at: Point }
    pub(super) struct FlatChoice { id: u8, #[serde(flatten)] act: Act }
    pub(super) struct FlatExternal { id: u8, #[serde(flatten)] which: FlatVariants }
    pub(super) enum FlatVariants { One(u8), Two { a: i8 } }
    pub(super) struct FlatMaybe { id: u8, #[serde(flatten)] at: Option<Point> }
    pub(super) struct FlatStrict { id: u8, #[serde(flatten)] inner: Renamed }
    pub(super) struct FlatTwice { #[serde(flatten)] act: Act, #[serde(flatten)] which: FlatVariants }
    pub(super) struct Tree { name: String, children: Vec<Tree> }
    pub(super) struct Chain { value: u8, next: Option<Box<Chain>> }
    #[serde(tag = "op")]
    pub(super) enum Expression { Value { value: i32 }, Sum { left: Box<Expression>, right: Box<Expression> }, Point(Point) }
    pub(super) struct Holder { expression: Expression, point: Point }
    pub(super) struct Bytes { #[serde(with = "hex")] #[schemars(with = "u16")] a: u16 }
    pub(super) struct Skipping {
        #[serde(skip)]
        _a: u8,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        b: Option<u8>,
        c: Option<u8>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        d: Vec<Point>,
    }
}

impl Default for Defaulted {
    fn default() -> Self {
        Self { a: 1, b: vec!["b".into()], c: None }
    }
}

fn seven() -> u8 {
    7
}

mod hex {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(value: &u16, to: S) -> Result<S::Ok, S::Error> {
        value.serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u16, D::Error> {
        u16::deserialize(from)
    }
}

/// Types whose schemas exclude what their decoders would read.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
pub(super) struct Bounded {
    #[schemars(range(min = -5, max = 1000))]
    a: u8,
    #[schemars(range(max = 10))]
    b: i32,
    #[schemars(length(min = 2, max = 4))]
    c: String,
    #[schemars(regex(pattern = "^ord_[0-9]+$"))]
    d: String,
    #[schemars(length(max = 2))]
    e: Vec<u8>,
    #[serde(alias = "six")]
    f: u8,
    #[schemars(email)]
    g: Option<String>,
    #[schemars(range(min = 0.5))]
    h: f64,
}

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[allow(dead_code, reason = "it is made and printed by serde alone")]
pub(super) struct Directions {
    #[serde(skip_serializing, default)]
    only_in: u8,
    #[serde(skip_deserializing, default)]
    only_out: u8,
    #[serde(rename(serialize = "out_name", deserialize = "in_name"))]
    two_names: Option<u8>,
    choice: Ways,
}

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[allow(dead_code, reason = "it is made and printed by serde alone")]
pub(super) enum Ways {
    #[serde(rename(serialize = "OUT", deserialize = "IN"))]
    Renamed,
    #[serde(skip_deserializing)]
    Out,
    #[serde(other)]
    Other,
}

/// What JSON has no number for becomes null, so a result that may hold it says so.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Measured {
    pub(super) value: f64,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[allow(dead_code, reason = "only its schema is looked at")]
pub(super) struct Unsayable {
    pub(super) by_day: BTreeMap<u8, String>,
    pub(super) deeper: Vec<Option<HashMap<i64, u8>>>,
    pub(super) wide: u128,
}
