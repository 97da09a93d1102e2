// SPDX-License-Identifier: LGPL-2.1-or-later
// Node.js: worker threads, MessageChannel, Atomics.wait on shared memory, and libuv's pool (file, hash, compression).
'use strict';
const { Worker, isMainThread, workerData, parentPort, MessageChannel } = require('worker_threads');
const crypto = require('crypto');
const fs = require('fs');
const path = require('path');
const util = require('util');
const zlib = require('zlib');
const assert = require('assert');

// A mutex of three states over Atomics, so that exclusion depends on Atomics.wait and notify.
function lock(a, i) {
    let c = Atomics.compareExchange(a, i, 0, 1);
    while (c !== 0) {
        if (c === 2 || Atomics.compareExchange(a, i, 1, 2) !== 0) Atomics.wait(a, i, 2);
        c = Atomics.compareExchange(a, i, 0, 2);
    }
}
function unlock(a, i) {
    if (Atomics.sub(a, i, 1) !== 1) { Atomics.store(a, i, 0); Atomics.notify(a, i, 1); }
}

if (!isMainThread) {
    const a = new Int32Array(workerData.shared);
    if (workerData.kind === 'count') {
        for (let n = 0; n < 5000; n++) { lock(a, 0); a[1] = a[1] + 1; unlock(a, 0); }
        parentPort.postMessage('done');
    } else if (workerData.kind === 'turns') {
        for (let n = 0; n < 200; n++) {
            for (let t; (t = Atomics.load(a, 2)) % 4 !== workerData.me;) Atomics.wait(a, 2, t);
            a[3] = a[3] * 31 + workerData.me | 0;
            Atomics.add(a, 2, 1);
            Atomics.notify(a, 2);
        }
        parentPort.postMessage('done');
    } else {
        parentPort.on('message', (m) => {
            if (m.port) { m.port.on('message', (x) => m.port.postMessage(x + 1)); return; }
            const hash = crypto.createHash('sha256').update(String(m.n).repeat(2000)).digest('hex');
            parentPort.postMessage({ n: m.n, hash });
        });
    }
} else {
    const start = (data) => new Worker(__filename, { workerData: data });
    const message = (w) => new Promise((yes, no) => { w.once('message', yes); w.once('error', no); });

    (async () => {
        const shared = new SharedArrayBuffer(64), a = new Int32Array(shared);
        await Promise.all([0, 1, 2, 3].map((me) => message(start({ kind: 'count', shared, me }))));
        assert.strictEqual(a[1], 20000);
        console.log('atomics mutex', a[1]);
        await Promise.all([0, 1, 2, 3].map((me) => message(start({ kind: 'turns', shared, me }))));
        let expected = 0;
        for (let n = 0; n < 800; n++) expected = expected * 31 + n % 4 | 0;
        assert.strictEqual(a[3], expected);
        console.log('turns', a[2], a[3]);
        assert.strictEqual(Atomics.wait(a, 8, 0, 20), 'timed-out');

        const pool = [0, 1, 2].map((me) => start({ kind: 'pool', shared, me }));
        const hashes = await new Promise((yes, no) => {
            const got = {};
            let next = 0, done = 0;
            for (const w of pool) {
                w.on('error', no);
                w.on('message', (m) => {
                    got[m.n] = m.hash;
                    if (++done === 300) yes(got);
                    else if (next < 300) w.postMessage({ n: next++ });
                });
                w.postMessage({ n: next++ });
            }
        });
        console.log('pool', crypto.createHash('sha256').update(JSON.stringify(hashes)).digest('hex'));
        const { port1, port2 } = new MessageChannel();
        pool[0].postMessage({ port: port2 }, [port2]);
        let x = 0;
        await new Promise((yes) => {
            port1.on('message', (y) => {
                assert.strictEqual(y, x + 1);
                x = y;
                if (x === 1000) yes(); else port1.postMessage(x);
            });
            port1.postMessage(x);
        });
        port1.close();
        console.log('channel', x);
        await Promise.all(pool.map((w) => w.terminate()));

        const work = [];
        for (let n = 0; n < 24; n++) {
            work.push(util.promisify(crypto.pbkdf2)('secret', 'salt' + n, 400, 32, 'sha256')
                .then((b) => b.toString('hex')));
            work.push(util.promisify(zlib.gzip)('text '.repeat(3000 + n))
                .then(util.promisify(zlib.gunzip)).then((b) => b.length));
            work.push(fs.promises.writeFile(path.join(process.cwd(), 'node.' + n), 'x'.repeat(n)).then(
                () => fs.promises.readFile(path.join(process.cwd(), 'node.' + n))).then((b) => b.length));
        }
        console.log('libuv', crypto.createHash('sha256').update(JSON.stringify(await Promise.all(work))).digest('hex'));
    })().catch((error) => { console.error(error); process.exit(1); });
}
