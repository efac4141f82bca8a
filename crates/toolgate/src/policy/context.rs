//! From a call's values to Cedar's.
//!
//! The walk goes by the declared shape, never by what the value says about itself: an argument named `__entity` or
//! `__extn` is plain data. It is also the proof that the context has the type that the policies were validated against,
//! which is why the request is not checked against the schema once more. A value that does not fit stops the judgement;
//! left out, it would silence every forbid that asks for it with `has`.

use cedar_policy::RestrictedExpression;
use serde_json::{Number, Value};

use super::shape::{Field, Shape};

/// A value that has no place in its shape.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Unfit {
    /// Where it stands, from the inside out.
    path: Vec<String>,
}

impl Unfit {
    /// A value that does not fit, at the member `name` of the context.
    pub(super) fn at(name: &str) -> Self {
        Self::default().inside(name)
    }

    /// The same, seen from one member further out.
    pub(super) fn inside(mut self, name: &str) -> Self {
        self.path.push(name.replace('~', "~0").replace('/', "~1"));
        self
    }

    /// The place as a JSON pointer into the context.
    pub(super) fn pointer(&self) -> String {
        self.path.iter().rev().fold(String::new(), |pointer, name| pointer + "/" + name)
    }
}

/// `value` as an expression of the Cedar type that `shape` has.
pub(super) fn express(shape: &Shape, value: &Value) -> Result<RestrictedExpression, Unfit> {
    match (shape, value) {
        (Shape::Text, Value::String(text)) => Ok(RestrictedExpression::new_string(text.clone())),
        (Shape::Long, Value::Number(number)) => {
            number.as_i64().map(RestrictedExpression::new_long).ok_or_else(Unfit::default)
        }
        (Shape::Bool, Value::Bool(flag)) => Ok(RestrictedExpression::new_bool(*flag)),
        (Shape::Decimal | Shape::Number, Value::Number(number)) => {
            decimal(number).map(RestrictedExpression::new_decimal).ok_or_else(Unfit::default)
        }
        (Shape::Set(item), Value::Array(values)) => {
            let items: Result<Vec<_>, Unfit> = values
                .iter()
                .enumerate()
                .map(|(n, value)| express(item, value).map_err(|unfit| unfit.inside(&n.to_string())))
                .collect();
            items.map(RestrictedExpression::new_set)
        }
        (Shape::Record(fields), Value::Object(members)) => record(fields, |name| members.get(name)),
        _ => Err(Unfit::default()),
    }
}

/// The record of `fields`, whose values `member` finds. Null and absent are both absent.
pub(super) fn record<'v>(
    fields: &[Field],
    member: impl Fn(&str) -> Option<&'v Value>,
) -> Result<RestrictedExpression, Unfit> {
    let mut pairs = Vec::with_capacity(fields.len());
    for field in fields {
        match member(&field.name) {
            None | Some(Value::Null) if !field.required => {}
            None => return Err(Unfit::at(&field.name)),
            Some(value) => {
                let value = express(&field.shape, value).map_err(|unfit| unfit.inside(&field.name))?;
                pairs.push((field.name.clone(), value));
            }
        }
    }
    RestrictedExpression::new_record(pairs).map_err(|_duplicate| Unfit::default())
}

/// The first place in `value` that `shape` reads and where `hidden` stands for what was there.
pub(super) fn hidden_in(shape: &Shape, value: &Value, hidden: &dyn Fn(&Value) -> bool) -> Option<Unfit> {
    if hidden(value) {
        return Some(Unfit::default());
    }
    match (shape, value) {
        (Shape::Set(item), Value::Array(values)) => values
            .iter()
            .enumerate()
            .find_map(|(n, value)| hidden_in(item, value, hidden).map(|unfit| unfit.inside(&n.to_string()))),
        (Shape::Record(fields), Value::Object(members)) => fields.iter().find_map(|field| {
            hidden_in(&field.shape, members.get(&field.name)?, hidden).map(|unfit| unfit.inside(&field.name))
        }),
        _ => None,
    }
}

/// The number as Cedar writes decimals, where it has at most four places and is in range.
pub(super) fn decimal(number: &Number) -> Option<String> {
    const PLACES: usize = 4;
    let text = match number.as_i64() {
        Some(whole) => format!("{whole}.0"),
        None => plain(number.as_f64()?),
    };
    let (whole, fraction) = text.split_once('.')?;
    if fraction.len() > PLACES {
        return None;
    }
    // A decimal is an i64 of ten-thousandths.
    let scaled = format!("{whole}{fraction:0<PLACES$}");
    scaled.parse::<i64>().ok()?;
    Some(text)
}

/// The shortest text that reads back as `double`, without an exponent.
fn plain(double: f64) -> String {
    let text = double.to_string();
    if text.contains('.') { text } else { text + ".0" }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test may panic")]
mod tests {
    use cedar_policy::{Context, EvalResult};
    use serde_json::json;

    use super::*;

    fn evaluated(shape: &Shape, value: &Value) -> Result<EvalResult, String> {
        let expression = express(shape, value).map_err(|unfit| unfit.pointer())?;
        let context = Context::from_pairs([("x".to_owned(), expression)]).map_err(|_| "cedar".to_owned())?;
        context.get("x").ok_or_else(|| "absent".to_owned())
    }

    fn of(schema: Value) -> Shape {
        Shape::of(&schema).0
    }

    #[test]
    fn an_argument_cannot_make_itself_an_entity() {
        let shape = of(json!({"properties": {
            "__entity": {"properties": {"type": {"type": "string"}, "id": {"type": "string"}}},
            "__extn": {"type": "string"},
        }}));
        let value = json!({"__entity": {"type": "Role", "id": "manager"}, "__extn": "ip"});
        let EvalResult::Record(record) = evaluated(&shape, &value).unwrap() else { panic!("a record") };
        assert!(matches!(record.get("__entity"), Some(EvalResult::Record(_))));
        assert!(matches!(record.get("__extn"), Some(EvalResult::String(text)) if text == "ip"));
    }

    #[test]
    fn integers_are_exact_or_do_not_fit() {
        assert!(evaluated(&Shape::Long, &json!(i64::MAX)).is_ok());
        assert!(evaluated(&Shape::Long, &json!(i64::MIN)).is_ok());
        for value in [json!(9_223_372_036_854_775_808_u64), json!(1.5), json!("1"), json!(null), json!(true)] {
            assert!(evaluated(&Shape::Long, &value).is_err(), "{value}");
        }
    }

    #[test]
    fn decimals_have_four_places_or_do_not_fit() {
        for (value, expected) in [
            (json!(12.5), "12.5"),
            (json!(-0.0001), "-0.0001"),
            (json!(3), "3.0"),
            (json!(1e6), "1000000.0"),
            (json!(922_337_203_685_477.5), "922337203685477.5"),
        ] {
            let made = evaluated(&Shape::Decimal, &value).unwrap();
            assert!(format!("{made:?}").contains(expected), "{value} became {made:?}");
        }
        for value in [json!(0.00001), json!(1.00005), json!(1e300), json!(i64::MAX), json!(u64::MAX), json!("1.0")] {
            assert_eq!(evaluated(&Shape::Decimal, &value), Err(String::new()), "{value}");
        }
    }

    #[test]
    fn null_is_absent_and_a_missing_required_member_does_not_fit() {
        let shape =
            of(json!({"properties": {"a": {"type": "string"}, "b/c": {"type": "integer"}}, "required": ["b/c"]}));
        let EvalResult::Record(record) = evaluated(&shape, &json!({"a": null, "b/c": 1})).unwrap() else {
            panic!("a record")
        };
        assert!(!record.contains_attribute("a"));
        assert_eq!(evaluated(&shape, &json!({"a": "x"})), Err("/b~1c".into()));
    }

    #[test]
    fn what_does_not_fit_is_named_by_its_place() {
        let shape = of(
            json!({"properties": {"lines": {"type": "array", "items": {"properties": {"n": {"type": "integer"}}}}}}),
        );
        assert_eq!(evaluated(&shape, &json!({"lines": [{"n": 1}, {"n": "2"}]})), Err("/lines/1/n".into()));
    }
}
