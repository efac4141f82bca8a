//! The canonical form and the digest, by the vectors of RFC 8785.

use serde_json::json;

use super::*;

#[test]
fn rfc_8785_sample() {
    let text = r#"{
        "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
        "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
        "literals": [null, true, false]
    }"#;
    // Read by serde_json: some of these numbers are more than our reader keeps.
    let value: Value = serde_json::from_str(text).unwrap();
    assert_eq!(
        canonical(&value),
        r#"{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}"#
    );
}

#[test]
fn rfc_8785_sorts_by_utf16_code_units() {
    let text = r#"{"\u20ac": "Euro Sign", "\r": "Carriage Return", "\ufb33": "Hebrew Letter Dalet With Dagesh", "1": "One",
        "\ud83d\ude00": "Emoji: Grinning Face", "\u0080": "Control", "\u00f6": "Latin Small Letter O With Diaeresis"}"#;
    let canonical = canonical(&try_read(text).unwrap());
    let order =
        ["Carriage", "One", "Control", "Latin", "Euro", "Emoji", "Hebrew"].map(|word| canonical.find(word).unwrap());
    assert!(order.is_sorted(), "{canonical}");
    assert!(canonical.starts_with(r#"{"\r":"Carriage Return","1":"One","#));
}

/// The first code unit of a character beyond the basic plane is below those of the end of that plane.
#[test]
fn a_name_beyond_the_basic_plane_comes_before_its_end() {
    let text =
        "{\"\u{ffff}\":1,\"\u{10000}\":2,\"\u{d7ff}\":3,\"\u{e000}\":4,\"a\u{10ffff}\":5,\"a\u{fb33}\":6,\"a\":7}";
    assert_eq!(
        canonical(&try_read(text).unwrap()),
        "{\"a\":7,\"a\u{10ffff}\":5,\"a\u{fb33}\":6,\"\u{d7ff}\":3,\"\u{10000}\":2,\"\u{e000}\":4,\"\u{ffff}\":1}"
    );
}

#[test]
fn rfc_8785_prints_doubles_as_ecmascript_does() {
    for (bits, printed) in [
        (0x0000_0000_0000_0000, "0"),
        (0x8000_0000_0000_0000, "0"),
        (0x0000_0000_0000_0001, "5e-324"),
        (0x8000_0000_0000_0001, "-5e-324"),
        (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
        (0xffef_ffff_ffff_ffff, "-1.7976931348623157e+308"),
        (0x4340_0000_0000_0000, "9007199254740992"),
        (0xc340_0000_0000_0000, "-9007199254740992"),
        (0x4430_0000_0000_0000, "295147905179352830000"),
        (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
        (0x44b5_2d02_c7e1_4af6, "1e+23"),
        (0x44b5_2d02_c7e1_4af7, "1.0000000000000001e+23"),
        (0x444b_1ae4_d6e2_ef4e, "999999999999999700000"),
        (0x444b_1ae4_d6e2_ef4f, "999999999999999900000"),
        (0x444b_1ae4_d6e2_ef50, "1e+21"),
        (0x3eb0_c6f7_a0b5_ed8c, "9.999999999999997e-7"),
        (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
        (0x41b3_de43_5555_5553, "333333333.3333332"),
        (0x41b3_de43_5555_5554, "333333333.33333325"),
        (0x41b3_de43_5555_5555, "333333333.3333333"),
        (0x41b3_de43_5555_5556, "333333333.3333334"),
        (0x41b3_de43_5555_5557, "333333333.33333343"),
        (0xbecb_f647_612f_3696, "-0.0000033333333333333333"),
        (0x4314_3ff3_c1cb_0959, "1424953923781206.2"),
    ] {
        assert_eq!(canonical(&json!(f64::from_bits(bits))), printed);
    }
}

/// Where the layout of a double changes: with a point, with zeros in front or behind, with an exponent.
#[test]
fn doubles_change_their_layout_where_ecmascript_does() {
    for (double, printed) in [
        (1e-5, "0.00001"),
        (1.5e-5, "0.000015"),
        (-1.25e-6, "-0.00000125"),
        (1e-6, "0.000001"),
        (9.5e-7, "9.5e-7"),
        (-1e-7, "-1e-7"),
        (123_456_789_012_345.6, "123456789012345.6"),
        (9_999_999_999_999_998.0, "9999999999999998"),
        (1e16, "10000000000000000"),
        (-12_345_678_901_234_568.0, "-12345678901234568"),
        (1.5e17, "150000000000000000"),
        (1e20, "100000000000000000000"),
        (123_456_789_012_345_680_000.0, "123456789012345680000"),
        (-1.5e21, "-1.5e+21"),
        (1e100, "1e+100"),
        (1e-300, "1e-300"),
    ] {
        assert_eq!(canonical(&json!(double)), printed);
    }
}

#[test]
fn control_characters_are_escaped_and_nothing_else_is() {
    let every: String = (0_u8..0x80).map(char::from).chain("\u{80}\u{2028}é😀".chars()).collect();
    assert_eq!(
        canonical(&json!(every)),
        "\"\\u0000\\u0001\\u0002\\u0003\\u0004\\u0005\\u0006\\u0007\\b\\t\\n\\u000b\\f\\r\\u000e\\u000f\
         \\u0010\\u0011\\u0012\\u0013\\u0014\\u0015\\u0016\\u0017\\u0018\\u0019\\u001a\\u001b\\u001c\\u001d\\u001e\\u001f\
         \u{20}!\\\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\\\]^_`abcdefghijklmnopqrstuvwxyz{|}~\u{7f}\
         \u{80}\u{2028}é😀\""
    );
}

#[test]
fn a_digest_has_its_spellings() {
    let digest = Digest::of(b"abc");
    let hex = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(digest.to_string(), hex);
    assert_eq!(format!("{digest:?}"), format!("Digest({hex})"));
    assert_eq!(hex.parse(), Ok(digest));
    assert_eq!(digest.base32(), "xj4bnp4pahh6uqkbidpf3lrceoyagyndsylxvhfucd7wd4qacwwq");
    assert_eq!(Digest::from(*digest.as_bytes()), digest);
    assert_eq!(serde_json::to_value(digest).unwrap(), json!(hex));
    assert_eq!(serde_json::from_value::<Digest>(json!(hex)).unwrap(), digest);
    for wrong in [&hex.to_uppercase(), &hex[2..], "", &format!("{hex}00"), &hex.replace('b', "x")] {
        assert_eq!(wrong.parse::<Digest>(), Err(NotADigest));
    }
}
