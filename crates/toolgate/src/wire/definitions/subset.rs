//! What each provider takes of JSON Schema: the part that all of its models and all versions of its interface take.

/// A part of JSON Schema.
#[derive(Debug)]
pub(super) struct Subset {
    /// The keywords of a schema below the top level. `type`, `enum`, `properties`, `required` and `items` are taken by all.
    pub(super) keywords: &'static [&'static [&'static str]],
    /// The keywords of the top level, beside `type`, `properties` and `required`.
    pub(super) top: &'static [&'static str],
    /// The values of `format`; all where there is no list.
    pub(super) formats: Option<&'static [&'static str]>,
    pub(super) references: References,
    /// Whether only strings may be listed as values.
    pub(super) only_texts_listed: bool,
    /// Which members may be named.
    pub(super) members: Members,
}

/// How what a schema refers to is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum References {
    /// By reference, under `$defs`.
    Defined,
    /// In its place, and as anything where it stands within itself.
    InPlace,
}

/// The names that members may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Members {
    /// Any.
    Any,
    /// 1 to 64 of the characters `A-Z a-z 0-9 _ . -`.
    Plain,
}

impl Subset {
    pub(super) fn takes(&self, keyword: &str) -> bool {
        ["type", "enum", "properties", "required", "items"].contains(&keyword)
            || self.keywords.iter().any(|group| group.contains(&keyword))
    }

    pub(super) fn takes_format(&self, format: &str) -> bool {
        self.takes("format") && self.formats.is_none_or(|formats| formats.contains(&format))
    }
}

impl Members {
    pub(super) fn takes(self, name: &str) -> bool {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
        match self {
            Self::Any => true,
            Self::Plain => (1..=64).contains(&name.len()) && name.bytes().all(plain),
        }
    }
}

/// What only tells something.
pub(super) const TEXTS: [&str; 4] = ["title", "description", "default", "examples"];

/// What bounds a value by itself.
const BOUNDS: [&str; 14] = [
    "const",
    "format",
    "pattern",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minItems",
    "maxItems",
    "uniqueItems",
    "anyOf",
];

/// Chat completions and Responses, outside of strict mode. The top level is an object without `oneOf`, `anyOf`, `allOf`,
/// `enum`, `const` and `not`; `oneOf` is refused everywhere, and an array without `items` as well.
pub(super) const OPENAI: Subset = Subset {
    keywords: &[&TEXTS, &BOUNDS, &["additionalProperties", "minProperties", "maxProperties", "prefixItems"]],
    top: &["title", "description", "additionalProperties"],
    formats: None,
    references: References::Defined,
    only_texts_listed: false,
    members: Members::Any,
};

/// Messages. The document is held to 2020-12, the top level is an object without `oneOf`, `allOf` and `anyOf`, and member
/// names match `^[a-zA-Z0-9_.-]{1,64}$`.
pub(super) const ANTHROPIC: Subset = Subset { members: Members::Plain, ..OPENAI };

/// `parameters` of a function declaration, which is a part of OpenAPI's schema object: of it the keywords that it had from
/// the beginning, and `anyOf`.
pub(super) const GEMINI: Subset = Subset {
    keywords: &[&["description", "format", "anyOf"]],
    top: &["description"],
    formats: Some(&["date-time"]),
    references: References::InPlace,
    only_texts_listed: true,
    members: Members::Any,
};

/// `toolSpec.inputSchema.json` of Converse. Nova takes `type`, `properties` and `required` at the top level and no other
/// keyword, and other models take no references.
pub(super) const BEDROCK: Subset = Subset {
    keywords: &[&TEXTS, &BOUNDS],
    top: &[],
    formats: None,
    references: References::InPlace,
    only_texts_listed: false,
    members: Members::Plain,
};

/// `parameters` of `/api/chat`: what the server keeps of a member for the templates of models.
pub(super) const OLLAMA: Subset = Subset {
    keywords: &[&["description", "anyOf"]],
    top: &[],
    formats: None,
    references: References::InPlace,
    only_texts_listed: false,
    members: Members::Any,
};
