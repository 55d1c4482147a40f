// The channel to which a reporter in node writes its facts: sealed lines, like those of channel.py.
// Invariant: the request is read and deleted before a test can run; nobody but the closure below knows the nonce.
"use strict";
const { createHash } = require("node:crypto");
const fs = require("node:fs");
const path = require("node:path");

const MESSAGE_CHARACTERS = 1500;
const OUTSIDE = /^\s+at .*(node_modules|node:)/; // a call outside of the repository

// The message of a failure, without calls outside of the repository, cut at lines; its end is kept.
function shown(message, root) {
  const lines = String(message || "").split(root + path.sep).join("").split("\n").filter((line) => !OUTSIDE.test(line));
  const tail = [];
  let room = MESSAGE_CHARACTERS;
  for (let size = 0; lines.length && size + lines.at(-1).length < room / 3; ) {
    size += lines.at(-1).length + 1;
    tail.unshift(lines.pop());
  }
  const head = [];
  room -= tail.join("\n").length;
  while (lines.length && room > 0) {
    head.push(lines.shift().slice(0, room));
    room -= head.at(-1).length + 1;
  }
  const gap = lines.length ? [`[... ${lines.length} lines left out here ...]`] : [];
  return [...head, ...gap, ...tail].join("\n");
}

// Opens the report if `isRunner` says that this process runs the tests; undefined otherwise (npm is node too).
exports.open = (folder, isRunner) => {
  const file = path.join(folder, "request.json");
  if (!isRunner() || !fs.existsSync(file)) return undefined;
  const request = JSON.parse(fs.readFileSync(file, "utf8"));
  fs.unlinkSync(file);
  process.env.NODE_OPTIONS = (process.env.NODE_OPTIONS || "").replace(request.options, "").trim();
  const descriptor = fs.openSync(request.report, "ax", 0o600);
  const { writeSync } = fs;
  const { stringify } = JSON;
  const seen = new Map();
  const root = process.cwd();
  let number = 0;
  let tests = 0;
  let failed = 0;

  const say = (kind, facts) => {
    const line = stringify({ ...facts, kind });
    const seal = createHash("sha256").update(request.nonce + number++ + line).digest("hex");
    writeSync(descriptor, `${seal} ${line}\n`);
  };
  say("open", {});
  return {
    // Reports a test of a file; a repeated name is another test.
    test(name, outcome, seconds, message) {
      const count = (seen.get(name) || 0) + 1;
      seen.set(name, count);
      tests += 1;
      failed += outcome === "failed";
      const text = shown(message, root);
      say("test", { id: count === 1 ? name : `${name} (${count})`, outcome, seconds, message: text });
    },
    // Reports a file that could not be run.
    broken(file, message) {
      failed += 1;
      say("broken", { id: file, message: shown(message, root) });
    },
    end(interrupted) {
      say("end", { exit: interrupted ? 2 : Number(failed > 0), collected: tests, tests, left_out: 0 });
    },
  };
};

exports.relative = (file) => path.relative(process.cwd(), file);
