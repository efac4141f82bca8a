//! Doc comments become descriptions.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::{arguments, result};

/// Moves a piece.
///
/// Use it once it is your turn. Pieces are named as in [`Piece`], squares by column
/// and row.
#[derive(Deserialize, JsonSchema)]
#[allow(dead_code, reason = "only its schema is looked at")]
struct Move {
    /// Which piece,
    /// white or black.
    piece: Piece,
    /** Where it goes. */
    to: String,
    silent: bool,
}

/// A piece of the board.
#[derive(Deserialize, JsonSchema)]
#[allow(dead_code, reason = "only its schema is looked at")]
enum Piece {
    /// It moves in straight lines.
    Rook,
    /// It jumps.
    Knight,
}

/// # Says hello
#[derive(Deserialize, JsonSchema)]
#[allow(dead_code, reason = "only its schema is looked at")]
struct Hello {}

#[derive(Deserialize, JsonSchema)]
#[allow(dead_code, reason = "only its schema is looked at")]
struct Silent {}

#[test]
fn the_doc_comment_of_the_type_describes_the_tool_with_all_its_lines() {
    let (schema, _) = arguments::<Move>();
    let text = schema["description"].as_str().unwrap();
    assert_eq!(
        text,
        "Moves a piece.\n\nUse it once it is your turn. Pieces are named as in `Piece`, squares by column\nand row."
    );
    assert_eq!(arguments::<Hello>().0["description"], json!("Says hello"));
    assert_eq!(arguments::<Silent>().0.get("description"), None, "the name of a type describes nothing");
}

#[test]
fn doc_comments_describe_members_and_variants() {
    for schema in [arguments::<Move>().0, result::<Move>()] {
        assert_eq!(schema["properties"]["piece"]["description"], "Which piece,\nwhite or black.");
        assert_eq!(schema["properties"]["to"]["description"], "Where it goes.");
        assert_eq!(schema["properties"]["silent"].get("description"), None);
        let variants: Vec<&Value> =
            schema["$defs"]["Piece"]["oneOf"].as_array().unwrap().iter().map(|one| &one["description"]).collect();
        assert_eq!(variants, ["It moves in straight lines.", "It jumps."]);
        assert_eq!(schema["$defs"]["Piece"]["description"], "A piece of the board.");
    }
}
