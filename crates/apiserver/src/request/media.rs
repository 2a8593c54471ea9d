//! What a client takes and sends, by its `Accept` and `Content-Type` headers.

use http::HeaderMap;
use http::header::ACCEPT;
use stint_api::field_error::quote;

use crate::decode::Format;
use crate::protobuf;
use crate::status::Status;

/// What answers can be written in.
pub const ANSWERED: [&str; 2] = ["application/json", "application/yaml"];

/// What bodies can be written in.
pub const ACCEPTED: [&str; 3] = ["application/json", "application/yaml", protobuf::MEDIA_TYPE];

/// How a body is written, if it can be read.
pub fn body_format(content_type: Option<&str>) -> Result<Format, Status> {
    let media_type =
        content_type.map_or("", |header| header.split(';').next().unwrap_or("").trim());
    // Media types are written in any case.
    let is = |name: &str| media_type.eq_ignore_ascii_case(name);
    if media_type.is_empty() || is("application/json") {
        Ok(Format::Json)
    } else if is("application/yaml") {
        Ok(Format::Yaml)
    } else if is(protobuf::MEDIA_TYPE) {
        Ok(Format::Protobuf)
    } else {
        Err(Status::unsupported_media_type(&ACCEPTED))
    }
}

/// How a Status is written for a client, whatever else it asks for.
pub fn accepted_format(headers: &HeaderMap) -> AnswerFormat {
    let accept = headers.get(ACCEPT).and_then(|value| value.to_str().ok());
    Shape::negotiate(accept, None, false).map_or(AnswerFormat::Json, |shape| shape.format)
}

/// How an answer is to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// What of the objects is wanted.
    pub view: View,
    /// How it is written.
    pub format: AnswerFormat,
    /// Whether for a person.
    pub is_pretty: bool,
}

/// How an answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerFormat {
    /// JSON.
    Json,
    /// YAML.
    Yaml,
}

/// What of the objects an answer shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// All.
    Whole,
    /// Their metadata, of one or of many: each is asked for by a name of its own.
    Metadata(Count),
    /// A row of a table for each.
    Table(Include),
}

/// How many objects are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// PartialObjectMetadata.
    One,
    /// PartialObjectMetadataList.
    Many,
}

/// What a row of a table says of its object besides its cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Include {
    /// Nothing.
    None,
    /// Its metadata.
    Metadata,
    /// All of it.
    Object,
}

impl Shape {
    /// JSON as it comes.
    pub const PLAIN: Shape =
        Shape { view: View::Whole, format: AnswerFormat::Json, is_pretty: false };

    /// The media type that the client likes best of those that can be made.
    pub fn negotiate(
        accept: Option<&str>,
        include_object: Option<&str>,
        is_pretty: bool,
    ) -> Result<Self, Status> {
        let include = match include_object {
            None | Some("Metadata") => Some(Include::Metadata),
            Some("None") => Some(Include::None),
            Some("Object") => Some(Include::Object),
            Some(_) => None,
        };
        let accept = accept.filter(|accept| !accept.trim().is_empty()).unwrap_or("*/*");
        let mut is_known = false;
        for range in MediaRange::read_all(accept) {
            is_known |= range.format().is_some();
            if let Some((view, format)) = read_range(range, include.unwrap_or(Include::Metadata)) {
                if let (View::Table(_), None, Some(other)) = (view, include, include_object) {
                    let other = quote(other);
                    return Err(Status::bad_request(format!(
                        "Unable to convert to Table as requested: includeObject: Invalid value: \
                         {other}: must be 'Metadata', 'Object', 'None', or empty"
                    )));
                }
                return Ok(Shape { view, format, is_pretty });
            }
        }
        // A media type that there is, as something that there is not.
        Err(if is_known {
            Status::not_acceptable_view(&ANSWERED)
        } else {
            Status::not_acceptable(&ANSWERED)
        })
    }
}

/// How many of the media types that a client names are looked at. kubectl names five.
const MOST_RANGES: usize = 64;

/// A media type that a client takes, with its parameters.
#[derive(Clone, Copy, Debug)]
pub struct MediaRange<'h>(&'h str);

impl<'h> MediaRange<'h> {
    /// One of those that commas part in a header.
    pub fn read(text: &'h str) -> Self {
        MediaRange(text)
    }

    /// All of a header, those that the client likes best first: by their quality values, then what is named before
    /// what stands for many, then as they come. One with the quality 0 is taken if there is no other, as by Kubernetes.
    pub fn read_all(accept: &'h str) -> Vec<Self> {
        let ranges = accept.split(',').take(MOST_RANGES).map(MediaRange::read);
        let mut ranges: Vec<_> =
            ranges.map(|range| (range.quality(), range.wildcards(), range)).collect();
        ranges.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        ranges.into_iter().map(|(.., range)| range).collect()
    }

    fn quality(self) -> f64 {
        let quality = self.parameter("q").and_then(|quality| quality.parse::<f64>().ok());
        quality.filter(|quality| quality.is_finite()).unwrap_or(1.0)
    }

    fn wildcards(self) -> usize {
        self.media_type().matches('*').count()
    }

    /// The media type itself.
    pub fn media_type(self) -> &'h str {
        self.0.split(';').next().unwrap_or("").trim()
    }

    /// What it is written in, if that can be done.
    pub fn format(self) -> Option<AnswerFormat> {
        match self.media_type() {
            "application/json" | "*/*" | "application/*" => Some(AnswerFormat::Json),
            "application/yaml" => Some(AnswerFormat::Yaml),
            _ => None,
        }
    }

    /// A parameter; an empty one is as good as none.
    pub fn parameter(self, name: &str) -> Option<&'h str> {
        let parts = self.0.split(';').skip(1).filter_map(|part| part.trim().split_once('='));
        let values = parts.filter(|(known, _)| *known == name).map(|(_, value)| value);
        values.last().filter(|value| !value.is_empty())
    }
}

/// A media range, if it can be made.
fn read_range(range: MediaRange<'_>, include: Include) -> Option<(View, AnswerFormat)> {
    let format = range.format()?;
    let is_meta = range.parameter("g") == Some("meta.k8s.io") && range.parameter("v") == Some("v1");
    let view = match range.parameter("as") {
        None => View::Whole,
        Some(_) if !is_meta => return None,
        Some("Table") => View::Table(include),
        Some("PartialObjectMetadata") => View::Metadata(Count::One),
        Some("PartialObjectMetadataList") => View::Metadata(Count::Many),
        Some(_) => return None,
    };
    Some((view, format))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn negotiate(accept: &str) -> Option<(View, AnswerFormat)> {
        Shape::negotiate(Some(accept), None, false).ok().map(|shape| (shape.view, shape.format))
    }

    #[test]
    fn the_media_type_that_is_liked_best_is_taken() {
        let table = View::Table(Include::Metadata);
        let rows = [
            ("", Some((View::Whole, AnswerFormat::Json))),
            ("*/*", Some((View::Whole, AnswerFormat::Json))),
            ("application/json", Some((View::Whole, AnswerFormat::Json))),
            ("application/yaml, application/json", Some((View::Whole, AnswerFormat::Yaml))),
            (
                "application/vnd.kubernetes.protobuf,application/json",
                Some((View::Whole, AnswerFormat::Json)),
            ),
            ("application/vnd.kubernetes.protobuf", None),
            ("text/html", None),
            (
                "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
                Some((table, AnswerFormat::Json)),
            ),
            (
                "application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json",
                Some((View::Whole, AnswerFormat::Json)),
            ),
            (
                "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
                Some((View::Metadata(Count::Many), AnswerFormat::Json)),
            ),
            ("application/json;q=0.9, text/plain", Some((View::Whole, AnswerFormat::Json))),
            // As kube-apiserver 1.36 answers.
            (
                "application/yaml;q=0.5, application/json;q=0.9",
                Some((View::Whole, AnswerFormat::Json)),
            ),
            ("application/json;q=0.1, application/yaml", Some((View::Whole, AnswerFormat::Yaml))),
            ("application/json;q=0, application/yaml;q=x", Some((View::Whole, AnswerFormat::Yaml))),
            ("application/json;q=0", Some((View::Whole, AnswerFormat::Json))),
            ("*/*, application/yaml", Some((View::Whole, AnswerFormat::Yaml))),
            ("*/*;q=0.1, application/yaml", Some((View::Whole, AnswerFormat::Yaml))),
            (
                "application/json;as=Table;v=v1;g=meta.k8s.io;q=0.5, application/json",
                Some((View::Whole, AnswerFormat::Json)),
            ),
        ];
        for (accept, expected) in rows {
            assert_eq!(negotiate(accept), expected, "{accept}");
        }
    }

    #[test]
    fn a_body_is_json_unless_it_says_otherwise() {
        let rows = [
            (None, Some(Format::Json)),
            (Some(""), Some(Format::Json)),
            (Some("application/json; charset=utf-8"), Some(Format::Json)),
            (Some("application/yaml"), Some(Format::Yaml)),
            (Some("Application/JSON"), Some(Format::Json)),
            (Some("application/vnd.kubernetes.protobuf"), Some(Format::Protobuf)),
            (Some("application/x-protobuf"), None),
            (Some("application/cbor"), None),
        ];
        for (header, expected) in rows {
            assert_eq!(body_format(header).ok(), expected, "{header:?}");
        }
        let refused = body_format(Some("text/plain")).expect_err("refused");
        assert_eq!(
            refused.message(),
            "the body of the request was in an unknown format - accepted media types include: \
             application/json, application/yaml, application/vnd.kubernetes.protobuf"
        );
    }
}
