//! Exact numbers: a decimal text becomes the number of the same value, or none.

use serde_json::Number;

/// No 64-bit integer has more significant digits, and no shortest decimal of a double has.
const MOST_DIGITS: u32 = 20;

/// Any decimal of fewer digits than this has is the shortest of its nearest double, if that is a normal one.
const SURELY_SHORTEST: u128 = 10_u128.pow(15);

/// A decimal in its one form: the value is `significand * 10^exponent`.
///
/// INVARIANT (normal form): the significand does not end in a zero, and zero has exponent zero; so equal
/// values have equal fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Decimal {
    negative: bool,
    significand: u128,
    exponent: i64,
}

/// The number that a well-formed JSON number stands for, if it can be kept exactly.
pub(super) fn exact(text: &str) -> Option<Number> {
    if let Ok(integer) = text.parse::<u64>() {
        return Some(integer.into());
    }
    if let Ok(integer) = text.parse::<i64>() {
        return Some(integer.into());
    }
    let decimal = Decimal::parse(text)?;
    if decimal.exponent >= 0 {
        return decimal.to_integer();
    }
    let double = text.parse::<f64>().ok().filter(|double| double.is_finite())?;
    if decimal.significand < SURELY_SHORTEST && double.is_normal() {
        return Number::from_f64(double);
    }
    let printed = Decimal::parse(zmij::Buffer::new().format_finite(double))?;
    if printed != decimal {
        return None;
    }
    Number::from_f64(double)
}

impl Decimal {
    /// `None` where there are more significant digits than any number that we keep has.
    ///
    /// Takes time linear in the text and no memory, whatever the exponent.
    fn parse(text: &str) -> Option<Self> {
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let mut significand: u128 = 0;
        let mut digits: u32 = 0;
        // Zeros after the last digit that counts: they count once another one follows.
        let mut zeros: u32 = 0;
        let mut point = false;
        let mut places: i64 = 0;
        let mut exponent: i64 = 0;
        for (index, byte) in text.bytes().enumerate() {
            match byte {
                b'.' => point = true,
                b'e' | b'E' => {
                    exponent = saturating_integer(text.get(index + 1..).unwrap_or_default());
                    break;
                }
                b'0' => {
                    places += i64::from(point);
                    zeros = zeros.saturating_add(u32::from(significand != 0));
                }
                digit => {
                    places += i64::from(point);
                    digits = digits.saturating_add(zeros).saturating_add(1);
                    if digits > MOST_DIGITS {
                        return None;
                    }
                    if zeros > 0 {
                        significand *= 10_u128.pow(zeros);
                        zeros = 0;
                    }
                    significand = significand * 10 + u128::from(digit.wrapping_sub(b'0'));
                }
            }
        }
        if significand == 0 {
            return Some(Self { negative: false, significand, exponent: 0 });
        }
        let exponent = exponent.saturating_sub(places).saturating_add(i64::from(zeros));
        Some(Self { negative, significand, exponent })
    }

    fn to_integer(self) -> Option<Number> {
        let power = 10_u128.checked_pow(u32::try_from(self.exponent).ok()?)?;
        let magnitude = self.significand.checked_mul(power)?;
        if !self.negative {
            return u64::try_from(magnitude).ok().map(Number::from);
        }
        let negated = i128::try_from(magnitude).ok()?.checked_neg()?;
        i64::try_from(negated).ok().map(Number::from)
    }
}

/// The integer, or the nearest that is far beyond any exponent of a number that we keep.
fn saturating_integer(text: &str) -> i64 {
    const FAR: i64 = 1 << 48;
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let magnitude = digits.bytes().fold(0_i64, |sum, byte| (sum * 10 + i64::from(byte.wrapping_sub(b'0'))).min(FAR));
    if negative { -magnitude } else { magnitude }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn printed(number: &Number) -> Option<Decimal> {
        Decimal::parse(zmij::Buffer::new().format_finite(number.as_f64().unwrap()))
    }

    proptest! {
        #[test]
        fn decimals_of_15_digits_all_print_back(
            digits in 1_u64..1_000_000_000_000_000,
            exponent in -307_i32..0,
        ) {
            let text = format!("{digits}e{exponent}");
            let decimal = Decimal::parse(&text);
            if decimal.unwrap().exponent < 0 {
                prop_assert_eq!(printed(&exact(&text).unwrap()), decimal, "{}", text);
            }
        }

        #[test]
        fn longer_ones_are_kept_only_if_they_print_back(
            whole in 0_u32..1000,
            fraction in "[0-9]{12,20}[1-9]",
            exponent in -330_i32..-10,
        ) {
            for text in [format!("{whole}.{fraction}"), format!("{whole}.{fraction}e{exponent}")] {
                let double: f64 = text.parse().unwrap();
                let decimal = Decimal::parse(&text);
                let keeps = decimal.is_some() && double != 0.0 && printed(&Number::from_f64(double).unwrap()) == decimal;
                prop_assert_eq!(exact(&text).is_some(), keeps, "{}", text);
            }
        }
    }
}
