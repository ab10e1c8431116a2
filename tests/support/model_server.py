#!/usr/bin/env python3
"""A model server that follows a script: the streaming parts of the Anthropic Messages and OpenAI Responses protocols
that coding agents need to run a task to its end.

usage: model_server.py ADDRESS PORT SCRIPT.json LOG

SCRIPT is a list of shell commands. At each turn the "model" asks for the next one; after the last it says DONE. LOG gets
one JSON line per request: which protocol, how many commands are done, what the last one printed, which key came.
"""
import http.server
import json
import socketserver
import sys
import uuid

ADDRESS, PORT, SCRIPT, LOG = sys.argv[1], int(sys.argv[2]), json.load(open(sys.argv[3])), sys.argv[4]


def log(**line):
    with open(LOG, "a") as f:
        f.write(json.dumps(line) + "\n")


def fresh(prefix):
    return prefix + uuid.uuid4().hex[:20]


class Model(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def send_json(self, value):
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def send_events(self, events):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        for value in events:
            self.wfile.write(f"event: {value['type']}\ndata: {json.dumps(value)}\n\n".encode())
            self.wfile.flush()
        self.close_connection = True

    def body(self):
        if "chunked" in (self.headers.get("transfer-encoding") or ""):
            out = b""
            while True:
                n = int(self.rfile.readline(), 16)
                out += self.rfile.read(n)
                self.rfile.readline()
                if n == 0:
                    return out
        return self.rfile.read(int(self.headers.get("content-length") or 0))

    def do_GET(self):
        log(get=self.path)
        self.send_json({"data": [], "models": []})

    do_HEAD = do_GET

    def do_POST(self):
        try:
            ask = json.loads(self.body() or b"{}")
        except ValueError:
            ask = {}
        path = self.path.split("?")[0]
        if path.endswith("/messages"):
            self.answer_messages(ask)
        elif path.endswith("/responses"):
            self.answer_responses(ask)
        else:
            log(post=self.path)
            self.send_json({"input_tokens": 1})

    def key(self):
        return self.headers.get("x-api-key") or self.headers.get("authorization") or ""

    def answer_messages(self, ask):
        results = [part.get("content") for m in ask.get("messages", []) if isinstance(m.get("content"), list)
                   for part in m["content"] if part.get("type") == "tool_result"]
        log(protocol="messages", done=len(results), last=results[-1] if results else None, key=self.key())
        tools = [t.get("name") for t in ask.get("tools", [])]
        if "Bash" in tools and len(results) < len(SCRIPT):
            call = {"command": SCRIPT[len(results)], "description": "next step"}
            empty = {"type": "tool_use", "id": fresh("toolu_"), "name": "Bash", "input": {}}
            whole, part, stop = dict(empty, input=call), {"type": "input_json_delta", "partial_json": json.dumps(call)}, "tool_use"
        else:
            empty = {"type": "text", "text": ""}
            whole, part, stop = {"type": "text", "text": "DONE"}, {"type": "text_delta", "text": "DONE"}, "end_turn"
        message = {"id": fresh("msg_"), "type": "message", "role": "assistant", "model": ask.get("model", "scripted"), "content": [],
                   "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 10, "output_tokens": 1}}
        if not ask.get("stream"):
            self.send_json(dict(message, content=[whole], stop_reason=stop))
            return
        self.send_events([
            {"type": "message_start", "message": message},
            {"type": "content_block_start", "index": 0, "content_block": empty},
            {"type": "content_block_delta", "index": 0, "delta": part},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": {"output_tokens": 5}},
            {"type": "message_stop"},
        ])

    def answer_responses(self, ask):
        results = [i.get("output") for i in ask.get("input", []) if isinstance(i, dict) and str(i.get("type", "")).endswith("_call_output")]
        log(protocol="responses", done=len(results), last=results[-1] if results else None, key=self.key())
        tools = [t.get("name") or t.get("type") for t in ask.get("tools", [])]
        if len(results) < len(SCRIPT):
            command = SCRIPT[len(results)]
            name, call = "shell", {"command": ["bash", "-lc", command]}
            if "exec_command" in tools:
                name, call = "exec_command", {"cmd": command}
            elif "shell_command" in tools:
                name, call = "shell_command", {"command": command}
            item = {"type": "function_call", "id": fresh("fc_"), "call_id": fresh("call_"), "name": name, "arguments": json.dumps(call), "status": "completed"}
        else:
            item = {"type": "message", "id": fresh("m_"), "role": "assistant", "status": "completed",
                    "content": [{"type": "output_text", "text": "DONE", "annotations": []}]}
        rid = fresh("resp_")
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2, "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
        self.send_events([
            {"type": "response.created", "response": {"id": rid}},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": {"id": rid, "object": "response", "status": "completed", "output": [item], "usage": usage}},
        ])


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True


Server((ADDRESS, PORT), Model).serve_forever()
