// The http module: server.js --mode MODE --port N [--tls PEM].
//
// clean  makes strings and drops them
// leak   appends an object with what it answered to an array
// buffers  appends 500 bytes, which come from malloc, to an array
// cache  a Map of 4,000 answers that forgets the oldest: full after 4,000 requests
'use strict';

const http = require('http');

const history = [];
const cached = new Map();

function clean(number) {
  return Array.from({ length: 20 }, (_, n) => `answer ${number + n}`);
}

function leak(number) {
  history.push({ name: `request ${number}`, answer: `answer ${number}`.padEnd(100, '.').toUpperCase() }); // LEAK node-leak
}

function buffers() { // LEAK node-buffers
  history.push(Buffer.allocUnsafeSlow(500).fill(1));
}

function cache(number) {
  if (cached.size === 4000) cached.delete(cached.keys().next().value);
  cached.set(number, `answer ${number}`.padEnd(200, '.').toUpperCase());
}

const options = new Map();
for (let at = 2; at + 1 < process.argv.length; at += 2) options.set(process.argv[at], process.argv[at + 1]);
const work = { clean, leak, buffers, cache }[options.get('--mode') || 'clean'];
const port = Number(options.get('--port') || process.env.PORT || 3030);
let requests = 0;

const answer = (request, response) => {
  work((requests += 1));
  request.resume();
  response.setHeader('Content-Length', 3);
  response.end('ok\n');
};
const withTls = (pem) => require('https').createServer({ cert: pem, key: pem }, answer);
const pem = options.get('--tls');
const server = pem ? withTls(require('fs').readFileSync(pem)) : http.createServer(answer);
server.keepAliveTimeout = 60000;
server.listen(port, process.env.HOST || '127.0.0.1', 512);
