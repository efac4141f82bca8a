//! The story that a first folder tells: a refund that a manager must approve, and that happens once.

use super::{NewFile, NewFolder};

/// A file of the story, by its path in the new folder and by its name beside this one.
macro_rules! file {
    ($path:literal) => {
        file!($path, $path)
    };
    ($path:literal, $name:literal) => {
        NewFile { path: $path.into(), text: include_str!(concat!("story/", $name)).into() }
    };
}

/// The call that begins the story: its tool, and its arguments.
pub(crate) const FIRST_CALL: [&str; 2] =
    ["create_refund", r#"{"order_id":"ord_1","amount_cents":9000,"reason":"late"}"#];

/// What the folder's reader should know before that.
pub(crate) const WORDS: &str =
    "alice@acme asks, unless --as says who; above 5000 cents a manager, mia@acme, must approve.";

/// The folder of the story.
pub(crate) fn story() -> NewFolder {
    NewFolder {
        files: vec![
            file!("toolgate.toml"),
            file!("shop.sql"),
            // Cargo would leave a file out that it takes for its own.
            file!(".gitignore", "gitignore"),
            file!("tools/create_refund.toml"),
            file!("tools/find_refund.toml"),
            file!("tools/get_order.toml"),
            file!("policies/refunds.cedar"),
            file!("cases/refunds.jsonl"),
        ],
    }
}
