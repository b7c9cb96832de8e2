//! A redis server on a free port of this machine, its load, and its end.

use crate::run;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

const READY_WITHIN: Duration = Duration::from_secs(30);

/// A port that nobody listens on.
pub(super) fn free_port() -> Result<u16, String> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|listener| listener.local_addr())
        .map(|address| address.port())
        .map_err(|error| format!("there is no free port on 127.0.0.1: {error}."))
}

/// What the server is told: this machine only, and nothing on disk.
pub(super) fn options(port: u16) -> Vec<String> {
    let port = port.to_string();
    ["--port", &port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"].map(str::to_owned).to_vec()
}

/// Waits until the server answers, sends the load, stops the server. Returns what the client waited, in seconds.
pub(super) fn serve(port: u16, requests: u32) -> Result<f64, String> {
    wait_until_ready(port)?;
    let started = Instant::now();
    let (port_word, requests) = (port.to_string(), requests.to_string());
    let load = ["-c", "20", "-r", "10000", "-d", "100", "-t", "set,get,lpush,sadd", "-q"];
    run::captured(Command::new("redis-benchmark").args(["-p", &port_word, "-n", &requests]).args(load))?;
    let wall_s = started.elapsed().as_secs_f64();
    match say(port, "SHUTDOWN NOSAVE\r\n") {
        // It answers with nothing but the end of the connection, which may reach us as a reset.
        Err(error) if error.kind() != ErrorKind::ConnectionReset => {
            Err(format!("redis-server could not be stopped: {error}."))
        }
        Ok(answer) if answer.starts_with('-') => {
            Err(format!("redis-server would not stop: {}.", answer.trim()))
        }
        _ => Ok(wall_s),
    }
}

fn wait_until_ready(port: u16) -> Result<(), String> {
    let started = Instant::now();
    while started.elapsed() < READY_WITHIN {
        if say(port, "PING\r\n").is_ok_and(|answer| answer.starts_with("+PONG")) {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(5));
    }
    Err(format!("redis-server did not answer on port {port} within {} s.", READY_WITHIN.as_secs()))
}

fn say(port: u16, words: &str) -> std::io::Result<String> {
    let mut connection = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    connection.set_read_timeout(Some(READY_WITHIN))?;
    connection.write_all(words.as_bytes())?;
    let mut answer = [0; 64];
    let length = connection.read(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer[..length]).into_owned())
}
