//! The calls that are measured, good and bad ones, and the schemas that they are held to.

#![allow(dead_code, reason = "each bench takes those that it needs")]

use serde_json::{Map, Value, json};

/// A call of typical size.
pub(crate) const REFUND: &str = r#"{"order_id":"ord_4821","amount_cents":1500,"currency":"EUR","reason":"damaged","note":"The lid was broken when the parcel came; we have a photo too.","notify":true,"items":["sku_1","sku_7"]}"#;

/// The same call with a fault in five of its members, of which no hint can tell what was meant.
pub(crate) const REFUND_WITH_FIVE_FAULTS: &str = r#"{"order_id":"4821","amount_cents":900000,"currency":"bitcoin","note":"The lid was broken when the parcel came; we have a photo too.","notify":[],"items":["sku_1","sku_7"]}"#;

/// The same call with five slips that hints mend: a number and a boolean in quotes, wrong case, and
/// misspelt words.
pub(crate) const REFUND_WITH_FIVE_SLIPS: &str = r#"{"order_id":"ord_4821","amount_cents":"1500","currency":"eur","reason":"damagd","notes":"The lid was broken when the parcel came; we have a photo too.","notify":"true","items":["sku_1","sku_7"]}"#;

/// A call whose schema is a union.
pub(crate) const PAYMENT: &str = r#"{"amount_cents":1500,"target":{"kind":"card","number":"4000123412341234","holder":"Alice Example","month":4,"year":2031},"memo":"Invoice 2026-117, first half of the work"}"#;

/// The same call with four faults in the branch that was meant, and one beside it.
pub(crate) const PAYMENT_WITH_FIVE_FAULTS: &str = r#"{"amount_cents":0,"target":{"kind":"card","number":"4000-1234","month":"4","year":2031,"cvc":123},"memo":"Invoice 2026-117, first half of the work"}"#;

pub(crate) fn refund_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "order_id": { "type": "string", "pattern": "^ord_[0-9]{4,8}$" },
            "amount_cents": { "type": "integer", "minimum": 1, "maximum": 500_000 },
            "currency": { "enum": ["EUR", "USD", "GBP"] },
            "reason": { "enum": ["duplicate", "customer_request", "damaged", "other"] },
            "note": { "type": "string", "maxLength": 500 },
            "notify": { "type": "boolean" },
            "items": { "type": "array", "items": { "type": "string", "maxLength": 32 }, "maxItems": 20 },
        },
        "required": ["order_id", "amount_cents", "currency", "reason"],
        "additionalProperties": false,
    })
}

pub(crate) fn payment_schema() -> Value {
    let branch = |kind: &str, mut members: Value| {
        if let Some(members) = members.as_object_mut() {
            members.insert("kind".to_owned(), json!({ "const": kind }));
        }
        let names: Vec<String> = members.as_object().into_iter().flat_map(Map::keys).cloned().collect();
        json!({ "type": "object", "properties": members, "required": names, "additionalProperties": false })
    };
    json!({
        "type": "object",
        "properties": {
            "amount_cents": { "type": "integer", "minimum": 1, "maximum": 500_000 },
            "target": { "oneOf": [
                branch("iban", json!({ "iban": { "type": "string", "pattern": "^[A-Z]{2}[0-9A-Z]{13,32}$" } })),
                branch("card", json!({
                    "number": { "type": "string", "pattern": "^[0-9]{16}$" },
                    "holder": { "type": "string", "minLength": 1, "maxLength": 80 },
                    "month": { "type": "integer", "minimum": 1, "maximum": 12 },
                    "year": { "type": "integer", "minimum": 2026, "maximum": 2060 },
                })),
                branch("wallet", json!({ "wallet": { "type": "string", "maxLength": 64 } })),
            ] },
            "memo": { "type": "string", "maxLength": 200 },
        },
        "required": ["amount_cents", "target"],
        "additionalProperties": false,
    })
}

/// The lines of an order of 9 kB.
const LINES: usize = 46;

/// A nested call of 9 kB: objects in a list, texts, integers and decimals.
pub(crate) fn order() -> String {
    let line = |n: usize| {
        json!({
            "sku": format!("sku_{n:05}"),
            "title": format!("Sturdy crate no. {n}, oak, with lid and brass corners"),
            "quantity": n % 7 + 1,
            "unit_price": (1999 + n * 137) as f64 / 100.0,
            "tax_rate": 0.19,
            "gift": n.is_multiple_of(5),
            "options": [{ "name": "colour", "value": "dark green" }],
        })
    };
    let address = json!({ "street": "Storgata 12", "city": "Oslo", "postcode": "0155", "country": "NO" });
    json!({
        "customer": { "id": "cus_77120", "name": "Åse Nordmann", "email": "ase@example.com", "address": address },
        "ship_to": address,
        "lines": (0..LINES).map(line).collect::<Vec<_>>(),
        "coupon": null,
        "comment": "Please ring twice.\nThe dog is friendly.",
    })
    .to_string()
}

pub(crate) fn order_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "customer": { "type": "object", "properties": {
                "id": { "type": "string", "pattern": "^cus_[0-9]+$" },
                "name": { "type": "string", "maxLength": 100 },
                "email": { "type": "string", "maxLength": 200 },
                "address": { "$ref": "#/$defs/address" },
            }, "required": ["id", "name"], "additionalProperties": false },
            "ship_to": { "$ref": "#/$defs/address" },
            "lines": { "type": "array", "minItems": 1, "maxItems": 200, "items": { "type": "object", "properties": {
                "sku": { "type": "string", "pattern": "^sku_[0-9]{5}$" },
                "title": { "type": "string", "maxLength": 120 },
                "quantity": { "type": "integer", "minimum": 1, "maximum": 999 },
                "unit_price": { "type": "number", "minimum": 0 },
                "tax_rate": { "type": "number", "minimum": 0, "maximum": 1 },
                "gift": { "type": "boolean" },
                "options": { "type": "array", "maxItems": 10, "items": { "type": "object", "properties": {
                    "name": { "type": "string", "maxLength": 40 },
                    "value": { "type": "string", "maxLength": 80 },
                }, "required": ["name", "value"], "additionalProperties": false } },
            }, "required": ["sku", "quantity", "unit_price"], "additionalProperties": false } },
            "coupon": { "type": ["string", "null"], "maxLength": 20 },
            "comment": { "type": "string", "maxLength": 1000, "x-multiline": true },
        },
        "required": ["customer", "lines"],
        "additionalProperties": false,
        "$defs": { "address": { "type": "object", "properties": {
            "street": { "type": "string", "maxLength": 100 },
            "city": { "type": "string", "maxLength": 100 },
            "postcode": { "type": "string", "maxLength": 12 },
            "country": { "enum": ["NO", "SE", "DK", "FI", "DE"] },
        }, "required": ["street", "city"], "additionalProperties": false } },
    })
}
