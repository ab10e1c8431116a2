//! What is said, word by word, and where the caret stands.

mod support;

use ringfence_policy::Layer;
use support::{parse, parse_as, render};

fn said(text: &str) -> String {
    match parse(text) {
        Ok(parsed) => render(&parsed.warnings),
        Err(problems) => render(&problems),
    }
}

#[test]
fn print() {
    for text in [
        "version = 1\n[network]\nallow_hosts = [\"api.example.com\"]\n",
        "[files]\nwrite = \".\"\nhom = 1\nmemory = \"8G\"\nxyz = 1\n",
        "version = 1\n[network]\nallow = [\"a.example.com\", \"b.example.com\"\n[files]\nwrite = [\".\"]\n",
        "version = 1\n[limits]\nmemory = 8G\nwall = 2h\n[network]\nalow = []\n",
        "version = 1\n[network]\nallow = [\"*.com\", \"https://x.example.com/\", \"@npmjs\", \"exämple.com\", { rul = \"x\" }, 3]\n",
        "version = 1\nversion = 1\n",
        "version = \"1\"\n",
        "version = 1\n[[credential]]\nname = \"x\"\n",
        "version = 1\n[network]\nrule = 3\nports = { publish = [0, \"3000\", 80, 80], hots = [1] }\n",
        "version = 1\nnetwork = 3\n[env]\nset = { A = 1, \"B C\" = \"x\", D = { vale = \"1\" } }\n",
        "version = 1\n[files]\ndeny_read = [\"a\", \"a\"]\n",
        "",
        "version = 1\nx = \"\"\"\n",
        "version = 1\r\n[files]\r\nhome = \"privat\"\r\n",
    ] {
        println!("=====\n{text}-----\n{}", said(text));
    }
    let _ = parse_as(Layer::User, "");
}
