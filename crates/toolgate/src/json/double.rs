//! Doubles as ECMAScript prints them, which is how RFC 8785 (3.2.2.3) wants them.

/// Writes a finite double: its shortest decimal, without an exponent from 1e-6 up to 1e21.
pub(super) fn print(out: &mut String, double: f64) {
    if double == 0.0 {
        // Minus zero is zero.
        return out.push('0');
    }
    let mut buffer = zmij::Buffer::new();
    let printed = buffer.format(double);
    if let Some(integer) = printed.strip_suffix(".0") {
        return out.push_str(integer);
    }
    // An exponent has a sign and at most three digits.
    if printed.bytes().rev().take(5).any(|byte| byte == b'e') {
        return with_exponent(out, printed);
    }
    out.push_str(printed);
}

/// The shortest decimal goes over to exponents earlier than ECMAScript does.
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
