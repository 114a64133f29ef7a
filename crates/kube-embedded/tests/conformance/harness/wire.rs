use serde_json::Value;
use std::fmt;

/// A protobuf message, built field by field.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Message(pub(crate) Vec<u8>);

impl Message {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn number(mut self, field: u64, number: i64) -> Self {
        self.varint(field << 3);
        self.varint(number.cast_unsigned());
        self
    }

    pub(crate) fn text(self, field: u64, text: &str) -> Self {
        self.bytes(field, text.as_bytes())
    }

    pub(crate) fn message(self, field: u64, message: &Message) -> Self {
        self.bytes(field, &message.0)
    }

    /// Adds an entry of a map from string to string.
    pub(crate) fn entry(self, field: u64, key: &str, value: &str) -> Self {
        self.message(field, &Message::new().text(1, key).text(2, value))
    }

    fn bytes(mut self, field: u64, bytes: &[u8]) -> Self {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number.to_le_bytes()[0] | 0x80);
            number >>= 7;
        }
        self.0.push(number.to_le_bytes()[0]);
    }

    /// The message in its envelope, as sent.
    pub(crate) fn enclosed(&self, api_version: &str, kind: &str) -> Self {
        let types = Message::new().text(1, api_version).text(2, kind);
        let envelope = Message::new().message(1, &types).message(2, self).text(3, "").text(4, "");
        Self([b"k8s\0".as_slice(), &envelope.0].concat())
    }

    /// A watch event, whose object is in its envelope.
    pub(crate) fn frame(kind: &str, object: &Message) -> Self {
        let event = Message::new().text(1, kind).message(2, &Message::new().message(1, object));
        Self([&u32::try_from(event.0.len()).expect("a short event").to_be_bytes(), &*event.0].concat())
    }

    /// The last length-delimited field with this number.
    pub(crate) fn field(&self, wanted: u64) -> Option<Message> {
        self.fields(wanted).pop()
    }

    /// The length-delimited fields with this number.
    pub(crate) fn fields(&self, wanted: u64) -> Vec<Message> {
        let mut rest = &*self.0;
        let mut found = Vec::new();
        while !rest.is_empty() {
            let tag = read_varint(&mut rest);
            match tag & 7 {
                0 => {
                    read_varint(&mut rest);
                }
                2 => {
                    let length = usize::try_from(read_varint(&mut rest)).expect("a length");
                    let (bytes, after) = rest.split_at(length);
                    rest = after;
                    if tag >> 3 == wanted {
                        found.push(Message(bytes.to_vec()));
                    }
                }
                other => panic!("no field of the messages read here is of wire type {other}"),
            }
        }
        found
    }

    /// The text in the last field with this number.
    pub(crate) fn text_of(&self, wanted: u64) -> String {
        self.field(wanted).map(|text| String::from_utf8(text.0).expect("text")).unwrap_or_default()
    }

    /// The message inside an envelope.
    #[track_caller]
    pub(crate) fn opened(&self) -> Message {
        Message(self.0.strip_prefix(b"k8s\0").expect("an envelope").to_vec()).field(2).expect("a message within")
    }

    /// The type and the object of a frame.
    #[track_caller]
    pub(crate) fn event(&self) -> (String, Message) {
        let event = Message(self.0[4..].to_vec());
        let kind = event.field(1).expect("a type").0;
        (String::from_utf8(kind).expect("text"), event.field(2).and_then(|raw| raw.field(1)).expect("an object"))
    }

    /// The resource version of an object.
    #[track_caller]
    pub(crate) fn version(&self) -> String {
        let version = self.field(1).and_then(|metadata| metadata.field(6)).expect("an object has a version");
        String::from_utf8(version.0).expect("text")
    }

    /// Encodes metadata given as JSON.
    pub(crate) fn metadata(json: &Value) -> Self {
        let text = |name: &str| json[name].as_str().unwrap_or_default();
        let mut metadata = Message::new()
            .text(1, text("name"))
            .text(2, text("generateName"))
            .text(3, text("namespace"))
            .text(4, "")
            .text(5, text("uid"))
            .text(6, text("resourceVersion"))
            .number(7, json["generation"].as_i64().unwrap_or(0))
            .message(8, &Self::time(text("creationTimestamp")));
        for (field, map) in [(11, &json["labels"]), (12, &json["annotations"])] {
            for (key, value) in map.as_object().into_iter().flatten() {
                metadata = metadata.entry(field, key, value.as_str().expect("these are texts"));
            }
        }
        for entry in json["managedFields"].as_array().into_iter().flatten() {
            let text = |name: &str| entry[name].as_str().unwrap_or_default();
            let fields = Message::new().text(1, &entry["fieldsV1"].to_string());
            let entry = Message::new()
                .text(1, text("manager"))
                .text(2, text("operation"))
                .text(3, text("apiVersion"))
                .message(4, &Self::time(text("time")))
                .text(6, text("fieldsType"))
                .message(7, &fields)
                .text(8, text("subresource"));
            metadata = metadata.message(17, &entry);
        }
        metadata
    }

    /// Encodes a config map given as JSON.
    pub(crate) fn configmap(json: &Value) -> Self {
        let mut configmap = Message::new().message(1, &Self::metadata(&json["metadata"]));
        for (key, value) in json["data"].as_object().into_iter().flatten() {
            configmap = configmap.entry(2, key, value.as_str().expect("data is text"));
        }
        configmap
    }

    /// Encodes a list of these messages.
    pub(crate) fn list(version: &str, token: &str, remaining: Option<i64>, items: &[Message]) -> Self {
        let metadata = Message::new().text(1, "").text(2, version).text(3, token);
        let metadata = remaining.into_iter().fold(metadata, |metadata, count| metadata.number(4, count));
        items.iter().fold(Message::new().message(1, &metadata), |list, item| list.message(2, item))
    }

    /// A failure Status.
    pub(crate) fn failure(message: &str, reason: &str, details: Option<&Message>, code: i64) -> Self {
        let empty = Message::new().text(1, "").text(2, "").text(3, "");
        let status = Message::new().message(1, &empty).text(2, "Failure").text(3, message).text(4, reason);
        let status = details.into_iter().fold(status, |status, details| status.message(5, details));
        status.number(6, code).enclosed("v1", "Status")
    }

    /// The details of a Status.
    pub(crate) fn details(name: &str, group: &str, kind: &str, uid: &str) -> Self {
        Message::new().text(1, name).text(2, group).text(3, kind).number(5, 0).text(6, uid)
    }

    fn time(text: &str) -> Self {
        match text.parse::<jiff::Timestamp>() {
            Ok(time) => Message::new().number(1, time.as_second()).number(2, 0),
            Err(_) => Message::new(),
        }
    }
}

fn read_varint(bytes: &mut &[u8]) -> u64 {
    let (mut number, mut shift) = (0, 0);
    loop {
        let (byte, rest) = bytes.split_first().expect("a message that is not cut");
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if *byte < 0x80 {
            return number;
        }
    }
}

/// Human-readable: text is shown, other bytes are escaped.
impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.escape_ascii())
    }
}
