// Loaded into Node by `mallow soak`: collects and reports metrics on mallow's request. Every exception is caught: the
// program must not notice this script, which does not keep it alive.
'use strict';

(() => {
  try {
    const name = process.env.MALLOW_SOAK_SOCKET;
    if (!name || name[0] !== '@') return;
    // A worker's heap is its own; the process answers for the main one.
    if (!require('worker_threads').isMainThread) return;
    const net = require('net');
    const v8 = require('v8');
    v8.setFlagsFromString('--expose_gc');
    const collect = require('vm').runInNewContext('gc');

    const answer = () => {
      const memory = process.memoryUsage();
      const figures = Object.assign({}, memory, v8.getHeapStatistics());
      return `${JSON.stringify({
        runtime: 'node',
        pid: process.pid,
        managed_bytes: memory.heapUsed,
        objects: null,
        in_malloc: false,
        figures,
      })}\n`;
    };

    // The program is suspended until it is written.
    const snapshot = (path) => {
      try {
        v8.writeHeapSnapshot(path);
        return '{"snapshot":null}\n';
      } catch (fault) {
        return `${JSON.stringify({ snapshot: String(fault && fault.message) })}\n`;
      }
    };

    let attempts = 0;
    const connect = () => {
      const socket = net.connect({ path: `\0${name.slice(1)}` });
      socket.unref();
      let isLost = false;
      let unread = '';
      socket.on('data', (asked) => {
        try {
          const lines = (unread + asked.toString('utf8')).split('\n');
          unread = lines.pop();
          collect();
          // Finalizers that a collection has scheduled run after the next turn.
          setImmediate(() => {
            try {
              collect();
              for (const line of lines) {
                const isSnapshot = line.startsWith('snapshot ');
                socket.write(isSnapshot ? snapshot(line.slice('snapshot '.length)) : answer());
              }
            } catch (_) {}
          });
        } catch (_) {}
      });
      // mallow ends a connection only when it ends itself; an error is caused by the program.
      socket.on('error', (fault) => {
        isLost = fault.code !== 'ECONNREFUSED';
      });
      socket.on('close', () => {
        attempts += 1;
        if (isLost && attempts < 10) setTimeout(connect, 100).unref();
      });
    };
    connect();
  } catch (_) {}
})();
