//! A browser that tests drive: Debian's chromium by its chromium-driver, which speaks W3C's WebDriver over HTTP on
//! this machine.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use super::note;

/// The member by which WebDriver calls an element.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// A browser with one page.
pub(crate) struct Browser {
    driver: Child,
    port: u16,
    session: String,
}

/// Returns a program that an environment variable names, or that is where Debian has it.
fn program(variable: &str, usual: &str) -> Option<PathBuf> {
    let named = std::env::var_os(variable).map(PathBuf::from);
    Some(named.unwrap_or_else(|| usual.into())).filter(|path| path.exists())
}

impl Browser {
    /// Starts a browser. `None`, which is said, where there is none, unless `TRAPLINE_REQUIRE_TOOLS=1` is set.
    pub(crate) fn start() -> Option<Browser> {
        Browser::start_with(&[])
    }

    /// Starts a browser with more arguments.
    pub(crate) fn start_with(more: &[&str]) -> Option<Browser> {
        let browser = program("TRAPLINE_CHROMIUM", "/usr/bin/chromium");
        let driver = program("TRAPLINE_CHROMEDRIVER", "/usr/bin/chromedriver");
        let required = std::env::var_os("TRAPLINE_REQUIRE_TOOLS").is_some_and(|value| value == "1");
        let (Some(browser), Some(driver)) = (browser, driver) else {
            assert!(
                !required,
                "TRAPLINE_REQUIRE_TOOLS=1 is set, and chromium or chromedriver is missing"
            );
            note(
                "skipped: no chromium with chromedriver here (TRAPLINE_CHROMIUM, TRAPLINE_CHROMEDRIVER)",
            );
            return None;
        };
        let mut driver = Command::new(driver)
            .arg("--port=0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromedriver starts");
        let out = driver.stdout.take().expect("chromedriver has an output");
        let mut lines = BufReader::new(out).lines().map_while(Result::ok);
        let said = lines.find_map(|line| {
            let port = line.split_once("started successfully on port ")?.1;
            port.trim_end_matches('.').parse().ok()
        });
        // What else it says is read, or it would stop when the pipe is full.
        std::thread::spawn(move || lines.for_each(drop));
        let mut started = Browser {
            driver,
            port: said.expect("chromedriver says its port"),
            session: String::new(),
        };
        let mut arguments = vec![
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--hide-scrollbars",
            "--window-size=1200,800",
        ];
        arguments.extend(more);
        let session = started.ask(
            "POST",
            "/session",
            &json!({"capabilities": {"alwaysMatch": {
                "browserName": "chrome",
                "goog:chromeOptions": {"binary": browser, "args": arguments},
                "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
            }}}),
        );
        let id = session["sessionId"].as_str().expect("a browser starts");
        started.session = format!("/session/{id}");
        Some(started)
    }

    /// Asks the driver, and returns what it answers.
    fn ask(&self, method: &str, path: &str, body: &Value) -> Value {
        let body = match method {
            "POST" => body.to_string(),
            _ => String::new(),
        };
        let mut stream =
            TcpStream::connect(("127.0.0.1", self.port)).expect("chromedriver listens");
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n",
            body.len()
        );
        stream
            .write_all(head.as_bytes())
            .expect("a request is sent");
        stream
            .write_all(body.as_bytes())
            .expect("a request is sent");
        let mut answer = BufReader::new(stream);
        let mut length = 0;
        loop {
            let mut line = String::new();
            answer.read_line(&mut line).expect("an answer has a head");
            let line = line.trim().to_ascii_lowercase();
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().expect("a length is a number");
            }
            if line.is_empty() {
                break;
            }
        }
        let mut bytes = vec![0; length];
        answer.read_exact(&mut bytes).expect("an answer is whole");
        let answer: Value = serde_json::from_slice(&bytes).expect("an answer is JSON");
        let value = answer["value"].clone();
        assert!(
            value["error"].is_null(),
            "{method} {path} {body}: {value:#}"
        );
        value
    }

    fn post(&self, path: &str, body: &Value) -> Value {
        self.ask("POST", &format!("{}{path}", self.session), body)
    }

    /// Opens a file.
    pub(crate) fn open(&self, file: &Path) {
        self.open_at(file, "");
    }

    /// Opens a file at a fragment, which begins with `#`.
    pub(crate) fn open_at(&self, file: &Path, fragment: &str) {
        self.post(
            "/url",
            &json!({"url": format!("file://{}{fragment}", file.display())}),
        );
    }

    /// Runs a script in the page, and returns what it returns.
    pub(crate) fn run(&self, script: &str) -> Value {
        self.post("/execute/sync", &json!({"script": script, "args": []}))
    }

    /// Runs a script until it returns true.
    pub(crate) fn wait(&self, script: &str) {
        for _ in 0..100 {
            if self.run(script) == true {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        panic!("never true: {script}");
    }

    fn find(&self, selector: &str) -> String {
        let found = self.post(
            "/element",
            &json!({"using": "css selector", "value": selector}),
        );
        found[ELEMENT].as_str().expect("an element").to_owned()
    }

    /// Clicks on an element as a mouse does.
    pub(crate) fn click(&self, selector: &str) {
        let element = self.find(selector);
        self.post(&format!("/element/{element}/click"), &json!({}));
    }

    /// Presses keys, which WebDriver has numbers for, one after the other; all are let go at the end.
    pub(crate) fn keys(&self, keys: &str) {
        let down = keys
            .chars()
            .map(|key| json!({"type": "keyDown", "value": key}));
        let up = keys
            .chars()
            .rev()
            .map(|key| json!({"type": "keyUp", "value": key}));
        let actions: Vec<Value> = down.chain(up).collect();
        self.post(
            "/actions",
            &json!({"actions": [{"type": "key", "id": "keyboard", "actions": actions}]}),
        );
    }

    /// Moves the mouse to places of the window, in pixels, with its button down between the first and the last where
    /// it drags.
    pub(crate) fn mouse(&self, places: &[(i64, i64)], drags: bool) {
        let mut actions: Vec<Value> = Vec::new();
        for (at, (x, y)) in places.iter().enumerate() {
            actions.push(json!({"type": "pointerMove", "duration": 20, "x": x, "y": y}));
            if drags && at == 0 {
                actions.push(json!({"type": "pointerDown", "button": 0}));
            }
        }
        if drags {
            actions.push(json!({"type": "pointerUp", "button": 0}));
        }
        self.post(
            "/actions",
            &json!({"actions": [
                {"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": actions},
            ]}),
        );
    }

    /// Shows the page as it would be printed.
    pub(crate) fn print(&self) {
        let media = json!({"cmd": "Emulation.setEmulatedMedia", "params": {"media": "print"}});
        self.post("/goog/cdp/execute", &media);
        self.run("window.dispatchEvent(new Event('beforeprint'))");
    }

    /// Gives the page a size, which may be one that no window can have.
    pub(crate) fn resize(&self, width: u32, height: u32) {
        let size =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        let command = json!({"cmd": "Emulation.setDeviceMetricsOverride", "params": size});
        self.post("/goog/cdp/execute", &command);
    }

    /// Puts two fingers on places of the window, and moves each to another.
    pub(crate) fn pinch(&self, fingers: [[(i64, i64); 2]; 2]) {
        let move_to = |(x, y): (i64, i64), ms: u64| json!({"type": "pointerMove", "duration": ms, "x": x, "y": y});
        let fingers = fingers.iter().enumerate().map(|(at, [from, to])| {
            let (down, up) = (json!({"type": "pointerDown", "button": 0}), json!({"type": "pointerUp", "button": 0}));
            let actions = json!([move_to(*from, 0), down, move_to(*to, 100), up]);
            let touch = json!({"pointerType": "touch"});
            json!({"type": "pointer", "id": format!("finger{at}"), "parameters": touch, "actions": actions})
        });
        let fingers: Vec<Value> = fingers.collect();
        self.post("/actions", &json!({"actions": fingers}));
    }

    /// Turns the wheel at a place of the window.
    pub(crate) fn wheel(&self, (x, y): (i64, i64), (dx, dy): (i64, i64)) {
        let turn =
            json!({"type": "scroll", "duration": 0, "x": x, "y": y, "deltaX": dx, "deltaY": dy});
        self.post(
            "/actions",
            &json!({"actions": [{"type": "wheel", "id": "wheel", "actions": [turn]}]}),
        );
    }

    /// Runs a script with an argument that ends by calling its last one, and returns what that was called with.
    pub(crate) fn run_async(&self, script: &str, argument: &Value) -> Value {
        self.post(
            "/execute/async",
            &json!({"script": script, "args": [argument]}),
        )
    }

    /// Returns a picture of what shows, as PNG in base64.
    pub(crate) fn screenshot(&self) -> String {
        let picture = self.ask("GET", &format!("{}/screenshot", self.session), &Value::Null);
        picture.as_str().unwrap_or_default().to_owned()
    }

    /// Types a text where the keyboard's focus is.
    pub(crate) fn write(&self, text: &str) {
        for key in text.chars() {
            self.keys(&key.to_string());
        }
    }

    /// Returns what the page said on its console, and what it asked for beside files that were opened.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let log = |kind: &str| self.post("/se/log", &json!({"type": kind}));
        let console = log("browser");
        let console = console.as_array().into_iter().flatten();
        let mut found: Vec<String> = console.map(|entry| entry["message"].to_string()).collect();
        let network = log("performance");
        for entry in network.as_array().into_iter().flatten() {
            let message = entry["message"].as_str().unwrap_or_default();
            let message: Value = serde_json::from_str(message).unwrap_or_default();
            let message = &message["message"];
            let url = message["params"]["request"]["url"].as_str();
            let is_document = message["params"]["type"] == "Document";
            if message["method"] == "Network.requestWillBeSent" && !is_document {
                found.push(format!("asked for {}", url.unwrap_or_default()));
            }
        }
        found
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if !self.session.is_empty() {
            self.ask("DELETE", &self.session, &Value::Null);
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}
