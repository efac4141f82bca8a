//! Properties of every dialect.

use proptest::prelude::*;

use super::*;

fn mutated(message: &'static str) -> impl Strategy<Value = Vec<u8>> {
    let edits = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..4_u8), 1..8);
    edits.prop_map(move |edits| {
        let mut bytes = message.as_bytes().to_vec();
        for (index, byte, edit) in edits {
            let at = index.index(bytes.len());
            match edit {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, b"{}[]\",:\\"[usize::from(byte) % 8]),
                2 if bytes.len() > 1 => drop(bytes.remove(at)),
                _ => bytes.truncate(at + 1),
            }
        }
        bytes
    })
}

/// Every call that comes out is answerable, and what is refused has its reason.
fn check(dialect: Dialect, bytes: &[u8]) {
    let Ok(turn) = dialect.decode(bytes, &Limits::default()) else { return };
    for proposed in turn.calls() {
        match proposed {
            Proposed::Call(call) => {
                assert!(!turn.cut_off() && !call.tool().is_empty());
                assert!(!call.id().is_empty() || !needs_ids(dialect) || dialect == Dialect::Mcp);
                let _ = crate::json::read_arguments(&call.arguments, &Limits::default());
            }
            Proposed::Broken(broken) => {
                assert!(matches!(broken.refusal.code(), Code::InvalidCall | Code::TurnTruncated));
            }
        }
    }
    let count = turn.calls().len();
    let failures: Vec<Result<Reply, Fault>> = (0..count).map(|_| Err(Fault::Closing)).collect();
    assert_eq!(answers(dialect, &turn.open().1.answer(&failures)).len(), count);
}

/// The text of an object as programs and models write them: odd spaces and escapes, numbers that no reader keeps, names
/// that are there twice.
fn object() -> impl Strategy<Value = String> {
    let space = || prop::sample::select(vec!["", "", " ", "\n\t"]);
    let word = || {
        prop_oneof![
            "\\PC{0,8}".prop_map(|text| serde_json::to_string(&text).unwrap()),
            prop::sample::select(vec![r#""\u00fc\/""#, r#""\ud83e\udd5d""#, r#""a\"b\\""#, r#""""#])
                .prop_map(str::to_owned),
        ]
    };
    let atom = prop_oneof![
        prop::sample::select(vec!["null", "true", "-0", "1.10", "1E+2", "0.1e-7", "12345678901234567890123"])
            .prop_map(str::to_owned),
        any::<i64>().prop_map(|number| number.to_string()),
        word(),
    ];
    let members = move |value: BoxedStrategy<String>| {
        let member = (space(), word(), space(), value, space());
        prop::collection::vec(member, 0..4).prop_map(|members| {
            let members = members.iter().map(|(a, name, b, value, c)| format!("{a}{name}{b}:{value}{c}"));
            format!("{{{}}}", members.collect::<Vec<_>>().join(","))
        })
    };
    let value = atom.prop_recursive(3, 12, 3, move |inner| {
        let list = prop::collection::vec(inner.clone(), 0..3).prop_map(|items| format!("[{}]", items.join(" , ")));
        prop_oneof![list, members(inner.boxed())]
    });
    let member = (space(), word(), space(), value, space());
    prop::collection::vec(member, 0..4).prop_map(|members| {
        let members = members.iter().map(|(a, name, b, value, c)| format!("{a}{name}{b}:{value}{c}"));
        format!("{{{}}}", members.collect::<Vec<_>>().join(","))
    })
}

proptest! {
    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        for dialect in Dialect::ALL {
            check(dialect, &bytes);
        }
    }

    #[test]
    fn changed_messages_never_panic(bytes in prop::sample::select(MESSAGES.to_vec()).prop_flat_map(|(_, message)| mutated(message))) {
        for dialect in Dialect::ALL {
            check(dialect, &bytes);
        }
    }

    #[test]
    fn the_calls_of_a_message_are_exactly_those_that_were_written_and_so_are_their_answers(
        calls in prop::collection::vec(("[a-z_]{1,12}", object(), any::<bool>()), 0..6),
    ) {
        for dialect in MANY {
            let ids: Vec<String> = (0..calls.len()).map(|index| format!("call_{index}")).collect();
            let has_id = |index: usize| needs_ids(dialect) || calls[index].2;
            let written: Vec<String> = calls.iter().enumerate().map(|(index, (name, object, _))| {
                let id = json!(ids[index]).to_string();
                let id = has_id(index).then_some(id.as_str());
                call(dialect, id, Some(&json!(name).to_string()), Some(&written(dialect, object)))
            }).collect();
            let turn = read(dialect, &message(dialect, &written));
            let shown: Vec<&str> =
                ids.iter().enumerate().map(|(index, id)| if has_id(index) { id.as_str() } else { "" }).collect();
            let wanted: Vec<(&str, &str, &str)> = calls.iter().zip(&shown)
                .map(|((name, object, _), id)| (*id, name.as_str(), object.as_str())).collect();
            prop_assert_eq!(whole(&turn), wanted, "{}", dialect);

            let replies: Vec<Result<Reply, Fault>> =
                (0..calls.len()).map(|index| Ok(result_of(&format!(r#"{{"n":{index}}}"#)))).collect();
            let answered = answers(dialect, &turn.open().1.answer(&replies));
            prop_assert_eq!(answered.len(), calls.len());
            for (index, answer) in answered.iter().enumerate() {
                prop_assert_eq!(answer.id.as_str(), shown[index], "{}", dialect);
                let result = format!(r#""result":{{"n":{index}}}"#);
                prop_assert!(answer.text.contains(&result), "{}: {}", dialect, answer.text);
                if !needs_ids(dialect) {
                    prop_assert_eq!(&answer.name, &calls[index].0, "{}", dialect);
                }
            }
        }
    }

    #[test]
    fn the_text_of_arguments_is_never_changed(text in "\\PC*") {
        for dialect in [Dialect::OpenaiChat, Dialect::OpenaiResponses] {
            let calls = [call(dialect, Some(r#""c""#), Some(r#""n""#), Some(&json!(text).to_string()))];
            let turn = read(dialect, &message(dialect, &calls));
            prop_assert_eq!(whole(&turn), [("c", "n", text.as_str())]);
        }
    }
}
