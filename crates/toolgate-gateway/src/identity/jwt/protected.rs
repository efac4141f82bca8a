//! What clients are told of where to log in (RFC 9728).

use serde_json::{Value, json};

use super::super::Scope;

/// A gate as a protected resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Protected {
    /// The address that it is known by, for which its tokens are made.
    resource: String,
    /// The part before the path.
    origin: String,
    /// The path, without a `/` at its end.
    path: String,
    issuers: Vec<String>,
    /// Whether tokens say their scopes here.
    scoped: bool,
}

/// Where the document is, before the path of the resource.
pub(crate) const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

impl Protected {
    /// The resource at an address that is made of an origin and perhaps a path; `None` where it is none.
    pub(super) fn new(resource: &str, issuers: Vec<String>, scoped: bool) -> Option<Self> {
        let (scheme, rest) = resource.split_once("://")?;
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        let origin = format!("{scheme}://{host}");
        let path = match path.trim_end_matches('/') {
            "" => String::new(),
            path => format!("/{path}"),
        };
        Some(Self { resource: resource.to_owned(), origin, path, issuers, scoped })
    }

    /// The document.
    pub(crate) fn document(&self) -> Value {
        let mut document = json!({
            "resource": self.resource,
            "authorization_servers": self.issuers,
            "bearer_methods_supported": ["header"],
        });
        if let (true, Value::Object(members)) = (self.scoped, &mut document) {
            let scopes: Vec<&str> = Scope::ALL.iter().map(|scope| scope.as_str()).collect();
            members.insert("scopes_supported".into(), json!(scopes));
        }
        document
    }

    /// Whether the document is found at this path below [`WELL_KNOWN`]: that of the resource itself, or of `/mcp` below.
    pub(crate) fn is_at(&self, path: &str) -> bool {
        let path = format!("/{path}");
        path == self.path || path == "/mcp" || path.starts_with("/mcp/tags/")
    }

    /// Where the document is.
    pub(crate) fn address(&self) -> String {
        format!("{}{WELL_KNOWN}{}", self.origin, self.path)
    }

    /// Whether a client must be told which scope to ask for.
    pub(crate) fn is_scoped(&self) -> bool {
        self.scoped
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    #[test]
    fn the_document_is_where_rfc_9728_looks_for_it() {
        for (resource, address) in [
            ("https://gate.example.com", "https://gate.example.com/.well-known/oauth-protected-resource"),
            ("https://gate.example.com/", "https://gate.example.com/.well-known/oauth-protected-resource"),
            ("https://gate.example.com/mcp", "https://gate.example.com/.well-known/oauth-protected-resource/mcp"),
            ("https://a.example:8443/gate/mcp", "https://a.example:8443/.well-known/oauth-protected-resource/gate/mcp"),
        ] {
            let protected = Protected::new(resource, vec!["https://id.example.com".into()], false).unwrap();
            assert_eq!(protected.address(), address);
            assert_eq!(protected.document()["resource"], resource);
            assert!(protected.is_at("mcp") && protected.is_at("mcp/tags/refunds") && !protected.is_at("other"));
        }
    }

    #[test]
    fn scopes_are_told_where_tokens_say_them() {
        let of = |scoped| Protected::new("https://a.example", Vec::new(), scoped).unwrap().document();
        assert!(of(false).get("scopes_supported").is_none());
        assert_eq!(of(true)["scopes_supported"][0], "calls");
    }
}
