//! Label selectors as a query writes them: `app=a,tier in (x, y),!old,size>3`. They know no
//! objects but their labels.

use stint_api::field_error::quote;
use stint_api::identifier::{label_value, qualified_name};
use thiserror::Error;

/// What must hold of the labels, all of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector {
    terms: Vec<LabelTerm>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct LabelTerm {
    key: String,
    operator: Operator,
    values: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    In,
    NotIn,
    Exists,
    Absent,
    Greater,
    Less,
}

/// Why a text is no selector.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum LabelSelectorError {
    /// A term makes no sense.
    #[error("unable to parse requirement: {0}")]
    Term(String),
    /// There is something between or after the terms that does not belong there.
    #[error("{0}")]
    Between(String),
}

impl LabelSelector {
    /// Reads a selector. An empty one selects everything.
    pub fn parse(text: &str) -> Result<Self, LabelSelectorError> {
        let mut reader = Reader { tokens: tokens(text), position: 0 };
        let between = |found: &Token, expected: &str| {
            let found = found.text();
            Err(LabelSelectorError::Between(format!("found '{found}', expected: {expected}")))
        };
        let mut terms = Vec::new();
        match reader.peek() {
            Token::End => return Ok(LabelSelector { terms }),
            Token::Word(_) | Token::Not => {}
            other => return between(&other, "!, identifier, or 'end of string'"),
        }
        loop {
            terms.push(reader.term().map_err(LabelSelectorError::Term)?);
            match reader.take() {
                Token::End => return Ok(LabelSelector { terms }),
                Token::Comma => match reader.peek() {
                    Token::Word(_) | Token::Not => {}
                    other => return between(&other, "identifier after ','"),
                },
                other => return between(&other, "',' or 'end of string'"),
            }
        }
    }

    /// Whether everything is selected.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Whether all of it holds of what `value_of` says of the labels.
    pub fn matches<'l>(&self, value_of: impl Fn(&str) -> Option<&'l str>) -> bool {
        self.terms.iter().all(|term| term.holds(value_of(&term.key)))
    }
}

impl LabelTerm {
    fn holds(&self, value: Option<&str>) -> bool {
        let is_listed = |value: &str| self.values.iter().any(|listed| listed == value);
        match self.operator {
            Operator::In => value.is_some_and(is_listed),
            Operator::NotIn => !value.is_some_and(is_listed),
            Operator::Exists => value.is_some(),
            Operator::Absent => value.is_none(),
            Operator::Greater | Operator::Less => {
                let number = |text: &str| text.parse::<i64>().ok();
                let (Some(found), Some(limit)) = (value.and_then(number), number(&self.values[0]))
                else {
                    return false;
                };
                if self.operator == Operator::Greater { found > limit } else { found < limit }
            }
        }
    }

    fn check(self) -> Result<Self, String> {
        if let Some(wrong) = qualified_name(&self.key).first() {
            // The path of the key is that of nothing.
            return Err(format!("<nil>: Invalid value: {}: {wrong}", quote(&self.key)));
        }
        if matches!(self.operator, Operator::Greater | Operator::Less) {
            if self.values[0].parse::<i64>().is_err() {
                let value = quote(&self.values[0]);
                return Err(format!(
                    "values[0]: Invalid value: {value}: for 'Gt', 'Lt' operators, the value must be an integer"
                ));
            }
            return Ok(self);
        }
        for (index, value) in self.values.iter().enumerate() {
            if let Some(wrong) = label_value(value).first() {
                return Err(format!(
                    "values[{index}][{}]: Invalid value: {}: {wrong}",
                    self.key,
                    quote(value)
                ));
            }
        }
        Ok(self)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    Comma,
    Open,
    Close,
    Not,
    Equals,
    DoubleEquals,
    NotEquals,
    Greater,
    Less,
    End,
}

impl Token {
    fn text(&self) -> &str {
        match self {
            Token::Word(word) => word,
            Token::Comma => ",",
            Token::Open => "(",
            Token::Close => ")",
            Token::Not => "!",
            Token::Equals => "=",
            Token::DoubleEquals => "==",
            Token::NotEquals => "!=",
            Token::Greater => ">",
            Token::Less => "<",
            Token::End => "",
        }
    }
}

fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        const SYMBOLS: [(&str, Token); 9] = [
            ("==", Token::DoubleEquals),
            ("!=", Token::NotEquals),
            ("=", Token::Equals),
            ("!", Token::Not),
            (">", Token::Greater),
            ("<", Token::Less),
            (",", Token::Comma),
            ("(", Token::Open),
            (")", Token::Close),
        ];
        let symbol = SYMBOLS.iter().find(|(symbol, _)| rest.starts_with(symbol));
        let length = match symbol {
            Some((symbol, token)) => {
                tokens.push(token.clone());
                symbol.len()
            }
            None => {
                let is_end = |c: char| "=!><,()".contains(c) || c.is_whitespace();
                let length = rest.find(is_end).unwrap_or(rest.len());
                tokens.push(Token::Word(rest[..length].to_owned()));
                length
            }
        };
        rest = rest[length..].trim_start();
    }
    tokens
}

struct Reader {
    tokens: Vec<Token>,
    position: usize,
}

impl Reader {
    fn peek(&self) -> Token {
        self.tokens.get(self.position).cloned().unwrap_or(Token::End)
    }

    fn take(&mut self) -> Token {
        let token = self.peek();
        self.position += 1;
        token
    }

    /// `key`, `!key`, `key = value`, `key in (a, b)` and so on.
    fn term(&mut self) -> Result<LabelTerm, String> {
        let is_absent = self.peek() == Token::Not;
        if is_absent {
            self.take();
        }
        let key = match self.take() {
            Token::Word(word) => word,
            other => {
                let found = other.text();
                return Err(format!("found '{found}', expected: identifier"));
            }
        };
        let term = |operator, values| LabelTerm { key: key.clone(), operator, values }.check();
        if is_absent {
            return term(Operator::Absent, Vec::new());
        }
        match self.peek() {
            Token::End | Token::Comma => return term(Operator::Exists, Vec::new()),
            _ => {}
        }
        let operator = self.take();
        match operator {
            Token::Equals | Token::DoubleEquals => term(Operator::In, vec![self.value()?]),
            Token::NotEquals => term(Operator::NotIn, vec![self.value()?]),
            Token::Greater => term(Operator::Greater, vec![self.value()?]),
            Token::Less => term(Operator::Less, vec![self.value()?]),
            Token::Word(word) if word == "in" => term(Operator::In, self.values()?),
            Token::Word(word) if word == "notin" => term(Operator::NotIn, self.values()?),
            other => {
                let found = other.text();
                Err(format!("found '{found}', expected: in, notin, =, ==, !=, gt, lt"))
            }
        }
    }

    /// A single value, which may be empty.
    fn value(&mut self) -> Result<String, String> {
        match self.peek() {
            Token::End | Token::Comma => Ok(String::new()),
            Token::Word(word) => {
                self.take();
                Ok(word)
            }
            other => Err(format!("found '{}', expected: identifier", other.text())),
        }
    }

    /// Values in parentheses.
    fn values(&mut self) -> Result<Vec<String>, String> {
        match self.take() {
            Token::Open => {}
            other => return Err(format!("found '{}' expected: '('", other.text())),
        }
        let mut values = Vec::new();
        loop {
            match self.peek() {
                Token::Word(word) => {
                    self.take();
                    values.push(word);
                }
                Token::Comma | Token::Close => values.push(String::new()),
                other => {
                    let found = other.text();
                    return Err(format!("found '{found}', expected: ',', ')' or identifier"));
                }
            }
            match self.take() {
                Token::Comma => {}
                Token::Close => return Ok(values),
                other => {
                    return Err(format!("found '{}', expected: ',' or ')'", other.text()));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selects(selector: &str, labels: &[(&str, &'static str)]) -> bool {
        let selector = LabelSelector::parse(selector).expect(selector);
        selector.matches(|key| labels.iter().find(|(k, _)| *k == key).map(|(_, value)| *value))
    }

    #[test]
    fn each_operator_selects_what_it_says() {
        let labels = [("app", "a"), ("tier", "x"), ("size", "5"), ("in", "yes"), ("void", "")];
        let rows = [
            ("", true),
            ("app", true),
            ("!app", false),
            ("none", false),
            ("!none", true),
            ("app=a", true),
            ("app == a", true),
            ("app=b", false),
            ("app!=b", true),
            ("none!=b", true),
            ("void=", true),
            ("app=", false),
            ("tier in (x, y)", true),
            ("tier in (y)", false),
            ("tier notin (y,z)", true),
            ("none notin (y)", true),
            ("none in (y)", false),
            ("void in (,a)", true),
            ("size>3", true),
            ("size<3", false),
            ("app>3", false),
            ("app=a,tier=x,size", true),
            ("app=a,tier=y", false),
            ("in=yes", true),
            ("in in (yes)", true),
        ];
        for (selector, expected) in rows {
            assert_eq!(selects(selector, &labels), expected, "{selector}");
        }
    }

    #[test]
    fn what_is_no_selector_is_refused() {
        for text in [
            "a b",
            "=",
            "a in",
            "a in b",
            "a in (",
            "a in (b",
            "a notin (b c)",
            "a=b=c",
            ",",
            "a,,b",
            "a=b,",
            "(a)",
            "a=-",
            "-a",
            "a>x",
            "!a=b",
            "!",
        ] {
            assert!(LabelSelector::parse(text).is_err(), "{text}");
        }
        let long = "x".repeat(64);
        assert!(LabelSelector::parse(&format!("{long}=a")).is_err());
    }
}
