//! Values for a schema: fitting ones by its own words, ones with a flaw, and any at all.

use serde_json::{Map, Value, json};

/// A source of choices that repeats itself for one seed.
pub(super) struct Choice(u64);

impl Choice {
    pub(super) fn of(seed: u64) -> Self {
        Self(seed | 1)
    }

    /// A number below `count`.
    fn below(&mut self, count: usize) -> usize {
        // xorshift64*, which is good enough to pick with.
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        usize::try_from(self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33).unwrap() % count.max(1)
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }

    /// A value that means to fit the schema.
    pub(super) fn fitting(&mut self, root: &Value, schema: &Value, depth: usize) -> Value {
        let Value::Object(node) = schema else { return self.any(depth.min(2)) };
        let mut value = self.by_own_words(root, schema, depth);
        if let Some(reference) = node.get("$ref").and_then(Value::as_str) {
            let target = root.pointer(reference.trim_start_matches('#')).unwrap();
            let part = self.fitting(root, target, depth.saturating_sub(1));
            value = joined(value, part);
        }
        for keyword in ["anyOf", "oneOf"] {
            if let Some(Value::Array(branches)) = node.get(keyword) {
                let branch = if depth == 0 { branches.last().unwrap() } else { self.pick(branches) };
                if branch.get("format").is_none() {
                    let part = self.fitting(root, branch, depth.saturating_sub(1));
                    value = joined(value, part);
                }
            }
        }
        for branch in node.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            let part = self.fitting(root, branch, depth.saturating_sub(1));
            value = joined(value, part);
        }
        value.unwrap_or_else(|| self.any(depth.min(2)))
    }

    fn by_own_words(&mut self, root: &Value, schema: &Value, depth: usize) -> Option<Value> {
        if let Some(only) = schema.get("const") {
            return Some(only.clone());
        }
        if let Some(Value::Array(choices)) = schema.get("enum") {
            return Some(self.pick(choices).clone());
        }
        let word = match schema.get("type")? {
            Value::Array(words) => self.pick(words).as_str().unwrap(),
            word => word.as_str().unwrap(),
        };
        Some(match word {
            "null" => Value::Null,
            "boolean" => json!(self.one_in(2)),
            "integer" => self.integer(schema),
            "number" => json!(*self.pick(&[0.0, 0.5, -1.25, 3.4e38, 1e-300, 123456.75])),
            "string" => self.text(schema),
            "array" => self.list(root, schema, depth),
            _ => self.object(root, schema, depth),
        })
    }

    fn integer(&mut self, schema: &Value) -> Value {
        let bound = |keyword: &str| schema.get(keyword).cloned();
        let mut candidates = vec![json!(0), json!(1), json!(-1), json!(200), json!(70_000), json!(5_000_000_000_u64)];
        candidates.extend([json!(u64::MAX), json!(i64::MIN), json!(i64::MAX), json!(1_u64 << 63)]);
        let (least, most) = (bound("minimum"), bound("maximum"));
        candidates.extend([&least, &most].into_iter().flatten().cloned());
        if !self.one_in(4) {
            let above = |value: &Value| least.as_ref().is_none_or(|least| value.as_f64() >= least.as_f64());
            let below = |value: &Value| most.as_ref().is_none_or(|most| value.as_f64() <= most.as_f64());
            candidates.retain(|value| above(value) && below(value));
        }
        self.pick(&candidates).clone()
    }

    fn text(&mut self, schema: &Value) -> Value {
        let length =
            |keyword: &str| schema.get(keyword).and_then(Value::as_u64).map(|length| usize::try_from(length).unwrap());
        let form = ["pattern", "format"].iter().find_map(|keyword| schema.get(keyword)?.as_str());
        let form = form.or(schema.get("anyOf").map(|_| "an address"));
        let of_form: &[&str] = match form {
            Some("^ord_[0-9]+$") => &["ord_1", "ord_42", "ord_"],
            Some("email") => &["a@b.example", "a@"],
            Some("ipv4") => &["1.2.3.4", "0.0.0.0", "256.1.1.1", "01.2.3.4"],
            Some("ipv6") => &["::1", "fe80::1:2", "::ffff:1.2.3.4", "::1%eth0"],
            Some("an address") => &["::1", "1.2.3.4", "fe80::1:2", "1.2.3"],
            Some(_) | None => &[],
        };
        match (of_form, length("minLength"), length("maxLength")) {
            ([_, ..], ..) => json!(*self.pick(of_form)),
            (_, least, Some(most)) if !self.one_in(4) => {
                let least = least.unwrap_or(0);
                json!("é".repeat(least + self.below(most - least + 1)))
            }
            _ => json!(*self.pick(&["", "a", "é", "two words", "line 😀", "ord_1", "7"])),
        }
    }

    fn list(&mut self, root: &Value, schema: &Value, depth: usize) -> Value {
        let fixed = schema.get("prefixItems").and_then(Value::as_array).cloned().unwrap_or_default();
        let count =
            |keyword: &str| schema.get(keyword).and_then(Value::as_u64).map(|count| usize::try_from(count).unwrap());
        let least = count("minItems").unwrap_or(0);
        let most = count("maxItems").unwrap_or(if depth == 0 { least } else { least + 3 });
        let length = least + self.below(most - least + 1);
        let of_others = schema.get("items").unwrap_or(&Value::Bool(true));
        let items = (0..length).map(|index| fixed.get(index).unwrap_or(of_others));
        items.map(|item| self.fitting(root, item, depth.saturating_sub(1))).collect()
    }

    fn object(&mut self, root: &Value, schema: &Value, depth: usize) -> Value {
        let mut members = Map::new();
        let required: Vec<&str> =
            schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
        for (name, member) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let must = required.contains(&name.as_str());
            if must || (depth > 0 && self.one_in(2)) {
                members.insert(name.clone(), self.fitting(root, member, depth.saturating_sub(1)));
            }
        }
        let mut others: Vec<&Value> = schema.get("additionalProperties").into_iter().collect();
        others.retain(|schema| !schema.is_boolean() || schema.as_bool() == Some(true));
        for other in others.iter().filter(|_| depth > 0) {
            for name in ["a", "1", "other"] {
                if self.one_in(2) && !members.contains_key(name) {
                    members.insert(name.to_owned(), self.fitting(root, other, depth.saturating_sub(1)));
                }
            }
        }
        Value::Object(members)
    }

    /// Any value at all.
    pub(super) fn any(&mut self, depth: usize) -> Value {
        match self.below(if depth == 0 { 8 } else { 10 }) {
            0 => Value::Null,
            1 => json!(self.one_in(2)),
            2 => json!(*self.pick(&[0_i64, 1, -1, 255, 256, -129, 1 << 40, i64::MIN])),
            3 => json!(*self.pick(&[u64::MAX, 1 << 63])),
            4 => json!(*self.pick(&[0.5, -2.75, 1e-9])),
            5..8 => json!(*self.pick(&["", "a", "Unit", "unit_one", "ab", "dark-red", "42"])),
            8 => (0..self.below(3)).map(|_| self.any(depth - 1)).collect(),
            _ => {
                let names = ["a", "b", "x", "y", "kind", "t", "c", "One", "Ok", "secs"];
                let count = self.below(4);
                (0..count).map(|_| ((*self.pick(&names)).to_owned(), self.any(depth - 1))).collect()
            }
        }
    }

    /// The value with something in it changed: another value in a place, a member more or a member less.
    pub(super) fn flawed(&mut self, value: &mut Value) {
        let deeper = !self.one_in(3);
        match value {
            Value::Object(members) if !members.is_empty() && deeper => {
                let names: Vec<String> = members.keys().cloned().collect();
                let name = self.pick(&names).clone();
                self.flawed(&mut members[&name]);
            }
            Value::Array(items) if !items.is_empty() && deeper => {
                let index = self.below(items.len());
                self.flawed(&mut items[index]);
            }
            Value::Object(members) if !self.one_in(4) => {
                let names: Vec<String> = members.keys().cloned().collect();
                if !names.is_empty() && self.one_in(2) {
                    members.remove(self.pick(&names));
                } else {
                    let name = *self.pick(&["a", "b", "c", "extra", "kind", "x", "Err", "value", "1"]);
                    members.insert(name.to_owned(), self.any(1));
                }
            }
            Value::Array(items) if !self.one_in(4) => items.push(self.any(1)),
            other => *other = self.any(2),
        }
    }
}

/// Two parts of one value: objects are put together, of anything else the later one counts.
fn joined(first: Option<Value>, second: Value) -> Option<Value> {
    match (first, second) {
        (Some(Value::Object(mut members)), Value::Object(more)) => {
            members.extend(more);
            Some(Value::Object(members))
        }
        (_, second) => Some(second),
    }
}
