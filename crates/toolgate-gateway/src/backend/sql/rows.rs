//! From the rows of a statement to JSON text, within bounds.

use rusqlite::types::ValueRef;
use rusqlite::{Row, Statement};
use serde_json::{Number, Value};
use toolgate::json::Limits;

use super::Rows;
use super::trouble::Trouble;

/// The text of a result as it grows. INVARIANT (readable): it stays within what the gate's reader takes.
struct Text {
    json: String,
    members: usize,
    limits: Limits,
}

/// Steps the statement to its end; its parameters are bound. A write that gives no row is told as such in any case: it
/// had nothing to do, so there is nothing that could be done only once.
pub(super) fn collect(statement: &mut Statement<'_>, rows: Rows) -> Result<Vec<u8>, Trouble> {
    let columns: Vec<String> = statement.column_names().map(|name| Value::from(name).to_string()).collect();
    let mut text = Text { json: String::new(), members: 0, limits: Limits::default() };
    let mut found = statement.raw_query();
    match rows {
        Rows::One => {
            text.row(&columns, step(&mut found)?.ok_or(Trouble::NoRow)?)?;
            if step(&mut found)?.is_some() {
                return Err(Trouble::ManyRows);
            }
        }
        Rows::Many(bound) => {
            let mut count = 0;
            text.json.push_str("{\"rows\":[");
            while let Some(row) = step(&mut found)? {
                if count == bound {
                    return Err(Trouble::TooLarge(format!("the statement gave more than {bound} rows")));
                }
                if count > 0 {
                    text.json.push(',');
                }
                text.row(&columns, row)?;
                count += 1;
            }
            text.json.push_str("]}");
            drop(found);
            if count == 0 && !statement.readonly() {
                return Err(Trouble::NoRow);
            }
        }
    }
    text.check(0)?;
    Ok(text.json.into_bytes())
}

fn step<'r>(rows: &'r mut rusqlite::Rows<'_>) -> Result<Option<&'r Row<'r>>, Trouble> {
    rows.next().map_err(|error| Trouble::of(&error))
}

impl Text {
    fn row(&mut self, columns: &[String], row: &Row<'_>) -> Result<(), Trouble> {
        self.json.push('{');
        for (index, column) in columns.iter().enumerate() {
            if index > 0 {
                self.json.push(',');
            }
            let value = row.get_ref(index).map_err(|error| Trouble::of(&error))?;
            self.json.push_str(column);
            self.json.push(':');
            self.value(value, column)?;
        }
        self.json.push('}');
        self.members += columns.len();
        self.check(0)
    }

    fn value(&mut self, value: ValueRef<'_>, column: &str) -> Result<(), Trouble> {
        let value = match value {
            ValueRef::Null => Value::Null,
            ValueRef::Integer(integer) => Value::from(integer),
            ValueRef::Real(double) => Number::from_f64(double)
                .map(Value::Number)
                .ok_or_else(|| Trouble::Value(format!("the number in the column {column} has no JSON form")))?,
            ValueRef::Text(bytes) => {
                // Asked before it is copied: one value may be larger than all that is allowed.
                self.check(bytes.len())?;
                let text = std::str::from_utf8(bytes)
                    .map_err(|_| Trouble::Value(format!("the text in the column {column} is not UTF-8")))?;
                Value::from(text)
            }
            ValueRef::Blob(_) => {
                return Err(Trouble::Value(format!("the column {column} is a blob, which has no JSON form")));
            }
        };
        self.json.push_str(&value.to_string());
        self.check(0)
    }

    /// Fails where the text, with `more` bytes, would be beyond every bound.
    fn check(&self, more: usize) -> Result<(), Trouble> {
        let Limits { size, members, .. } = self.limits;
        if self.json.len() + more > size {
            return Err(Trouble::TooLarge(format!("the rows are more than {size} bytes of JSON")));
        }
        if self.members > members {
            return Err(Trouble::TooLarge(format!("the rows have more than {members} values")));
        }
        Ok(())
    }
}
