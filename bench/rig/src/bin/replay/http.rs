//! The part of HTTP/1.1 that clients of an API server need.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Write};
use std::net::TcpStream;

use crate::answer::Answers;

/// A request without a body.
pub struct Request {
    pub path: String,
    pub query: HashMap<String, String>,
    pub accept: String,
    pub accept_encoding: String,
}

/// Serves requests until the client closes the connection.
pub fn serve(answers: &Answers, stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut out = Connection { stream, sent: 0 };
    while let Some(request) = read(&mut reader)? {
        if let Some(what) = request.path.strip_prefix("/control/") {
            let body = crate::control::obey(answers, what, &request.query);
            out.whole("200 OK", "application/json", body.as_bytes())?;
            return Ok(());
        }
        answers.answer(&request, &mut out)?;
    }
    Ok(())
}

fn read(reader: &mut impl BufRead) -> io::Result<Option<Request>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let target = line.split(' ').nth(1).unwrap_or("/").to_owned();
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let mut request =
        Request { path: path.to_owned(), query: parse(query), accept: String::new(), accept_encoding: String::new() };
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let Some((name, value)) = line.trim_end().split_once(':') else { return Ok(Some(request)) };
        match name.to_ascii_lowercase().as_str() {
            "accept" => request.accept = value.trim().to_owned(),
            "accept-encoding" => request.accept_encoding = value.trim().to_owned(),
            _ => {}
        }
    }
}

/// Parses query parameters, which need no unescaping here.
fn parse(query: &str) -> HashMap<String, String> {
    let pair = |pair: &str| pair.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
    query.split('&').filter_map(pair).collect()
}

/// The writing side of a connection.
pub struct Connection {
    stream: TcpStream,
    sent: u64,
}

impl Connection {
    /// Writes a complete response.
    pub fn whole(&mut self, status: &str, content_type: &str, body: &[u8]) -> io::Result<()> {
        let head =
            format!("HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\r\n", body.len());
        self.write(&[head.as_bytes(), body].concat())
    }

    /// Starts a chunked response.
    pub fn begin(&mut self, content_type: &str, gzip: bool) -> io::Result<()> {
        let encoding = if gzip { "Content-Encoding: gzip\r\nVary: Accept-Encoding\r\n" } else { "" };
        let head =
            format!("HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\n{encoding}Transfer-Encoding: chunked\r\n\r\n");
        self.write(head.as_bytes())
    }

    /// Writes a chunk.
    pub fn chunk(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.write(format!("{:x}\r\n", bytes.len()).as_bytes())?;
        self.write(bytes)?;
        self.write(b"\r\n")
    }

    /// Ends the chunked response.
    pub fn end(&mut self) -> io::Result<()> {
        self.write(b"0\r\n\r\n")
    }

    /// Bytes written since the last call.
    pub fn take_sent(&mut self) -> u64 {
        std::mem::take(&mut self.sent)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.sent += bytes.len() as u64;
        self.stream.write_all(bytes)
    }
}
