//! What quantities read as, and what they print, against a plain integer model.

use proptest::prelude::*;

use super::*;

fn parse(text: &str) -> Quantity {
    text.parse().unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

#[test]
fn a_quantity_is_printed_as_the_api_server_prints_it() {
    let rows = [
        ("0", "0"),
        ("0.0Ki", "0"),
        ("-0", "0"),
        ("1", "1"),
        ("1.5", "1500m"),
        ("0.5", "500m"),
        (".5", "500m"),
        (".", "0"),
        ("-", "0"),
        ("Ki", "0"),
        ("100m", "100m"),
        ("1000m", "1"),
        ("1500", "1500"),
        ("1000", "1k"),
        ("2000000", "2M"),
        ("1024Mi", "1Gi"),
        ("1536Mi", "1536Mi"),
        ("1.5Gi", "1536Mi"),
        ("0.5Ki", "512"),
        ("1.1Ki", "1126400m"),
        ("1023Ki", "1023Ki"),
        ("1Ki", "1Ki"),
        ("1024", "1024"),
        ("1024Ki", "1Mi"),
        ("12e6", "12e6"),
        ("12e5", "1200e3"),
        ("12E6", "12E6"),
        ("1e3", "1e3"),
        ("1e-3", "1e-3"),
        ("1E", "1E"),
        ("0.1n", "1n"),
        ("0.0000000001", "1n"),
        ("-1.5", "-1500m"),
        ("-1.5Gi", "-1536Mi"),
        ("16Ei", "9223372036854775807"),
        ("-16Ei", "-9223372036854775807"),
        ("99999999999999999999", "99999999999999999999"),
        ("1e30", "1e30"),
        // The server keeps these texts, since its quick look finds nothing to do.
        ("1.", "1."),
        ("1.500", "1.500"),
        ("+1", "+1"),
        ("0001Mi", "0001Mi"),
        // Ours alone: the server prints "1" here.
        ("1000E", "1000E"),
    ];
    for (text, printed) in rows {
        assert_eq!(parse(text).to_string(), printed, "{text:?}");
    }
}

#[test]
fn resources_are_rounded_up_to_thousandths() {
    let rows = [
        ("0.0001", "1m"),
        ("1.0001", "1001m"),
        ("1500u", "2m"),
        ("-0.0001", "-1m"),
        ("1.500", "1.500"),
        ("0.1m", "1m"),
        ("1n", "1m"),
        ("999999999n", "1"),
        ("0", "0"),
        ("1.00000001Ki", "1024001m"),
    ];
    for (text, printed) in rows {
        assert_eq!(parse(text).round_up_to_milli().to_string(), printed, "{text:?}");
    }
}

#[test]
fn a_text_that_is_no_quantity_says_why() {
    for text in ["", "a", "1a", "1.2.3", "1 Gi", "1Gi ", "1-x", "1KI", "1e5x", "1,5", "0x1"] {
        assert_eq!(text.parse::<Quantity>(), Err(QuantityError::Format), "{text:?}");
    }
    for text in ["1i", "1ki", "1e", "1ee3", "1K", "1Mi5", "--1", "1e+"] {
        assert_eq!(text.parse::<Quantity>(), Err(QuantityError::Suffix), "{text:?}");
    }
    for text in ["Pi", "-Ei", ".Pi", "e-10"] {
        assert_eq!(text.parse::<Quantity>(), Err(QuantityError::Number), "{text:?}");
    }
    assert_eq!(
        QuantityError::Format.to_string(),
        "quantities must match the regular expression \
         '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    );
}

#[test]
fn values_round_away_from_zero_and_saturate() {
    let rows = [
        ("1500m", 2, 1500),
        ("-1500m", -2, -1500),
        ("1n", 1, 1),
        ("1Gi", 1 << 30, 1000 << 30),
        ("1e30", i64::MAX, i64::MAX),
        ("-1e30", i64::MIN, i64::MIN),
        ("1e2000000000", i64::MAX, i64::MAX),
    ];
    for (text, value, milli) in rows {
        assert_eq!(parse(text).value(), value, "{text:?}");
        assert_eq!(parse(text).milli_value(), milli, "{text:?}");
    }
    assert!(parse("1k").is_integer());
    assert!(!parse("1.5").is_integer());
    assert_eq!(parse("1.5").plus(&parse("500m")), parse("2"));
    assert_eq!(parse("1Gi").plus(&parse("1Gi")).to_string(), "2Gi");
}

/// A quantity's text, and its amount in thousandths of a nano.
fn texts() -> impl Strategy<Value = (String, i128)> {
    let suffixes = prop::sample::select(vec![
        ("n", 1, -9_i32),
        ("u", 1, -6),
        ("m", 1, -3),
        ("", 1, 0),
        ("k", 1, 3),
        ("M", 1, 6),
        ("G", 1, 9),
        ("e2", 1, 2),
        ("e-5", 1, -5),
        ("E+7", 1, 7),
        ("Ki", 1_i128 << 10, 0),
        ("Mi", 1 << 20, 0),
        ("Gi", 1 << 30, 0),
    ]);
    (prop::bool::ANY, 0_u32..20_000_000, 0_usize..4, 0_u32..100, suffixes).prop_map(
        |(negative, whole, fraction_digits, fraction, (suffix, factor, power))| {
            let fraction = format!("{fraction:03}")[..fraction_digits].to_owned();
            let digits: i128 = format!("{whole}{fraction}").parse().expect("digits");
            let exponent = power - fraction_digits as i32 + 12;
            let amount = digits * factor * 10_i128.pow(exponent as u32);
            let sign = if negative { "-" } else { "" };
            let dot = if fraction_digits > 0 { "." } else { "" };
            (
                format!("{sign}{whole}{dot}{fraction}{suffix}"),
                if negative { -amount } else { amount },
            )
        },
    )
}

/// Rounds thousandths of a nano away from zero to nanos.
fn nanos(amount: i128) -> i128 {
    (amount.abs() + 999) / 1000 * amount.signum()
}

proptest! {
    #[test]
    fn what_is_printed_reads_back_the_same((text, _) in texts()) {
        let quantity = parse(&text);
        let printed = quantity.to_string();
        let again = parse(&printed);
        prop_assert_eq!(&again, &quantity, "{} printed as {}", text, printed);
        prop_assert_eq!(again.to_string(), printed);
        let rounded = quantity.round_up_to_milli();
        prop_assert_eq!(&rounded.clone().round_up_to_milli(), &rounded);
        prop_assert_eq!(parse(&rounded.to_string()), rounded);
    }

    #[test]
    fn quantities_order_and_add_like_integers((a, x) in texts(), (b, y) in texts()) {
        prop_assert_eq!(parse(&a).cmp(&parse(&b)), nanos(x).cmp(&nanos(y)), "{} {}", a, b);
        let sum = parse(&a).plus(&parse(&b));
        prop_assert_eq!(sum.amount.to_nanos(), nanos(x) + nanos(y));
        let difference = parse(&a).minus(&parse(&b));
        prop_assert_eq!(difference.amount.to_nanos(), nanos(x) - nanos(y));
        prop_assert_eq!(parse(&a).times(7).amount.to_nanos(), 7 * nanos(x));
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[-+]?[0-9.]{0,25}[eEinumkKMGTPx]{0,3}[-+]?[0-9]{0,3}") {
        if let Ok(quantity) = text.parse::<Quantity>() {
            prop_assert_eq!(parse(&quantity.to_string()), quantity);
        }
    }
}
