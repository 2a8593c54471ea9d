//! The query of a request as names and values.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

use crate::status::Status;

/// The parameters of a query in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Reads the part of a URI after its question mark.
    pub fn parse(text: &str) -> Self {
        let pairs = text.split('&').filter(|pair| !pair.is_empty());
        Query(
            pairs
                .map(|pair| {
                    let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                    (decode(name), decode(value))
                })
                .collect(),
        )
    }

    /// The first value of a parameter; an empty one is as good as none.
    pub fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// All values of a parameter.
    pub fn all<'q>(&'q self, name: &'q str) -> impl Iterator<Item = &'q str> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// A parameter that is there or not: `watch`, `watch=true`, `watch=1`.
    pub fn flag(&self, name: &str) -> Result<Option<bool>, Status> {
        let Some((_, value)) = self.0.iter().find(|(known, _)| known == name) else {
            return Ok(None);
        };
        // As Kubernetes converts query parameters: everything else is true.
        Ok(Some(value != "0" && !value.eq_ignore_ascii_case("false")))
    }

    /// A parameter that is a number.
    pub fn number(&self, name: &str) -> Result<Option<i64>, Status> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let number = value.parse().map_err(|_| {
            Status::bad_request(format!("strconv.ParseInt: parsing \"{value}\": invalid syntax"))
        })?;
        Ok(Some(number))
    }
}

fn decode(text: &str) -> String {
    let spaced = if text.contains('+') { Cow::Owned(text.replace('+', " ")) } else { text.into() };
    percent_decode_str(&spaced).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_decoded() {
        let query = Query::parse("a=1&b=x%2Cy+z&c&a=2&limit=7&watch=0&x=False");
        assert_eq!(query.get("a"), Some("1"));
        assert_eq!(query.all("a").collect::<Vec<_>>(), ["1", "2"]);
        assert_eq!(query.get("b"), Some("x,y z"));
        assert_eq!(query.get("c"), None);
        assert_eq!(query.flag("c"), Ok(Some(true)));
        assert_eq!(query.flag("watch"), Ok(Some(false)));
        assert_eq!(query.flag("x"), Ok(Some(false)));
        assert_eq!(query.flag("d"), Ok(None));
        assert_eq!(query.number("limit"), Ok(Some(7)));
        assert_eq!(query.number("b").expect_err("no number").code(), 400);
    }
}
