// SPDX-License-Identifier: LGPL-2.1-or-later
// Perfetto's trace processor as a filter: its RPC stream of standard input is answered on standard output.
//
// usage: node trace_processor.js DIR       DIR: Perfetto's page, with engine_bundle.js and trace_processor.wasm
//
// The page runs the engine as a web worker that talks by a message port. Here a context has what the engine needs of a
// worker: where it is, and requests, which read files of DIR. The engine loads its program while its script runs.
"use strict";
const fs = require("node:fs");
const path = require("node:path");
const vm = require("node:vm");

const directory = process.argv[2];
const STDOUT = 1; // not process.stdout, which would make the pipe one that does not block

class XMLHttpRequest {
    open(_method, name) {
        this.name = name;
    }
    send() {
        this.response = fs.readFileSync(path.join(directory, path.basename(this.name)));
    }
}

function write(bytes) {
    for (let n = 0; n < bytes.length;) n += fs.writeSync(STDOUT, bytes, n);
}

const worker = {
    console: { log() {}, warn() {}, error: console.error }, // a crash's error has the warnings before it
    WorkerGlobalScope: class {},
    location: { href: "file:///" },
    URL, TextDecoder, XMLHttpRequest, crypto, performance, setTimeout,
};
worker.self = vm.createContext(worker);
vm.runInContext(fs.readFileSync(path.join(directory, "engine_bundle.js"), "utf8"), worker);
const port = { postMessage: write };
worker.onmessage({ data: port });
// The engine is ready when its promises are kept. It takes arrays of its own context only.
setTimeout(() => process.stdin.on("data", (bytes) => port.onmessage({ data: new worker.Bytes(bytes) })), 0);
worker.Bytes = vm.runInContext("Uint8Array", worker);
