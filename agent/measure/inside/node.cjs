// The reporter for node's own runner: required before everything, and named as its reporter.
"use strict";
const { open, relative } = require("./channel.cjs");

const channel = open(__dirname, () => process.execArgv.some((word) => word === "--test"));

module.exports = async function* report(source) {
  const names = new Map(); // file -> the names of the current test and the suites around it
  for await (const { type, data } of source) {
    const file = data && data.file;
    if (type === "test:start" && file) {
      const around = names.get(file) || [];
      names.set(file, [...around.slice(0, data.nesting), data.name]);
    } else if (type === "test:pass" || type === "test:fail") {
      finish(data, file, names.get(file) || []);
    }
  }
  channel.end(false);
  yield "";
};

function finish(data, file, around) {
  const failed = data.details.error;
  const error = failed && (failed.cause || failed);
  const where = relative(file || data.name);
  const message = error && (error.stack || error.message || error);
  if (data.nesting === 0 && relative(data.name) === where) {
    if (failed && failed.failureType !== "subtestsFailed") channel.broken(where, message);
    return;
  }
  const id = [where, ...around.slice(0, data.nesting), data.name].join("::");
  const suite = data.details.type === "suite";
  if (suite && (!failed || failed.failureType === "subtestsFailed")) return;
  const skipped = data.skip !== undefined || data.todo !== undefined;
  channel.test(id, skipped ? "skipped" : failed ? "failed" : "passed", data.details.duration_ms / 1000, message);
}
