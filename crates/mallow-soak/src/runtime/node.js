// Loaded into Node by `mallow soak`: collects, and tells figures, whenever mallow asks. Every fault is swallowed: the
// program must not notice that this is here, and nothing here keeps it alive.
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

    // The program stands still until it is written.
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
          // What a collection found finalizable goes after the next turn.
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
      // mallow ends a connection only when it ends itself; an error is the program's doing.
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
