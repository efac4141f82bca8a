//! Descriptions, which a model reads, from doc comments, which rustdoc reads: a link to an item is only its name.

use schemars::Schema;
use schemars::transform::{Transform, transform_subschemas};
use serde_json::Value;

/// Turns links to items into their names.
pub(super) struct Prose;

impl Transform for Prose {
    fn transform(&mut self, schema: &mut Schema) {
        if let Some(Value::String(text)) = schema.get_mut("description") {
            *text = without_links(text);
        }
        transform_subschemas(self, schema);
    }
}

/// ``[`Order`]`` and ``[`Order`](crate::Order)`` are `` `Order` ``.
fn without_links(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("[`") {
        let Some((name, after)) = after.split_once("`]").filter(|(name, _)| !name.contains('`')) else {
            plain.push_str(before);
            plain.push_str("[`");
            rest = after;
            continue;
        };
        plain.push_str(before);
        plain.extend(["`", name, "`"]);
        let target = after.strip_prefix('(').and_then(|target| target.split_once(')'));
        rest = match target {
            Some((path, after)) if !path.contains(char::is_whitespace) => after,
            _ => after,
        };
    }
    plain.push_str(rest);
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_to_an_item_is_its_name() {
        assert_eq!(without_links("a [`B`], [`C`](crate::C)s and [`D`] (not E)."), "a `B`, `C`s and `D` (not E).");
        assert_eq!(without_links("no link: [`x, [1], `y`]"), "no link: [`x, [1], `y`]");
    }
}
