//! Doubles as ECMAScript prints them, which is how RFC 8785 (3.2.2.3) wants them.

use std::ops::Range;

/// Where the shortest decimal is printed without an exponent. From 1e-6 up to 1e21 ECMAScript has none.
const PLAIN: Range<f64> = 1e-5..1e16;

/// Writes a finite double: its shortest decimal.
pub(super) fn print(out: &mut String, double: f64) {
    if double == 0.0 {
        // Minus zero is zero.
        return out.push('0');
    }
    let mut buffer = zmij::Buffer::new();
    let printed = buffer.format(double);
    if PLAIN.contains(&double.abs()) {
        return out.push_str(printed.strip_suffix(".0").unwrap_or(printed));
    }
    with_exponent(out, printed);
}

/// One that was printed with an exponent, which ECMAScript may write without.
fn with_exponent(out: &mut String, printed: &str) {
    let (mantissa, exponent) = printed.split_once('e').unwrap_or((printed, "+0"));
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(mantissa) => ("-", mantissa),
        None => ("", mantissa),
    };
    let digits = mantissa.chars().filter(|digit| *digit != '.');
    match exponent {
        "-6" => {
            out.push_str(sign);
            out.push_str("0.00000");
            out.extend(digits);
        }
        "+16" | "+17" | "+18" | "+19" | "+20" => {
            // No double has more than 17 digits, so none of them stands behind the point.
            let places = exponent.parse::<usize>().unwrap_or_default() + 1;
            out.push_str(sign);
            out.extend(digits.chain(std::iter::repeat('0')).take(places));
        }
        _ => out.push_str(printed),
    }
}
