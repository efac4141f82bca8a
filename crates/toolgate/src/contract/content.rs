//! The content blocks of MCP, as a schema: what a tool of an MCP server answers that declares no output schema.

use serde_json::json;

use crate::schema::{Schema, SchemaFault};

/// `{"content": [...]}` with the blocks of the revisions up to 2026-07-28: text, image, audio, a link, an embedded resource.
/// Members that are none of theirs, `_meta` and `annotations` among them, are dropped.
pub(super) fn schema() -> Result<Schema, Vec<SchemaFault>> {
    let word = json!({ "type": "string", "maxLength": 1024 });
    let media = |kind: &str| {
        json!({
            "type": "object",
            "properties": {
                "type": { "const": kind },
                "data": { "type": "string", "pattern": "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$" },
                "mimeType": word,
            },
            "required": ["type", "data", "mimeType"],
        })
    };
    let link = json!({
        "type": "object",
        "properties": {
            "type": { "const": "resource_link" },
            "uri": word, "name": word, "title": word, "mimeType": word,
            "description": { "type": "string" },
            "size": { "type": "integer" },
        },
        "required": ["type", "uri", "name"],
    });
    let resource = json!({
        "type": "object",
        "properties": {
            "type": { "const": "resource" },
            "resource": {
                "type": "object",
                "properties": { "uri": word, "mimeType": word, "text": { "type": "string" }, "blob": { "type": "string" } },
                "required": ["uri"],
            },
        },
        "required": ["type", "resource"],
    });
    let text = json!({
        "type": "object",
        "properties": { "type": { "const": "text" }, "text": { "type": "string" } },
        "required": ["type", "text"],
    });
    Schema::output(&json!({
        "type": "object",
        "properties": {
            "content": {
                "type": "array",
                "maxItems": 1000,
                "items": { "oneOf": [text, media("image"), media("audio"), link, resource] },
            },
        },
        "required": ["content"],
    }))
}
