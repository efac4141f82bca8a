//! Which numbers are kept, and as what.

use super::*;

#[test]
fn an_integer_by_value_is_an_integer() {
    for (text, integer) in [
        ("25", "25"),
        ("25.0", "25"),
        ("1e3", "1000"),
        ("1.5E+1", "15"),
        ("2500e-2", "25"),
        ("-0", "0"),
        ("-0.0e5", "0"),
        ("0e999999999999", "0"),
        ("-1.0", "-1"),
        ("18446744073709551615", "18446744073709551615"),
        ("1844674407370955161.5e1", "18446744073709551615"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("-9223372036854775808.000", "-9223372036854775808"),
        ("9007199254740993", "9007199254740993"),
        ("1e19", "10000000000000000000"),
        ("-0.0", "0"),
        ("1E3", "1000"),
        ("9007199254740993.0", "9007199254740993"),
        ("18446744073709551615.0", "18446744073709551615"),
        ("123456789012345678e-0", "123456789012345678"),
    ] {
        let value = try_read(text).unwrap();
        assert!(value.is_i64() || value.is_u64(), "{text}");
        assert_eq!(canonical(&value), integer, "{text}");
    }
}

#[test]
fn a_decimal_is_kept_only_if_it_prints_back() {
    for (text, printed) in [
        ("0.1", "0.1"),
        ("1.10", "1.1"),
        ("-19.99", "-19.99"),
        ("1e-7", "1e-7"),
        ("10e-8", "1e-7"),
        ("0.000001", "0.000001"),
        ("123456789.123456", "123456789.123456"),
        ("0.30000000000000004", "0.30000000000000004"),
        ("22748039822488.062", "22748039822488.062"),
        ("5e-324", "5e-324"),
        ("2.2250738585072014e-308", "2.2250738585072014e-308"),
        ("1e-320", "1e-320"),
        ("2.225073858507201e-308", "2.225073858507201e-308"),
        ("1.797693134862316e-308", "1.797693134862316e-308"),
        ("0.5e-323", "5e-324"),
    ] {
        assert_eq!(canonical(&try_read(text).unwrap()), printed, "{text}");
    }
    for text in [
        "0.1000000000000000055",
        "0.1000000000000000055511151231257827",
        "333333333.33333329",
        "4.9e-324",
        "1e-400",
        "9007199254740993.5",
        // As near to its double as the even neighbour, which is the one that is printed.
        "22748039822488.063",
        "18446744073709551616",
        "-9223372036854775809",
        "1e20",
        "-1e19",
        "1e400",
        "1E400",
        "-1e-400",
        "123.456e78",
        // Integers by value, far beyond 64 bits.
        "1.7976931348623157e308",
        "18446744073709551616.0",
        // A digit more than the shortest of its double.
        "1.7976931348623157e-308",
        // Between two doubles, and beyond what any has of digits.
        "3e-324",
        "0.12345678901234567890123",
        "3.14159265358979323846",
    ] {
        refused(text, FlawCode::Number, 0, "number that cannot be kept exactly");
    }
}

#[test]
fn a_double_reads_back_and_has_no_more_digits_than_the_standard_library_finds() {
    let digits = |printed: &str| {
        let mantissa = printed.split(['e', 'E']).next().unwrap();
        let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
        digits.trim_matches('0').len()
    };
    for bits in (0..2_000_000_u64).map(|n| n.wrapping_mul(0x9E37_79B9_7F4A_7C15)).step_by(101) {
        let double = f64::from_bits(bits);
        if !double.is_finite() {
            continue;
        }
        let printed = canonical(&Value::from(double));
        assert_eq!(printed.parse::<f64>().unwrap().to_bits(), (double + 0.0).to_bits(), "{printed}");
        // Of two that are equally near, ours is the even one.
        assert_eq!(digits(&printed), digits(&format!("{double:e}")), "{printed}");
    }
}
